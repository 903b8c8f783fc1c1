"""The read buffer and the send queue of a link, with few copies."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from beforehand.runtime.transport.connection.records import BATCH_BYTES, FRAME_OVERHEAD


class ReadBuffer:
    """Bytes received and not yet processed. The socket writes into it directly."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """Normal size in bytes. It grows for a longer record."""
        self._view = memoryview(bytearray(capacity))
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def space(self) -> memoryview:
        """Return the free part of the buffer, for the socket to write to; never empty."""
        if self._end == len(self._view):
            self.reserve(len(self) + self.capacity)
        return self._view[self._end :]

    def filled(self, count: int) -> None:
        """Count bytes as received that the socket wrote into `space`."""
        self._end += count

    def peek(self, count: int) -> bytes:
        """Return up to `count` bytes without removing them."""
        return bytes(self._view[self._start : min(self._start + count, self._end)])

    def take(self, count: int) -> bytes:
        """Remove and return up to `count` bytes."""
        taken = self.peek(count)
        self._start += len(taken)
        return taken

    def reserve(self, wanted: int) -> None:
        """Make room for `wanted` bytes from the first unprocessed byte on."""
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + wanted > len(self._view):
            # Twice as much, because long records tend to follow one another.
            size = len(self._view) if wanted <= len(self._view) else 2 * wanted
            self._resize(size)

    def relax(self) -> None:
        """Shrink to the normal size, unless a record is incomplete."""
        if self._start == self._end and len(self._view) > self.capacity:
            self._resize(self.capacity)

    def _resize(self, size: int) -> None:
        left = self.peek(len(self))
        if len(self._view) != size:
            self._view = memoryview(bytearray(size))
        self._view[: len(left)] = left
        self._start, self._end = 0, len(left)

    def clear(self) -> None:
        """Drop the content and free the memory."""
        self.capacity = 1
        self._view = memoryview(bytearray(1))
        self._start = self._end = 0


class SendQueue:
    """Frames to send, grouped into the batches that share a record."""

    def __init__(self) -> None:
        self.bytes = 0
        """Bytes of all queued frames, including FRAME_OVERHEAD for each."""
        self._batches: deque[list[bytes]] = deque()
        self._last_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def put(self, frames: Sequence[bytes], sizes: Sequence[int]) -> None:
        """Queue frames in order; `sizes` are their lengths."""
        total = sum(sizes) + FRAME_OVERHEAD * len(sizes)
        self.bytes += total
        if total <= BATCH_BYTES:
            self._append(frames, total)
            return
        ends = [0, *accumulate(size + FRAME_OVERHEAD for size in sizes)]
        begin = 0
        while begin < len(frames):
            # As many as fit into one batch, but at least one.
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
        """Remove and return the oldest batch."""
        batch = self._batches.popleft()
        self.bytes -= sum(map(len, batch)) + FRAME_OVERHEAD * len(batch)
        return batch

    def clear(self) -> None:
        self._batches.clear()
        self.bytes = 0
