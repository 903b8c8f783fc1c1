"""World `overlay`: VCU tables 1 to 3 and figures 1 and 6 to 11; every run is verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from beforehand.errors import InputError
from beforehand.pipeline.experiment import Compared, Conclusion, Experiment, Grid, Row, State
from beforehand.pipeline.stages import Job, Task, Work
from beforehand.pipeline.sweep import read_rows, sweep_stage
from beforehand.scenario import values
from beforehand.scenario.head import Scenario
from beforehand.scenario.options import Option, Table
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.report.content import Page
    from beforehand.sim.overlay.measure import OverlayCase
    from beforehand.sim.overlay.world import Law, System

STAGE = "overlay"
SOURCES = ("protocols", "kernels", "sim")
NUMBERS = {"uniform": 2, "triangular": 2, "normal": 2, "exponential": 1}
NODES_MAX = 16_384
"""One run with this many nodes takes some gigabytes of memory."""
PAYLOAD_BYTES_MAX = 100_000_000
LAW_MAX = 1_000_000_000
"""In units of time."""
LAW_HINT = 'write its name and its numbers in units of time: `["normal", 100, 25]`'
HEADINGS = (
    *("system", "nodes", "payload", "seeds", "packets", "bytes"),
    *("reception", "delivery", "broken"),
)


def _law(value: object) -> Law:
    from beforehand.sim.overlay.world import SHAPES, UNIT_US, Law

    if not isinstance(value, list) or not value or value[0] not in SHAPES:
        raise InputError(f"not a law: `{value}`", hint=f"known are {', '.join(SHAPES)}; {LAW_HINT}")
    shape, *numbers = value
    if len(numbers) != NUMBERS[shape] or not all(type(n) in (int, float) for n in numbers):
        raise InputError(f"not the numbers of a {shape} law: `{numbers}`", hint=LAW_HINT)
    if not all(0 <= number <= LAW_MAX for number in numbers):
        problem = f"not times from 0 to {LAW_MAX:,}: `{numbers}`"
        raise InputError(problem, hint=LAW_HINT)
    return Law(shape, *(float(number) * UNIT_US for number in numbers))


def _tables() -> dict[str, Table]:
    from beforehand.sim.overlay.world import OverlaySpec

    return {
        "overlay": {
            "nodes": Option(values.list_of(values.whole(2, NODES_MAX)), (8, 16, 32, 64)),
            "payload_bytes": Option(values.whole(1, PAYLOAD_BYTES_MAX), OverlaySpec.payload_bytes),
            # The number of seeds that also run with a single tree, and with small messages.
            "single_seeds": Option(values.whole(0), 0),
            "small_seeds": Option(values.whole(0), 0),
            "small_payload_bytes": Option(values.whole(1, PAYLOAD_BYTES_MAX), 5),
            "starts": Option(_law, OverlaySpec.starts),
            "propagation": Option(_law, OverlaySpec.propagation),
        },
        "sweep": {"events": Option(values.switch, False)},
    }


def _tasks(scenario: Scenario) -> Iterator[Task]:
    keeps_events = scenario.options["sweep"]["events"]
    for case in _cases(scenario):
        parameters = msgspec.to_builtins(case) | ({"events": True} if keeps_events else {})
        cost = case.nodes**2 * len(case.runs)
        yield Task(f"n{case.nodes}-s{case.seed}", parameters, (case, keeps_events), cost=cost)


def _cases(scenario: Scenario) -> Iterator[OverlayCase]:
    from beforehand.sim.overlay.measure import OverlayCase

    options = scenario.options["overlay"]
    size, small = options["payload_bytes"], options["small_payload_bytes"]
    for nodes in options["nodes"]:
        for seed in scenario.seeds:
            runs: list[tuple[System, int]] = [("aggregated", size), ("plain", size)]
            runs += [("single", size)] if seed <= options["single_seeds"] else []
            # The paper shows small messages for the largest network only.
            is_largest = nodes == max(options["nodes"])
            runs += [("aggregated", small)] if seed <= options["small_seeds"] and is_largest else []
            yield OverlayCase(nodes, seed, tuple(runs), options["starts"], options["propagation"])


def measure_rows(job: Job) -> Iterator[Row]:
    """Yield the runs of a case as flat rows. If events are kept, each run writes its own folder."""
    from beforehand.sim.overlay.measure import run_case
    from beforehand.sim.overlay.record import write_run

    case, keeps_events = job.spec
    for measure, run in run_case(case):
        if keeps_events:
            name = f"{measure.system}-{measure.payload_bytes}"
            write_run(f"{job.name}/{name}", run, job.dataset.file(name))
        yield msgspec.to_builtins(measure)


def _conclude(_: Scenario, work: Work) -> Conclusion:
    rows = read_rows(work[STAGE])
    runs = [{k: v for k, v in row.items() if k != "histograms"} for row in rows]
    bars = [bar for row in rows for bar in _bars(row)]
    tables = {
        "overlay_runs": pa.Table.from_pylist(runs),
        "overlay_histograms": pa.Table.from_pylist(bars),
    }
    return Conclusion(tables, _state(runs), runs)


def _bars(row: Row) -> Iterator[Row]:
    run = {name: row[name] for name in ("nodes", "seed", "system", "payload_bytes")}
    return ({**run, **bar} for bar in row["histograms"])


def _state(runs: Sequence[Row]) -> State:
    """Return "valid" if every message arrived everywhere in causal order: the links lose
    nothing."""
    broken = any(run["violations"] or run["missing"] for run in runs)
    return "invalid" if broken else "valid"


def _table(rows: list[Row]) -> Grid:
    """Return one line per group with means over the seeds."""
    groups: dict[tuple[int, str, int], list[Row]] = {}
    for row in rows:
        key = (row["nodes"], row["system"], row["payload_bytes"])
        groups.setdefault(key, []).append(row)
    lines = [
        (
            system,
            str(nodes),
            str(payload),
            str(len(runs)),
            *(f"{fmean(run[name] for run in runs):,.0f}" for name in ("packets", "bytes")),
            format_duration(round(fmean(run["reception_us_avg"] for run in runs))),
            format_duration(round(fmean(run["delivery_us_avg"] for run in runs))),
            f"{sum(run['violations'] + run['missing'] for run in runs):,}",
        )
        for (nodes, system, payload), runs in groups.items()
    ]
    return HEADINGS, lines


def _page(directory: Path) -> Page:
    from beforehand.report.vcube.page import build_vcube_page

    return build_vcube_page(directory)


def _replay(name: str, parameters: Row, folder: Path) -> str:
    """Play the first run of a case."""
    from beforehand.sim.overlay.measure import OverlayCase, run_case
    from beforehand.sim.overlay.record import write_run

    fields = {field: parameters[field] for field in OverlayCase.__struct_fields__}
    case = msgspec.convert(fields, OverlayCase)
    measure, run = next(run_case(case))
    write_run(f"{name}/{measure.system}-{measure.payload_bytes}", run, folder)
    return ""


COMPARED = Compared(
    table="overlay_runs",
    keys=("system", "nodes", "payload_bytes"),
    figures=("packets", "reception_us_avg", "delivery_us_avg", "held_us_avg"),
)
EXPERIMENT = Experiment(
    tables=_tables,
    seeds=3,
    stages=lambda: (sweep_stage(STAGE, SOURCES, _tasks, measure_rows),),
    conclude=_conclude,
    noun="runs",
    table=_table,
    page=_page,
    compared=COMPARED,
    replay=_replay,
    papers=("vcu",),
)
