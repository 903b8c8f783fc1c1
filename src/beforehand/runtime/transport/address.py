"""Where a node listens: a host and a port, as one writes them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import msgspec

from beforehand.errors import InputError

PORT_MAX = 65535
HINT = "write `host:port`, and `[::1]:7400` for an IPv6 address"


class Address(msgspec.Struct, frozen=True, order=True):
    """A TCP end point. Port 0, where one listens: any that is free."""

    host: str
    """A name, or an IP address; empty, where one listens: every interface."""
    port: int

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise InputError(f"no such port: {self.port}", hint=f"ports end at {PORT_MAX}")

    @classmethod
    def parse(cls, text: str) -> Address:
        """From `host:port` or `[v6]:port`."""
        host, colon, digits = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host or "[" in host or "]" in host:
            colon = ""  # an IPv6 address without its brackets: where does the port begin?
        if not colon or not digits.isascii() or not digits.isdecimal():
            raise InputError(f"not an address: `{text}`", hint=HINT)
        return cls(host, int(digits[:9]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_all(texts: str | Sequence[str]) -> list[Address]:
    """Of one, or of several."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        return [Address.parse(texts)]
    return [Address.parse(text) for text in texts]


def neighbourhood(host: str) -> str:
    """What counts as one address for a limit per address.

    Whoever has one IPv6 address has a whole /64 of them, so that is what is counted.
    """
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Address(found.packed[:8] + bytes(8)))
