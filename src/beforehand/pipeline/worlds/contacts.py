"""World `contacts`: mobile nodes that meet and part. Mobility to contacts, runs, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pyarrow as pa

from beforehand.files import read_parquet
from beforehand.pipeline.datasets import Dataset
from beforehand.pipeline.experiment import Compared, Conclusion, Experiment, Grid, Row, State
from beforehand.pipeline.schemas import GAUGES_FILE, HOPS_FILE, SPREADS
from beforehand.pipeline.stages import (
    AsTasks,
    InParts,
    InSession,
    Job,
    Made,
    Missing,
    OnDriver,
    OpenSpark,
    Stage,
    Task,
    Work,
)
from beforehand.scenario import values
from beforehand.scenario.head import Scenario
from beforehand.scenario.options import Option, Table
from beforehand.units import format_duration, show_duration, show_share

if TYPE_CHECKING:
    from beforehand.mobility.trace import Trace
    from beforehand.report.content import Page
    from beforehand.scenario.source import Source

HEADINGS = (
    *("protocol", "lifetime", "seed", "receptions", "reach", "deliveries", "ratio"),
    *("delay", "latency", "promised", "verdict"),
)

# ---- the scenario -------------------------------------------------------------------------------


def _tables() -> dict[str, Table]:
    from beforehand.scenario.protocols import read_protocols
    from beforehand.scenario.settings import read_network
    from beforehand.scenario.source import read_source
    from beforehand.scenario.traffic import read_traffic
    from beforehand.sim.contacts.engines import ENGINES

    return {
        "mobility": read_source,
        "traffic": read_traffic,
        "network": read_network,
        "protocols": read_protocols,
        "gauges": {
            "period": Option(values.sample_period),
            # The node whose gauges are recorded, by name or index; default: the node present
            # longest.
            "node": Option(_watched),
        },
        "engine": {"use": Option(values.one_of(*ENGINES), "auto")},
    }


def _watched(value: object) -> str | int:
    """Parse the name or the index of a node."""
    if isinstance(value, int):
        return cast(int, values.whole(0)(value))
    return values.text(value)


# ---- the stages ---------------------------------------------------------------------------------


def _plan_positions(scenario: Scenario, _: Work) -> Iterator[Task]:
    for source, seed in _movements(scenario).values():
        drawn = seed if source.generator is not None else None
        parameters = {"source": source.identity(), "seed": drawn}
        yield Task(f"s{seed}", parameters, (source, seed))


def _movement(source: Source, seed: int) -> str:
    """Return a name of the positions that a source gives: the same for sources of the same
    positions. A file gives the same for all seeds."""
    drawn = seed if source.generator is not None else None
    written = (source.generator, str(source.path), source.format, sorted(source.options.items()))
    return repr((written, drawn))


def _movements(scenario: Scenario) -> dict[str, tuple[Source, int]]:
    """Return the source and the seed of each positions dataset by name, each once."""
    found: dict[str, tuple[Source, int]] = {}
    for point in scenario.points:
        for seed in scenario.seeds:
            source: Source = point.options["mobility"]
            found.setdefault(_movement(source, seed), (source, seed))
    return found


def _ranges(scenario: Scenario) -> dict[tuple[str, float], None]:
    """Return the name of the positions and the range of each contacts dataset, each once. A source
    of contacts needs none, as it is the trace."""
    sources: list[Source] = [point.options["mobility"] for point in scenario.points]
    return {
        (_movement(source, seed), source.range_m): None
        for source in sources
        for seed in scenario.seeds
        if source.has_places and source.range_m is not None
    }


def _plan_contacts(scenario: Scenario, work: Work) -> Iterator[Task]:
    positions = dict(zip(_movements(scenario), work["positions"], strict=True))
    for name, range_m in _ranges(scenario):
        job = positions[name]
        yield Task(job.task.label, {"range_m": range_m}, range_m, (job.dataset,))


def traces_of(scenario: Scenario, work: Work) -> Mapping[tuple[int, int], Dataset]:
    """Return the trace of each (index of the point, seed)."""
    positions = dict(zip(_movements(scenario), work.datasets("positions"), strict=True))
    contacts = dict(zip(_ranges(scenario), work.datasets("contacts"), strict=True))
    found = {}
    for at, point in enumerate(scenario.points):
        source: Source = point.options["mobility"]
        for seed in scenario.seeds:
            name = _movement(source, seed)
            of_range = contacts.get((name, source.range_m or 0.0))
            found[at, seed] = of_range or positions[name]
    return found


def _plan_events(scenario: Scenario, work: Work) -> Iterator[Task]:
    from beforehand.pipeline.contacts.plan import plan_runs

    traces = traces_of(scenario, work)
    for at, run in plan_runs(scenario):
        parameters = {**msgspec.to_builtins(run.spec), "watched": run.watched}
        if (
            run.engine != "auto"
        ):  # both write the same log, but a scenario that names an engine gets its own dataset
            parameters["engine"] = run.engine
        yield Task(run.label, parameters, run, (traces[at, run.spec.seed],), run.cost)


def _plan_verdicts(_: Scenario, work: Work) -> Iterator[Task]:
    for run in work["events"]:
        yield Task(run.task.label, {}, None, (run.dataset,))


def _plan_metrics(_: Scenario, work: Work) -> Iterator[Task]:
    for run in work["events"]:
        yield Task(run.task.label, {}, None, (run.dataset,), run.task.cost)


def _make_contacts(spark: OpenSpark, job: Job) -> Made:
    from beforehand.pipeline.contacts.detect import make_contacts

    return make_contacts(spark, job)


def _stages() -> tuple[Stage, ...]:
    from beforehand.pipeline.contacts.metrics import measure_run
    from beforehand.pipeline.contacts.positions import make_positions
    from beforehand.pipeline.contacts.verdicts import (
        join_blocks,
        make_blocks,
        verify_block,
        verify_run,
    )

    return (
        Stage(
            name="positions",
            inputs=(),
            sources=("mobility", "kernels/contacts.py", "pipeline/contacts/positions.py"),
            plan=_plan_positions,
            maker=OnDriver(make_positions),
        ),
        Stage(
            name="contacts",
            inputs=("positions",),
            sources=("mobility/trace.py", "kernels/contacts.py", "pipeline/contacts/detect.py"),
            plan=_plan_contacts,
            maker=InSession(_make_contacts),
        ),
        _events(),
        Stage(
            name="verdicts",
            inputs=("events",),
            sources=(
                *("events.py", "promises.py", "kernels/verify/causality.py", "verify"),
                "pipeline/contacts/verdicts.py",
            ),
            plan=_plan_verdicts,
            maker=InParts(make_blocks, verify_block, join_blocks),
            follow=verify_run,
        ),
        Stage(
            name="metrics",
            inputs=("events",),
            sources=(
                *("kernels/xxhash64.py", "sim/contacts/summary.py", "sim/contacts/evictions.py"),
                *("pipeline/contacts/metrics.py", "pipeline/schemas.py"),
            ),
            plan=_plan_metrics,
            maker=AsTasks(measure_run),
            follow=measure_run,
        ),
    )


def _events() -> Stage:
    from beforehand.pipeline.contacts.simulate import check_watched, simulate

    return Stage(
        name="events",
        inputs=("contacts",),
        sources=(
            *("events.py", "protocols", "sim", "kernels/epidemic", "kernels/hops.py"),
            "pipeline/contacts/simulate.py",
        ),
        plan=_plan_events,
        maker=AsTasks(simulate),
        check=check_watched,
    )


def _is_small(missing: Missing) -> bool:
    """Return whether one process can find all missing contacts without Spark."""
    from beforehand.pipeline.contacts.detect import is_small

    positions = [job.inputs[0] for job in missing["contacts"]]
    return all(dataset.is_whole() and is_small(dataset) for dataset in positions)


# ---- the conclusion -----------------------------------------------------------------------------


def _conclude(scenario: Scenario, work: Work) -> Conclusion:
    from beforehand.mobility.statistics import by_hour
    from beforehand.pipeline.contacts.metrics import find_meetings, find_survival
    from beforehand.pipeline.contacts.points import point_table
    from beforehand.pipeline.contacts.positions import PRESENCE_FILE, TraceFacts, read_trace
    from beforehand.pipeline.gather import gather_tables
    from beforehand.pipeline.schemas import HOURS, table_of_rows

    tables = gather_tables(work)
    for name in (GAUGES_FILE, HOPS_FILE):
        parts = [read_parquet(events.file(name)) for events in work.datasets("events")]
        tables[Path(name).stem] = pa.concat_tables(parts)
    # The trace of the first seed represents all seeds, which differ only by random draws.
    first = traces_of(scenario, work)[0, scenario.seeds[0]]
    trace = read_trace(first)
    tables["meetings"] = find_meetings(trace.contacts)
    tables["survival"] = find_survival(trace.contacts)
    tables["hours"] = table_of_rows(HOURS, by_hour(trace))
    tables["presence"] = read_parquet(first.file(PRESENCE_FILE))
    tables["points"] = point_table(scenario.points)
    tables["trace"] = pa.Table.from_pylist([_statistics(trace)])
    rows: list[Row] = tables["runs"].to_pylist()
    about = {
        "changes": dict(trace.changes),
        "read": work.datasets("positions")[0].facts(TraceFacts).read,
        "drawn": _drawn(scenario),
    }
    return Conclusion(tables, _state(rows), rows, about)


def _drawn(scenario: Scenario) -> list[str]:
    """Return what another seed draws anew, besides the order of transfers and of evictions."""
    from beforehand.pipeline.contacts.plan import specs_of

    drawn = set()
    for point in scenario.points:
        for spec in specs_of(point, 1):
            links = spec.links
            drawn |= {"traffic"} if spec.traffic.is_drawn else set()
            drawn |= {"links"} if links.loss or links.duplication or links.jitter_us else set()
        drawn |= {"mobility"} if point.options["mobility"].generator is not None else set()
    return sorted(drawn)


def _state(rows: Sequence[Row]) -> State:
    """Return the worst verdict; each run is judged by the promise of its protocol."""
    from beforehand.verify.verdict import worst

    return worst(row["verdict"] for row in rows)


def _statistics(trace: Trace) -> dict[str, float]:
    """Return the statistics of the paper's table, with times in microseconds as everywhere on
    disk."""
    from beforehand.mobility.statistics import describe

    found = describe(trace)
    return {
        "nodes": found["nodes"],
        "max_at_once": found["at_once_max"],
        **{f"activity_{kind}": 1e6 * found[f"activity_s_{kind}"] for kind in SPREADS},
        "contacts": found["contacts"],
        **{f"duration_{kind}": 1e6 * found[f"contact_s_{kind}"] for kind in SPREADS},
    }


def _table(rows: list[Row]) -> Grid:
    return HEADINGS, [_line(row) for row in rows]


def _line(run: Row) -> tuple[str, ...]:
    from beforehand.promises import label_of

    return (
        ", ".join(part for part in (run["protocol"], run["point"]) if part),
        format_duration(run["lifetime_us"]) if run["lifetime_us"] else "none",
        str(run["seed"]),
        f"{run['receptions']:,}",
        show_share(run["reach"]),
        f"{run['deliveries']:,}",
        show_share(run["delivery_ratio"]),
        show_duration(run["delay_us_avg"]),
        show_duration(run["latency_us_avg"]),
        label_of(run["promise"]),
        run["verdict"],
    )


def _page(directory: Path) -> Page:
    from beforehand.report.opportunistic.page import build_opportunistic_page

    return build_opportunistic_page(directory)


COMPARED = Compared(
    table="runs",
    keys=("protocol", "lifetime_us", "point"),
    figures=(
        *("reach", "delivery_ratio", "delay_us_avg", "latency_us_avg", "age_us_avg"),
        *("expired", "bytes"),
    ),
)
EXPERIMENT = Experiment(
    tables=_tables,
    seeds=1,
    stages=_stages,
    conclude=_conclude,
    noun="runs",
    table=_table,
    page=_page,
    compared=COMPARED,
    papers=("opp-buses", "opp-ostermalm"),
    swept=("mobility", "traffic", "network"),
    is_small=_is_small,
)
