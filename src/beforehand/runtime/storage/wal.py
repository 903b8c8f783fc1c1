"""A check of SQLite's write-ahead log (WAL), made before SQLite reads it.

SQLite applies the WAL up to the first invalid frame and silently ignores everything behind it. That
is right after a crash: only unsynced frames can follow. But if a synced frame was damaged on the
disk, all transactions after it would be lost, although they were acknowledged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

SUFFIX = "-wal"
MAGIC = 0x377F0682
"""Magic number of a WAL with little-endian checksums; big-endian ones have this plus one."""
_HEAD = struct.Struct(">8I")
"""Magic, version, page size, checkpoint counter, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""Page number, database size in pages after a commit (0: no commit frame), two salts, two
checksums."""
UNSYNCED_COMMITS_MAX = 1
"""Commits that a power loss may leave incomplete: a commit starts when the last one is synced."""
_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


def log_of(store: Path) -> Path:
    """Return the path of a store's WAL."""
    return store.with_name(store.name + SUFFIX)


def lost_commits(log: Path, page_bytes: int) -> int:
    """Return how many complete transactions SQLite would ignore; 0 for a WAL as a crash leaves it.

    page_bytes: the page size of the store, used if the header of the WAL is damaged.
    """
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
            its_page_bytes, salts = page_bytes, []  # a damaged header cannot be trusted
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
    """Yield the header and the page of each complete frame."""
    size = _FRAME.size + page_bytes
    while len(frame := opened.read(size)) == size:
        yield frame[: _FRAME.size], frame[_FRAME.size :]


def _add(order: str, data: bytes, sums: Sums) -> Sums:
    """Continue SQLite's checksum over `data` (SQLite file format, section 4.2)."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second
