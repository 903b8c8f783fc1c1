"""Deliver events of many machines in causal order, or nearly so, as a stream or table (OBS 3.2, 4).

    ordered = observe(events, Guarantees(10, epsilon=5, delta=10), cbd(60), tick_us=1000)

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import StructField, StructType

from beforehand.errors import LocalError
from beforehand.observe.columns import FLUSHES, check_columns, check_names, mark
from beforehand.observe.packets import (
    KEY,
    PACKETS_IN,
    PACKETS_OUT,
    ROWS,
    close_packets,
    join,
    open_packets,
    pack,
    unpack,
)
from beforehand.observe.rejects import REJECTED
from beforehand.observe.state import (
    ARRIVED_US,
    OUTPUTS,
    TIME_US,
    ClockSource,
    Reordering,
    State,
    decode_state,
    encode_state,
    new_state,
    run_out,
    take_incarnations,
    wake,
    wake_us,
)
from beforehand.protocols.observer.observer import PERFECT, Dial
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import rule_of

RESULTS = ("delivered_seq", "delivered_at", "waited_us", "moved", "late", "suspect", "reset")
COUNTED = ("moved", "late", "suspect", "reset")
METRICS = "beforehand"
"""The name of the delivery counts among the observed metrics of a query."""

STREAM_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A micro-batch then saves its changes, not the whole state store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Spark settings that the session needs before a query starts."""

STATE = "waiting bigint, seen_us bigint, blob binary"
"""The state of one observer: the rows held, the time of the last row, and an encoded `State`."""

US_PER_MS = 1000
IDLE_US_MIN = 10_000_000


class Waking(NamedTuple):
    """When an observer of a stream acts without a new row."""

    idle_us: int | None
    """An observer without a row for this long delivers all it holds; None for never."""
    since_us: int = 0
    """Silence before this time does not count, because the stream was not running."""
    acts: bool = True
    """Whether timers have an effect. In a bounded run they have none.

    The duration of a bounded run must not change its output. It still sets timers, for a later
    unbounded run on the same checkpoint.
    """


STILL = Waking(None)


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
    metrics: str = METRICS,
) -> DataFrame:
    """Return the events as every observer delivers them.

    tick_us: the unit of the stamps, of ε and of δ.
    clock: the clock of an observer. `arrival` is the column `arrived`, the default if there is one.
    `event` is the largest stamp so far. `wall` is the time when Spark started the micro-batch.
    idle_us: an observer of a stream without a row for this long delivers all it holds. The default
    is max(10 s, δ + 2ε). With None only rows advance its clock, so that a batch job on the same
    rows gives the same output. Pass None for the trigger `availableNow`: with timers Spark would
    never end.
    """
    check_names(events.columns)
    if idle_us == "default":
        idle_us = idle_us_of(guarantees, tick_us) if events.isStreaming else None
    waking = Waking(idle_us)
    return order_events(events, guarantees, dial, tick_us, clock, waking, metrics=metrics)


def order_events(
    events: DataFrame,
    guarantees: Guarantees,
    dial: Dial,
    tick_us: int,
    clock: ClockSource | None,
    waking: Waking,
    rejects: Path | None = None,
    elements_min: int = 0,
    metrics: str = METRICS,
) -> DataFrame:
    """Order events as `observe` does, also rows of files.

    Rows of files may have internal columns, and some are rejected.

    rejects: the folder of rejected rows; None if the rows are not from files.
    elements_min: a stamp with fewer `kn` elements is reset.
    """
    chosen: ClockSource = clock or ("arrival" if "arrived" in events.columns else "event")
    check_columns(events.schema, chosen, (*OUTPUTS, *RESULTS))
    idle_us = waking.idle_us
    if not events.isStreaming and (chosen == "wall" or idle_us is not None):
        raise LocalError("a table does not wait", hint="`wall` and `idle_us` are for streams")
    if idle_us is not None and idle_us < guarantees.horizon * tick_us:
        raise LocalError(
            f"idle after {idle_us} us, where a message may wait {guarantees.horizon * tick_us} us",
            hint="choose at least δ + 2ε",
        )
    if "stamp" not in events.columns:
        dial = Dial(dial.wait_percent, dial.checks_queue, elements=0, uses_c=False)
    order = Reordering(rule_of(dial, guarantees), tick_us, chosen, elements_min)
    beside = () if rejects is None else (FLUSHES, TIME_US, ARRIVED_US, *REJECTED)
    carried = [name for name in events.columns if name not in ("ends", *beside)]
    passed = () if rejects is None else REJECTED
    rows, schema = mark(events, carried, chosen, passed), _schema(events.schema, carried)
    packets = rows.mapInArrow(partial(pack, rejects=rejects), PACKETS_IN)
    if events.isStreaming:
        ordered = _order_stream(packets, order, waking)
    else:
        ordered = _order_table(packets, order)
    delivered = ordered.mapInArrow(unpack, schema)
    delivered = delivered.withColumn("delivered_at", F.timestamp_micros("delivered_us"))
    return delivered.select(*carried, *RESULTS).observe(metrics, *counts())


def counts() -> list[Column]:
    """Return the counts of rows delivered, and of those moved, late, suspect and reset."""
    kinds = [F.count_if(F.col(name)).alias(name) for name in COUNTED]
    return [F.count(F.lit(1)).alias("delivered"), *kinds]


def _schema(schema: StructType, carried: Iterable[str]) -> StructType:
    result = StructType([StructField(name, schema[name].dataType) for name in carried])
    for name, kind in OUTPUTS.items():
        result.add(name, kind)
    return result


def _order_table(packets: DataFrame, order: Reordering) -> DataFrame:
    def work(group: pa.Table) -> pa.Table:
        rows = open_packets(group[ROWS].to_pylist())
        state, out, is_over = take_incarnations(new_state(order), rows, order)
        if not is_over:
            out = join([out, run_out(state, order)[1]])
        return pa.table({ROWS: close_packets(out)})

    return packets.groupBy(KEY).applyInArrow(work, PACKETS_OUT)


def _order_stream(packets: DataFrame, order: Reordering, waking: Waking) -> DataFrame:
    # Spark's event time could also drive the clocks `event` and `arrival`. But Spark drops rows
    # behind its watermark before an observer sees them, and late messages must be delivered.
    has_timers = order.clock == "wall" or waking.idle_us is not None
    return packets.groupBy(KEY).applyInPandasWithState(
        _stream_worker(order, waking),
        PACKETS_OUT,
        STATE,
        "append",
        "ProcessingTimeTimeout" if has_timers else "NoTimeout",
    )


def _stream_worker(
    order: Reordering, waking: Waking
) -> Callable[[Any, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    def work(_: Any, packets: Iterable[pd.DataFrame], memory: GroupState) -> Iterator[pd.DataFrame]:
        now_us = memory.getCurrentProcessingTimeMs() * US_PER_MS
        state, seen_us = new_state(order), now_us
        if memory.exists:
            _waiting, seen_us, blob = memory.get
            state = decode_state(blob, order)
        out, is_over = None, False
        if not memory.hasTimedOut:
            rows = open_packets(packet for part in packets for packet in part[ROWS])
            state, out, is_over = take_incarnations(state, rows, order, now_us)
            seen_us = now_us
        elif acts and (due_us := due(state, seen_us)) is not None and due_us <= now_us:
            state, out = wake(state, order, now_us)
        if is_over:
            memory.remove()
        else:
            memory.update((state.held, seen_us, encode_state(state, order)))
            due_us = due(state, seen_us if acts else now_us)
            if due_us is not None:
                memory.setTimeoutDuration(max(-(-(due_us - now_us) // US_PER_MS), 1))
        if out is not None and len(out):
            yield pd.DataFrame({ROWS: close_packets(out)})

    def due(state: State, seen_us: int) -> int | None:
        return wake_us(state, order, max(seen_us, waking.since_us), waking.idle_us)

    # Wall-clock timers also fire in a bounded run.
    acts = waking.acts or order.clock == "wall"
    return work
