"""Bytes on their way in, frames on their way out: what a link keeps meanwhile, copied little."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from beforehand.runtime.transport.records import BATCH_BYTES, FRAME_OVERHEAD


class ReadBuffer:
    """What came and was not taken yet. The socket writes into it, so nothing is joined."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """That it has, unless a record needs more."""
        self._view = memoryview(bytearray(capacity))
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._end == len(self._view):
            self.reserve(len(self) + self.capacity)
        return self._view[self._end :]

    def filled(self, count: int) -> None:
        """So many bytes were put into `space`."""
        self._end += count

    def peek(self, count: int) -> bytes:
        return bytes(self._view[self._start : min(self._start + count, self._end)])

    def take(self, count: int) -> bytes:
        taken = self.peek(count)
        self._start += len(taken)
        return taken

    def reserve(self, wanted: int) -> None:
        """Be ready for so many bytes from where we are."""
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + wanted > len(self._view):
            # Twice as much: where one long record comes, the next is not far.
            size = len(self._view) if wanted <= len(self._view) else 2 * wanted
            self._resize(size)

    def relax(self) -> None:
        """Give back what was needed for long records, unless one is under way."""
        if self._start == self._end and len(self._view) > self.capacity:
            self._resize(self.capacity)

    def _resize(self, size: int) -> None:
        left = self.peek(len(self))
        if len(self._view) != size:
            self._view = memoryview(bytearray(size))
        self._view[: len(left)] = left
        self._start, self._end = 0, len(left)

    def clear(self) -> None:
        self.capacity = 1
        self._view = memoryview(bytearray(1))
        self._start = self._end = 0


class SendQueue:
    """Frames that wait, in the batches in which they leave."""

    def __init__(self) -> None:
        self.bytes = 0
        """Of all that wait, with what each adds to its record."""
        self._batches: deque[list[bytes]] = deque()
        self._last_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def put(self, frames: Sequence[bytes], sizes: Sequence[int]) -> None:
        total = sum(sizes) + FRAME_OVERHEAD * len(sizes)
        self.bytes += total
        if total <= BATCH_BYTES:
            self._append(frames, total)
            return
        ends = [0, *accumulate(size + FRAME_OVERHEAD for size in sizes)]
        begin = 0
        while begin < len(frames):
            # As many as fit into one batch, and one at least.
            end = max(bisect_right(ends, ends[begin] + BATCH_BYTES) - 1, begin + 1)
            self._append(frames[begin:end], ends[end] - ends[begin])
            begin = end

    def _append(self, frames: Sequence[bytes], total: int) -> None:
        if self._batches and self._last_bytes + total <= BATCH_BYTES:
            self._batches[-1].extend(frames)
            self._last_bytes += total
        else:
            self._batches.append(list(frames))
            self._last_bytes = total

    def next_batch(self) -> list[bytes]:
        batch = self._batches.popleft()
        self.bytes -= sum(map(len, batch)) + FRAME_OVERHEAD * len(batch)
        return batch

    def clear(self) -> None:
        self._batches.clear()
        self.bytes = 0
