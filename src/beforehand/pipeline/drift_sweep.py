"""The scenario behind figures 2 to 7 of OBS: every run and every observer, then the claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from beforehand.papers.observer import check_claims, load_claims, reading_of
from beforehand.pipeline.sweep_scenario import Option, SweepScenario, list_of
from beforehand.pipeline.sweeps import Conclusion, Row, Task, World, run_world
from beforehand.scenario import values
from beforehand.sim.drift import Drift, Measure, figure_dials, figure_specs, measure

STAGE = "measures"
SOURCES = ("core", "kernels", "sim", "pipeline/drift_sweep.py")
READINGS: dict[str, dict[str, Any]] = {
    "all": {"sends_to_all": True},
    "one": {"sends_to_all": False},
    "steps": {"sends_to_all": True, "delay_clock": "steps"},
}
"""What the paper leaves open: a message goes to all others or to one, and in `steps` its delay is
counted in steps of the simulation, not on the sender's clock."""

OPTIONS = {
    "messages": Option(values.whole(1), 10_000),
    "readings": Option(list_of(values.one_of(*READINGS)), tuple(READINGS)),
}


def measure_rows(spec: Drift) -> Iterator[dict[str, Any]]:
    """What every observer of the figures makes of one run."""
    return (msgspec.structs.asdict(row) for row in measure(spec, figure_dials(spec)))


def _tasks(scenario: SweepScenario) -> list[Task]:
    return [
        _task(spec)
        for reading in scenario.options["readings"]
        for spec in figure_specs(
            scenario.seeds, messages=scenario.options["messages"], **READINGS[reading]
        )
    ]


def _task(spec: Drift) -> Task:
    targets = "one" if spec.fan_out == 1 else "all"
    label = (
        f"{targets}-{spec.delay_clock}-{spec.law}-n{spec.processes}-e{spec.epsilon}-d{spec.delta}"
        f"-r{spec.rate:g}-s{spec.seed}"
    )
    cost = spec.messages * spec.processes * len(figure_dials(spec))
    return Task(label, msgspec.structs.asdict(spec), spec, cost)


def _state(measures: Sequence[Measure]) -> Literal["valid", "invalid"]:
    """The one promise: with the full wait and the full timestamp, order is exact."""
    promised = (row for row in measures if row.observer in ("dapw", "cbd"))
    broken = any(row.inverted for row in promised if row.wait_percent == 100)
    return "invalid" if broken else "valid"


def _conclude(rows: list[Row]) -> Conclusion:
    measures = msgspec.convert(rows, list[Measure])
    named = [{"reading": reading_of(row), **msgspec.structs.asdict(row)} for row in measures]
    claims = [msgspec.structs.asdict(v) for v in check_claims(measures, load_claims())]
    return Conclusion({"measures": named, "claims": claims}, _state(measures), claims)


DRIFT = World("drift", STAGE, OPTIONS, SOURCES, _tasks, measure_rows, _conclude)
run_drift = partial(run_world, DRIFT)
