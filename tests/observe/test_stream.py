"""`observe` on tables and streams of Spark, and on folders of files."""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from beforehand.errors import BeforehandError, InputError, InputErrors, LocalError
from beforehand.files import replaced
from beforehand.observe.columns import check_columns
from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.settings import Plan
from beforehand.observe.stream import METRICS, RESULTS, observe
from beforehand.protocols.observer.observer import cbd
from beforehand.protocols.observer.timestamp import Guarantees
from tests.observe.drifting import SYSTEM, TICK_US, drifting_rows
from tests.waiting import SECONDS_MAX, wait_until

DIAL = cbd(60, 2)
STAMP = StructType([StructField("r", LongType()), StructField("c", LongType())])
STAMP.add("kn", ArrayType(LongType()))
GOOD = StructType([StructField("process", LongType()), StructField("stamp", STAMP)])


def with_column(name: str, kind: DataType) -> StructType:
    return StructType([*(f for f in GOOD if f.name != name), StructField(name, kind)])


@pytest.mark.parametrize(
    ("schema", "clock", "problem"),
    [
        (GOOD[1:], "event", "no column `process`"),
        (GOOD[:1], "event", "no column `stamp` and no column `time`"),
        (GOOD, "arrival", "no column `arrived`"),
        (with_column("process", DoubleType()), "event", "neither a number nor a name"),
        (with_column("stamp", StringType()), "event", "`stamp` is a string"),
        (with_column("stamp", STAMP[:2]), "event", "`stamp` is a struct<r:bigint"),
        (with_column("time", BooleanType()), "event", "`time` is a boolean"),
        (with_column("ends", StringType()), "event", "`ends` is neither"),
        (with_column("moved", BooleanType()), "event", "`moved` is a column of the output"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_that_cannot_be_ordered_are_refused(schema, clock, problem):
    with pytest.raises(InputError) as caught:
        check_columns(schema, clock, RESULTS)
    assert problem in caught.value.render()


def test_all_problems_of_the_columns_are_reported_together():
    with pytest.raises(InputErrors) as caught:
        check_columns(StructType(), "arrival", RESULTS)
    assert len(caught.value.errors) == 3


@pytest.mark.spark
def test_a_table_is_ordered_by_times_that_are_text_and_processes_that_have_names(spark):
    rows = [("api", "12:00:00.020Z", 3), ("db", "12:00:00.010Z", 2), ("api", "noon", 9)]
    rows = [(process, f"2026-01-01T{at}", number) for process, at, number in rows]
    events = spark.createDataFrame(rows, "process string, time string, number int")
    system = Guarantees(2, epsilon=5000, delta=10_000)
    ordered = observe(events, system, tick_us=1)
    assert tuple(ordered.columns) == ("process", "time", "number", *RESULTS)
    found = ordered.orderBy("delivered_seq").collect()
    assert [row.number for row in found if not row.reset] == [2, 3]
    assert [row.number for row in found if row.reset] == [9]
    first = next(row for row in found if row.number == 2)
    assert first.delivered_at == datetime.datetime(2026, 1, 1, 12, 0, 0, 25_000)
    assert first.waited_us == 15_000


@pytest.mark.spark
def test_a_table_does_not_wait_and_a_stream_waits_at_least_the_maximum_delay(spark, tmp_path):
    with pytest.raises(LocalError, match="does not wait"):
        observe(spark.createDataFrame([], GOOD), SYSTEM, tick_us=1, clock="wall")
    stream = spark.readStream.schema(GOOD).parquet(str(tmp_path))
    with pytest.raises(LocalError, match="a message may wait 30000 us"):
        observe(stream, SYSTEM, tick_us=TICK_US, idle_us=29_999, state="state")
    with pytest.raises(LocalError, match="need a folder for their state"):
        observe(stream, SYSTEM, tick_us=TICK_US)


@pytest.mark.spark
def test_a_stream_delivers_as_a_table_does_and_counts(spark, tmp_path):
    rows = pa.concat_tables([drifting_rows(seed, 1500) for seed in (1, 2)]).drop_columns(["past"])
    rows = rows.sort_by("arrived")
    late = rows.slice(1000, 1).set_column(4, "id", [[-1]]).combine_chunks()
    late = late.set_column(3, "arrived", [[rows["arrived"][2000].as_py()]])
    rows = pa.concat_tables([rows, late]).sort_by("arrived")
    folder = tmp_path / "in"
    folder.mkdir()
    for start in range(0, len(rows), 1000):
        pq.write_table(rows.slice(start, 1000), folder / f"{start:05}.parquet")
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(folder))
    state = (tmp_path / "observers").as_uri()
    ordered = observe(events, SYSTEM, DIAL, tick_us=TICK_US, state=state, partitions=3)
    query = (
        ordered.writeStream.format("memory").queryName("ordered").trigger(availableNow=True).start()
    )
    query.awaitTermination(SECONDS_MAX)
    table = observe(spark.read.parquet(str(folder)), SYSTEM, DIAL, tick_us=TICK_US)
    key = ["observer", "delivered_seq"]
    expected = table.orderBy(key).collect()
    found = spark.table("ordered").orderBy(key).collect()
    # The last of each observer wait for more to come.
    assert len(rows) - 60 < len(found) < len(rows) == len(expected)
    ends = Counter(row.observer for row in found)
    assert [row for row in expected if row.delivered_seq < ends[row.observer]] == found
    counted = [progress.observedMetrics[METRICS] for progress in query.recentProgress]
    assert len(counted) > 2
    assert sum(count.delivered for count in counted) == len(found)
    assert sum(count.moved for count in counted) == sum(row.moved for row in found) > 100
    assert sum(count.late for count in counted) == 1
    assert [row.id for row in found if row.late] == [-1]


@pytest.mark.spark
def test_in_processing_time_the_last_messages_leave_when_due(spark, tmp_path):
    events = spark.readStream.schema(GOOD).parquet(str(tmp_path))
    # A batch takes a moment: the rows must not be due before it begins.
    system = Guarantees(2, epsilon=500, delta=6000)
    state = tmp_path.with_name(f"{tmp_path.name}-state")
    ordered = observe(events, system, tick_us=1000, clock="wall", state=state)
    query = ordered.writeStream.format("memory").queryName("wall").start()
    try:
        wait_until(lambda: query.lastProgress, told=lambda: str(query.status))
        now = time.time_ns() // 1_000_000
        rows = [{"process": p, "stamp": {"r": now - p, "c": 0, "kn": []}} for p in (0, 1)]
        with replaced(tmp_path / "rows.parquet") as written:
            pq.write_table(pa.Table.from_pylist(rows), written)
        wait_until(lambda: spark.table("wall").count() == 2, told=lambda: str(query.status))
        found = spark.table("wall").orderBy("delivered_seq").collect()
    finally:
        query.stop()
    assert [row.process for row in found] == [1, 0]
    assert all(row.waited_us > 0 for row in found)


@pytest.mark.spark
def test_a_live_stream_flushes_the_last_messages_when_idle_and_ends_on_request(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = drifting_rows(1, 60).drop_columns(["arrived", "past"])
    pq.write_table(rows, folder / "1.parquet")
    stream = Stream(
        folder=folder, out=tmp_path / "out", checkpoint=tmp_path / "state", idle_us=1_000_000
    )
    stop, told = threading.Event(), []

    def stop_at_the_end(counts):
        told.append(counts["delivered"])
        if told[-1] == len(rows):
            stop.set()

    plan = Plan(epsilon_us=10_000, delta_us=10_000)
    guard = threading.Timer(SECONDS_MAX, stop.set)
    guard.start()
    counts = order_stream(spark, stream, plan, until="stopped", on_batch=stop_at_the_end, stop=stop)
    guard.cancel()
    assert told[0] < told[-1] == len(rows) == counts["delivered"]
    assert counts["observers"] == 1


def write_lines(path: Path, rows: pa.Table) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


@pytest.mark.spark
def test_a_folder_that_grows_is_read_once_and_emptied_at_the_end(spark, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = drifting_rows(1, 600).drop_columns(["observer", "past"])
    plan = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=60)
    stream = Stream(folder=folder, out=tmp_path / "out", checkpoint=tmp_path / "state")
    write_lines(folder / "1.jsonl", rows.slice(0, 400))
    (folder / ".2.jsonl.part").write_text("half a li")
    told = []
    first = order_stream(spark, stream, plan, until="read", on_batch=lambda c: told.append(dict(c)))
    assert 350 < first["delivered"] == 400 - first["held"] < 400
    assert told[-1].items() <= first.items()

    changed = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=50)
    with pytest.raises(InputError, match=r"`wait_percent` was 60 .* is 50 now"):
        order_stream(spark, stream, changed, until="read")

    elsewhere = msgspec.structs.replace(stream, out=tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"`out` was .* when this stream was started"):
        order_stream(spark, elsewhere, plan, until="read")
    hasty = msgspec.structs.replace(stream, idle_us=29_000)
    with pytest.raises(InputError, match="a message may be held for 30ms"):
        order_stream(spark, hasty, plan, until="stopped")

    write_lines(folder / "2.jsonl", rows.slice(400))
    second = order_stream(spark, stream, plan, until="empty")
    assert first["delivered"] + second["delivered"] == len(rows)
    assert second["held"] == 0
    counts = order_table(spark, folder, tmp_path / "table", plan)
    assert counts["delivered"] == len(rows)
    assert counts["moved"] == first["moved"] + second["moved"] > 0
    found, expected = (
        spark.read.parquet(str(tmp_path / name)).orderBy("delivered_seq").collect()
        for name in ("out", "table")
    )
    assert found == expected
    assert {row.observer for row in found} == {"all"}
    with pytest.raises(InputError, match="there is something already"):
        order_table(spark, folder, tmp_path / "table", plan)


@pytest.mark.spark
def test_a_failing_stream_reports_the_reason_in_one_line(spark, tmp_path, capfd):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = drifting_rows(1, 60).drop_columns(["past"])
    pq.write_table(rows, folder / "1.parquet")
    plan = Plan(epsilon_us=10_000, delta_us=10_000)
    stream = Stream(folder=folder, out=tmp_path / "out", checkpoint=tmp_path / "state")
    order_stream(spark, stream, plan, until="read")
    kept = stream.checkpoint / "settings.json"
    kept.write_text(kept.read_text().replace('"wait_percent": 100', '"wait_percent": 99'))
    pq.write_table(rows, folder / "2.parquet")
    other = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=99)
    with pytest.raises(BeforehandError, match=r"the stream failed: .*were started with") as caught:
        order_stream(spark, stream, other, until="read")
    assert "\n" not in caught.value.problem
    capfd.readouterr()  # what Spark has to say about it
