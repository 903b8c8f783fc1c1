"""Frame sizes of the mobile systems as the papers count them: a few integers and the payload.

MOB section 5 gives sizes for payloads and headers and calls the rest a few integers. Here every
number, name and flag takes four bytes, a list is preceded by its length, and one byte gives the
type of a frame. The network adds the headers of lower layers. The encoding of `protocols.codecs`
has other sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from beforehand.protocols.contract.base import Message

NUMBER_BYTES = 4
TYPE_BYTES = 1


class Size(NamedTuple):
    control_bytes: int
    """Bytes of everything but the application's payload."""
    payload_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.control_bytes + self.payload_bytes


def size_of(frame: msgspec.Struct) -> Size:
    """Return the size of any frame of any system, computed from its fields."""
    numbers, payload_bytes = _count(frame)
    return Size(TYPE_BYTES + NUMBER_BYTES * numbers, payload_bytes)


def _count(value: Any) -> tuple[int, int]:
    if isinstance(value, Message):
        return 2 + (1 + 2 * len(value.past) if value.past else 0), len(value.payload)
    if isinstance(value, tuple):
        parts, numbers = value, 1
    elif isinstance(value, msgspec.Struct):
        parts, numbers = astuple(value), 0
    else:
        return 1, 0
    payload_bytes = 0
    for part in parts:
        if type(part) is int:  # the common case
            numbers += 1
        else:
            more, inside_bytes = _count(part)
            numbers += more
            payload_bytes += inside_bytes
    return numbers, payload_bytes
