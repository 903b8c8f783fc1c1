"""The maximum length of a message: it must fit into every radio frame that may carry it.

A host sends its message in a `HostBroadcast`. Stations send the same message in a `Cast` or a
`CatchUp`, which have other fields, and each station has a name of its own. A message that fits only
into a `HostBroadcast` would still take a sequence number in each cell, and no host there could
deliver anything after it.
"""

from __future__ import annotations

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.mobile.was.frames import Cast, CatchUp, Frame, HostBroadcast, messages_of

COUNT_MAX = (1 << 62) - 1
VERSION_BYTES = 1
"""Length of the version that a codec puts before a frame."""

_encode = msgspec.msgpack.encode


def message_bytes(message: Message) -> int:
    """Return the encoded length of a message within a frame."""
    return len(_encode(message))


def are_short(frame: Frame, bytes_max: int | None) -> bool:
    """Return whether no message in a frame is longer than `bytes_max`; None: no limit."""
    if bytes_max is None:
        return True
    return all(message_bytes(message) <= bytes_max for message in messages_of(frame))


def refuse_long(message: Message, bytes_max: int | None) -> None:
    """Raise LocalError for a message that stations would refuse."""
    if bytes_max is not None and (size := message_bytes(message)) > bytes_max:
        problem = f"a message of {size:,} bytes by radio; {bytes_max:,} are allowed"
        raise LocalError(problem, hint="divide the payload, or broadcast where it can be had")


def message_bytes_max(frame_bytes_max: int, name_bytes_max: int) -> int:
    """Return the length of the longest message that fits into every radio frame.

    frame_bytes_max: maximum length of an encoded frame.
    name_bytes_max: maximum length of the name of a host or a station.
    """
    name, message = "x" * name_bytes_max, Message(("", 0), (), b"")
    carriers = (
        HostBroadcast(name, name, COUNT_MAX, message),
        Cast(name, COUNT_MAX, message),
        CatchUp(name, name, COUNT_MAX, COUNT_MAX, message),
    )
    longest = max(len(_encode(carrier)) for carrier in carriers)
    return frame_bytes_max - VERSION_BYTES - (longest - message_bytes(message))
