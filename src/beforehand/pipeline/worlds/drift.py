"""World `drift`: OBS figures 2 to 7, all runs of drifting clocks and all observers, then the
claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from beforehand.pipeline.experiment import Compared, Conclusion, Experiment, Grid, Row, State
from beforehand.pipeline.stages import Job, Task, Work
from beforehand.pipeline.sweep import read_rows, sweep_stage
from beforehand.scenario import values
from beforehand.scenario.head import Scenario
from beforehand.scenario.options import Option, Table

if TYPE_CHECKING:
    from beforehand.report.content import Page
    from beforehand.sim.drift import Drift, Measure

STAGE = "measures"
SOURCES = ("protocols", "kernels", "sim", "pipeline/worlds/drift.py")
MESSAGES_MAX = 10_000_000
"""The maximum for one simulation, which keeps all messages in memory, each with a vector clock."""
PLAYED_WAIT = 40
"""The wait of the observer on the page that plays a run, in percent."""
READINGS: dict[str, dict[str, Any]] = {
    "all": {"sends_to_all": True},
    "one": {"sends_to_all": False},
    "steps": {"sends_to_all": True, "delay_clock": "steps"},
    "ticks": {"sends_to_all": True, "delay_clock": "ticks"},
}
"""Interpretations of what the paper leaves open: a message goes to all other processes or to one.
In `steps`, its delay counts simulation steps instead of time on the sender's clock. In `ticks`, a
process also receives it only at its own next tick, after it has sent."""


def _tables() -> dict[str, Table]:
    readings = values.list_of(values.one_of(*READINGS))
    return {
        "drift": {
            "messages": Option(values.whole(1, MESSAGES_MAX), 10_000),
            "readings": Option(readings, tuple(READINGS)),
        }
    }


def _tasks(scenario: Scenario) -> Iterator[Task]:
    from beforehand.sim.drift_figures import figure_specs

    options = scenario.options["drift"]
    for reading in options["readings"]:
        chosen = READINGS[reading]
        for spec in figure_specs(scenario.seeds, messages=options["messages"], **chosen):
            yield _task(spec)


def _task(spec: Drift) -> Task:
    from beforehand.sim.drift_figures import figure_dials

    targets = "one" if spec.fan_out == 1 else "all"
    label = (
        f"{targets}-{spec.delay_clock}-{spec.law}-n{spec.processes}-e{spec.epsilon}-d{spec.delta}"
        f"-r{spec.rate:g}-s{spec.seed}"
    )
    cost = spec.messages * spec.processes * len(figure_dials(spec))
    return Task(label, msgspec.structs.asdict(spec), spec, cost=cost)


def measure_rows(job: Job) -> Iterator[Row]:
    """Return one row for each observer of the figures on one run."""
    from beforehand.sim.drift import measure
    from beforehand.sim.drift_figures import figure_dials

    return (msgspec.structs.asdict(row) for row in measure(job.spec, figure_dials(job.spec)))


def _conclude(_: Scenario, work: Work) -> Conclusion:
    from beforehand.papers.claims import read_claims
    from beforehand.papers.observer import check_claims, reading_of
    from beforehand.sim.drift import Measure

    measures = msgspec.convert(read_rows(work[STAGE]), list[Measure])
    named = [{"reading": reading_of(row), **msgspec.structs.asdict(row)} for row in measures]
    found = check_claims(measures, read_claims("observer"))
    claims = [msgspec.structs.asdict(verdict) for verdict in found]
    tables = {"measures": pa.Table.from_pylist(named), "claims": pa.Table.from_pylist(claims)}
    return Conclusion(tables, _state(measures), claims)


def _state(measures: Sequence[Measure]) -> State:
    """Return "valid" unless an observer with the full wait and the full timestamp inverted an
    order."""
    promised = (row for row in measures if row.observer in ("dapw", "cbd"))
    broken = any(row.inverted for row in promised if row.wait_percent == 100)
    return "invalid" if broken else "valid"


def _table(rows: list[Row]) -> Grid:
    """Return one line per claim and one column per reading of the paper."""
    readings = list(dict.fromkeys(row["reading"] for row in rows))
    lines: dict[str, tuple[str, ...]] = {}
    for row in rows:
        before = lines.get(row["claim"], (row["claim"], row["figure"]))
        lines[row["claim"]] = (*before, row["verdict"])
    return ("claim", "figure", *readings), list(lines.values())


def _page(directory: Path) -> Page:
    from beforehand.report.observer.page import build_observer_page

    return build_observer_page(directory)


def _replay(name: str, parameters: Row, folder: Path) -> str:
    """Play what an observer with a short wait delivers; it inverts some orders."""
    from beforehand.protocols.observer.observer import cbd
    from beforehand.sim.drift import Drift
    from beforehand.sim.drift_record import record_deliveries

    spec = msgspec.convert(parameters, Drift)
    record_deliveries(spec, cbd(PLAYED_WAIT), folder / f"{name}-cbd-{PLAYED_WAIT}.parquet")
    return f"the observer `cbd` with a wait of {PLAYED_WAIT} %"


COMPARED = Compared(
    table="measures",
    keys=(
        *("reading", "law", "processes", "epsilon", "delta", "rate", "messages"),
        *("observer", "wait_percent"),
    ),
    figures=("violations_percent", "wait_share_max"),
)
EXPERIMENT = Experiment(
    tables=_tables,
    seeds=3,
    stages=lambda: (sweep_stage(STAGE, SOURCES, _tasks, measure_rows),),
    conclude=_conclude,
    noun="claims",
    table=_table,
    page=_page,
    compared=COMPARED,
    replay=_replay,
    papers=("obs",),
)
