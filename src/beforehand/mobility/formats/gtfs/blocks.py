"""Assign trips to vehicles: each vehicle drives its trips one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from beforehand.errors import InputError
from beforehand.mobility.formats.gtfs.paths import Way

BLOCKS = ("auto", "infer", "trip")
EMPTY_SPEED = 8.0
"""Metres per second of an empty vehicle on its way to its next trip."""


@dataclass(frozen=True)
class VehicleRun:
    """One trip as a vehicle drives it."""

    route: str
    block: str
    way: Way

    @property
    def start_s(self) -> float:
        return float(self.way.t_s[0])

    @property
    def end_s(self) -> float:
        return float(self.way.t_s[-1])


def check_blocks(blocks: str) -> None:
    if blocks not in BLOCKS:
        options = ", ".join(f"`{option}`" for option in BLOCKS)
        raise InputError(f"no such way to form blocks: `{blocks}`", hint=f"pass one of {options}")


def assign(
    runs: Sequence[VehicleRun], blocks: str, layover_s_max: float, changes: dict[str, int]
) -> dict[str, list[VehicleRun]]:
    """Return the runs of each vehicle by its name, in order of time and without overlap."""
    check_blocks(blocks)
    ordered = sorted(runs, key=lambda run: (run.start_s, run.end_s, run.route))
    given: dict[str, list[VehicleRun]] = {}
    free: list[list[VehicleRun]] = []
    named = {run.block for run in ordered}
    for run in ordered:
        if blocks == "auto" and run.block:
            _append_to_block(given, run, named, changes)
        else:
            chosen = _next_vehicle(free, run, layover_s_max) if blocks != "trip" else None
            if chosen is None:
                free.append([run])
            else:
                chosen.append(run)
    if free and blocks != "trip":
        changes["inferred_vehicle"] = len(free)
    return given | _named(free, taken=set(given))


def _append_to_block(
    given: dict[str, list[VehicleRun]], run: VehicleRun, named: set[str], changes: dict[str, int]
) -> None:
    """Append a run to the vehicle of its block. named: the block names of the feed."""
    name, again = run.block, 1
    while (name in given and given[name][-1].end_s > run.start_s) or (
        name in named and name != run.block
    ):
        # Feeds have overlapping trips in one block, but one vehicle cannot drive two at once.
        again += 1
        name = f"{run.block}/{again}"
    if name != run.block:
        changes["block_overlap"] = changes.get("block_overlap", 0) + 1
    given.setdefault(name, []).append(run)


def _next_vehicle(
    free: Sequence[list[VehicleRun]], run: VehicleRun, layover_s_max: float
) -> list[VehicleRun] | None:
    """Return the vehicle that can reach the start of `run` in time; None if there is none.

    A near vehicle comes first, then the one with the longest wait.
    """
    best: tuple[int, float] | None = None
    chosen = None
    for vehicle in free:
        wait_s = run.start_s - vehicle[-1].end_s
        if 0 <= wait_s <= layover_s_max:
            away_m = distance_m(vehicle[-1], run)
            if away_m <= wait_s * EMPTY_SPEED:
                # Rank in steps of 250 m: by exact distance the same few vehicles would drive most
                # trips.
                rank = (int(away_m // 250), -wait_s)
                if best is None or rank < best:
                    best, chosen = rank, vehicle
    return chosen


def distance_m(earlier: VehicleRun, later: VehicleRun) -> float:
    return math.hypot(later.way.x[0] - earlier.way.x[-1], later.way.y[0] - earlier.way.y[-1])


def jumps(earlier: VehicleRun, later: VehicleRun) -> bool:
    """Return whether a trip starts elsewhere before the vehicle has time to get there.

    No path joins such trips, so both are driven as they are.
    """
    return later.start_s <= earlier.end_s and distance_m(earlier, later) > 0


def _named(vehicles: Sequence[list[VehicleRun]], taken: set[str]) -> dict[str, list[VehicleRun]]:
    """Name each vehicle by the route of its first trip and a number, as `11-2`."""
    named: dict[str, list[VehicleRun]] = {}
    numbers: dict[str, int] = {}
    for vehicle in vehicles:
        route = vehicle[0].route
        name = ""
        while not name or name in taken:
            numbers[route] = numbers.get(route, 0) + 1
            name = f"{route}-{numbers[route]}"
        named[name] = vehicle
    return named
