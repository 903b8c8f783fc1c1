"""Named randomness: the same draw for the same seed, stream and ids, whatever is asked before.

Two protocols compared on one seed see the same traffic and the same noise, because a draw that
belongs to a message, a link or a frame is a hash of its key and not the next of a sequence.
`mix` is the whole of it: the few integer operations are the same in Python and in Numba.
"""

from __future__ import annotations

import hashlib
import random

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(state: int, value: int) -> int:
    """The finaliser of splitmix64 over `state` and one more 64-bit value."""
    z = (state ^ (value & MASK)) + GOLDEN & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def stream_key(seed: int, stream: str) -> int:
    """64 bits that stand for one named stream of one seed."""
    digest = hashlib.blake2b(stream.encode(), digest_size=8).digest()
    return mix(mix(0, seed), int.from_bytes(digest, "little"))


def unit(key: int, *ids: int) -> float:
    """A uniform draw from [0, 1) that belongs to `ids`."""
    for value in ids:
        key = mix(key, value)
    return (key >> 11) * 2.0**-53


def generator(seed: int, stream: str, *ids: int) -> random.Random:
    """A sequence of draws, for what is naturally drawn in order (one node's own choices)."""
    key = stream_key(seed, stream)
    for value in ids:
        key = mix(key, value)
    return random.Random(key)
