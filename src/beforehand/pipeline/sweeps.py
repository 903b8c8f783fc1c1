"""A sweep: many small simulations, each a task that leaves its own rows; and its scenario file.

A task is all or nothing and gives the same rows every time. So it does not matter how often Spark
tries it, and what a killed sweep has finished is not done again.
"""

from __future__ import annotations

import json
import platform
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.errors import InputError, InputErrors
from beforehand.pipeline import values
from beforehand.pipeline.datasets import Dataset, plan_dataset, write_table, write_text
from beforehand.pipeline.toml_lines import KeyPath, key_lines, line_of
from beforehand.pipeline.values import Parse
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
DEFAULT_SEEDS = 3


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


@dataclass(frozen=True)
class SweepSummary:
    """What a scenario came to, for whoever asked for it."""

    name: str
    title: str
    out: Path
    state: Literal["valid", "invalid", "unknown"]
    rows: list[Row]
    """What the scenario is about: claims with their verdicts, or measured figures."""
    computed: dict[str, int]
    """How many datasets of each stage were missing and are there now."""


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
        from beforehand.pipeline.session import open_session

        return open_session(master, remote, small=True)

    return opened


def _compute(
    spark: SparkSession, stage: str, missing: Sequence[tuple[Task, Dataset]], function: Function
) -> None:
    from beforehand.pipeline.progress import progress_bar

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


@dataclass(frozen=True)
class SweepScenario:
    """A scenario of a sweep, without a mistake."""

    name: str
    title: str
    paper: str | None
    world: str
    seeds: tuple[int, ...]
    options: Mapping[str, Any]
    """The table of the world: every key that it knows, as written or by default."""
    document: Mapping[str, Any]
    """All that was written, `--set` included."""


@dataclass(frozen=True)
class Option:
    """A key of a world's own table."""

    parse: Parse
    default: Any


def read_sweep_scenario(
    path: Path,
    world: str,
    options: Mapping[str, Option],
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
) -> SweepScenario:
    """The scenario of a file; all that is wrong with it is told at once, with line numbers.

    options: what the table `[<world>]` may hold. seeds: instead of its own. overrides:
    `section.key=value`.
    """
    reader = _Reader(path)
    for override in [*overrides, *([f"sweep.seeds={seeds}"] if seeds is not None else [])]:
        reader.override(override)
    head = {
        "name": Option(values.plain_name, path.stem),
        "title": Option(values.text, None),
        "paper": Option(values.text, None),
        "world": Option(values.one_of(world), world),
    }
    sweep = {"seeds": Option(values.whole(1), DEFAULT_SEEDS)}
    found = reader.read({"scenario": head, "sweep": sweep, world: options})
    about = found["scenario"]
    return SweepScenario(
        name=about["name"],
        title=about["title"] or about["name"],
        paper=about["paper"],
        world=world,
        seeds=tuple(range(1, found["sweep"]["seeds"] + 1)),
        options=found[world],
        document=reader.document,
    )


def world_of(path: Path) -> str:
    """The world that a scenario is for; what says nothing is for contacts."""
    head = _Reader(path).document.get("scenario", {})
    return str(head.get("world", "contacts")) if isinstance(head, dict) else "contacts"


def list_of(parse: Parse) -> Parse:
    """A list with something in it, nothing twice."""

    def parse_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not value:
            raise InputError(f"not a list with something in it: `{value}`", hint="write `[...]`")
        items = tuple(parse(item) for item in value)
        if len(set(items)) < len(items):
            raise InputError(f"something is in it twice: `{value}`")
        return items

    return parse_list


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


class _Reader:
    """Goes through a document and collects what is wrong with it."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            hint = "give the path of a TOML file"
            raise InputError("no such scenario", where=str(path), hint=hint)
        text = path.read_text(encoding="utf-8")
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not TOML: {error}", where=str(path)) from error
        self.path, self.lines = path, key_lines(text)
        self.overridden: set[KeyPath] = set()
        self.problems: list[InputError] = []

    def override(self, written: str) -> None:
        key, equals, value = written.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        section = self.document.setdefault(path[0], {}) if equals and len(path) == 2 else None
        if not isinstance(section, dict):
            hint = "write `--set section.key=value`, for example `--set sweep.seeds=5`"
            self.problems.append(InputError(f"not a setting: `{written}`", hint=hint))
            return
        try:
            section[path[1]] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            section[path[1]] = value.strip()  # so that a text needs no quotes
        self.overridden.add(path)

    def read(self, tables: Mapping[str, Mapping[str, Option]]) -> dict[str, dict[str, Any]]:
        for section in self.document:
            if section not in tables:
                self.add(InputError(f"no such table: `{section}`", hint=_known(tables)), (section,))
        found = {name: self.table(name, options) for name, options in tables.items()}
        if self.problems:
            raise self.problems[0] if len(self.problems) == 1 else InputErrors(self.problems)
        return found

    def table(self, name: str, options: Mapping[str, Option]) -> dict[str, Any]:
        section = self.document.get(name, {})
        if not isinstance(section, dict):
            self.add(InputError(f"`{name}` is no table", hint=f"write `[{name}]`"), (name,))
            return {}
        found = {key: option.default for key, option in options.items()}
        for key, value in section.items():
            if key not in options:
                self.add(InputError(f"no such key: `{key}`", hint=_known(options)), (name, key))
                continue
            try:
                found[key] = options[key].parse(value)
            except InputError as error:
                problem = InputError(f"`{key}`: {error.problem}", hint=error.hint)
                self.add(problem, (name, key))
        return found

    def add(self, error: InputError, path: KeyPath) -> None:
        if path in self.overridden:
            where = f"--set {'.'.join(map(str, path))}"
        else:
            line = line_of(self.lines, path)
            where = f"{self.path}:{line}" if line else str(self.path)
        self.problems.append(InputError(error.problem, where=where, hint=error.hint))


def _known(names: Iterable[str]) -> str:
    return "known are " + ", ".join(f"`{name}`" for name in names)
