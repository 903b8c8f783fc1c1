"""Sweeps: experiments with one stage of many small simulations, each of which gives a few rows."""

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
    """Facts about one simulation, or about several in one task."""

    cpu_s: float


def sweep_stage(
    name: str,
    sources: Sequence[str],
    tasks: Callable[[Scenario], Iterable[Task]],
    rows: Callable[[Job], Iterable[Row]],
) -> Stage:
    """Return the stage of a sweep.

    rows: computes the rows of one task. Executors import this function, so it must be defined at
    module level.
    """
    return Stage(
        name, (), tuple(sources), lambda scenario, _: tasks(scenario), AsTasks(WriteRows(rows))
    )


@dataclass(frozen=True)
class WriteRows:
    """The function of a sweep task: compute the rows and write them."""

    rows: Callable[[Job], Iterable[Row]]

    def __call__(self, job: Job) -> Made:
        started_s = time.process_time()
        rows = list(self.rows(job))
        cpu_s = round(time.process_time() - started_s, 3)
        write_table(job.dataset.file(ROWS_FILE), pa.Table.from_pylist(rows))
        return Made(len(rows), SweepFacts(cpu_s))


def read_rows(jobs: Sequence[Job]) -> list[Row]:
    """Return the rows of all tasks, in the order of the tasks."""
    tables = (read_parquet(job.dataset.file(ROWS_FILE)) for job in jobs)
    return [row for table in tables for row in table.to_pylist()]
