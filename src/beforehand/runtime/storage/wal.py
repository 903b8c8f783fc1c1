"""SQLite's log beside a store, before SQLite reads it.

SQLite takes up the log to the first frame that is not whole, and says nothing of what lies behind
it. After a crash that is right: nothing does, or what was not synced yet. A frame that has changed
on the disk would take with it all that was acknowledged after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

SUFFIX = "-wal"
MAGIC = 0x377F0682
"""Of a log whose checksums are sums of little-endian words; with one more, of big-endian ones."""
_HEAD = struct.Struct(">8I")
"""Magic, version, page size, a counter, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""Page, pages after a commit (0: none), two salts, two checksums."""
UNSYNCED_COMMITS_MAX = 1
"""What a loss of power may leave half-written: the next begins when this is on the disk."""
_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


def log_of(store: Path) -> Path:
    return store.with_name(store.name + SUFFIX)


def lost_commits(log: Path, page_bytes: int) -> int:
    """Transactions that were written whole, and that SQLite would pass over; 0 for a log that ends
    as a crash ends it. page_bytes: as the store has them, for a log whose own head is broken."""
    if not log.exists():
        return 0
    with log.open("rb") as opened:
        head = opened.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return 0
        magic, _, its_page_bytes, _, *salts, first, second = _HEAD.unpack(head)
        order = "<" if magic == MAGIC else ">"
        sums = _add(order, head[:24], (0, 0))
        is_whole = magic in (MAGIC, MAGIC + 1) and sums == (first, second)
        if not is_whole:
            its_page_bytes, salts = page_bytes, []  # what it says of itself is not true
        lost = 0
        for frame, page in _frames(opened, its_page_bytes):
            _, is_commit, *its_salts, first, second = _FRAME.unpack(frame)
            salts = salts or its_salts
            if is_whole:
                sums = _add(order, page, _add(order, frame[:8], sums))
                is_whole = its_salts == salts and sums == (first, second)
            if not is_whole and its_salts == salts:
                lost += bool(is_commit)
    return lost if lost > UNSYNCED_COMMITS_MAX else 0


def _frames(opened: BinaryIO, page_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    size = _FRAME.size + page_bytes
    while len(frame := opened.read(size)) == size:
        yield frame[: _FRAME.size], frame[_FRAME.size :]


def _add(order: str, data: bytes, sums: Sums) -> Sums:
    """SQLite's checksum (its file format, section 4.2)."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second
