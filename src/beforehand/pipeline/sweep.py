"""A sweep: an experiment of one stage, of many small simulations that each leave a few rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from beforehand.files import read_parquet
from beforehand.pipeline.datasets import write_table
from beforehand.pipeline.experiment import Row
from beforehand.pipeline.stages import AsTasks, Job, Made, Stage, Task
from beforehand.scenario.head import Scenario

ROWS_FILE = "rows.parquet"


class SweepFacts(msgspec.Struct, frozen=True):
    """Of one simulation, or of several that share a task."""

    cpu_s: float


def sweep_stage(
    name: str,
    sources: Sequence[str],
    tasks: Callable[[Scenario], Iterable[Task]],
    rows: Callable[[Job], Iterable[Row]],
) -> Stage:
    """The stage of a sweep. rows: of one task; workers import it, so it stands at the top of its
    module."""
    return Stage(
        name, (), tuple(sources), lambda scenario, _: tasks(scenario), AsTasks(WriteRows(rows))
    )


@dataclass(frozen=True)
class WriteRows:
    """What a task of a sweep does."""

    rows: Callable[[Job], Iterable[Row]]

    def __call__(self, job: Job) -> Made:
        started_s = time.process_time()
        rows = list(self.rows(job))
        cpu_s = round(time.process_time() - started_s, 3)
        write_table(job.dataset.file(ROWS_FILE), pa.Table.from_pylist(rows))
        return Made(len(rows), SweepFacts(cpu_s))


def read_rows(jobs: Sequence[Job]) -> list[Row]:
    """The rows of all tasks, in their order."""
    tables = (read_parquet(job.dataset.file(ROWS_FILE)) for job in jobs)
    return [row for table in tables for row in table.to_pylist()]
