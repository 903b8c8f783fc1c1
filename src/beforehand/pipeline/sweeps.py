"""A sweep: many small simulations, each a task that leaves its own rows.

A task is all or nothing and gives the same rows every time. So it does not matter how often Spark
tries it, and what a killed sweep has finished is not done again.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.pipeline.datasets import Dataset, plan_dataset, write_table, write_text
from beforehand.pipeline.sweep_scenario import Option, SweepScenario, read_sweep_scenario
from beforehand.pipeline.work import INDEX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Function = Callable[[Any], Iterable[Row]]
"""The rows of one spec. Workers import it, so it is a function at the top of a module of ours."""
OpenSpark = Callable[[], AbstractContextManager["SparkSession"]]
Tell = Callable[[str], None]

ROWS_FILE = "rows.parquet"
DONE = "task bigint, rows bigint, cpu_s double"
PACKAGES = ("beforehand", "pyspark", "pyarrow", "numpy", "numba")


@dataclass(frozen=True)
class Task:
    """One simulation of a sweep."""

    label: str
    """Begins the name of its folder, for whoever looks there."""
    parameters: Mapping[str, Any]
    """All that its rows depend on, as JSON has it."""
    spec: Any
    """What the function of the sweep is called with."""
    cost: float = 1.0
    """How long it takes, compared with the others: the longest are started first."""


@dataclass(frozen=True)
class Swept:
    """What a sweep came to."""

    rows: list[Row]
    """Of all tasks, in their order."""
    computed: int
    """How many tasks were missing and are there now."""
    cpu_s: float
    """What all tasks together took, whenever they ran."""


class Conclusion(NamedTuple):
    """What the rows of a sweep come to."""

    tables: Mapping[str, Sequence[Row]]
    """What is published, by name."""
    state: Literal["valid", "invalid"]
    rows: list[Row]
    """What the scenario is about: claims with their verdicts, or measured figures."""


@dataclass(frozen=True)
class World:
    """What there is to know of a world to sweep through it."""

    name: str
    """Of its table in a scenario."""
    stage: str
    options: Mapping[str, Option]
    """What that table may hold."""
    sources: Sequence[str]
    """The parts of this package, as paths within it, that decide what the rows are."""
    tasks: Callable[[SweepScenario], list[Task]]
    function: Function
    conclude: Callable[[list[Row]], Conclusion]


@dataclass(frozen=True)
class SweepSummary:
    """What a scenario came to, for whoever asked for it."""

    name: str
    title: str
    out: Path
    state: Literal["valid", "invalid"]
    rows: list[Row]
    """See `Conclusion`."""
    computed: dict[str, int]
    """How many datasets of each stage were missing and are there now."""


def run_world(
    world: World,
    path: Path,
    out: Path,
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    master: str | None = None,
    remote: str | None = None,
    tell: Tell = lambda _: None,
) -> SweepSummary:
    """Compute what is missing of a scenario, and put its results into `out`."""
    scenario = read_sweep_scenario(
        path, world.name, world.options, seeds=seeds, overrides=overrides
    )
    swept = run_sweep(
        out,
        world.stage,
        world.tasks(scenario),
        world.function,
        sources=world.sources,
        open_spark=spark_opener(master, remote),
        tell=tell,
    )
    tables, state, rows = world.conclude(swept.rows)
    publish_tables(out, scenario, tables)
    tell(f"{world.stage}: {swept.cpu_s:.1f} CPU seconds in all")
    computed = {world.stage: swept.computed}
    return SweepSummary(scenario.name, scenario.title, out, state, rows, computed)


def run_sweep(
    root: Path,
    stage: str,
    tasks: Sequence[Task],
    function: Function,
    *,
    sources: Sequence[str],
    open_spark: OpenSpark,
    tell: Tell = lambda _: None,
) -> Swept:
    """The rows of all tasks; those that are missing below `root` are computed on Spark first.

    sources: the parts of this package, as paths within it, that decide what the rows are.
    open_spark: is called only where something is missing; see `spark_opener`.
    """
    planned = [
        (
            task,
            plan_dataset(
                root, stage, task.label, inputs=(), parameters=task.parameters, sources=sources
            ),
        )
        for task in tasks
    ]
    _write_index(root, stage, [dataset for _, dataset in planned])
    missing = [(task, dataset) for task, dataset in planned if not dataset.exists]
    missing.sort(key=lambda pair: -pair[0].cost)
    if missing:
        tell(f"{stage}: {len(missing)} of {len(tasks)} simulations to run")
        with open_spark() as spark:
            _compute(spark, stage, missing, function)
    rows: list[Row] = []
    for _, dataset in planned:
        rows += pq.read_table(dataset.file(ROWS_FILE)).to_pylist()
    cpu_s = sum(dataset.manifest()["cpu_s"] for _, dataset in planned)
    return Swept(rows, len(missing), cpu_s)


def spark_opener(master: str | None = None, remote: str | None = None) -> OpenSpark:
    """For `run_sweep`. The session is a small one: Java hands out the tasks and does no more."""

    def opened() -> AbstractContextManager[SparkSession]:
        from beforehand.spark.session import open_session

        return open_session(master, remote, small=True)

    return opened


def _compute(
    spark: SparkSession, stage: str, missing: Sequence[tuple[Task, Dataset]], function: Function
) -> None:
    from beforehand.spark.progress import progress_bar

    work = tuple((task.spec, dataset) for task, dataset in missing)
    # `range` gives one row to each partition; `repartition` leaves some empty.
    tasks = spark.range(0, len(work), 1, len(work))
    with progress_bar(spark, stage):
        tasks.mapInArrow(_worker(work, function), DONE).collect()


def _worker(
    work: tuple[tuple[Any, Dataset], ...], function: Function
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch["id"].to_numpy().tolist():
                spec, dataset = work[int(index)]
                rows, cpu_s = run_task(spec, dataset, function)
                columns = {"task": [index], "rows": [rows], "cpu_s": [cpu_s]}
                yield from pa.table(columns).to_batches()

    return run


def run_task(spec: Any, dataset: Dataset, function: Function) -> tuple[int, float]:
    """Run, write, commit. The number of rows and the CPU seconds."""
    started_s = time.process_time()
    rows = list(function(spec))
    cpu_s = round(time.process_time() - started_s, 3)
    write_table(dataset.file(ROWS_FILE), pa.Table.from_pylist(rows))
    dataset.commit(rows=len(rows), cpu_s=cpu_s)
    return len(rows), cpu_s


def _write_index(root: Path, stage: str, datasets: Sequence[Dataset]) -> None:
    """Say what was asked for, for `beforehand status`."""
    folders = [str(dataset.folder.relative_to(root.absolute())) for dataset in datasets]
    write_text(root / INDEX, json.dumps({"stages": {stage: folders}}, indent=2) + "\n")


def publish_tables(out: Path, scenario: SweepScenario, tables: Mapping[str, Sequence[Row]]) -> None:
    """The results under plain names, for the report and for anybody else."""
    for name, rows in tables.items():
        write_table(out / f"{name}.parquet", pa.Table.from_pylist(list(rows)))
    about = {
        "name": scenario.name,
        "title": scenario.title,
        "paper": scenario.paper,
        "world": scenario.world,
        "parameters": scenario.document,
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
    }
    write_text(out / "scenario.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n")
