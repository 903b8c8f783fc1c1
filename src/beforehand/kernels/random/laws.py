"""Probability distributions by key, with the same draws in Python and in compiled code."""

from __future__ import annotations

import math

import numpy as np

from beforehand.kernels.compiling import compiled
from beforehand.kernels.random.draws import mix, normal, unit

UNIFORM, TRIANGULAR, NORMAL, EXPONENTIAL = range(4)


@compiled
def draw_us(key: np.uint64, law: int, a: float, b: float) -> int:
    """Return one duration.

    - uniform: between a and b
    - triangular: between a and b, densest in the middle
    - normal: mean a, standard deviation b, truncated at 0
    - exponential: mean a"""
    if law == UNIFORM:
        return int(a + (b - a) * unit(key))
    if law == TRIANGULAR:
        return int(a + (b - a) * (unit(mix(key, 0)) + unit(mix(key, 1))) / 2.0)
    if law == NORMAL:
        return max(0, round(a + b * normal(key)))
    return int(-a * math.log(1.0 - unit(key)))


@compiled
def travel_us(
    key: np.uint64, origin: int, seq: int, link: int, law: int, a: float, b: float
) -> int:
    """Return the propagation delay of message (origin, seq) over a link."""
    return draw_us(mix(mix(mix(key, origin), seq), link), law, a, b)
