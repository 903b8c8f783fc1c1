"""The file that lists the members of an overlay and their addresses, in TOML or JSON.

group = "ring"

[[member]]
name = "ann"
address = "10.0.0.1:7001"
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from beforehand.errors import InputError
from beforehand.files import read_text
from beforehand.runtime.crypto.keys import flaw_of_name
from beforehand.runtime.transport.address import Address

MEMBERS_MAX = 256
"""Upper limit, because every member has a link with every other one."""
HINT = "docs/sockets.md shows such a file"

T = TypeVar("T")


class _Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    address: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: str
    member: tuple[_Member, ...]


class Members(msgspec.Struct, frozen=True):
    """The members in the order of the file. All members need the same order, because it numbers
    them."""

    group: str
    names: tuple[str, ...]
    addresses: tuple[Address, ...]

    @property
    def mark(self) -> str:
        """A hash of the list of names, in this order."""
        listed = msgspec.msgpack.encode((self.group, self.names))
        return hashlib.blake2b(listed, digest_size=8).hexdigest()

    def number(self, name: str) -> int:
        """Return the number of a member; raise `InputError` if the name is not listed."""
        if name not in self.names:
            listed = ", ".join(f"`{known}`" for known in self.names[:20])
            raise InputError(f"`{name}` is not a member", hint=f"members are {listed}")
        return self.names.index(name)


def read_members(path: Path) -> Members:
    """Read the members file; raise `InputError` if it is not valid."""
    found = decode_file(path, _File, HINT)
    names = tuple(member.name for member in found.member)
    check_names(path, "group", [found.group], HINT)
    check_names(path, "member", names, HINT)
    if not 2 <= len(names) <= MEMBERS_MAX:
        problem = f"{len(names)} members; an overlay has 2 to {MEMBERS_MAX}"
        raise InputError(problem, where=str(path), hint=HINT)
    addresses = tuple(parse_address(path, member.address) for member in found.member)
    if len(set(addresses)) < len(addresses):
        problem = "two members have the same address"
        raise InputError(problem, where=str(path), hint="each listens at its own")
    return Members(found.group, names, addresses)


def decode_file(path: Path, kind: type[T], hint: str) -> T:
    """Decode a TOML file, or a JSON file if its name ends with `.json`."""
    text = read_text(path, hint=hint)
    try:
        if path.suffix == ".json":
            return msgspec.json.decode(text, type=kind)
        content: dict[str, Any] = tomllib.loads(text)
        return msgspec.convert(content, kind)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"not a valid file: {error}", where=str(path), hint=hint) from error


def check_names(path: Path, what: str, names: tuple[str, ...] | list[str], hint: str) -> None:
    """Raise `InputError` unless all names are valid and distinct."""
    for name in names:
        if flaw := flaw_of_name(name):
            raise InputError(f"no name for a {what}: {flaw}", where=str(path), hint=hint)
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InputError(f"two entries are named `{twice[0]}`", where=str(path), hint=hint)


def parse_address(path: Path, text: str) -> Address:
    """Return the address; raise `InputError` unless it has a host and a port."""
    try:
        address = Address.parse(text)
    except InputError as error:
        raise InputError(error.problem, where=str(path), hint=error.hint) from error
    if not address.host or not address.port:
        problem = f"an unreachable address: `{text}`"
        raise InputError(problem, where=str(path), hint="write `host:port`")
    return address
