"""Named random streams: a draw depends only on the seed, the stream and the ids.

Two protocols that are compared on one seed see the same traffic and the same noise. A draw that
belongs to a message, a link or a frame is a hash of its key, not the next of a sequence. So it does
not depend on earlier draws. Everything rests on `mix`, whose integer operations are the same in
Python and in Numba.
"""

from __future__ import annotations

import hashlib
import random

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


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
