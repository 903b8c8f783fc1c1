"""What an experiment is made of: stages, each of which makes datasets of those before it.

Nothing here knows what is simulated. A stage plans its tasks, one for each dataset, and says how
one is made: on the driver, as tasks of Spark, in parts of which each is a task, or by a session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from beforehand.pipeline.datasets import Dataset, plan_dataset
from beforehand.scenario.head import Scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSpark = Callable[[], "SparkSession"]
"""Starts Spark when it is called for the first time."""


@dataclass(frozen=True)
class Task:
    """One dataset to be made, as a stage plans it."""

    label: str
    """Begins the name of its folder, for whoever looks there."""
    parameters: Mapping[str, Any]
    """All that its content depends on besides the inputs, as JSON has it."""
    spec: Any = None
    """For whoever makes it."""
    inputs: tuple[Dataset, ...] = ()
    cost: float = 1.0
    """How long it takes, compared with the others: the longest are started first."""


@dataclass(frozen=True)
class Job:
    """A task, and the place of its dataset."""

    task: Task
    dataset: Dataset

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def spec(self) -> Any:
        return self.task.spec

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        return self.task.inputs


class Made(NamedTuple):
    """What is to be said of a dataset whose files are there."""

    rows: int
    facts: msgspec.Struct | None = None


class Maker(Protocol):
    """How a stage makes its datasets."""

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        """All of them, written and committed."""
        ...


@dataclass(frozen=True)
class Stage:
    """One step of an experiment."""

    name: str
    inputs: tuple[str, ...]
    """The stages that it reads."""
    sources: tuple[str, ...]
    """The parts of this package, as paths within it, that decide what comes out."""
    plan: Callable[[Scenario, Work], Iterable[Task]]
    maker: Maker
    check: Callable[[Sequence[Job]], None] = lambda _: None
    """Refuses what cannot be made, before any of it is."""


Missing = dict[str, list[Job]]
"""By stage: the jobs that are to be done."""


@dataclass(frozen=True)
class Work:
    """All datasets that a scenario comes to, by stage, whether they are there or not."""

    root: Path
    jobs: dict[str, list[Job]] = field(default_factory=dict)

    def __getitem__(self, stage: str) -> list[Job]:
        return self.jobs[stage]

    def datasets(self, stage: str) -> tuple[Dataset, ...]:
        return tuple(job.dataset for job in self.jobs[stage])

    def missing(self) -> Missing:
        """What is not there, or not as it was when it was finished. Whatever is there is read."""
        return {
            stage: [job for job in jobs if not job.dataset.is_whole()]
            for stage, jobs in self.jobs.items()
        }

    def job(self, stage: Stage, task: Task) -> Job:
        """Where the dataset of a task belongs."""
        inputs = [dataset.name for dataset in task.inputs]
        dataset = plan_dataset(
            self.root,
            stage.name,
            task.label,
            inputs=inputs,
            parameters=task.parameters,
            sources=stage.sources,
        )
        return Job(task, dataset)


@dataclass(frozen=True)
class OnDriver:
    """Here and now, one after the other, without Spark."""

    function: Callable[[Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        for job in _counted(stage, jobs):
            _make(self.function, job)


@dataclass(frozen=True)
class AsTasks:
    """Each dataset is a task of Spark, which writes the files and commits them."""

    function: Callable[[Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        from beforehand.spark.tasks import run_tasks

        longest_first = sorted(jobs, key=lambda job: -job.task.cost)
        run_tasks(spark(), stage, longest_first, partial(_make, self.function))


@dataclass(frozen=True)
class InParts:
    """Where a dataset is too much for one task: its parts are tasks, and the driver commits it."""

    split: Callable[[Job], Sequence[Any]]
    function: Callable[[Any], Any]
    """Of a part; its answer is plain data."""
    join: Callable[[Job, Sequence[Any]], Made]
    """Of the answers to all parts, in their order."""

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        from beforehand.spark.tasks import run_tasks

        parts = [(at, part) for at, job in enumerate(jobs) for part in self.split(job)]
        answers = run_tasks(spark(), stage, [part for _, part in parts], self.function)
        of: list[list[Any]] = [[] for _ in jobs]
        for (at, _), answer in zip(parts, answers, strict=True):
            of[at].append(answer)
        for job, mine in zip(jobs, of, strict=True):
            job.dataset.commit(*self.join(job, mine))


@dataclass(frozen=True)
class InSession:
    """One after the other, each with all that Spark has; none needs it for what is small."""

    function: Callable[[OpenSpark, Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        for job in jobs:
            job.dataset.commit(*self.function(spark, job))


def _counted(label: str, jobs: Sequence[Job]) -> Iterator[Job]:
    """All of them, with a bar on stderr; nothing is drawn where that is not a terminal."""
    if not sys.stderr.isatty():
        yield from jobs
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(jobs, description=label)


def _make(function: Callable[[Job], Made], job: Job) -> str:
    job.dataset.commit(*function(job))
    return job.name
