"""What is inside a sealed record: one byte says what, then what it is about.

Frames share a record, so that a seal, which costs the same for a hundred bytes as for a thousand,
is paid once for many small ones.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

from beforehand.runtime.transport.disconnects import Refused
from beforehand.runtime.transport.limits import Limits

INTRODUCTION = 1
KEEP = 2
"""From the smaller name of the two: this connection is the link."""
FRAMES = 3
BEAT = 4
PING = 5
PONG = 6
GOODBYE = 7
"""With the reason, one of the names of `LinkCounters`, or CLOSING."""

CLOSING = "closing"
REASON_BYTES_MAX = 32

BATCH_BYTES = 128 << 10
"""Frames share a record up to this; a longer frame has one of its own."""
FRAME_OVERHEAD = 4
_HEAD = 5
_count = struct.Struct("<I")


def content_bytes_max(limits: Limits) -> int:
    """Of the longest record that a member with these limits seals."""
    return _HEAD + max(BATCH_BYTES, FRAME_OVERHEAD + limits.frame_bytes_max)


def pack_frames(frames: Sequence[bytes]) -> bytes:
    count = len(frames)
    lengths = struct.pack(f"<{count}I", *map(len, frames))
    return b"".join((b"\3", _count.pack(count), lengths, *frames))


def count_frames(content: bytes) -> int:
    """As the record claims, before anything is made of it."""
    if len(content) < _HEAD:
        raise Refused("malformed", "a record of frames without their number")
    claimed: int = _count.unpack_from(content, 1)[0]
    return claimed


def unpack_frames(content: bytes, frame_bytes_max: int) -> list[bytes]:
    """Refused unless it is what `pack_frames` makes."""
    count = count_frames(content)
    start = _HEAD + FRAME_OVERHEAD * count
    if count == 0 or start > len(content):
        raise Refused("malformed", f"a record of {len(content)} bytes with {count} frames")
    lengths = struct.unpack_from(f"<{count}I", content, _HEAD)
    if max(lengths) > frame_bytes_max:
        raise Refused("too_large", f"a frame of {max(lengths):,} bytes")
    if min(lengths) == 0 or start + sum(lengths) != len(content):
        raise Refused("malformed", "frames that do not fill their record, or an empty one")
    ends = accumulate(lengths, initial=start)
    return [content[begin:end] for begin, end in pairwise(ends)]


def pack_goodbye(reason: str) -> bytes:
    return bytes([GOODBYE]) + reason.encode()


def unpack_goodbye(content: bytes) -> str:
    """The reason; anything but a short word of letters is none."""
    reason = content[1:].decode("ascii", "replace")
    if len(reason) <= REASON_BYTES_MAX and reason.replace("_", "").isalpha():
        return reason
    raise Refused("malformed", "a goodbye without a reason")
