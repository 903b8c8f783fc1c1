"""Deliver events of many machines in causal order, or nearly so, as a stream or table (OBS 3.2, 4).

    system = Guarantees(10, epsilon=5, delta=10)
    ordered = observe(events, system, cbd(60), tick_us=1000, state="/shared/observers")

Columns in:

- `observer`: the observer that orders the row; without it one observer orders all
- `process`: the sender, a number or a name
- `stamp`: a struct of r, c and kn, in ticks; or else `time`, the physical clock of the process
- `arrived` (optional): the clock of the observer on arrival
- `ends` (optional): true on a row that is not a message; its observer delivers all it holds, and
  its state is removed
- any others, which are carried along

`time` and `arrived` are timestamps, integers of microseconds, or text of either.

Columns out: those, and `RESULTS`. A sink keeps no order between its files, so the order of delivery
is a column: `delivered_seq` counts 0, 1, ... for every observer.

A stream is ordered by an operator that has no state for Spark. Its tasks keep their own: see
`observe.versions`. So any source and any sink will do, and other operators before and after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from beforehand.errors import LocalError
from beforehand.observe.columns import check_columns, check_names, mark
from beforehand.observe.partitions import default_partitions
from beforehand.observe.rejects import REJECTED
from beforehand.observe.stamps import (
    ACTS,
    ARRIVED_US,
    ENDS,
    KEY,
    NOW_US,
    PARTITION,
    RUN_US,
    TIME_US,
    ClockSource,
    Reordering,
)
from beforehand.observe.state import OUTPUTS
from beforehand.observe.task import OrderTask
from beforehand.protocols.observer.observer import PERFECT, Dial
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import rule_of
from beforehand.spark.executors import same_code

RESULTS = ("delivered_seq", "delivered_at", "waited_us", "moved", "late", "suspect", "reset")
COUNTED = ("moved", "late", "suspect", "reset")
METRICS = "beforehand"
"""The name of the delivery counts among the observed metrics of a query."""

IDLE_US_MIN = 10_000_000
NOTICE = f"{KEY} string, {RUN_US} bigint, {ACTS} boolean"
"""A notice: an observer delivers all it holds; or else, for all of them, a run starts at this time,
and whether observers that are silent act in it. As rows of the stream they have their effect
once."""


def idle_us_of(guarantees: Guarantees, tick_us: int) -> int:
    """Return the default silence after which an observer delivers all it holds."""
    return max(IDLE_US_MIN, guarantees.horizon * tick_us)


def observe(
    events: DataFrame,
    guarantees: Guarantees,
    dial: Dial = PERFECT,
    *,
    tick_us: int,
    clock: ClockSource | None = None,
    idle_us: int | Literal["default"] | None = "default",
    state: str | Path | None = None,
    partitions: int | None = None,
    metrics: str = METRICS,
) -> DataFrame:
    """Return the events as every observer delivers them.

    tick_us: the unit of the stamps, of ε and of δ.
    clock: the clock of an observer. `arrival` is the column `arrived`, the default if there is one.
    `event` is the largest stamp so far. `wall` is the time when Spark started the micro-batch.
    idle_us: an observer of a stream without a row for this long delivers all it holds. The default
    is max(10 s, δ + 2ε). With None only rows advance its clock, so that a batch job on the same
    rows gives the same output.
    state: for a stream, a folder that all workers share and that is kept as long as the checkpoint
    of the query: a path, or an address of S3, HDFS, GCS or ABFS.
    partitions: the number of tasks that order a stream. A checkpoint keeps the number that it began
    with.
    """
    check_names(events.columns)
    if events.isStreaming and state is None:
        hint = 'pass `state="/a/folder"` beside the checkpoint, shared by all workers'
        raise LocalError("the observers of a stream need a folder for their state", hint=hint)
    if idle_us == "default":
        idle_us = idle_us_of(guarantees, tick_us) if events.isStreaming else None
    folder = None if state is None else str(state)
    return order_events(
        events, guarantees, dial, tick_us, clock, idle_us, folder, partitions, metrics=metrics
    )


def order_events(
    events: DataFrame,
    guarantees: Guarantees,
    dial: Dial,
    tick_us: int,
    clock: ClockSource | None,
    idle_us: int | None = None,
    state: str | None = None,
    partitions: int | None = None,
    rejects: Path | None = None,
    elements_min: int = 0,
    notices: DataFrame | None = None,
    metrics: str = METRICS,
) -> DataFrame:
    """Order events as `observe` does, also rows of files.

    Rows of files may have internal columns, and some are rejected.

    rejects: the folder of rejected rows; None if the rows are not from files.
    elements_min: a stamp with fewer `kn` elements is reset.
    notices: a stream with the columns `NOTICE`, beside the events.
    """
    order = _reordering(events, guarantees, dial, tick_us, clock, idle_us, elements_min)
    beside = () if rejects is None else (TIME_US, ARRIVED_US, *REJECTED)
    carried = [name for name in events.columns if name not in ("ends", *beside)]
    passed = () if rejects is None else REJECTED
    rows, schema = mark(events, carried, order.clock, passed), _schema(events.schema, carried)
    task = OrderTask(
        order,
        idle_us,
        rejects,
        state,
        partitions or default_partitions(events.sparkSession),
        metrics,
    )
    if events.isStreaming:
        ordered = _spread(rows, task, notices).mapInArrow(same_code(task.order_batch), schema)
    else:
        # Sorted, a task has the rows of one observer after the other, and never all in memory.
        sorted_rows = rows.repartition(KEY).sortWithinPartitions(KEY)
        ordered = sorted_rows.mapInArrow(same_code(task.order_table), schema)
    delivered = ordered.withColumn("delivered_at", F.timestamp_micros("delivered_us"))
    return delivered.select(*carried, *RESULTS).observe(metrics, *counts())


def _reordering(
    events: DataFrame,
    guarantees: Guarantees,
    dial: Dial,
    tick_us: int,
    clock: ClockSource | None,
    idle_us: int | None,
    elements_min: int,
) -> Reordering:
    """Return the rule for these events; refuse those that it does not fit."""
    chosen: ClockSource = clock or ("arrival" if "arrived" in events.columns else "event")
    check_columns(events.schema, chosen, (*OUTPUTS, *RESULTS))
    if not events.isStreaming and (chosen == "wall" or idle_us is not None):
        raise LocalError("a table does not wait", hint="`wall` and `idle_us` are for streams")
    if idle_us is not None and idle_us < guarantees.horizon * tick_us:
        raise LocalError(
            f"idle after {idle_us} us, where a message may wait {guarantees.horizon * tick_us} us",
            hint="choose at least δ + 2ε",
        )
    if "stamp" not in events.columns:
        dial = Dial(dial.wait_percent, dial.checks_queue, elements=0, uses_c=False)
    return Reordering(rule_of(dial, guarantees), tick_us, chosen, elements_min)


def _spread(rows: DataFrame, task: OrderTask, notices: DataFrame | None) -> DataFrame:
    """Return the rows of a stream by partition, with the time of the batch.

    Where observers act without a row, each micro-batch has a row for each partition.
    """
    count = F.lit(task.partitions)
    own, all_of_them = F.pmod(F.xxhash64(KEY), count).cast("int"), F.sequence(F.lit(0), count - 1)
    spread = rows.withColumn(PARTITION, own)
    if notices is not None:
        is_run = F.col(RUN_US).isNotNull()
        places = F.explode(F.when(is_run, all_of_them).otherwise(F.array(own)))
        rows_of_notices = notices.select(
            KEY, RUN_US, ACTS, F.when(~is_run, True).alias(ENDS), places.alias(PARTITION)
        )
        spread = spread.unionByName(rows_of_notices, allowMissingColumns=True)
    if task.needs_ticks:
        ticks = rows.sparkSession.readStream.format("rate-micro-batch")
        ticks = ticks.option("rowsPerBatch", 1).option("numPartitions", 1)
        tick = ticks.load().select(F.explode(all_of_them).alias(PARTITION))
        spread = spread.unionByName(tick, allowMissingColumns=True)
    spread = spread.withColumn(NOW_US, F.unix_micros(F.current_timestamp()))
    return spread.repartitionById(task.partitions, F.col(PARTITION))


def counts() -> list[Column]:
    """Return the counts of rows delivered, and of those moved, late, suspect and reset."""
    kinds = [F.count_if(F.col(name)).alias(name) for name in COUNTED]
    return [F.count(F.lit(1)).alias("delivered"), *kinds]


def _schema(schema: StructType, carried: Iterable[str]) -> StructType:
    result = StructType([StructField(name, schema[name].dataType) for name in carried])
    for name, kind in OUTPUTS.items():
        result.add(name, kind)
    return result
