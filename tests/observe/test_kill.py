"""After kill -9 in the middle of a stream, its checkpoint continues it: each row comes once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.settings import Plan
from tests.observe.drifting import drifting_rows

OBSERVERS, EVENTS, FILES = 4, 8_000, 8
PLAN = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=60, elements=2)
SECONDS_MAX = 300

JOB = """
import sys
from pathlib import Path
from beforehand.observe.files import Stream, order_stream
from beforehand.observe.settings import Plan
from beforehand.spark.session import open_session

folder, out, checkpoint = map(Path, sys.argv[1:])
stream = Stream(folder=folder, out=out, checkpoint=checkpoint, files_per_batch=2)
plan = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=60, elements=2)
with open_session("local[2]", small=True) as spark:
    order_stream(spark, stream, plan, until="empty")
"""


def write_events(folder: Path) -> None:
    each = EVENTS // OBSERVERS
    rows = pa.concat_tables([drifting_rows(s, each * 21 // 20).slice(0, each) for s in range(4)])
    rows = rows.drop_columns(["past"]).sort_by("arrived")
    assert len(rows) == EVENTS
    for number in range(FILES):
        part = rows.slice(number * EVENTS // FILES, EVENTS // FILES)
        pq.write_table(part, folder / f"{number:03}.parquet")


def batches(checkpoint: Path, log: str) -> set[str]:
    """Return the batch numbers in one of Spark's logs."""
    return {path.name for path in (checkpoint / "spark" / log).glob("[0-9]*")}


def start(scratch: Path, *paths: Path) -> subprocess.Popen[bytes]:
    # A session of its own: what is killed is this job and the Java that it started. It cannot
    # clean up, so its temporary files go where ours go.
    return subprocess.Popen(
        [sys.executable, "-c", JOB, *map(str, paths)],
        env=os.environ | {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_in_the_middle(job: subprocess.Popen[bytes], checkpoint: Path, after: int) -> None:
    """Kill the job while a batch is in progress: its offsets are logged and its commit is not."""
    ends = time.monotonic() + SECONDS_MAX
    while time.monotonic() < ends:
        begun, done = batches(checkpoint, "offsets"), batches(checkpoint, "commits")
        if len(done) >= after and begun - done:
            break
        assert job.poll() is None, "the job ended before it was killed"
        time.sleep(0.02)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def committed_rows(spark: SparkSession, folder: Path) -> list[dict[str, object]]:
    """Return the rows of the files that Spark has committed, each observer's in its order."""
    key = [("observer", "ascending"), ("delivered_seq", "ascending")]
    return spark.read.parquet(str(folder)).toArrow().sort_by(key).to_pylist()


@pytest.mark.slow
@pytest.mark.spark
def test_killed_in_the_middle_every_event_comes_out_once_and_in_the_order_of_a_batch(
    spark, tmp_path
):
    folder, out, checkpoint = (tmp_path / name for name in ("in", "out", "state"))
    folder.mkdir()
    write_events(folder)
    kill_in_the_middle(start(tmp_path, folder, out, checkpoint), checkpoint, after=2)
    before = spark.read.parquet(str(out)).count()
    assert 0 < before < EVENTS * 0.9

    stream = Stream(folder=folder, out=out, checkpoint=checkpoint, files_per_batch=2)
    counts = order_stream(spark, stream, PLAN, until="empty")
    assert counts["held"] == 0
    # This run delivered again what the killed one had not committed, and nothing else.
    assert counts["delivered"] == EVENTS - before

    order_table(spark, folder, tmp_path / "table", PLAN)
    found, expected = (committed_rows(spark, place) for place in (out, tmp_path / "table"))
    assert len({(row["observer"], row["id"]) for row in found}) == EVENTS
    assert found == expected
