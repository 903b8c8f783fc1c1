"""`sim.streams` for compiled code: the same hash, so the same draw for the same key.

Where `streams.unit(key, a, b)` takes its ids, compiled code mixes them one by one:
`unit(mix(mix(key, a), b))`. These are integer operations only, so the two agree in every bit. A key
is an `np.uint64` here, because a Python int above 2**63 - 1 cannot enter compiled code.
"""

from __future__ import annotations

import math

import numpy as np

from beforehand.kernels.compiling import compiled

# These are uint64 constants: a plain int literal beside a uint64 turns the sum into a float.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30 = np.uint64(30)
_27 = np.uint64(27)
_31 = np.uint64(31)
_11 = np.uint64(11)


@compiled
def mix(state: np.uint64, value: int) -> np.uint64:
    """Return `streams.mix`: the finaliser of splitmix64 over `state` and one more 64-bit value."""
    z = (state ^ np.uint64(value)) + _GOLDEN
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@compiled
def unit(key: np.uint64) -> float:
    """Return a uniform draw from [0, 1): `streams.unit(key)`."""
    return float(key >> _11) * 2.0**-53


@compiled
def normal(key: np.uint64) -> float:
    """Return the standard normal draw that belongs to `key` (Box and Muller, one of the pair)."""
    # 1 - u lies in (0, 1], so the argument of the logarithm is never zero.
    radius = math.sqrt(-2.0 * math.log(1.0 - unit(mix(key, 0))))
    return radius * math.cos(2.0 * math.pi * unit(mix(key, 1)))
