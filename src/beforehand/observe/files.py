"""Order a growing folder of JSON lines or Parquet files into a folder of Parquet files.

A checkpoint folder holds `settings.json` (the settings that the stream was started with), `spark`
(Spark's own checkpoint), `observers` (their state) and `notices`: see `observe.notices`. Rejected
rows go to a folder beside the output.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from beforehand.errors import BeforehandError, InputError
from beforehand.observe.failures import (
    FULL_HINT,
    disk_named,
    failure_of,
    readable_files,
    whole_text,
)
from beforehand.observe.input import list_files
from beforehand.observe.lock import locked
from beforehand.observe.notices import (
    NOTICES,
    OBSERVERS,
    announce_run,
    counts_of_state,
    holding_now,
    request_flush,
)
from beforehand.observe.places import (
    Read,
    check_begun,
    check_places,
    new_columns,
    reads_between,
    unsorted_files,
)
from beforehand.observe.reading import READ, read_events, unknown_columns
from beforehand.observe.rejects import folder_of_rejects
from beforehand.observe.settings import (
    SETTINGS_FILE,
    Plan,
    Settings,
    assumed,
    keep_settings,
    settle,
)
from beforehand.observe.stream import (
    COUNTED,
    METRICS,
    NOTICE,
    counts,
    idle_us_of,
    order_events,
)
from beforehand.units import format_duration

POLL_SECONDS = 0.1
FILE_AGE_MAX = "100000d"
"""Spark never reads a file this much older than the newest, by their times of modification.

Its default of 7 days drops files copied with their times (`cp -p`). In exchange the driver keeps
the name of every file of the folder in memory.
"""
STOP_SECONDS_MAX, STOP_POLL_SECONDS = 2, 0.02

Counts = dict[str, int]
OnBatch = Callable[[Counts], None]
Note = Callable[[str], None]
"""Called with a message for the user that no count shows."""
Until = Literal["stopped", "read", "empty"]
"""A stream ends when it is stopped, when all files are read, or when nothing is held."""


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """The folders and the timing of a stream."""

    folder: Path
    out: Path
    checkpoint: Path
    files_per_batch: int = 32
    every_us: int = 1_000_000
    """The period of the search for new files. Each starts a micro-batch, even if it finds none."""
    idle_us: int | None = None
    """An observer without a row for this long delivers what it holds; None: max(10 s, δ + 2ε).

    It applies only while a stream runs until it is stopped. The duration of a bounded run must not
    change its output.
    """


def order_table(
    spark: SparkSession, folder: Path, out: Path, plan: Plan, *, note: Note = lambda _: None
) -> Counts:
    """Order everything that is in the folder now, in one batch job: all of the output or none."""
    check_places(folder, out, None)
    settings = settle(spark, folder, plan)
    for doubt in assumed(settings, plan):
        note(doubt)
    parts = {
        place: place.with_name(f".{place.name}.part") for place in (out, folder_of_rejects(out))
    }
    for part in parts.values():
        shutil.rmtree(part, ignore_errors=True)  # left over from an interrupted run
    read = Observation(READ)
    try:
        events = read_events(spark.read, folder, settings, read)
        ordered = _ordered(events, settings, parts[folder_of_rejects(out)])
        with readable_files(out):
            ordered.write.parquet(str(parts[out]))
        for place, part in parts.items():
            if part.exists():
                part.replace(place)
    finally:
        for part in parts.values():
            shutil.rmtree(part, ignore_errors=True)
    row = spark.read.parquet(str(out)).agg(*counts()).first()
    assert row is not None, "an aggregate has one row, even over no rows"
    found = read.get
    unknown = unknown_columns(found)
    if settings.format == "parquet":
        unknown = new_columns(map(str, list_files(folder)), set(settings.columns.names))
    _note_unknown(unknown, note)
    return row.asDict() | {"rejected": found["rejected"], "unknown_columns": len(unknown)}


def order_stream(
    spark: SparkSession,
    stream: Stream,
    plan: Plan,
    *,
    until: Until,
    on_batch: OnBatch = lambda _: None,
    stop: threading.Event | None = None,
    note: Note = lambda _: None,
) -> Counts:
    """Run the stream; return the counts of this run.

    They are the rows delivered and rejected and the observers in the state store. Unless the stream
    was stopped, they include the events still held.

    on_batch: called with the counts so far after each micro-batch that delivered or rejected rows.
    stop: when another thread sets it, the stream ends after the current micro-batch or aborts it.
    """
    check_places(stream.folder, stream.out, stream.checkpoint)
    with disk_named(stream.checkpoint), locked(stream.checkpoint):
        check_begun(stream.checkpoint)
        return _run_stream(spark, stream, plan, until, on_batch, stop or threading.Event(), note)


def _run_stream(
    spark: SparkSession,
    stream: Stream,
    plan: Plan,
    until: Until,
    on_batch: OnBatch,
    stop: threading.Event,
    note: Note,
) -> Counts:
    kept = stream.checkpoint / SETTINGS_FILE
    settings = keep_settings(spark, plan, kept, folder=stream.folder, out=stream.out)
    _check_idle(stream, settings)
    for doubt in assumed(settings, plan):
        note(doubt)
    announce_run(stream.checkpoint, is_live=until == "stopped")
    run = _Run(stream, settings, on_batch, note)
    run.follow(_start(spark, stream, settings, is_live=until == "stopped"), stop)
    if stop.is_set():
        return run.totals
    if until == "empty" and (held := holding_now(stream.checkpoint)):
        request_flush(stream.checkpoint, held)
        run.follow(_start(spark, stream, settings, is_live=False), stop)
    return run.totals | {"held": counts_of_state(stream.checkpoint).held}


def _check_idle(stream: Stream, settings: Settings) -> None:
    if stream.idle_us is not None and stream.idle_us < settings.horizon_us:
        raise InputError(
            f"idle after {format_duration(stream.idle_us)}, but a message may be held for"
            f" {format_duration(settings.horizon_us)}",
            hint="choose at least δ + 2ε",
        )


def _start(
    spark: SparkSession, stream: Stream, settings: Settings, *, is_live: bool
) -> StreamingQuery:
    reader = spark.readStream.option("maxFilesPerTrigger", stream.files_per_batch)
    reader = reader.option("maxFileAge", FILE_AGE_MAX)
    events = read_events(reader, stream.folder, settings)
    notices = spark.readStream.option("maxFileAge", FILE_AGE_MAX).schema(NOTICE)
    ordered = _ordered(
        events,
        settings,
        folder_of_rejects(stream.out),
        # The ticks are a source of the checkpoint, so a bounded run has them too.
        idle_us=stream.idle_us or idle_us_of(settings.guarantees, settings.tick_us),
        state=str((stream.checkpoint / OBSERVERS).resolve()),
        partitions=settings.partitions,
        notices=notices.parquet(str(stream.checkpoint / NOTICES)),
    )
    writer = ordered.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(stream.checkpoint / "spark"))
    if is_live:
        writer = writer.trigger(processingTime=f"{stream.every_us} microseconds")
    else:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(stream.out))


class _Run:
    """The counts of a run over all of its queries."""

    def __init__(self, stream: Stream, settings: Settings, on_batch: OnBatch, note: Note) -> None:
        self._stream, self._settings = stream, settings
        self._on_batch, self._note = on_batch, note
        self._unknown: set[str] = set()
        self._last: Read | None = None
        beside = ("rejected", "unknown_columns", "gone", "unsorted_files", "observers")
        self.totals: Counts = dict.fromkeys(("delivered", *COUNTED, *beside), 0)

    def follow(self, query: StreamingQuery, stop: threading.Event) -> None:
        """Follow a query until it ends, and add up its counts."""
        seen = ""
        is_over = False
        try:
            while not is_over:
                if stop.wait(POLL_SECONDS):
                    _stop(query)
                is_over = not query.isActive
                for progress in query.recentProgress:
                    # Compare timestamps, not batch ids: a search that finds no files reports the
                    # same id.
                    if progress.timestamp > seen:
                        seen = progress.timestamp
                        self._add(progress)
            query.awaitTermination()  # raises the error of the query
        except StreamingQueryException as error:
            failure = failure_of(whole_text(error), str(self._stream.out))
            cure = "correct the file in its place, under its name, and start again"
            if failure is not None and failure.hint == FULL_HINT:
                cure = "make room there, and start again"
            raise BeforehandError(
                f"the stream failed: {failure.problem if failure else _reason(error)}",
                where=failure.where if failure else "",
                hint=f"nothing is lost: {cure} with the same checkpoint",
            ) from error

    def _add(self, progress: StreamingQueryProgress) -> None:
        read = progress.observedMetrics.get(READ)
        row = progress.observedMetrics.get(METRICS)
        if row is not None:
            for name in ("delivered", *COUNTED):
                self.totals[name] += row[name]
        if read is not None:
            self.totals["rejected"] += read["rejected"]
        self.totals["observers"] = counts_of_state(self._stream.checkpoint).observers
        files = self._files_read(*_offsets(progress))
        self._look_for_gone(files)
        unknown = set() if read is None else unknown_columns(read)
        if self._settings.format == "parquet":
            unknown = new_columns(files, set(self._settings.columns.names))
        _note_unknown(unknown - self._unknown, self._note)
        self._unknown |= unknown
        self.totals["unknown_columns"] = len(self._unknown)
        if (row is not None and row["delivered"]) or (read is not None and read["rejected"]):
            self._on_batch(self.totals)

    def _files_read(self, start: int, end: int) -> list[str]:
        """Return the files of a micro-batch, and report those that were read too late."""
        if self._last is None and start >= 0:  # those of earlier runs
            self._last = max(reads_between(self._stream.checkpoint, -1, start), default=None)
        reads = reads_between(self._stream.checkpoint, start, end)
        if late := unsorted_files(reads, self._last):
            self.totals["unsorted_files"] += len(late)
            self._note(
                f"{late[0]} was read after files of the same time of modification whose names come"
                f" later ({len(late)} such files): give files distinct times, or all of one time to"
                " one batch (`--files-per-batch`)"
            )
        self._last = max((*reads, *filter(None, [self._last])), default=None)
        return sorted({read.path for read in reads})

    def _look_for_gone(self, files: list[str]) -> None:
        """Report files that were gone when their micro-batch ended.

        Spark silently skips a listed file that it does not find. A cleanup removes files some time
        after they were read, so a file that is gone this early may not have been read.
        """
        for file in files:
            if not Path(file).exists():
                self.totals["gone"] += 1
                self._note(
                    f"{file} was gone when its batch was done, and may not have been read: if its"
                    " rows are not in the output, put it back under another name"
                )
            elif self._settings.format == "parquet" and not Path(file).stat().st_size:
                self.totals["gone"] += 1  # Spark skips it and never reads it again
                self._note(f"{file} is empty, so no Parquet file: write it under another name")


def _offsets(progress: StreamingQueryProgress) -> tuple[int, int]:
    """Return the log offsets of a micro-batch's files: after the first, up to the second."""
    source = progress.sources[0]
    start, end = (
        re.search(r"[0-9]+", str(text)) for text in (source.startOffset, source.endOffset)
    )
    return (-1 if start is None else int(start[0])), (-1 if end is None else int(end[0]))


def _stop(query: StreamingQuery) -> None:
    """Stop between two micro-batches if possible: an aborted one must be repeated."""
    ends = time.monotonic() + STOP_SECONDS_MAX
    while query.status["isTriggerActive"] and time.monotonic() < ends:
        time.sleep(STOP_POLL_SECONDS)
    query.stop()


def _reason(error: StreamingQueryException) -> str:
    """Return the error that a worker raised, without Spark's stack trace."""
    raised = re.findall(r"^[\w.]*(?:Error|Exception): .*", str(error), re.MULTILINE)
    return raised[-1] if raised else str(error).splitlines()[0]


def _ordered(events: DataFrame, settings: Settings, rejects: Path, **others: Any) -> DataFrame:
    has_observer = "observer" in events.columns
    return order_events(
        events if has_observer else events.withColumn("observer", F.lit("all")),
        settings.guarantees,
        settings.dial,
        settings.tick_us,
        settings.clock,
        rejects=rejects.resolve(),  # a worker may have another working directory
        elements_min=settings.elements_min,
        **others,
    )


def _note_unknown(names: set[str], note: Note) -> None:
    if names:
        listed = ", ".join(f"`{name}`" for name in sorted(names))
        note(
            f"new columns are not in the output: {listed}; its columns are those of the first files"
        )
