"""A reliable FIFO channel between two stations, over links that break and come back.

No frame is lost, duplicated or reordered. Frames are split into numbered parts, which the sender
keeps until they are acknowledged. On link-up both ends exchange their incarnation and the number of
parts received, and then retransmit the missing ones.

A station that restarts has lost its state, and is not the same station. Its peers in the tree
detect the new incarnation and report the loss instead of continuing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from beforehand.errors import InputError, RemoteError
from beforehand.protocols.contract.base import Count

PART_BYTES = 128 << 10
"""A longer frame is split into parts of this size."""
WIRE_BYTES_MAX = 256 << 20
"""Bytes that may wait for a peer. A station that would have to keep more fails."""
ACK_PARTS = 64
"""Received parts after which an acknowledgement is sent at once."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first record on a link."""

    incarnation: Count
    known: Count
    """The incarnation of the other end as this end knows it; 0 if they never had a link."""
    received: Count
    """The number of parts received."""


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """A piece of a frame."""

    number: Count
    is_last: bool
    """Whether it is the last part of its frame."""
    data: bytes


class Ack(msgspec.Struct, frozen=True, array_like=True, tag="ack"):
    """An acknowledgement of all parts up to a number."""

    received: Count


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Hello | Part | Ack).decode


class ReliableChannel:
    """One end of a channel. It does no I/O: its owner sends the bytes that it returns."""

    def __init__(self, peer: str, incarnation: int, on_frame: Callable[[bytes], None]) -> None:
        """incarnation: of this process, above 0.
        on_frame: called with each complete frame."""
        self.peer = peer
        self._incarnation = incarnation
        self._on_frame = on_frame
        self._peer_incarnation = 0
        # Parts sent on this link, or acknowledged before it came up.
        self._sent = 0
        self._sent_ever = 0
        self._first = 1  # number of the oldest part that is kept
        self._kept: deque[tuple[bytes, bool]] = deque()
        self._kept_bytes = 0
        self._received = 0
        self._acknowledged = 0
        self._assembled = bytearray()
        self._is_met = False
        self.is_dropped = False
        """Whether the channel is over: the peer was restarted, or away for too long."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of all parts that are not acknowledged."""
        return self._kept_bytes

    def add(self, frame: bytes) -> None:
        """Queue a frame; it is delivered reliably and in order.

        If more than WIRE_BYTES_MAX would wait, drop the peer: the tree goes on without it and
        what lies behind it.
        """
        if self.is_dropped:
            return
        self._kept_bytes += len(frame)
        if self._kept_bytes > WIRE_BYTES_MAX:
            self._drop_peer()
            return
        for start in range(0, len(frame), PART_BYTES):
            end = start + PART_BYTES
            self._kept.append((frame[start:end], end >= len(frame)))

    def on_link(self, is_up: bool) -> bytes | None:
        """Return the hello to send on link-up; None on link-down."""
        self._is_met = False
        return (
            _encode(Hello(self._incarnation, self._peer_incarnation, self._received))
            if is_up
            else None
        )

    def next_parts(self) -> Iterator[bytes]:
        """Yield the parts to send now; each counts as sent once it is taken."""
        while self._is_met and self._sent < self._first - 1 + len(self._kept):
            data, is_last = self._kept[self._sent + 1 - self._first]
            self._sent += 1
            self._sent_ever = max(self._sent_ever, self._sent)
            yield _encode(Part(self._sent, is_last, data))

    def on_data(self, data: bytes) -> None:
        """Process a record of the other end.

        Raise `RemoteError` if it is not valid, or if the other end has restarted. Raise
        `InputError` if this end has restarted.
        """
        try:
            frame = _decode(data)
        except msgspec.MsgspecError as error:
            raise RemoteError(f"not a record of a channel: {error}", where=self.peer) from error
        if isinstance(frame, Hello):
            self._on_hello(frame)
        elif not self._is_met:
            raise RemoteError("the first record is not a hello", where=self.peer)
        elif isinstance(frame, Part):
            self._on_part(frame)
        else:
            self._drop(frame.received)

    def owes_ack(self) -> bool:
        """Return whether received parts are not acknowledged yet."""
        return self._is_met and self._received > self._acknowledged

    def must_ack(self) -> bool:
        """Return whether so many are not acknowledged that the acknowledgement must be sent now."""
        return self._is_met and self._received >= self._acknowledged + ACK_PARTS

    def ack(self) -> bytes:
        """Return the acknowledgement of all parts received."""
        self._acknowledged = self._received
        return _encode(Ack(self._received))

    def _on_hello(self, hello: Hello) -> None:
        if hello.known not in (0, self._incarnation):
            problem = f"station `{self.peer}` knows an earlier incarnation of this one"
            hint = "a station cannot rejoin alone: restart all stations of the tree"
            raise InputError(problem, hint=hint)
        if self._peer_incarnation and hello.incarnation != self._peer_incarnation:
            self._drop_peer()
        if self.is_dropped:
            problem = "it was restarted or away for too long, and lost the state of the channel"
            raise RemoteError(problem, where=self.peer)
        if hello.known == 0 and hello.received:
            raise RemoteError("it acknowledges parts of an unknown incarnation", where=self.peer)
        self._peer_incarnation = hello.incarnation
        self._drop(hello.received)
        self._sent = hello.received
        self._acknowledged = self._received
        self._is_met = True

    def _on_part(self, part: Part) -> None:
        # Retransmission starts at the number that our hello asked for, so no part comes twice.
        if part.number != self._received + 1:
            raise RemoteError(f"part {part.number} is out of order", where=self.peer)
        self._received += 1
        self._assembled += part.data
        if len(self._assembled) > WIRE_BYTES_MAX:
            raise RemoteError(f"a frame of more than {WIRE_BYTES_MAX:,} bytes", where=self.peer)
        if part.is_last:
            frame, self._assembled = bytes(self._assembled), bytearray()
            self._on_frame(frame)

    def _drop_peer(self) -> None:
        """Keep nothing for the peer any more."""
        self.is_dropped, self._is_met = True, False
        self._kept.clear()
        self._kept_bytes = 0

    def _drop(self, received: int) -> None:
        """Forget the parts that the other end has received."""
        if not self._first - 1 <= received <= self._sent_ever:
            problem = f"it acknowledges {received} parts, and {self._sent_ever} were sent"
            raise RemoteError(problem, where=self.peer)
        while self._first <= received:
            data, _ = self._kept.popleft()
            self._kept_bytes -= len(data)
            self._first += 1
