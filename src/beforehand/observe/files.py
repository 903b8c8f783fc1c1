"""Folders of JSON lines or Parquet files that grow, ordered into a folder of Parquet files.

A checkpoint folder holds `settings.json` (what the stream was started with), `spark` (Spark's own)
and `ends` (files that tell observers to let out what they hold: they are input like any other, so
what they cause happens exactly once, whatever is killed).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from beforehand.errors import BeforehandError, InputError
from beforehand.observe.packets import KEY
from beforehand.observe.settings import Plan, Settings, keep_settings, settle
from beforehand.observe.stream import COUNTED, METRICS, STREAM_CONF, counts, observe
from beforehand.units import format_duration

IDLE_US_MIN = 10_000_000
NEVER_US = 2**60
POLL_SECONDS = 1
STOP_SECONDS_MAX, STOP_POLL_SECONDS = 60, 0.02

Counts = dict[str, int]
OnBatch = Callable[[Counts], None]
Until = Literal["stopped", "read", "empty"]
"""When a stream ends: when it is stopped, when all is read, or when nothing is held either."""


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Where a stream comes from and where it goes."""

    folder: Path
    out: Path
    checkpoint: Path
    files_per_batch: int = 32
    every_us: int = 1_000_000
    """How often new files are looked for. Spark starts a batch each time, also for none."""
    idle_us: int | None = None
    """After so long without a row an observer lets out what it holds; None: ten seconds, or δ + 2ε
    if that is longer. Only while a stream runs until it is stopped: how long a bounded run takes
    must not change what comes out of it."""


def order_table(spark: SparkSession, folder: Path, out: Path, plan: Plan) -> Counts:
    """Everything that is in the folder now, in one go."""
    if out.exists():
        raise InputError(f"there is something already: {out}", hint="give another folder")
    settings = settle(spark, folder, plan)
    events = spark.read.format(settings.format).schema(settings.columns).load(str(folder))
    _ordered(events, settings, None).write.parquet(str(out))
    row = spark.read.parquet(str(out)).agg(*counts()).first()
    assert row is not None, "counts over no rows are a row too"
    return row.asDict()


def order_stream(
    spark: SparkSession,
    stream: Stream,
    plan: Plan,
    *,
    until: Until,
    on_batch: OnBatch = lambda _: None,
    stop: threading.Event | None = None,
) -> Counts:
    """What this run delivered, and what is still held.

    on_batch: is told the counts so far after every batch that delivered something.
    stop: set it from elsewhere, and the stream ends after the batch at hand.
    """
    stop = stop or threading.Event()
    kept = stream.checkpoint / "settings.json"
    settings = keep_settings(spark, plan, kept, folder=stream.folder, out=stream.out)
    _check_idle(stream, settings)
    ends = stream.checkpoint / "ends"
    ends.mkdir(exist_ok=True)
    totals: Counts = dict.fromkeys(("delivered", *COUNTED), 0)
    _run(_start(spark, stream, settings, is_live=until == "stopped"), totals, on_batch, stop)
    if until == "empty" and (held := _held(spark, stream)) is not None:
        told = held.select(F.col("observer").cast(_observer_type(settings)))
        told.coalesce(1).write.mode("append").parquet(str(ends))
        _run(_start(spark, stream, settings, is_live=False), totals, on_batch, stop)
    held = _held(spark, stream)
    waiting = held.agg(F.sum("waiting")).first() if held is not None else None
    return totals | {"held": waiting[0] if waiting is not None else 0}


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
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    # Batches without rows are there for timers, and would go on for ever.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", is_live)
    reader = spark.readStream.option("maxFilesPerTrigger", stream.files_per_batch)
    events = reader.format(settings.format).schema(settings.columns).load(str(stream.folder))
    told = spark.readStream.schema(f"observer {_observer_type(settings)}")
    ends = told.parquet(str(stream.checkpoint / "ends")).withColumn("ends", F.lit(True))
    idle_us = stream.idle_us or max(IDLE_US_MIN, settings.horizon_us)
    both = _with_observer(events).unionByName(ends, allowMissingColumns=True)
    # A checkpoint has timers or has none, so a bounded run has some that never go off.
    ordered = _ordered(both, settings, idle_us if is_live else NEVER_US)
    writer = ordered.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(stream.checkpoint / "spark"))
    if is_live:
        writer = writer.trigger(processingTime=f"{stream.every_us} microseconds")
    else:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(stream.out))


def _run(query: StreamingQuery, totals: Counts, on_batch: OnBatch, stop: threading.Event) -> None:
    """Follow a query to its end."""
    seen = -1
    is_over = False
    try:
        while not is_over:
            is_over = bool(query.awaitTermination(POLL_SECONDS))
            if stop.is_set() and not is_over:
                _stop(query)
                is_over = True
            for progress in query.recentProgress:
                if progress.batchId > seen:
                    seen = progress.batchId
                    _add(totals, progress, on_batch)
    except StreamingQueryException as error:
        raise BeforehandError(
            f"the stream failed: {_reason(error)}",
            hint="nothing is lost: mend it and start again with the same checkpoint",
        ) from error


def _stop(query: StreamingQuery) -> None:
    """Between two batches if it can be: one that is broken off has to be done again."""
    ends = time.monotonic() + STOP_SECONDS_MAX
    while query.status["isTriggerActive"] and time.monotonic() < ends:
        time.sleep(STOP_POLL_SECONDS)
    query.stop()


def _add(totals: Counts, progress: StreamingQueryProgress, on_batch: OnBatch) -> None:
    row = progress.observedMetrics.get(METRICS)
    if row is not None and row["delivered"]:
        for name in ("delivered", *COUNTED):
            totals[name] += row[name]
        on_batch(totals)


def _reason(error: StreamingQueryException) -> str:
    """What was raised in a worker, without the way it took through Spark."""
    raised = re.findall(r"^[\w.]*(?:Error|Exception): .*", str(error), re.MULTILINE)
    return raised[-1] if raised else str(error).splitlines()[0]


def _ordered(events: DataFrame, settings: Settings, idle_us: int | None) -> DataFrame:
    return observe(
        _with_observer(events),
        settings.guarantees,
        settings.dial,
        tick_us=settings.tick_us,
        clock=settings.clock,
        idle_us=idle_us,
    )


def _with_observer(events: DataFrame) -> DataFrame:
    has_observer = "observer" in events.columns
    return events if has_observer else events.withColumn("observer", F.lit("all"))


def _observer_type(settings: Settings) -> str:
    columns = settings.columns
    return columns["observer"].dataType.simpleString() if "observer" in columns.names else "string"


def _held(spark: SparkSession, stream: Stream) -> DataFrame | None:
    """The observers that hold rows, as the checkpoint has it, and how many; None for none."""
    spark_folder = stream.checkpoint / "spark"
    if not any((spark_folder / "commits").glob("[0-9]*")):
        return None
    state = spark.read.format("statestore").load(str(spark_folder))
    memory = state.select(F.col(f"key.{KEY}").alias("observer"), "value.groupState.waiting")
    held = memory.where("waiting > 0")
    return None if held.isEmpty() else held
