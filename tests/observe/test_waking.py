"""When an observer of a stream acts without a new row, and when its state is removed."""

from __future__ import annotations

import json
import threading
from typing import Any

import pyarrow as pa
import pytest

from beforehand.errors import LocalError
from beforehand.observe import stream as stream_module
from beforehand.observe.files import Stream, order_stream
from beforehand.observe.notices import NOTICES, announce_run
from beforehand.observe.settings import Plan
from beforehand.observe.stamps import ACTS, ENDS, NOW_US, PARTITION, RUN_US, Reordering
from beforehand.observe.state import State, new_state
from beforehand.observe.stream import IDLE_US_MIN, observe
from beforehand.observe.task import OrderTask
from beforehand.protocols.observer.observer import cbd
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import rule_of
from tests.observe.test_state import SMALL, events

ORDER = Reordering(rule_of(cbd(100), SMALL), 1000, "event")
TASK = OrderTask(ORDER, 10_000_000, None, "/state", 4, "beforehand")
PLAN = Plan(epsilon_us=5_000, delta_us=10_000)
SECONDS_MAX = 90


def call(
    state: State, rows: pa.Table, now_ms: int, run: tuple[int, bool] | None = None, of: int = 3
) -> tuple[State, int]:
    """Return the state after a batch, and the number of delivered rows.

    run: start and kind of a run that begins with this batch.
    """
    marks: dict[str, Any] = {RUN_US: pa.nulls(len(rows), pa.int64())}
    marks[ACTS] = pa.nulls(len(rows), pa.bool_())
    for name, column in marks.items():
        rows = rows.append_column(name, column)
    # A tick, and perhaps a notice: no value in all other columns.
    told = {ENDS: [None], RUN_US: [None], ACTS: [None]}
    if run is not None:
        told = {ENDS: [None, None], RUN_US: [None, run[0]], ACTS: [None, run[1]]}
    kinds = {ENDS: pa.bool_(), RUN_US: pa.int64(), ACTS: pa.bool_()}
    extra = pa.table({name: pa.array(told[name], kind) for name, kind in kinds.items()})
    rows = pa.concat_tables([rows, extra], promote_options="default")
    rows = rows.append_column(PARTITION, pa.array([of] * len(rows), pa.int32()))
    rows = rows.append_column(NOW_US, pa.array([now_ms * 1000] * len(rows)))
    state, out = TASK.take_batch(state, rows, 3)
    return state, len(out)


def test_the_last_rows_of_a_bounded_run_stayed_in_a_live_one():
    row = events(("a", 0, 1, 0, None))
    nothing = row.slice(0, 0)
    state, count = call(new_state(ORDER), row, 1_000, (0, False))
    assert count == 0
    # A bounded run lets nothing out, however long it lasts.
    state, count = call(state, nothing, 90_000)
    assert count == 0
    # One that is not bounded waits for so long itself: before it started, it could not listen.
    state, count = call(state, nothing, 101_000, (100_000_000, True))
    assert count == 0
    state, count = call(state, nothing, 109_999)
    assert count == 0
    state, count = call(state, nothing, 110_000)
    assert count == 1


def test_rows_of_another_partition_are_refused():
    with pytest.raises(LocalError, match="rows of one partition into another"):
        call(new_state(ORDER), events(("a", 0, 1, 0, None)), 1_000, of=2)


def test_only_the_first_of_several_bounded_runs_leaves_a_notice(tmp_path):
    for is_live in (False, False, True, True, False, False):
        announce_run(tmp_path, is_live=is_live)
    kinds = [path.stem.partition("-")[2] for path in sorted((tmp_path / NOTICES).iterdir())]
    assert kinds == ["bounded", "live", "live", "bounded"]


@pytest.mark.spark
def test_the_last_rows_of_a_silent_observer_stayed_unless_an_idle_time_was_given(
    spark, tmp_path, monkeypatch
):
    found = []

    def spread(rows: Any, task: OrderTask, _: Any) -> Any:
        found.append(task.idle_us)
        return rows

    monkeypatch.setattr(stream_module, "_spread", spread)
    rows = spark.readStream.schema("process int, time bigint").parquet(str(tmp_path))
    system = Guarantees(2, epsilon=5, delta=10)
    observe(rows, system, tick_us=1000, state="state")
    observe(rows, system, tick_us=1_000_000, state="state")
    observe(rows, system, tick_us=1000, idle_us=None, state="state")
    assert found == [IDLE_US_MIN, 20_000_000, None]


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
    assert (third["delivered"], third["observers"]) == (2, 2)
