"""The gauges of the compiled contact world (OPP figures 6 and 11)."""

from __future__ import annotations

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.cache import count_held
from beforehand.kernels.epidemic.sets import ONE, ZERO, alive_of, first_kept, lowest, ring, turn
from beforehand.kernels.epidemic.state import (
    BARRIER_SIZE,
    DELIVERED,
    GAUGE_DUE,
    LIVE,
    NOW,
    PENDING,
    SAMPLES,
    SLOT,
    TAKEN,
    WORD,
    Fixed,
    State,
)


@part
def _count_origins(f: Fixed, s: State, node: int) -> int:
    """Return of how many origins a live message is delivered at the node."""
    slot, found, mark = s.node[node, SLOT], 0, s.counts[SAMPLES]
    low = max(first_kept(f, s), s.counts[LIVE] >> 6) if f.lifetime_us else 0
    for w in range(low, s.counts[WORD] + 1):
        word = alive_of(f, s, node, w, s.sets[slot, ring(f, w), DELIVERED])
        while word != ZERO:
            origin = s.origin[(w << 6) + lowest(word)]
            word &= word - ONE
            if s.stamp[origin] != mark:
                s.stamp[origin] = mark
                found += 1
    return found


@cold
def _sample(f: Fixed, s: State, node: int) -> None:
    turn(f, s, node)
    s.node[node, GAUGE_DUE] = s.counts[NOW] + f.gauge_us
    at = s.counts[SAMPLES]
    s.sample[at, 0], s.sample[at, 1] = s.counts[NOW], node
    s.sample[at, 2] = count_held(f, s, node)
    s.sample[at, 3] = s.node[node, BARRIER_SIZE]
    s.sample[at, 4] = _count_origins(f, s, node) if f.is_causal else s.node[node, TAKEN]
    s.sample[at, 5] = s.node[node, PENDING]
    s.counts[SAMPLES] = at + 1


@part
def sample(f: Fixed, s: State, node: int) -> None:
    """Sample the gauges of a node after its step, if a sample is due."""
    if f.gauge_us and s.counts[NOW] >= s.node[node, GAUGE_DUE]:
        _sample(f, s, node)
