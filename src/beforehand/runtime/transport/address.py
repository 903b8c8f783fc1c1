"""The address at which a node listens: host and port."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import msgspec

from beforehand.errors import InputError

PORT_MAX = 65535
HINT = "write `host:port`, and `[::1]:7400` for an IPv6 address"


class Address(msgspec.Struct, frozen=True, order=True):
    """A TCP endpoint. For a listener, port 0 means any free port."""

    host: str
    """A host name or an IP address. For a listener, an empty host means all interfaces."""
    port: int

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise InputError(f"no such port: {self.port}", hint=f"ports end at {PORT_MAX}")

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse `host:port` or `[v6]:port`; raise `InputError` for anything else."""
        host, colon, digits = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host or "[" in host or "]" in host:
            # Without brackets it is ambiguous where an IPv6 address ends and the port begins.
            colon = ""
        if not colon or not digits.isascii() or not digits.isdecimal():
            raise InputError(f"not an address: `{text}`", hint=HINT)
        return cls(host, int(digits[:9]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_all(texts: str | Sequence[str]) -> list[Address]:
    """Parse one address, or a sequence of them."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        return [Address.parse(texts)]
    return [Address.parse(text) for text in texts]


def limit_key(host: str) -> str:
    """Return the key under which connections count towards a limit per address.

    For IPv6 it is the /64 prefix, because one machine usually owns all addresses of a /64.
    """
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Address(found.packed[:8] + bytes(8)))
