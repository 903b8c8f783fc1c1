"""Frames as bytes, for any family: a version byte, then the frame as MessagePack.

A family is a type: one tagged, array-like struct or a union of them. Its fields say what a peer may
send (`protocols.contract.base` has the bounds); what types cannot say, a frame says in `flaw() ->
str`.

Every frame has one encoding. Bytes that decode to a frame but are not what `encode` gives for it
are refused: that finds ids that stand twice in a set, sets out of order, fields too many or too
few, and numbers written longer than they need be. So what a node takes in it can pass on, byte
for byte, and a signature or a checksum over a frame means something.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, get_args

import msgspec

from beforehand.errors import BeforehandError, LocalError, RemoteError
from beforehand.protocols.contract.base import FrameT

WIRE_VERSION = 2
BYTES_MAX = 1 << 20
BROKEN_PEER = "drop the link: the peer runs something else, or is hostile"

Item = TypeVar("Item")

_VERSION_BYTE = bytes([WIRE_VERSION])


class Codec(Generic[FrameT]):
    """The wire of one family. It keeps no state between calls."""

    def __init__(self, family: str, frames: Any, *, bytes_max: int = BYTES_MAX) -> None:
        """frames: a struct or a union of structs, each with a tag of its own.

        bytes_max: the same for all nodes of a group, else one sends what another refuses.
        """
        self.family = family
        self.frames = frames
        self.kinds: tuple[Any, ...] = get_args(frames) or (frames,)
        self.bytes_max = bytes_max
        assert all(kind.__struct_config__.tag is not None for kind in self.kinds), "tags are needed"
        self._flaws = {kind: kind.flaw for kind in self.kinds if hasattr(kind, "flaw")}
        self._decoder: msgspec.msgpack.Decoder[FrameT] = msgspec.msgpack.Decoder(frames)
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")

    def encode(self, frame: FrameT) -> bytes:
        """The bytes of a frame; LocalError if no peer would take them."""
        if type(frame) not in self.kinds:
            raise LocalError(
                f"not a frame of this family: {type(frame).__name__}",
                where=self.family,
                hint="frames are " + ", ".join(kind.__name__ for kind in self.kinds),
            )
        try:
            data = self._pack(frame)
            self._read(data)
        except (OverflowError, TypeError, ValueError, RemoteError) as error:
            problem, where = _told(error)
            raise LocalError(
                f"a frame that no peer would take: {problem}",
                where=where or f"{self.family}: {type(frame).__name__}",
                hint=f"names, numbers and sizes have bounds (a frame: {self.bytes_max} bytes)",
            ) from error
        return data

    def decode(self, data: bytes | bytearray | memoryview) -> FrameT:
        """The frame, or RemoteError. Nothing else is ever raised, whatever the bytes are."""
        frame = self._read(data)
        if self._pack(frame) != data:
            raise self._refusal(
                "not in canonical form: fields, an order or lengths differ",
                data,
                type(frame).__name__,
                "sets are sorted and hold nothing twice, numbers are as short as can be",
            )
        return frame

    def _read(self, data: bytes | bytearray | memoryview) -> FrameT:
        """All checks but that of the canonical form."""
        self._refuse_unread(data)
        try:
            frame = self._decoder.decode(memoryview(data)[1:])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problem, where = _told(error)
            raise self._refusal(f"not a frame: {problem}", data, where, BROKEN_PEER) from error
        kind = type(frame)
        flaw = self._flaws[kind](frame) if kind in self._flaws else ""
        if flaw:
            raise self._refusal(f"contradicts itself: {flaw}", data, kind.__name__, BROKEN_PEER)
        return frame

    def _pack(self, frame: FrameT) -> bytes:
        try:
            return _VERSION_BYTE + self._encoder.encode(frame)
        except TypeError:  # a set of which some origins are ints, and others names
            return _VERSION_BYTE + self._encoder.encode(_plain(frame))

    def _refuse_unread(self, data: bytes | bytearray | memoryview) -> None:
        """What is refused before anything is parsed."""
        if len(data) > self.bytes_max:
            raise self._refusal(
                f"too large: {len(data)} bytes where {self.bytes_max} are allowed",
                data,
                "",
                "give every node of the group the same `bytes_max`",
            )
        if not data:
            raise self._refusal("empty: not even a version", data, "", "send whole frames")
        if data[0] != WIRE_VERSION:
            raise self._refusal(
                f"another wire version: theirs is {data[0]}, ours is {WIRE_VERSION}",
                data,
                "",
                "run the same release on every node of the group",
            )

    def _refusal(
        self, problem: str, data: bytes | bytearray | memoryview, where: str, hint: str
    ) -> RemoteError:
        place = f"{self.family} frame of {len(data)} bytes" + (f", {where}" if where else "")
        return RemoteError(problem, where=place, hint=hint)


def in_order(items: Iterable[Item]) -> list[Item]:
    """The one order of a set: ints before names, where both are origins."""
    try:
        return sorted(items)  # type: ignore[type-var]
    except TypeError:
        return sorted(items, key=_rank)


def _rank(item: object) -> tuple[Any, ...]:
    if isinstance(item, tuple):
        return tuple(map(_rank, item))
    return (isinstance(item, str), item)


def _plain(value: Any) -> Any:
    """As lists that encode as the value itself would, its sets in order."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = [_plain(getattr(value, name)) for name in value.__struct_fields__]
        return fields if tag is None else [tag, *fields]
    if isinstance(value, frozenset):
        return in_order(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _told(error: Exception) -> tuple[str, str]:
    """What an error says, and where, if it says that too."""
    if isinstance(error, BeforehandError):
        return error.problem, error.where
    problem, _, where = str(error).partition(" - at ")
    return problem, where.strip("`")
