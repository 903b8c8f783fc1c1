"""The scenarios behind Tables 1 to 3 and figures 1 and 6 to 11 of VCU, each run verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from beforehand.errors import InputError
from beforehand.pipeline.sweep_scenario import Option, SweepScenario, list_of
from beforehand.pipeline.sweeps import Conclusion, Row, Task, World, run_world
from beforehand.scenario import values
from beforehand.sim.overlay import SHAPES, UNIT_US, Law, OverlaySpec, System
from beforehand.sim.overlay_measure import OverlayCase, measure_case

STAGE = "overlay"
SOURCES = ("core", "kernels", "sim")
NUMBERS = {"uniform": 2, "triangular": 2, "normal": 2, "exponential": 1}
LAW_HINT = 'write its name and its numbers in units of time: `["normal", 100, 25]`'


def _law(value: object) -> Law:
    if not isinstance(value, list) or not value or value[0] not in SHAPES:
        raise InputError(f"not a law: `{value}`", hint=f"known are {', '.join(SHAPES)}; {LAW_HINT}")
    shape, *numbers = value
    if len(numbers) != NUMBERS[shape] or not all(type(n) in (int, float) for n in numbers):
        raise InputError(f"not the numbers of a {shape} law: `{numbers}`", hint=LAW_HINT)
    if min(numbers) < 0:
        raise InputError(f"a time is below zero: `{numbers}`", hint=LAW_HINT)
    return Law(shape, *(float(number) * UNIT_US for number in numbers))


OPTIONS = {
    "nodes": Option(list_of(values.whole(2)), (8, 16, 32, 64)),
    "payload_bytes": Option(values.whole(1), OverlaySpec.payload_bytes),
    # Of how many seeds there is a run with one tree for all, and one with small messages too.
    "single_seeds": Option(values.whole(0), 0),
    "small_seeds": Option(values.whole(0), 0),
    "small_payload_bytes": Option(values.whole(1), 5),
    "starts": Option(_law, OverlaySpec.starts),
    "propagation": Option(_law, OverlaySpec.propagation),
}


def _tasks(scenario: SweepScenario) -> list[Task]:
    return [_task(case) for case in _cases(scenario)]


def _cases(scenario: SweepScenario) -> Iterator[OverlayCase]:
    options = scenario.options
    size, small = options["payload_bytes"], options["small_payload_bytes"]
    for nodes in options["nodes"]:
        for seed in scenario.seeds:
            runs: list[tuple[System, int]] = [("aggregated", size), ("plain", size)]
            runs += [("single", size)] if seed <= options["single_seeds"] else []
            # What they are for is the largest network: the paper shows them there alone.
            is_largest = nodes == max(options["nodes"])
            runs += [("aggregated", small)] if seed <= options["small_seeds"] and is_largest else []
            yield OverlayCase(nodes, seed, tuple(runs), options["starts"], options["propagation"])


def _task(case: OverlayCase) -> Task:
    cost = case.nodes**2 * len(case.runs)
    return Task(f"n{case.nodes}-s{case.seed}", msgspec.to_builtins(case), case, cost)


def _bars(row: Row) -> Iterator[dict[str, Any]]:
    run = {name: row[name] for name in ("nodes", "seed", "system", "payload_bytes")}
    return ({**run, **bar} for bar in row["histograms"])


def _state(runs: Sequence[Row]) -> Literal["valid", "invalid"]:
    """The links lose nothing, so every message has to arrive everywhere, and in causal order."""
    broken = any(run["violations"] or run["missing"] for run in runs)
    return "invalid" if broken else "valid"


def _conclude(rows: list[Row]) -> Conclusion:
    runs = [{k: v for k, v in row.items() if k != "histograms"} for row in rows]
    bars = [bar for row in rows for bar in _bars(row)]
    return Conclusion({"overlay_runs": runs, "overlay_histograms": bars}, _state(runs), runs)


OVERLAY = World("overlay", STAGE, OPTIONS, SOURCES, _tasks, measure_case, _conclude)
run_overlay = partial(run_world, OVERLAY)
