"""When an observer of a stream acts without a new row, and when its state is removed."""

from __future__ import annotations

import json
import threading

import pandas as pd
import pyarrow as pa
import pytest

from beforehand.observe import stream as stream_module
from beforehand.observe.files import Stream, order_stream
from beforehand.observe.packets import ROWS, open_packets, write_rows
from beforehand.observe.settings import Plan
from beforehand.observe.state import LEAVES, Reordering
from beforehand.observe.stream import IDLE_US_MIN, STREAM_CONF, Waking, observe
from beforehand.protocols.observer.observer import cbd
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import rule_of
from tests.observe.test_state import SMALL, events

ORDER = Reordering(rule_of(cbd(100), SMALL), 1000, "event")
PLAN = Plan(epsilon_us=5_000, delta_us=10_000)
SECONDS_MAX = 90


class Memory:
    """The interface of Spark to the state of one observer in a worker."""

    def __init__(self) -> None:
        self.get: tuple[object, ...] | None = None
        self.now_ms, self.due_ms, self.hasTimedOut = 0, None, False

    @property
    def exists(self) -> bool:
        return self.get is not None

    def getCurrentProcessingTimeMs(self) -> int:
        return self.now_ms

    def update(self, value: tuple[object, ...]) -> None:
        self.get = value

    def remove(self) -> None:
        self.get = self.due_ms = None

    def setTimeoutDuration(self, ms: int) -> None:
        self.due_ms = self.now_ms + ms


def call(memory: Memory, waking: Waking, rows: pa.Table | None, now_ms: int) -> int:
    """Return the number of delivered rows."""
    memory.now_ms, memory.hasTimedOut, memory.due_ms = now_ms, rows is None, None
    packets = [] if rows is None else [pd.DataFrame({ROWS: [write_rows(rows)]})]
    outs = stream_module._stream_worker(ORDER, waking)(None, packets, memory)
    return sum(len(open_packets(out[ROWS])) for out in outs)


def test_the_last_rows_of_a_bounded_run_stayed_in_a_live_one():
    memory, bounded = Memory(), Waking(10_000_000, acts=False)
    assert call(memory, bounded, events(("a", 0, 1, 0, None)), now_ms=1_000) == 0
    assert memory.due_ms == 11_000
    # A bounded run sets the timer again and again, and lets nothing out.
    assert call(memory, bounded, None, now_ms=12_000) == 0
    assert memory.due_ms == 22_000
    # One that is not bounded waits for so long itself: before it started, nobody listened.
    live = Waking(10_000_000, since_us=50_000_000)
    assert call(memory, live, None, now_ms=51_000) == 0
    assert memory.due_ms == 60_000
    assert call(memory, live, None, now_ms=60_000) == 1


def test_an_observer_that_has_ended_is_forgotten_and_one_that_is_flushed_is_not():
    memory, waking = Memory(), Waking(10_000_000)
    rows = events(("a", 0, 1, 0, None), ("b", 1, 2, 0, None))
    assert call(memory, waking, rows, now_ms=0) == 0
    flush = events(("", None, None, None, None), ends=True)
    assert call(memory, waking, flush, now_ms=1) == 2
    assert memory.exists
    end = flush.append_column(LEAVES, pa.array([True]))
    assert call(memory, waking, end, now_ms=2) == 0
    assert not memory.exists
    assert memory.due_ms is None


@pytest.mark.spark
def test_the_last_rows_of_a_silent_observer_stayed_unless_an_idle_time_was_given(
    spark, tmp_path, monkeypatch
):
    found = []
    monkeypatch.setattr(
        stream_module, "_order_stream", lambda packets, _, waking: found.append(waking) or packets
    )
    rows = spark.readStream.schema("process int, time bigint").parquet(str(tmp_path))
    system = Guarantees(2, epsilon=5, delta=10)
    observe(rows, system, tick_us=1000)
    observe(rows, system, tick_us=1_000_000)
    observe(rows, system, tick_us=1000, idle_us=None)
    assert [waking.idle_us for waking in found] == [IDLE_US_MIN, 20_000_000, None]


@pytest.mark.spark
def test_observers_that_ended_stayed_in_the_state_for_ever(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    stream = Stream(
        folder=folder, out=tmp_path / "out", checkpoint=tmp_path / "state", idle_us=1_000_000
    )

    def write(name: str, *rows: dict[str, object]) -> None:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    people = [f"eye-{number}" for number in range(10)]
    write("1", *({"observer": o, "process": 1, "time": 1_000_000, "ends": False} for o in people))
    first = order_stream(spark, stream, PLAN, until="read")
    assert (first["observers"], first["delivered"], first["held"]) == (10, 0, 10)
    write("2", *({"observer": observer, "ends": True} for observer in people[:8]))
    second = order_stream(spark, stream, PLAN, until="read")
    assert (second["observers"], second["delivered"], second["held"]) == (2, 8, 2)
    assert second["rejected"] == 0

    # Those that are left fell silent in a bounded run; one that goes on does not leave them there.
    stop = threading.Event()
    guard = threading.Timer(SECONDS_MAX, stop.set)
    guard.start()
    try:
        third = order_stream(
            spark, stream, PLAN, until="stopped", on_batch=lambda _: stop.set(), stop=stop
        )
    finally:
        guard.cancel()
        for name in (*STREAM_CONF, "spark.sql.streaming.noDataMicroBatches.enabled"):
            spark.conf.unset(name)
    assert (third["delivered"], third["observers"]) == (2, 2)
