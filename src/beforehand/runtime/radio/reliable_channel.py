"""A wire between two stations: nothing is lost, doubled or overtaken, though links come and go.

Frames are numbered, and kept until the other end says that it has them. A link that comes up begins
with both ends saying who they are, in which life, and what they have; then what is missing is sent
again. A station that comes back without its memory is not the same one: what it was told is lost,
and its neighbours say so instead of going on as if nothing had happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from beforehand.errors import InputError, RemoteError
from beforehand.protocols.contract.base import Count

PART_BYTES = 128 << 10
"""A longer frame travels in parts."""
WIRE_BYTES_MAX = 256 << 20
"""That wait for a neighbour. A station that would have to keep more gives up."""
ACK_PARTS = 64
"""After so many parts they are acknowledged at once."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first word on a link."""

    incarnation: Count
    known: Count
    """The life of the other end, as far as this one knows; 0: it never heard of it."""
    received: Count
    """How many parts it has."""


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    number: Count
    is_last: bool
    """Of its frame."""
    data: bytes


class Ack(msgspec.Struct, frozen=True, array_like=True, tag="ack"):
    received: Count


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Hello | Part | Ack).decode


class ReliableChannel:
    """One end. It says what to send; its owner has the link."""

    def __init__(self, neighbour: str, incarnation: int, on_frame: Callable[[bytes], None]) -> None:
        """life: of this process, above 0."""
        self.neighbour = neighbour
        self._incarnation = incarnation
        self._on_frame = on_frame
        self._theirs = 0
        self._sent = 0  # parts that were put on this link, or before that acknowledged
        self._sent_ever = 0
        self._first = 1  # the number of the first that is kept
        self._kept: deque[tuple[bytes, bool]] = deque()
        self._kept_bytes = 0
        self._received = 0
        self._acknowledged = 0
        self._assembled = bytearray()
        self._is_met = False

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def add(self, frame: bytes) -> None:
        """It will arrive, in its turn."""
        self._kept_bytes += len(frame)
        if self._kept_bytes > WIRE_BYTES_MAX:
            problem = f"station `{self.neighbour}` is away, and {self._kept_bytes:,} bytes wait"
            raise InputError(problem, hint="stations do not fail: bring it back, or restart all")
        for start in range(0, len(frame), PART_BYTES):
            end = start + PART_BYTES
            self._kept.append((frame[start:end], end >= len(frame)))

    def on_link(self, is_up: bool) -> bytes | None:
        """What to say first."""
        self._is_met = False
        return _encode(Hello(self._incarnation, self._theirs, self._received)) if is_up else None

    def next_parts(self) -> Iterator[bytes]:
        """What is to be sent now; each counts as sent when it is taken."""
        while self._is_met and self._sent < self._first - 1 + len(self._kept):
            data, is_last = self._kept[self._sent + 1 - self._first]
            self._sent += 1
            self._sent_ever = max(self._sent_ever, self._sent)
            yield _encode(Part(self._sent, is_last, data))

    def on_data(self, data: bytes) -> None:
        """RemoteError for what no station says, and for one that has forgotten; InputError if it is
        this one that has."""
        try:
            frame = _decode(data)
        except msgspec.MsgspecError as error:
            raise RemoteError(f"no word of a wire: {error}", where=self.neighbour) from error
        if isinstance(frame, Hello):
            self._on_hello(frame)
        elif not self._is_met:
            raise RemoteError("a wire that begins without a greeting", where=self.neighbour)
        elif isinstance(frame, Part):
            self._on_part(frame)
        else:
            self._drop(frame.received)

    def owes_ack(self) -> bool:
        """Whether something was received that was not acknowledged."""
        return self._is_met and self._received > self._acknowledged

    def must_ack(self) -> bool:
        """And whether it is so much that it cannot wait."""
        return self._is_met and self._received >= self._acknowledged + ACK_PARTS

    def ack(self) -> bytes:
        self._acknowledged = self._received
        return _encode(Ack(self._received))

    def _on_hello(self, hello: Hello) -> None:
        if hello.known not in (0, self._incarnation):
            problem = f"station `{self.neighbour}` knows an earlier life of this one"
            hint = "a station does not come back: restart all stations of the tree"
            raise InputError(problem, hint=hint)
        if self._theirs and hello.incarnation != self._theirs:
            problem = "it was restarted, and has forgotten what it was told"
            raise RemoteError(problem, where=self.neighbour)
        if hello.known == 0 and hello.received:
            raise RemoteError("it has parts of nobody", where=self.neighbour)
        self._theirs = hello.incarnation
        self._drop(hello.received)
        self._sent = hello.received
        self._acknowledged = self._received
        self._is_met = True

    def _on_part(self, part: Part) -> None:
        # What is sent again begins with what the greeting asked for, so nothing comes twice.
        if part.number != self._received + 1:
            raise RemoteError(f"part {part.number} is out of turn", where=self.neighbour)
        self._received += 1
        self._assembled += part.data
        if len(self._assembled) > WIRE_BYTES_MAX:
            raise RemoteError("a frame without an end", where=self.neighbour)
        if part.is_last:
            frame, self._assembled = bytes(self._assembled), bytearray()
            self._on_frame(frame)

    def _drop(self, received: int) -> None:
        if not self._first - 1 <= received <= self._sent_ever:
            raise RemoteError(f"it has {received} parts, but was not sent so", where=self.neighbour)
        while self._first <= received:
            data, _ = self._kept.popleft()
            self._kept_bytes -= len(data)
            self._first += 1
