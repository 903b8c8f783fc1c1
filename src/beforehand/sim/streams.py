"""Named random streams: a draw depends only on the seed, the stream and the ids.

Two protocols that are compared on one seed see the same traffic and the same noise. A draw that
belongs to a message, a link or a frame is a hash of its key, not the next of a sequence. So it does
not depend on earlier draws. Everything rests on `mix`, whose integer operations are the same in
Python and in Numba.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import MutableSequence
from typing import Any

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
LCG_FACTOR, LCG_SUM = 6364136223846793005, 1442695040888963407
"""Knuth's linear congruential generator of 64 bits (MMIX)."""


def mix(state: int, value: int) -> int:
    """Return the finaliser of splitmix64 over `state` and one more 64-bit value."""
    z = (state ^ (value & MASK)) + GOLDEN & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def stream_key(seed: int, stream: str) -> int:
    """Return the 64-bit key of one named stream of one seed."""
    digest = hashlib.blake2b(stream.encode(), digest_size=8).digest()
    return mix(mix(0, seed), int.from_bytes(digest, "little"))


def unit(key: int, *ids: int) -> float:
    """Return the uniform draw from [0, 1) that belongs to `ids`."""
    for value in ids:
        key = mix(key, value)
    return (key >> 11) * 2.0**-53


def generator(seed: int, stream: str, *ids: int) -> random.Random:
    """Return a generator of a sequence of draws, for the choices that one node makes in order."""
    key = stream_key(seed, stream)
    for value in ids:
        key = mix(key, value)
    return random.Random(key)


class KeyedDraws:
    """The draws that one node makes in order: the k-th one is a hash of the key and k.

    Compiled worlds make the same draws (`kernels.random.draws`). A shuffle takes one draw, however
    many items there are.
    """

    def __init__(self, seed: int, stream: str, *ids: int) -> None:
        """Make the draws that belong to `ids` in this stream of the seed."""
        key = stream_key(seed, stream)
        for value in ids:
            key = mix(key, value)
        self._key = key
        self._count = 0

    def _next(self) -> int:
        drawn = mix(self._key, self._count)
        self._count += 1
        return drawn

    def randrange(self, stop: int) -> int:
        """Return an integer of 0..stop-1; stop must be small beside 2**53."""
        return int((self._next() >> 11) * 2.0**-53 * stop)

    def randint(self, a: int, b: int) -> int:
        """Return an integer of a..b."""
        return a + self.randrange(b + 1 - a)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Put the items into a random order (Fisher and Yates, with the high bits of a linear
        congruential generator)."""
        key = self._next()
        for last in range(len(x) - 1, 0, -1):
            key = key * LCG_FACTOR + LCG_SUM & MASK
            chosen = (key >> 32) * (last + 1) >> 32
            x[last], x[chosen] = x[chosen], x[last]
