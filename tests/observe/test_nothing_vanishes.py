"""Rows that vanished from a stream, or came out in a wrong order, without a mark."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.observe.files import Stream, order_stream
from beforehand.observe.settings import Plan
from beforehand.observe.stream import STREAM_CONF

PLAN = Plan(epsilon_us=5_000, delta_us=10_000)
DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def streaming(spark):
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    yield spark
    for name in (*STREAM_CONF, "spark.sql.streaming.noDataMicroBatches.enabled"):
        spark.conf.unset(name)


@pytest.fixture
def stream(tmp_path) -> Stream:
    (tmp_path / "in").mkdir()
    return Stream(folder=tmp_path / "in", out=tmp_path / "out", checkpoint=tmp_path / "state")


def write_times(path, first: int, count: int = 10) -> None:
    at = [10_000 * number for number in range(first, first + count)]
    pq.write_table(pa.table({"process": [1] * count, "time": at}), path)


@pytest.mark.spark
def test_files_copied_with_times_of_weeks_ago_were_never_read(streaming, stream):
    write_times(stream.folder / "1.parquet", 0)
    write_times(stream.folder / "2.parquet", 10)
    old = (stream.folder / "1.parquet").stat().st_mtime - 400 * DAY_SECONDS
    os.utime(stream.folder / "1.parquet", (old, old))
    assert order_stream(streaming, stream, PLAN, until="empty")["delivered"] == 20
    # A file that comes after newer ones were read is not lost either.
    write_times(stream.folder / "3.parquet", 20)
    os.utime(stream.folder / "3.parquet", (old, old))
    assert order_stream(streaming, stream, PLAN, until="empty")["delivered"] == 10
