"""World `cells`: hosts walk between cells; MOB figures 6 to 10 and MOB-TR figures 6 to 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from beforehand.pipeline.cells.experiments import (
    Reading,
    experiment_options,
    make_spec,
    read_experiments,
    read_readings,
)
from beforehand.pipeline.experiment import Compared, Conclusion, Experiment, Grid, Row, State
from beforehand.pipeline.stages import Job, Task, Work
from beforehand.pipeline.sweep import read_rows, sweep_stage
from beforehand.scenario import values
from beforehand.scenario.head import Scenario
from beforehand.scenario.options import Option, Table
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.report.content import Page
    from beforehand.sim.cells.measure import CellsMeasure
    from beforehand.sim.cells.spec import CellsSpec

STAGE = "cells"
SOURCES = ("protocols", "kernels", "sim", "pipeline/cells", "pipeline/worlds/cells.py")
SECOND_US = 1_000_000
NAMES = ("run", "reading", "experiment", "system", "seed", "stations", "hosts", "rate_per_s", "mac")
"""The columns that identify the run in every row."""
HEADINGS = (
    *("experiment", "system", "stations", "hosts", "rate", "mac", "seeds", "delay", "lost"),
    *("kept", "per delivery", "broken"),
)


class CellsTask(NamedTuple):
    """One simulation, or one search for the highest sustained rate."""

    experiment: str
    spec: CellsSpec
    seed: int
    rate_max: float | None
    """The upper limit of the search; None for a single simulation."""
    reading: str = ""
    keeps_events: bool = False
    """Whether events are written. A search never writes them, because it consists of many runs."""


# ---- the scenario --------------------------------------------------------------------------------


def _tables() -> dict[str, Table]:
    events = {"events": Option(values.switch, False)}
    return {
        "cells": experiment_options(),
        "experiments": read_experiments,
        "readings": read_readings,
        "sweep": events,
    }


# ---- the runs ------------------------------------------------------------------------------------


def _tasks(scenario: Scenario) -> Iterator[Task]:
    readings: Mapping[str, Reading] = scenario.options["readings"]
    for name, reading in readings.items():
        for experiment, options in scenario.options["experiments"].items():
            if not reading.experiments or experiment in reading.experiments:
                changed = {**options, **reading.changes}
                yield from _tasks_of(scenario, name, experiment, changed)


def _tasks_of(
    scenario: Scenario, reading: str, experiment: str, options: Mapping[str, Any]
) -> Iterator[Task]:
    keeps_events = scenario.options["sweep"]["events"]
    for system in options["systems"]:
        for stations, hosts in options["sizes"]:
            for mac in options["macs"]:
                is_search = options["search_to"] is not None
                rates = options["rates"][:1] if is_search else options["rates"]
                for rate in rates:
                    spec = make_spec(options, system, stations, hosts, rate, mac)
                    for seed in scenario.seeds:
                        task = (experiment, spec, seed, options["search_to"])
                        yield _task(CellsTask(*task, reading, keeps_events))


def _task(task: CellsTask) -> Task:
    spec = task.spec
    spec.check()
    parts = (
        *(task.reading, task.experiment, spec.system, f"{spec.stations}x{spec.hosts}"),
        *(f"r{spec.rate_per_s:g}", spec.radio.mac, f"s{task.seed}"),
    )
    label = "-".join(filter(None, parts))
    parameters = {
        "reading": task.reading,
        "experiment": task.experiment,
        "seed": task.seed,
        "rate_max": task.rate_max,
        **msgspec.to_builtins(spec),
        **({"events": True} if task.keeps_events else {}),
    }
    cost = spec.hosts * spec.rate_per_s * spec.duration_us / SECOND_US
    return Task(label, parameters, tuple(task), cost=cost * (1 if task.rate_max is None else 8))


def measure_rows(job: Job) -> Iterator[Row]:
    """Yield the row of one simulation, or of the best simulation of a search."""
    from beforehand.sim.cells.measure import measure_cells
    from beforehand.sim.cells.search import find_sustained
    from beforehand.sim.cells.track import record_run
    from beforehand.sim.cells.world import run

    task = CellsTask(*job.spec)
    if task.rate_max is None:
        if task.keeps_events:
            result = record_run(job.name, task.spec, task.seed, job.dataset.folder)
        else:
            result = run(task.spec, task.seed)
        yield _row(job.name, task, measure_cells(task.spec, task.seed, result))
    else:
        found = find_sustained(task.spec, task.seed, rate_max=task.rate_max)
        tried = [msgspec.to_builtins(rate) for rate in found.tried]
        yield _row(job.name, task, found.best, found.is_sustained, tried)


def _row(
    name: str,
    task: CellsTask,
    measure: CellsMeasure,
    is_sustained: bool | None = None,
    tried: Sequence[Row] = (),
) -> Row:
    return {
        "run": name,
        "reading": task.reading,
        "experiment": task.experiment,
        **msgspec.to_builtins(measure),
        "is_search": task.rate_max is not None,
        "is_sustained": is_sustained,
        "tried": list(tried),
    }


# ---- the conclusion ------------------------------------------------------------------------------


def _conclude(_: Scenario, work: Work) -> Conclusion:
    rows = read_rows(work[STAGE])
    nested = ("series", "flows", "outages")
    runs = [{k: v for k, v in row.items() if k not in nested} for row in rows]
    tables = {"cells_runs": pa.Table.from_pylist(runs)}
    for name in nested:
        parts = [{**_names(row), **part} for row in rows for part in row[name]]
        if parts:
            tables[f"cells_{name}"] = pa.Table.from_pylist(parts)
    return Conclusion(tables, _state(runs), runs)


def _names(row: Row) -> Row:
    return {name: row[name] for name in NAMES}


def _state(runs: Sequence[Row]) -> State:
    """Return the state of the scenario.

    A message that is undelivered at the end may be lost or may still wait in a long queue. The
    state is then unknown. A search overloads the system on purpose, so its unsustained rates are
    exempt.
    """
    if any(run["violations"] + run["duplicates"] for run in runs):
        return "invalid"
    return "unknown" if any(_missing(run) for run in runs) else "valid"


def _missing(run: Row) -> int:
    is_too_much = run["is_search"] and not run["is_sustained"]
    return 0 if is_too_much else int(run["missing"] + run["missing_at_returned"])


def _broken(run: Row) -> int:
    return int(run["violations"] + run["duplicates"]) + _missing(run)


def _table(rows: list[Row]) -> Grid:
    """Return one line per group with means over the seeds. For a search, the rate is the result."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        rate = "search" if row["is_search"] else f"{row['rate_per_s']:g}"
        name = f"{row['reading']} {row['experiment']}".lstrip()
        key = (name, row["system"], row["stations"], row["hosts"], rate, row["mac"])
        groups.setdefault(key, []).append(row)
    lines = []
    for (experiment, system, stations, hosts, rate, mac), runs in groups.items():
        is_found = rate != "search" or all(run["is_sustained"] for run in runs)
        found = _shown(runs, "rate_per_s", "{:.1f}/s".format) if rate == "search" else f"{rate}/s"
        lines.append(
            (
                *(
                    experiment,
                    system,
                    str(stations),
                    str(hosts),
                    found if is_found else "none",
                    mac,
                ),
                str(len(runs)),
                _shown(runs, "delay_us_avg", lambda us: format_duration(round(us))),
                _shown(runs, "lost_percent", "{:.1f} %".format),
                _shown(runs, "kept_avg", "{:.1f}".format),
                _shown(runs, "sent_per_delivery", "{:.2f}".format),
                f"{sum(_broken(run) for run in runs):,}",
            )
        )
    return HEADINGS, lines


def _shown(runs: Sequence[Row], name: str, show: Callable[[float], str]) -> str:
    """Return the formatted mean of the non-null values, or a dash if there are none."""
    known = [run[name] for run in runs if run[name] is not None]
    return show(fmean(known)) if known else "–"


def _page(directory: Path) -> Page:
    from beforehand.report.mobile.page import build_mobile_page

    return build_mobile_page(directory)


def _replay(name: str, parameters: Mapping[str, Any], folder: Path) -> str:
    from beforehand.sim.cells.track import replay_run

    return replay_run(name, parameters, folder)


COMPARED = Compared(
    table="cells_runs",
    keys=(
        "reading",
        "experiment",
        "system",
        "stations",
        "hosts",
        "mac",
        "is_search",
        "asked_per_s",
    ),
    figures=("rate_per_s", "delay_us_avg", "lost_percent", "kept_avg", "sent_per_delivery"),
    # A search yields its rate as a result. Otherwise the rate is an input and part of the key.
    add_keys=lambda row: {"asked_per_s": None if row["is_search"] else row["rate_per_s"]},
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
    papers=("mob",),
)
