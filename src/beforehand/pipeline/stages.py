"""Stages: the steps of an experiment, each of which makes datasets from those of earlier stages.

This module does not depend on what is simulated. A stage plans one task per dataset. Its maker
defines how a dataset is made:

- on the driver (`OnDriver`),
- as one Spark task per dataset (`AsTasks`),
- as several Spark tasks per dataset, one per part (`InParts`), or
- on the driver with a Spark session at hand (`InSession`).
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
"""Returns the Spark session; the first call starts Spark."""


@dataclass(frozen=True)
class Task:
    """One dataset to be made, as planned by a stage."""

    label: str
    """The readable first part of the folder's name."""
    parameters: Mapping[str, Any]
    """Everything besides the inputs that the content depends on, as JSON values."""
    spec: Any = None
    """Input for the function that makes the dataset."""
    inputs: tuple[Dataset, ...] = ()
    cost: float = 1.0
    """The expected duration relative to other tasks; the longest tasks start first."""


@dataclass(frozen=True)
class Job:
    """A task together with the dataset that it makes."""

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
    """The description of a dataset whose files are written, passed to `Dataset.commit`."""

    rows: int
    facts: msgspec.Struct | None = None


class Maker(Protocol):
    """Strategy that makes the datasets of a stage."""

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        """Write and commit all datasets."""
        ...


@dataclass(frozen=True)
class Stage:
    """One step of an experiment."""

    name: str
    inputs: tuple[str, ...]
    """The names of the stages that it reads."""
    sources: tuple[str, ...]
    """The parts of this package, as paths within it, that determine the content."""
    plan: Callable[[Scenario, Work], Iterable[Task]]
    maker: Maker
    check: Callable[[Sequence[Job]], None] = lambda _: None
    """Raises InputError for jobs that cannot be done, before any job starts."""
    follow: Callable[[Job], Made | None] | None = None
    """Makes a dataset in the task that made its only input, if that stage runs as tasks. It returns
    None, and the maker makes the dataset, if that is too much work for one task."""


Missing = dict[str, list[Job]]
"""The jobs to be done, by stage."""
Followers = Mapping[str, Sequence[tuple[Callable[[Job], Made | None], Job]]]
"""The jobs that can be done in the task that makes their input, with the `follow` of their stage,
by the name of the input."""


@dataclass(frozen=True)
class Work:
    """All datasets of a scenario by stage, existing or not."""

    root: Path
    jobs: dict[str, list[Job]] = field(default_factory=dict)

    def __getitem__(self, stage: str) -> list[Job]:
        return self.jobs[stage]

    def datasets(self, stage: str) -> tuple[Dataset, ...]:
        return tuple(job.dataset for job in self.jobs[stage])

    def missing(self) -> Missing:
        """Return the jobs whose dataset is missing or damaged. Reads all existing datasets."""
        return {
            stage: [job for job in jobs if not job.dataset.is_whole()]
            for stage, jobs in self.jobs.items()
        }

    def job(self, stage: Stage, task: Task) -> Job:
        """Return the job that makes the dataset of a task."""
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
    """Make the datasets one after the other on the driver, without Spark."""

    function: Callable[[Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        for job in _counted(stage, jobs):
            _make(self.function, job)


@dataclass(frozen=True)
class AsTasks:
    """Make each dataset in one Spark task, which writes the files and commits them."""

    function: Callable[[Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        self.make_with(stage, jobs, spark, {})

    def make_with(
        self, stage: str, jobs: Sequence[Job], spark: OpenSpark, followers: Followers
    ) -> set[str]:
        """Make all datasets, and those of the followers. Return the names of what was made."""
        from beforehand.spark.tasks import run_tasks

        longest_first = sorted(jobs, key=lambda job: -job.task.cost)
        chains = [(job, tuple(followers.get(job.name, ()))) for job in longest_first]
        made = run_tasks(spark(), stage, chains, partial(_make_chain, self.function))
        return {name for names in made for name in names}


@dataclass(frozen=True)
class InParts:
    """Make a dataset that is too large for one task: each part is a Spark task, the driver
    commits."""

    split: Callable[[Job], Sequence[Any]]
    function: Callable[[Any], Any]
    """Computes one part; returns plain data."""
    join: Callable[[Job, Sequence[Any]], Made]
    """Combines the results of all parts, in the order of the parts."""

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
    """Make the datasets one after the other, each with the whole Spark cluster.

    The function starts Spark only if it calls `OpenSpark`; small inputs do not need it.
    """

    function: Callable[[OpenSpark, Job], Made]

    def make(self, stage: str, jobs: Sequence[Job], spark: OpenSpark) -> None:
        for job in jobs:
            job.dataset.commit(*self.function(spark, job))


def _counted(label: str, jobs: Sequence[Job]) -> Iterator[Job]:
    """Yield all jobs, with a progress bar on stderr if stderr is a terminal."""
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


def _make_chain(
    function: Callable[[Job], Made],
    chain: tuple[Job, Sequence[tuple[Callable[[Job], Made | None], Job]]],
) -> list[str]:
    """Make the dataset of a job, and then those of its followers. Return the names of all made."""
    first, followers = chain
    names = [_make(function, first)]
    for follow, job in followers:
        made = follow(job)
        if made is not None:
            job.dataset.commit(*made)
            names.append(job.name)
    return names
