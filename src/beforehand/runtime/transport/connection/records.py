"""The content of an encrypted record: one byte for its kind, then its fields.

Frames share a record. Encryption costs about the same for 100 bytes as for 1,000, so many small
frames in one record are cheaper.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

from beforehand.runtime.transport.disconnects import Refused
from beforehand.runtime.transport.limits import Limits

INTRODUCTION = 1
KEEP = 2
"""Sent by the end with the smaller name: this connection becomes the link."""
FRAMES = 3
BEAT = 4
PING = 5
PONG = 6
GOODBYE = 7
"""Contains the reason: a name of a counter in `LinkCounters`, or CLOSING."""
NOTICE = 8
"""Contains the time at which the secret of the link ends, in microseconds since the epoch."""

CLOSING = "closing"
NORMAL_ENDS = (CLOSING, "redundant", "replaced", "own_address", "rotated")
"""Reasons that are no fault of either end. The end with the newer key says `rotated`."""
REASON_BYTES_MAX = 32

BATCH_BYTES = 128 << 10
"""Frames share a record up to this size; a longer frame has its own record."""
FRAME_OVERHEAD = 4
"""Bytes that each frame adds to its record."""
_HEAD = 5
TIME_US_MAX = 253_402_300_799_000_000
"""The end of the year 9999, up to which calendars are defined."""
_count = struct.Struct("<I")
_time = struct.Struct("<Q")


def content_bytes_max(limits: Limits) -> int:
    """Return the size of the longest record that a peer with these limits sends."""
    return _HEAD + max(BATCH_BYTES, FRAME_OVERHEAD + limits.frame_bytes_max)


def pack_frames(frames: Sequence[bytes]) -> bytes:
    """Return the content of a record with these frames."""
    count = len(frames)
    lengths = struct.pack(f"<{count}I", *map(len, frames))
    return b"".join((b"\3", _count.pack(count), lengths, *frames))


def count_frames(content: bytes) -> int:
    """Return the number of frames that the record claims, without decoding them."""
    if len(content) < _HEAD:
        raise Refused("malformed", "a record of frames without their number")
    claimed: int = _count.unpack_from(content, 1)[0]
    return claimed


def unpack_frames(content: bytes, frame_bytes_max: int) -> list[bytes]:
    """Return the frames of a record; raise `Refused` unless `pack_frames` could have made it."""
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


def pack_notice(ends_us: int) -> bytes:
    return bytes([NOTICE]) + _time.pack(ends_us)


def unpack_notice(content: bytes) -> int:
    """Return when the secret of the link ends; raise `Refused` for another length."""
    if len(content) != 1 + _time.size:
        raise Refused("malformed", f"a notice of {len(content)} bytes")
    ends_us: int = _time.unpack_from(content, 1)[0]
    if ends_us > TIME_US_MAX:
        raise Refused("malformed", f"a notice of the time {ends_us}")
    return ends_us


def pack_goodbye(reason: str) -> bytes:
    return bytes([GOODBYE]) + reason.encode()


def unpack_goodbye(content: bytes) -> str:
    """Return the reason; raise `Refused` unless it is a short word of letters."""
    reason = content[1:].decode("ascii", "replace")
    if len(reason) <= REASON_BYTES_MAX and reason.replace("_", "").isalpha():
        return reason
    raise Refused("malformed", "a goodbye without a reason")
