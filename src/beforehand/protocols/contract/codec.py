"""Frames as bytes, for any family: a version byte, then the frame as MessagePack.

A family is a type: one tagged, array-like struct or a union of them. The types of its fields define
what a peer may send (`protocols.contract.base` has the bounds). A frame checks in `flaw() -> str`
what types cannot express.

Every frame has exactly one encoding, the canonical form. The codec refuses bytes that decode to a
frame but differ from what `encode` returns for that frame. This detects:

- an id that occurs twice in a set,
- a set that is not sorted,
- too many or too few fields,
- numbers that are not encoded in their shortest form.

So a node can forward an accepted frame byte for byte, and a signature or a checksum over the bytes
identifies the frame.
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
    """The wire format of one family. It keeps no state between calls."""

    def __init__(self, family: str, frames: Any, *, bytes_max: int = BYTES_MAX) -> None:
        """Make the codec of one family.

        frames: a struct or a union of structs, each with a tag of its own.
        bytes_max: the largest frame, in bytes. It must be the same for all nodes of a group, else
        one node sends frames that another refuses.
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
        """Return the bytes of a frame. Raise LocalError if no peer would accept them."""
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
            problem, where = _describe(error)
            raise LocalError(
                f"a frame that no peer would accept: {problem}",
                where=where or f"{self.family}: {type(frame).__name__}",
                hint=f"names, numbers and sizes have bounds (a frame: {self.bytes_max} bytes)",
            ) from error
        return data

    def decode(self, data: bytes | bytearray | memoryview) -> FrameT:
        """Return the frame of these bytes. Raise RemoteError if they are not a valid frame; no
        bytes raise any other exception."""
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
        """Return the frame after all checks except that of the canonical form."""
        self._refuse_unread(data)
        try:
            frame = self._decoder.decode(memoryview(data)[1:])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problem, where = _describe(error)
            raise self._refusal(f"not a frame: {problem}", data, where, BROKEN_PEER) from error
        kind = type(frame)
        flaw = self._flaws[kind](frame) if kind in self._flaws else ""
        if flaw:
            raise self._refusal(f"contradicts itself: {flaw}", data, kind.__name__, BROKEN_PEER)
        return frame

    def _pack(self, frame: FrameT) -> bytes:
        try:
            return _VERSION_BYTE + self._encoder.encode(frame)
        except TypeError:  # msgspec cannot sort a set with origins that are ints and names
            return _VERSION_BYTE + self._encoder.encode(_plain(frame))

    def _refuse_unread(self, data: bytes | bytearray | memoryview) -> None:
        """Raise RemoteError for bytes that can be refused without parsing them."""
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
    """Return the items in the canonical order of a set: origins that are ints come before names."""
    try:
        return sorted(items)  # type: ignore[type-var]
    except TypeError:
        return sorted(items, key=_rank)


def _rank(item: object) -> tuple[Any, ...]:
    if isinstance(item, tuple):
        return tuple(map(_rank, item))
    return (isinstance(item, str), item)


def _plain(value: Any) -> Any:
    """Return the value as lists that have the same encoding, with its sets in canonical order."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = [_plain(getattr(value, name)) for name in value.__struct_fields__]
        return fields if tag is None else [tag, *fields]
    if isinstance(value, frozenset):
        return in_order(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _describe(error: Exception) -> tuple[str, str]:
    """Return the problem that an error describes, and its place, or "" if it names no place."""
    if isinstance(error, BeforehandError):
        return error.problem, error.where
    problem, _, where = str(error).partition(" - at ")
    return problem, where.strip("`")
