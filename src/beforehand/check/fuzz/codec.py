"""Fuzz the codecs with bytes that no honest node sends: damaged frames, and noise.

For any input, a codec must do one of two things. It raises a `RemoteError` that says what is wrong,
where, and what to do. Or it returns a frame whose encoding is exactly the input.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from beforehand.check.fuzz.draw_frames import NAMES, NUMBERS, draw_frame
from beforehand.errors import RemoteError
from beforehand.protocols.codecs import CODECS, MOBILE
from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.codec import WIRE_VERSION, Codec
from beforehand.protocols.epidemic.frames import (
    Announce,
    Data,
    Digest,
    Frame,
    Missing,
    NotHeld,
    Push,
    Request,
    SyncHello,
    Want,
)
from beforehand.protocols.observer.observer import Stamped
from beforehand.protocols.observer.timestamp import Stamp
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet, VCubeFrame, VCubeMessage

BYTES_MAX = 600
"""The frame size limit under test, small enough that some strings exceed it."""
BLOCK = 20_000
FRAMES = 60
"""How many frames the strings of one block are made from."""

ODD_VALUES: tuple[Any, ...] = (
    -1,
    1 << 62,
    -(1 << 62),
    1 << 63,
    (1 << 64) - 1,
    1.0,
    True,
    None,
    "",
    b"",
    [],
    {},
)
ODD_BYTES = (
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
    b"\xdc\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdb\x7f\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xcf" + bytes(8),
    b"\xd3\x80" + bytes(7),
    b"\xd6\xff" + bytes(4),
    b"\xa2\xed\xa0",
    b"\x91" * 500,
    bytes(BYTES_MAX),
)


@dataclass
class Tally:
    """Counts of the outcomes of decoding."""

    tried: int = 0
    decoded: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    """(family, the string in hex, what happened)."""

    def add(self, other: Tally) -> None:
        self.tried += other.tried
        self.decoded += other.decoded
        self.refused += other.refused
        self.failures += other.failures


def fuzz_codecs() -> tuple[Codec[Any], ...]:
    """Return the codec of every family, with a size limit that the strings reach."""
    return tuple(Codec(codec.family, codec.frames, bytes_max=BYTES_MAX) for codec in CODECS)


def fuzz(codec: Codec[Any], seed: int, block: int, count: int = BLOCK) -> Tally:
    """Decode the strings of one block. The same arguments give the same strings."""
    rng = random.Random(f"codec {codec.family} {seed} {block}")
    corpus = draw_corpus(codec, rng)
    tally = Tally()
    for data in draw_strings(rng, corpus, count):
        judge(codec, data, tally)
    return tally


def judge(codec: Codec[Any], data: bytes, tally: Tally) -> None:
    tally.tried += 1
    try:
        frame = codec.decode(data)
        problem = "" if codec.encode(frame) == data else f"encodes as other bytes: {frame!r:.200}"
        tally.decoded += 1
    except RemoteError as error:
        problem = "" if error.where and error.hint else f"lacks a field: {error.problem}"
        tally.refused[error.problem.partition(":")[0]] += 1
    except BaseException as error:  # no other exception may come out of a codec
        problem = f"{type(error).__name__}: {error}"
    if problem:
        tally.failures.append((codec.family, data.hex(), problem))


# ---- strings ------------------------------------------------------------------------------------


def draw_corpus(codec: Codec[Any], rng: random.Random) -> list[bytes]:
    """Return valid frames, and as many with one damaged value. A few are too large."""
    whole: Codec[Any] = Codec(codec.family, codec.frames)
    frames: list[bytes] = []
    while len(frames) < FRAMES:
        data = whole.encode(FAMILIES[codec.family](rng))
        frames.append(data)
        odd = damage_value(rng, msgspec.msgpack.decode(data[1:]))
        frames.append(data[:1] + msgspec.msgpack.encode(odd))
    return frames


def draw_strings(rng: random.Random, corpus: list[bytes], count: int) -> Iterator[bytes]:
    """Yield strings to decode.

    Most have the right first byte; a codec refuses all others for that byte alone."""
    chance, randbytes, size = rng.random, rng.randbytes, len(corpus)
    for _ in range(count):
        way = int(chance() * 16)
        if way == 0:
            yield randbytes(int(chance() * 40))
        elif way == 1:
            yield bytes([WIRE_VERSION]) + randbytes(int(chance() * 40))
        elif way == 2:
            base = corpus[int(chance() * size)]
            yield base[: int(chance() * len(base)) + 1] + randbytes(int(chance() * 20))
        else:
            data = bytearray(corpus[int(chance() * size)])
            _damage(data, way, corpus[int(chance() * size)], rng)
            if chance() < 0.3:
                _damage(data, 3 + int(chance() * 13), corpus[int(chance() * size)], rng)
            yield bytes(data)


def _damage(data: bytearray, way: int, other: bytes, rng: random.Random) -> None:
    chance, randbytes = rng.random, rng.randbytes
    # The first byte is the version, which is rarely changed. `at` may be the end: then data grows.
    at = 1 + int(chance() * len(data)) if chance() < 0.99 else 0
    if way < 6:
        data[at : at + 1] = bytes([data[at] ^ 1 << int(chance() * 8)]) if at < len(data) else b""
    elif way < 8:
        data[at : at + 1] = randbytes(1)
    elif way < 10:
        data[at:at] = randbytes(1 + int(chance() * 3))
    elif way < 12:
        del data[at : at + 1 + int(chance() * 3)]
    elif way == 12:
        del data[at:]
    elif way == 13:
        data[at:] = other[int(chance() * len(other)) :]
    elif way == 14:
        start = int(chance() * len(other))
        data[at:at] = other[start : start + int(chance() * 30)]
    else:
        data[at : at + 1] = ODD_BYTES[int(chance() * len(ODD_BYTES))]


def damage_value(rng: random.Random, value: Any) -> Any:
    """Return the nested list with one value somewhere changed, duplicated, moved or removed."""
    if not isinstance(value, list) or not value or rng.random() < 0.2:
        return rng.choice(ODD_VALUES)
    items = list(value)
    at = rng.randrange(len(items))
    way = rng.random()
    if way < 0.7:
        items[at] = damage_value(rng, items[at])
    elif way < 0.8:
        items.insert(at, items[at])
    elif way < 0.9:
        items.append(items.pop(at))
    else:
        del items[at]
    return items


# ---- frames -------------------------------------------------------------------------------------


def draw_opportunistic(rng: random.Random) -> Frame:
    kinds = (Announce, Request, Data, Push, Digest, Want, SyncHello, Missing, NotHeld)
    kind = rng.choice(kinds)
    ids = frozenset(_draw_ids(rng, 8))
    if kind in (Announce, Request):
        return kind(rng.choice(NUMBERS), ids)
    if kind in (Digest, Want, SyncHello, Missing):
        return kind(ids)
    if kind is NotHeld:
        return NotHeld(ids, frozenset(_draw_ids(rng, 8)) - ids)
    drawn = {message.id: message for message in (_draw_message(rng) for _ in range(3))}
    messages = tuple(drawn.values())[: rng.randrange(4)]
    return Push(messages) if kind is Push else Data(messages, ids)


def draw_vcube(rng: random.Random) -> VCubeFrame:
    count = rng.randrange(4)
    clock = tuple(rng.choice(NUMBERS) for _ in range(rng.randrange(12)))
    frame = rng.choice((None, None, Ask(clock), Answer(clock), Known(rng.choice(NUMBERS[1:]))))
    if frame is not None:
        return frame
    return Packet(rng.randrange(11), tuple(_draw_vcube_message(rng) for _ in range(count)))


def draw_observer(rng: random.Random) -> Stamped:
    counts = tuple(rng.choice(NUMBERS) for _ in range(rng.randrange(12)))
    stamp = Stamp(rng.choice(NUMBERS), rng.choice(NUMBERS), counts)
    return Stamped(_draw_message(rng), rng.choice(NUMBERS), stamp)


def draw_mobile(rng: random.Random) -> Any:
    return draw_frame(rng, rng.choice(MOBILE.kinds))


FAMILIES: dict[str, Callable[[random.Random], Any]] = {
    "opportunistic": draw_opportunistic,
    "vcube": draw_vcube,
    "observer": draw_observer,
    "mobile": draw_mobile,
}


def _draw_ids(rng: random.Random, most: int) -> list[MessageId]:
    return [(_draw_node(rng), _draw_seq(rng)) for _ in range(rng.randrange(most + 1))]


def _draw_node(rng: random.Random) -> NodeId:
    # The longest name is rare: a few of them fill a frame.
    return rng.choice(NUMBERS) if rng.random() < 0.6 else rng.choice(NAMES[: rng.choice((4, 4, 5))])


def _draw_seq(rng: random.Random) -> int:
    return rng.choice(NUMBERS) * rng.choice((1, 1, -1))


def _draw_message(rng: random.Random) -> Message:
    past = tuple(dict.fromkeys(_draw_ids(rng, 2)))
    proof = rng.randbytes(rng.choice((0, 0, 8)))
    id, stamp = (_draw_node(rng), _draw_seq(rng)), rng.choice((0, _draw_seq(rng)))
    return Message(id, past, rng.randbytes(rng.randrange(9)), proof, stamp)


def _draw_vcube_message(rng: random.Random) -> VCubeMessage:
    origins = sorted(rng.sample(range(300), rng.randrange(4)))
    past = tuple((origin, rng.choice(NUMBERS[1:])) for origin in origins)
    id = (300 + rng.choice(NUMBERS[:8]), rng.choice(NUMBERS[1:]))  # an origin is not its own cause
    return VCubeMessage(
        id, past, rng.randbytes(rng.randrange(9)), rng.randbytes(rng.choice((0, 8)))
    )
