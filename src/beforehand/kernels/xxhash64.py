"""XXH64 as in Spark, so that both draw the same sample.

It hashes only numbers of 4 and 8 bytes. The hash of the previous numbers is the seed for the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

SEED = 42
P1, P2, P3, P4, P5 = (
    np.uint64(prime)
    for prime in (
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
        *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    )
)


def xxhash64(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Return `xxhash64(...)` of Spark SQL, row by row, for columns of int32 and of int64."""
    found = np.full(len(columns[0]), SEED, np.uint64)
    for column in columns:
        if column.dtype == np.int32:
            found = _four_bytes(column.view(np.uint32).astype(np.uint64), found)
        else:
            assert column.dtype == np.int64, "numbers of four or eight bytes"
            found = _eight_bytes(column.view(np.uint64), found)
    return found.view(np.int64)


def _four_bytes(words: Words, seed: Words) -> Words:
    found = (seed + P5 + np.uint64(4)) ^ (words * P1)
    return _avalanche(_rotate(found, 23) * P2 + P3)


def _eight_bytes(words: Words, seed: Words) -> Words:
    found = (seed + P5 + np.uint64(8)) ^ (_rotate(words * P2, 31) * P1)
    return _avalanche(_rotate(found, 27) * P1 + P4)


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _avalanche(words: Words) -> Words:
    """Mix the bits: every bit of the input changes about half of the bits of the result."""
    words = (words ^ (words >> np.uint64(33))) * P2
    words = (words ^ (words >> np.uint64(29))) * P3
    return words ^ (words >> np.uint64(32))
