"""The random draws of a node of the compiled contact world, as `sim.streams.KeyedDraws` makes
them."""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import part
from beforehand.kernels.epidemic.sets import signed
from beforehand.kernels.epidemic.state import DRAWS, Fixed, State
from beforehand.kernels.random.draws import mix, unit

FACTOR, SUM = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
_32 = np.uint64(32)


@part
def draw(f: Fixed, s: State, node: int) -> np.uint64:
    """Return the next draw of a node."""
    at = s.node[node, DRAWS]
    s.node[node, DRAWS] = at + 1
    return mix(mix(f.key, node), at)


@part
def draw_below(f: Fixed, s: State, node: int, stop: int) -> int:
    """Return an integer of 0..stop-1."""
    return int(unit(draw(f, s, node)) * stop)


@part
def shuffle_picked(f: Fixed, s: State, node: int, count: int) -> None:
    """Put the picked messages into a random order."""
    picked, key = s.picked, draw(f, s, node)
    for last in range(count - 1, 0, -1):
        key = key * FACTOR + SUM
        chosen = signed(((key >> _32) * np.uint64(last + 1)) >> _32)
        picked[last], picked[chosen] = picked[chosen], picked[last]
