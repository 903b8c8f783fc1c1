"""Find the highest broadcast rate that a system sustains (MOB figure 6), by bisection."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from beforehand.sim.cells.measure import CellsMeasure, measure_cells
from beforehand.sim.cells.spec import CellsSpec
from beforehand.sim.cells.world import run

GROWTH_MAX = 1.5
SLACK_US = 100_000
PRECISION = 1.1
STEP = 2**0.5
"""The factor of an increase while every rate was sustained. It is small, because an overloaded run
costs more than all sustained runs together."""
RATE_MIN = 0.1
"""A system that does not sustain this rate sustains nothing."""


class Tried(msgspec.Struct, frozen=True):
    rate_per_s: float
    is_sustained: bool


class Search(NamedTuple):
    best: CellsMeasure
    """The measures of the highest sustained rate, or of the lowest tried rate if none was."""
    is_sustained: bool
    tried: tuple[Tried, ...]


def is_sustained(measure: CellsMeasure) -> bool:
    """Return whether the rate was sustained.

    All messages were delivered in time. And messages of the last third of the run took at most 1.5
    times as long as those of the first, plus 0.1 s: below that there are no queues."""
    first, _, last = measure.delay_us_thirds
    if measure.missing or first is None or last is None:
        return False
    return last <= GROWTH_MAX * first + SLACK_US


def find_sustained(
    spec: CellsSpec, seed: int, *, rate_max: float, precision: float = PRECISION
) -> Search:
    """Search for the highest sustained rate.

    Begin with the rate of the spec, and go up in steps or down by factors of two. Then bisect
    between the last two until they are within `precision` of each other. All runs share their walks
    and their random draws on the air."""
    tried: dict[float, bool] = {}
    best: CellsMeasure | None = None
    worst: CellsMeasure | None = None
    low, high = 0.0, float("inf")
    rate = spec.rate_per_s
    while rate not in tried:
        chosen = msgspec.structs.replace(spec, rate_per_s=rate)
        measure = measure_cells(chosen, seed, run(chosen, seed))
        tried[rate] = is_sustained(measure)
        if tried[rate]:
            low, best = rate, measure
        else:
            high, worst = rate, measure
        rate = _next(low, high, rate_max, precision)
    found = best or worst
    assert found is not None, "at least one rate is tried"
    return Search(found, best is not None, tuple(Tried(*item) for item in tried.items()))


def _next(low: float, high: float, rate_max: float, precision: float) -> float:
    """Return the rate to try next; one that was already tried if the search is over."""
    if high == float("inf"):
        return min(round(STEP * low, 3), rate_max)
    if not low:
        return high / 2 if high > RATE_MIN else high
    return float((low * high) ** 0.5) if high > precision * low else low
