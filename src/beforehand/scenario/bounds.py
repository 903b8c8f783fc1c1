"""Bounds of the generators' parameters, so that a typing error is rejected before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from beforehand.errors import InputError


class Bound(NamedTuple):
    """An inclusive range; with `above_zero` it excludes zero."""

    least: float
    most: float
    above_zero: bool = False

    def holds(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.above_zero and value == 0)

    def __str__(self) -> str:
        least = "more than 0" if self.above_zero else f"{self.least:,g}"
        return f"{least} to {self.most:,g}"


HOURS = Bound(0, 24 * 366, above_zero=True)
METRES = Bound(0, 1_000_000, above_zero=True)
SECONDS = Bound(0, 1_000_000)
MEAN_SECONDS = Bound(0, 1_000_000, above_zero=True)
SPEED = Bound(0, 1000, above_zero=True)

BOUNDS: dict[str, dict[str, Bound]] = {
    "buses": {
        "lines_count": Bound(1, 1000),
        "all_day_buses": Bound(0, 100_000),
        **dict.fromkeys(("arm_m_min", "arm_m_max", "stop_m"), METRES),
        "speed": SPEED,
        **dict.fromkeys(("stop_s", "square_s", "rest_s"), SECONDS),
    },
    "walkers": {
        "hours": HOURS,
        "entries_per_s": Bound(0, 1000, above_zero=True),
        **dict.fromkeys(("block_m", "stub_m"), METRES),
        "straight": Bound(0.001, 0.999),
    },
    "waypoint": {
        "nodes": Bound(1, 100_000),
        "hours": HOURS,
        **dict.fromkeys(("width_m", "height_m"), METRES),
        **dict.fromkeys(("speed_min", "speed_max"), SPEED),
        "pause_s_max": SECONDS,
    },
    "crowd": {
        "nodes_mean": Bound(0, 1_000_000, above_zero=True),
        "hours": HOURS,
        **dict.fromkeys(("stay_s_mean", "contact_s_mean", "contact_every_s"), MEAN_SECONDS),
        **dict.fromkeys(("stay_s_stdev", "contact_s_stdev"), SECONDS),
    },
}
NODES_MAX, NODE_HOURS_MAX = 2_000_000, 2_000_000
"""Limits for one trace, which the generator builds in memory."""


def find_out_of_bounds(
    generator: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[tuple[str, InputError]]:
    """Yield (key, error) for every parameter out of bounds.

    options: values whose types were checked before.
    """
    bounds = BOUNDS[generator]
    wrong = [key for key, value in options.items() if not bounds[key].holds(value)]
    for key in wrong:
        default = f"write {bounds[key]}; the default is `{defaults[key]:g}`"
        yield key, InputError(f"`{key}`: out of bounds: `{options[key]:g}`", hint=default)
    if wrong:
        return
    every = {**defaults, **options}
    if generator == "walkers" and every["entries_per_s"] * every["hours"] * 3600 > NODES_MAX:
        key = "entries_per_s" if "entries_per_s" in options else "hours"
        hint = f"`entries_per_s` for `hours` makes at most {NODES_MAX:,}"
        yield key, InputError("too many walkers", hint=hint)
    if generator == "waypoint" and every["nodes"] * every["hours"] > NODE_HOURS_MAX:
        key = "nodes" if "nodes" in options else "hours"
        hint = f"`nodes` times `hours` is at most {NODE_HOURS_MAX:,}"
        yield key, InputError("too many steps", hint=hint)
