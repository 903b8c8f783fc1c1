"""Rows that vanished from a stream, or came out in a wrong order, without a mark."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from subprocess import PIPE

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from pyspark.errors import AnalysisException

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.files import local_place
from beforehand.observe.failures import disk_named, failure_of, whole_text
from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.lock import check_unlocked, locked
from beforehand.observe.places import Read, check_places, unsorted_files
from beforehand.observe.rejects import folder_of_rejects, read_rejects
from beforehand.observe.settings import TIME_ZONE, Plan, assumed, keep_settings, settle
from beforehand.observe.stream import observe
from beforehand.protocols.observer.timestamp import Guarantees

PLAN = Plan(epsilon_us=5_000, delta_us=10_000)
FLAGS = ("--epsilon", "5ms", "--delta", "10ms")
DAY_SECONDS = 86_400


@pytest.fixture
def stream(tmp_path) -> Stream:
    (tmp_path / "in").mkdir()
    return Stream(folder=tmp_path / "in", out=tmp_path / "out", checkpoint=tmp_path / "state")


def write_times(path, first: int, count: int = 10) -> None:
    at = [10_000 * number for number in range(first, first + count)]
    pq.write_table(pa.table({"process": [1] * count, "time": at}), path)


@pytest.mark.spark
def test_files_copied_with_times_of_weeks_ago_were_never_read(spark, stream):
    write_times(stream.folder / "1.parquet", 0)
    write_times(stream.folder / "2.parquet", 10)
    old = (stream.folder / "1.parquet").stat().st_mtime - 400 * DAY_SECONDS
    os.utime(stream.folder / "1.parquet", (old, old))
    assert order_stream(spark, stream, PLAN, until="empty")["delivered"] == 20
    # A file that comes after newer ones were read is not lost either.
    write_times(stream.folder / "3.parquet", 20)
    os.utime(stream.folder / "3.parquet", (old, old))
    assert order_stream(spark, stream, PLAN, until="empty")["delivered"] == 10


@pytest.mark.spark
def test_an_empty_kn_in_the_first_stamp_dropped_the_kn_of_all(spark, stream):
    # `kn` alone tells the effect (process 0) from its cause (process 1).
    kns = {"lost": (5, 0, []), "effect": (0, 20, [1, 2]), "cause": (1, 20, [1, 1])}
    rows = [
        {"name": name, "process": process, "stamp": {"r": r, "c": 0, "kn": kn}}
        for name, (process, r, kn) in kns.items()
    ]
    for form in ("empty", "null"):
        (stream.folder / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        out = stream.out / form
        counts = order_table(spark, stream.folder, out, PLAN)
        found = spark.read.parquet(str(out)).orderBy("delivered_seq").collect()
        assert [row.name for row in found if not row.reset] == ["cause", "effect"]
        assert [row.name for row in found if row.reset] == ["lost"]
        assert counts["reset"] == 1
        rows[0]["stamp"]["kn"] = None
    asked = structs.replace(PLAN, elements=0)
    assert order_table(spark, stream.folder, stream.out / "r, c", asked)["reset"] == 0


@pytest.mark.spark
def test_first_files_without_any_kn_were_taken_silently(spark, stream):
    numbers = pa.struct({"r": pa.int64(), "c": pa.int64(), "kn": pa.list_(pa.int64())})
    stamps = pa.array([{"r": 5, "c": 0, "kn": []}], numbers)
    pq.write_table(pa.table({"process": [1], "stamp": stamps}), stream.folder / "1.parquet")
    for elements, notes in ((None, 1), (0, 0)):
        plan = structs.replace(PLAN, elements=elements)
        found = settle(spark, stream.folder, plan)
        told = [text for text in assumed(found, plan) if "of later files are not used" in text]
        assert (found.elements, len(told)) == (0, notes)


def test_only_a_file_of_the_same_time_and_a_smaller_name_was_read_too_late():
    before = Read(7, "/in/5")
    reads = [Read(6, "/in/1"), Read(7, "/in/3"), Read(7, "/in/6"), Read(8, "/in/2")]
    assert unsorted_files(reads, before) == ["/in/3"]
    assert unsorted_files(reads, None) == []


@pytest.mark.spark
def test_files_of_one_time_of_modification_were_read_in_another_order_unmarked(spark, stream):
    # Systems list files by age, by age backwards or by a hash: none of these is the order of names.
    names = [f"{number * 7 % 12:02}.parquet" for number in range(12)]
    for name in names:
        write_times(stream.folder / name, 10 * int(name[:2]))
        os.utime(stream.folder / name, (1_700_000_000, 1_700_000_000))
    told: list[str] = []
    few = structs.replace(stream, files_per_batch=2)
    counts = order_stream(spark, few, PLAN, until="read", note=told.append)
    assert counts["unsorted_files"] > 0
    assert any("was read after files of the same time of modification" in text for text in told)
    whole = structs.replace(
        stream, out=stream.folder.parent / "out2", checkpoint=stream.folder.parent / "state2"
    )
    counts = order_stream(spark, whole, PLAN, until="empty")
    assert (counts["unsorted_files"], counts["delivered"]) == (0, 120)


@pytest.mark.parametrize("scheme", ["s3a", "hdfs", "abfss"])
def test_an_address_of_another_system_became_a_local_folder_of_that_name(
    stream, scheme, capsys, monkeypatch
):
    monkeypatch.chdir(stream.folder.parent)
    write_times(stream.folder / "1.parquet", 0)
    for out, *others in (
        (f"{scheme}://bucket/out",),
        ("out", "--checkpoint", f"{scheme}://bucket/state"),
    ):
        assert main(["observe", "in", *FLAGS, "--out", out, *others]) == 2
        shown = capsys.readouterr().err
        assert f"`{scheme}` addresses are not supported" in shown
        assert "mount the storage" in shown
    assert main(["observe", f"{scheme}://bucket/in", *FLAGS, "--out", "out"]) == 2
    with pytest.raises(InputError, match="not supported"):
        check_places(stream.folder, Path(f"{scheme}://bucket/out"), None)
    with pytest.raises(InputError, match="an address, not a path"):
        check_places(stream.folder, Path("file:///out"), None)
    assert [path.name for path in stream.folder.parent.iterdir()] == ["in"]


def test_addresses_of_local_files_are_paths():
    for address in (
        "file:///tmp/a%20b",
        "file:/tmp/a%20b",
        "file://localhost/tmp/a%20b",
        "/tmp/a b",
    ):
        assert local_place(address) == Path("/tmp/a b")
    for name in ("out", "c:/out", "at 12:30", "a:b"):
        assert local_place(name) == Path(name)
    for address in ("file://elsewhere/tmp", "s3a://bucket/x", "s3a:/bucket/x", "hdfs://bucket"):
        with pytest.raises(InputError, match="only local files"):
            local_place(address)


SECOND = """
import sys
from pathlib import Path
from beforehand.observe.lock import locked

with locked(Path(sys.argv[1])):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_two_processes_ran_on_one_checkpoint(stream, capsys):
    write_times(stream.folder / "1.parquet", 0)
    places = ("--out", str(stream.out), "--checkpoint", str(stream.checkpoint))
    check_unlocked(stream.checkpoint)
    assert not stream.checkpoint.exists()
    command = [sys.executable, "-c", SECOND, str(stream.checkpoint)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "has it\n"
        assert main(["observe", str(stream.folder), *FLAGS, *places, "--once"]) == 2
        shown = capsys.readouterr().err
        assert f"another stream runs on this checkpoint: process {other.pid}" in shown
        assert str(stream.checkpoint / "lock") in shown
        assert "stop it first" in shown
        other.kill()
    with (
        locked(stream.checkpoint),
        pytest.raises(InputError, match="another stream runs"),
        locked(stream.checkpoint),
    ):
        pass
    check_unlocked(stream.checkpoint)


def test_a_file_system_without_locks_is_named(stream, monkeypatch):
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(InputError, match="no locks: No locks available"), locked(stream.checkpoint):
        pass


@pytest.mark.spark
def test_a_deleted_part_of_the_checkpoint_was_an_internal_error_or_lost_rows(spark, stream):
    write_times(stream.folder / "1.parquet", 0)
    order_stream(spark, stream, PLAN, until="empty")
    write_times(stream.folder / "2.parquet", 10)
    whole = stream.checkpoint / "spark"
    for part in (".", "offsets", "metadata", "sources", "../observers"):
        (whole / part).resolve().rename(stream.checkpoint / "aside")
        with pytest.raises(InputError, match="a part of the checkpoint is gone") as refused:
            order_stream(spark, stream, PLAN, until="read")
        assert "another checkpoint and another output" in refused.value.hint
        (stream.checkpoint / "aside").rename((whole / part).resolve())
    with pytest.raises(InputError, match="another stream runs"), locked(stream.checkpoint):
        order_stream(spark, stream, PLAN, until="read")
    assert order_stream(spark, stream, PLAN, until="empty")["delivered"] == 10


@pytest.mark.spark
def test_two_observers_in_one_query_collided(spark):
    rows = spark.createDataFrame([(1, 10), (2, 20)], "process long, time long")
    one, other = (
        observe(rows, Guarantees(2, epsilon=5, delta=10), tick_us=1, metrics=name)
        for name in ("one", "other")
    )
    assert one.union(other).count() == 4
    same = observe(rows, Guarantees(2, epsilon=5, delta=11), tick_us=1, metrics="one")
    with pytest.raises(AnalysisException, match="DUPLICATED_METRICS_NAME"):
        one.union(same).count()


BERLIN = "Europe/Berlin"


@pytest.fixture
def in_berlin(spark):
    before = spark.conf.get(TIME_ZONE)
    spark.conf.set(TIME_ZONE, BERLIN)
    yield spark
    spark.conf.set(TIME_ZONE, before)


@pytest.mark.spark
def test_a_local_time_that_summer_time_skips_was_moved_by_an_hour(in_berlin, stream):
    times = {
        "2026-03-29T02:30:00": False,
        "2026-03-29 2:00": False,
        "2026-03-29T01:59:59.999999": True,
        "2026-03-29T03:00": True,
        "2026-03-29": True,
        "2026-03-29T02:30:00Z": True,
        "2026-03-29T02:30:00+01:00": True,
        "2026-03-29T02:30:00 Europe/London": True,
        "2026-10-25T02:30:00": True,  # twice
    }
    rows = [json.dumps({"process": 1, "time": time}) for time in times]
    (stream.folder / "1.jsonl").write_text("\n".join(rows))
    counts = order_table(in_berlin, stream.folder, stream.out, PLAN)
    skipped = {time for time, is_there in times.items() if not is_there}
    rejects = read_rejects(folder_of_rejects(stream.out))
    assert {json.loads(row["raw"])["time"] for row in rejects} == skipped
    assert {row["why"] for row in rejects} == {"`time` is no time"}
    assert (counts["delivered"], counts["rejected"]) == (len(times) - 2, 2)
    # The same of timestamps without a time zone, which Parquet has too.
    local = pa.array([datetime(2026, 3, 29, hour, 30) for hour in (1, 2, 3)], pa.timestamp("us"))
    (stream.folder / "1.jsonl").unlink()
    pq.write_table(pa.table({"process": [1] * 3, "time": local}), stream.folder / "1.parquet")
    counts = order_table(in_berlin, stream.folder, stream.out / "ntz", PLAN)
    assert (counts["delivered"], counts["rejected"]) == (2, 1)


@pytest.mark.spark
def test_a_stream_was_resumed_in_another_time_zone(spark, stream):
    write_times(stream.folder / "1.parquet", 0)
    kept = stream.checkpoint / "settings.json"
    places = {"folder": stream.folder, "out": stream.out}
    settings = keep_settings(spark, PLAN, kept, **places)
    zone = spark.conf.get(TIME_ZONE)
    assert settings == keep_settings(spark, PLAN, kept, **places)
    spark.conf.set(TIME_ZONE, BERLIN)
    try:
        with pytest.raises(InputError, match=f"`time_zone` was {zone} .* is {BERLIN} now"):
            keep_settings(spark, PLAN, kept, **places)
        kept.write_text(kept.read_text().replace(f'"time_zone": "{zone}"', '"time_zone": ""'))
        keep_settings(spark, PLAN, kept, **places)  # a checkpoint of an earlier version
    finally:
        spark.conf.set(TIME_ZONE, zone)


TABLE_FULL = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/full. SQLSTATE: 58030
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.sql.execution.datasources.FileFormatWriter$.write(FileFormatWriter.scala:1)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
"""
WORKER_FULL = """An exception was thrown from the Python worker:
  File "rejects.py", line 57, in write_rejects
OSError: [Errno 28] No space left on device"""


@pytest.mark.parametrize("text", [TABLE_FULL, WORKER_FULL, "OSError: Disk quota exceeded"])
def test_a_full_disk_was_not_named(text, tmp_path):
    told = failure_of(text, "/full")
    assert told is not None
    assert (told.problem, told.where) == ("the disk is full", "/full")
    assert "make room" in told.hint


def test_a_full_disk_under_the_checkpoint_was_not_named(tmp_path):
    with pytest.raises(InputError, match="the disk is full") as refused, disk_named(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert refused.value.where == str(tmp_path)
    with pytest.raises(FileNotFoundError), disk_named(tmp_path):
        (tmp_path / "nothing").read_bytes()


class Raised(Exception):
    """The text that Spark keeps with an error, and does not print."""

    def __init__(self, text: str, stack: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self._stackTrace, self._cause = stack, cause


def test_the_cause_of_a_failed_stream_was_not_looked_for():
    full = "java.io.IOException: No space left on device"
    caused = Raised("[STREAM_FAILED] Query terminated", "at y", Raised(full, "at x"))
    for error in (caused, Raised("[STREAM_FAILED]", f"Caused by: {full}")):
        told = failure_of(whole_text(error), "/full")
        assert told is not None
        assert told.problem == "the disk is full"
