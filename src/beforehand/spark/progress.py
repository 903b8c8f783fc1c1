"""How far Spark is, as a bar on the terminal; and in its own pages, what it is that runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

if TYPE_CHECKING:
    # Needs the packages of Connect.
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

POLL_SECONDS = 0.2
DESCRIPTION = "spark.job.description"

Show = Callable[[int, int], None]
"""Is told the number of finished tasks and of all tasks of the running jobs."""


@contextmanager
def progress_bar(spark: SparkSession, label: str) -> Iterator[None]:
    """A bar on stderr while the block runs; nothing at all where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, Remaining(), console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        with watch_tasks(spark, lambda done, total: bar.update(task, completed=done, total=total)):
            yield


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """While the block runs, Spark's own pages say what it is for."""
    text = f"beforehand {what}"
    if is_remote():
        spark.addTag(text)
        try:
            yield
        finally:
            spark.removeTag(text)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setJobDescription(text)
    try:
        yield
    finally:
        with suppress(Py4JError):  # Java may be gone
            context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def watch_tasks(spark: SparkSession, show: Show) -> Iterator[None]:
    """Calls `show` now and then while the block runs, from another thread."""
    with _listen(spark, show) if is_remote() else _poll(spark.sparkContext.statusTracker(), show):
        yield


@contextmanager
def _listen(spark: SparkSession, show: Show) -> Iterator[None]:
    """A Connect server sends its progress by itself."""

    def handle(stages: Iterable[StageInfo] | None, *_: object, **__: object) -> None:
        known = list(stages or ())
        if known:
            show(sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known))

    handler = cast("ProgressHandler", handle)  # Spark asks for no more than a callable
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _poll(tracker: StatusTracker, show: Show) -> Iterator[None]:
    """A driver in this process has to be asked."""
    finished = threading.Event()

    def ask() -> None:
        while not finished.wait(POLL_SECONDS):
            done, total = _count_tasks(tracker)
            if total:  # between two jobs the bar stays as it is
                show(done, total)

    thread = threading.Thread(target=ask, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _count_tasks(tracker: StatusTracker) -> tuple[int, int]:
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    # Spark forgets old jobs and stages, so either may be None.
    ids = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [info for info in map(tracker.getStageInfo, ids) if info is not None]
    # A stage that has not started may never do so: what an earlier job shuffled is not redone.
    begun = [stage for stage in known if stage.numActiveTasks or stage.numCompletedTasks]
    return sum(s.numCompletedTasks for s in begun), sum(s.numTasks for s in begun)
