"""Stage `plan`: which simulations a scenario asks for, the longest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from beforehand.pipeline.datasets import Dataset, plan_dataset, write_table
from beforehand.pipeline.scenario import Scenario
from beforehand.pipeline.schemas import PLAN, table_of_rows
from beforehand.sim.run import Spec
from beforehand.units import format_duration

EVENT_SOURCES = ("core", "sim", "pipeline/simulate.py")
PLAN_FILE = "plan.parquet"


@dataclass(frozen=True)
class Run:
    """One simulation: on which trace, to which specification, and where its events go."""

    spec: Spec
    label: str
    trace: Dataset
    events: Dataset
    watched: str | int | None
    """The node whose gauges are kept, as the scenario says it."""

    @property
    def name(self) -> str:
        """The `run` of every row. Its hash tells it from runs with other parameters."""
        return self.events.name


def plan_runs(root: Path, scenario: Scenario, traces: Mapping[int, Dataset]) -> list[Run]:
    """Every protocol and lifetime with every seed. traces: by seed; they need not exist yet."""
    runs = []
    for seed in scenario.seeds:
        for unseeded in scenario.specs:
            spec = msgspec.structs.replace(unseeded, seed=seed)
            label = _label(spec)
            events = plan_dataset(
                root,
                "events",
                label,
                inputs=[traces[seed].name],
                parameters={**msgspec.to_builtins(spec), "watched": scenario.gauge_node},
                sources=EVENT_SOURCES,
            )
            runs.append(Run(spec, label, traces[seed], events, scenario.gauge_node))
    # The longer a message lives, the further it goes: a good enough guess at the work.
    return sorted(runs, key=lambda run: -(run.spec.lifetime_us or float("inf")))


def make_plan(dataset: Dataset, runs: Sequence[Run]) -> None:
    """Write down what is going to be run, one row per simulation in the order of the work."""
    rows = [
        (at, r.name, r.trace.name, r.spec.protocol, r.spec.lifetime_us, r.spec.seed, _text(r.spec))
        for at, r in enumerate(runs)
    ]
    write_table(dataset.file(PLAN_FILE), table_of_rows(PLAN, rows))
    dataset.commit(rows=len(rows))


def _text(spec: Spec) -> str:
    return json.dumps(msgspec.to_builtins(spec), sort_keys=True)


def _label(spec: Spec) -> str:
    lifetime = () if spec.lifetime_us is None else (format_duration(spec.lifetime_us),)
    return "-".join((spec.protocol, *lifetime, f"s{spec.seed}")).replace(" ", "")
