"""World `cells`: hosts walk between cells; MOB figures 6 to 10 and MOB-TR figures 6 to 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from beforehand.errors import InputError
from beforehand.pipeline.experiment import Compared, Conclusion, Experiment, Grid, Row, State
from beforehand.pipeline.stages import Job, Task, Work
from beforehand.pipeline.sweep import read_rows, sweep_stage
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.head import Scenario
from beforehand.scenario.options import Option, Table, read_table
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.report.content import Page
    from beforehand.sim.cells.measure import CellsMeasure
    from beforehand.sim.cells.spec import CellsSpec, Failure

STAGE = "cells"
SOURCES = ("protocols", "kernels", "sim", "pipeline/worlds/cells.py")
SECOND_US = 1_000_000
NAMES = ("run", "experiment", "system", "seed", "stations", "hosts", "rate_per_s", "mac")
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
    keeps_events: bool = False
    """Whether events are written. A search never writes them, because it consists of many runs."""


# ---- the scenario --------------------------------------------------------------------------------


def _sizes(value: object) -> tuple[tuple[int, int], ...]:
    hint = "write pairs of stations and hosts: `[[10, 100], [10, 200]]`"
    pairs = value if isinstance(value, list) else []
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"not a list of sizes: `{value}`", hint=hint)
    if not all(type(n) is int and n >= 1 for pair in pairs for n in pair):
        raise InputError(f"not numbers of stations and hosts: `{value}`", hint=hint)
    return tuple((stations, hosts) for stations, hosts in pairs)


def _rate(value: object) -> float:
    if values.number(value) <= 0:
        raise InputError(f"must be above zero: `{value}`", hint="broadcasts of all hosts, a second")
    return float(values.number(value))


def _retry_min(value: object) -> int:
    from beforehand.protocols.mobile.pace import Pace

    retry_us, most_us = values.retry(value), Pace().retry_us_max
    if retry_us > most_us:
        hint = "it is for stations that keep many messages; those with few use the maximum"
        raise InputError(f"more than {format_duration(most_us)}: `{value}`", hint=hint)
    return retry_us


def _system(value: object) -> str:
    """Parse the name of a system; tables and datasets have it with underscores."""
    from beforehand.protocols.mobile.systems import SYSTEMS
    from beforehand.protocols.registry import present_name

    known = (system.replace("_", "-") for system in SYSTEMS)
    name = values.one_of(*known)(present_name(str(values.text(value))))
    return str(name).replace("-", "_")


def _options() -> dict[str, Option]:
    """Return the keys of an experiment; in `[cells]` they apply to all experiments."""
    from beforehand.sim.cells.spec import CellsSpec

    default = CellsSpec()
    return {
        "systems": Option(values.list_of(_system), ("was",)),
        "sizes": Option(_sizes, ((10, 200),)),
        "rates": Option(values.list_of(_rate), (35.0,)),
        "macs": Option(values.list_of(values.one_of("dcf", "csma", "none")), ("dcf",)),
        "modulation": Option(values.one_of("simple", "dsss", "ofdm"), "simple"),
        "capture": Option(values.switch, False),
        "answers_draw": Option(values.switch, default.radio.answers_draw),
        "radio_mbit_s": Option(_rate, 20.0),
        "wire_mbit_s": Option(_rate, 100.0),
        "range": Option(values.distance, default.range_m),
        "walks": Option(values.switch, True),
        "stays_covered": Option(values.switch, True),
        "choice": Option(values.one_of("stay", "nearest"), default.choice),
        "placement": Option(values.one_of("cells", "area"), default.placement),
        "payload": Option(values.size, default.payload_bytes),
        "ack_jitter": Option(values.share, default.ack_jitter),
        "timer_jitter": Option(values.share, default.timer_jitter),
        "duration": Option(values.positive_duration, default.duration_us),
        "warm_up": Option(values.positive_duration, default.warm_up_us),
        "settle": Option(values.duration, default.settle_us),
        "sample": Option(values.positive_duration, default.sample_us),
        # Search for the highest sustained rate between the first of `rates` and this rate.
        "search_to": Option(_rate),
        "queue": Option(values.whole(1), default.radio.queue_max),
        "inflight": Option(values.whole(1), default.pace.inflight_max),
        "retry_min": Option(_retry_min, default.pace.retry_us_min),
        "silence": Option(values.positive_duration),
        "repeats_max": Option(values.share),
        # Station failures: time of the first, interval, duration of the first, growth per failure.
        "failures": Option(values.whole(0), 0),
        "failures_from": Option(values.duration, 10 * SECOND_US),
        "failures_every": Option(values.positive_duration, 30 * SECOND_US),
        "failures_last": Option(values.positive_duration, 5 * SECOND_US),
        "failures_grow": Option(values.duration, 2 * SECOND_US),
        "failures_at": Option(values.whole(0)),
    }


def _read_experiments(document: Document) -> Mapping[str, Mapping[str, Any]]:
    """Return the options of each experiment by name; without any, one experiment from `[cells]`."""
    options = _options()
    shared = read_table(document, "cells", options)
    written = document.table("experiments", None)
    experiments = {}
    for name, table in written.items():
        if not isinstance(table, dict):
            hint = f"write `[experiments.{name}]`"
            document.add(InputError(f"`{name}` is no table", hint=hint), ("experiments", name))
            continue
        document.check_keys(table, ("experiments", name), options)
        experiments[name] = {
            key: document.value(table, ("experiments", name, key), option.parse, shared[key])
            for key, option in options.items()
        }
    return experiments or {"cells": shared}


def _tables() -> dict[str, Table]:
    events = {"events": Option(values.switch, False)}
    return {"cells": _options(), "experiments": _read_experiments, "sweep": events}


# ---- the runs ------------------------------------------------------------------------------------


def _tasks(scenario: Scenario) -> Iterator[Task]:
    keeps_events = scenario.options["sweep"]["events"]
    for name, options in scenario.options["experiments"].items():
        for system in options["systems"]:
            for stations, hosts in options["sizes"]:
                for mac in options["macs"]:
                    is_search = options["search_to"] is not None
                    rates = options["rates"][:1] if is_search else options["rates"]
                    for rate in rates:
                        spec = _spec(options, system, stations, hosts, rate, mac)
                        for seed in scenario.seeds:
                            rate_max = options["search_to"]
                            yield _task(CellsTask(name, spec, seed, rate_max, keeps_events))


def _task(task: CellsTask) -> Task:
    spec = task.spec
    spec.check()
    label = (
        f"{task.experiment}-{spec.system}-{spec.stations}x{spec.hosts}-r{spec.rate_per_s:g}"
        f"-{spec.radio.mac}-s{task.seed}"
    )
    parameters = {
        "experiment": task.experiment,
        "seed": task.seed,
        "rate_max": task.rate_max,
        **msgspec.to_builtins(spec),
        **({"events": True} if task.keeps_events else {}),
    }
    cost = spec.hosts * spec.rate_per_s * spec.duration_us / SECOND_US
    return Task(label, parameters, tuple(task), cost=cost * (1 if task.rate_max is None else 8))


def _spec(
    options: Mapping[str, Any], system: str, stations: int, hosts: int, rate: float, mac: str
) -> CellsSpec:
    from beforehand.protocols.mobile.pace import Pace
    from beforehand.sim.cells.spec import CellsSpec, Walk, Wiring
    from beforehand.sim.radio import Radio

    return CellsSpec(
        system=system,
        stations=stations,
        hosts=hosts,
        placement=options["placement"],
        wiring=Wiring(bits_per_s=round(1e6 * options["wire_mbit_s"])),
        radio=Radio(
            modulation=options["modulation"],
            bits_per_s=round(1e6 * options["radio_mbit_s"]),
            mac=mac,  # type: ignore[arg-type]
            capture=options["capture"],
            answers_draw=options["answers_draw"],
            queue_max=options["queue"],
        ),
        range_m=options["range"],
        choice=options["choice"],
        walk=Walk(
            speed_m_s=Walk().speed_m_s if options["walks"] else 0.0,
            stays_covered=options["stays_covered"],
        ),
        payload_bytes=options["payload"],
        rate_per_s=rate,
        pace=Pace(
            rounds=CellsSpec().pace.rounds,
            inflight_max=options["inflight"],
            retry_us_min=options["retry_min"],
            silence_us=options["silence"],
            repeats_max=options["repeats_max"],
        ),
        ack_jitter=options["ack_jitter"],
        timer_jitter=options["timer_jitter"],
        warm_up_us=options["warm_up"],
        duration_us=options["duration"],
        settle_us=options["settle"],
        sample_us=options["sample"],
        failures=_failures(options),
    )


def _failures(options: Mapping[str, Any]) -> tuple[Failure, ...]:
    from beforehand.sim.cells.spec import Failure

    return tuple(
        Failure(
            at_us=options["failures_from"] + k * options["failures_every"],
            for_us=options["failures_last"] + k * options["failures_grow"],
            station=options["failures_at"],
        )
        for k in range(options["failures"])
    )


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
        key = (row["experiment"], row["system"], row["stations"], row["hosts"], rate, row["mac"])
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
    keys=("experiment", "system", "stations", "hosts", "mac", "is_search", "asked_per_s"),
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
