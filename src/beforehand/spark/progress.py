"""Show Spark's progress as a bar on the terminal, and label the jobs in Spark's web UI."""

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
    # This import needs the packages of Spark Connect.
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

POLL_SECONDS = 0.2
DESCRIPTION = "spark.job.description"

Show = Callable[[int, int], None]
"""Called with the finished tasks and with all tasks of the running jobs."""


@contextmanager
def progress_bar(spark: SparkSession, label: str) -> Iterator[None]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal."""
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
    """Label the Spark jobs of the block in Spark's web UI."""
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
        with suppress(Py4JError):  # the Java process may have ended
            context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def watch_tasks(spark: SparkSession, show: Show) -> Iterator[None]:
    """Call `show` periodically from another thread while the block runs."""
    with _listen(spark, show) if is_remote() else _poll(spark.sparkContext.statusTracker(), show):
        yield


@contextmanager
def _listen(spark: SparkSession, show: Show) -> Iterator[None]:
    """Register a handler: a Connect server pushes its progress."""

    def handle(stages: Iterable[StageInfo] | None, *_: object, **__: object) -> None:
        known = list(stages or ())
        if known:
            show(sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known))

    handler = cast("ProgressHandler", handle)  # Spark only requires a callable
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _poll(tracker: StatusTracker, show: Show) -> Iterator[None]:
    """Poll the status tracker of the driver in this process."""
    finished = threading.Event()

    def ask() -> None:
        while not finished.wait(POLL_SECONDS):
            done, total = _count_tasks(tracker)
            if total:  # between two jobs the bar does not change
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
    # Spark drops old jobs and stages, so either may be None.
    ids = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [info for info in map(tracker.getStageInfo, ids) if info is not None]
    # Count only started stages: Spark skips a stage whose shuffle output already exists.
    begun = [stage for stage in known if stage.numActiveTasks or stage.numCompletedTasks]
    return sum(s.numCompletedTasks for s in begun), sum(s.numTasks for s in begun)
