"""Rows that cannot be read, in tables and in streams: none is lost, none guessed, all told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.packets import KEY, ROWS, open_packets, pack
from beforehand.observe.reading import NO_OBJECT, WRONG_TYPE
from beforehand.observe.rejects import FILE, LINE, RAW, WHY, folder_of_rejects, read_rejects
from beforehand.observe.settings import Plan
from beforehand.observe.stream import STREAM_CONF

PLAN = Plan(epsilon_us=5_000, delta_us=10_000)
GOOD = 20
BAD = {
    '{"process": 1, "time": "2026-01-01T00:00:01Z", "x"': NO_OBJECT,
    "no JSON at all": NO_OBJECT,
    "null": NO_OBJECT,
    '{"process": 1, "x": 1} {"process": 2, "x": 2}': NO_OBJECT,
    '[{"process": 1, "x": 1}, {"process": 2, "x": 2}]': NO_OBJECT,
    '{"process": "one", "time": "2026-01-01T00:00:01Z", "x": 1}': WRONG_TYPE,
    '{"process": 1, "time": "2026-01-01T00:00:01Z", "x": "one"}': WRONG_TYPE,
    '{"process": 1, "time": "noon", "x": 1}': "`time` is no time",
    '{"process": 1, "time": "12:30", "x": 1}': "`time` is no time",
    '{"process": 1, "time": "1767225600000000", "x": 1}': "`time` is no time",
    '{"time": "2026-01-01T00:00:01Z", "x": 1}': "no `process`",
}


class Outcome(NamedTuple):
    counts: dict[str, int]
    told: list[str]
    rows: list[Any]
    rejects: list[dict[str, Any]]


def line_of(number: int, **others: object) -> str:
    at = f"2026-01-01T00:00:00.{number:03}Z"
    return json.dumps({"process": number % 3, "time": at, "x": number} | others)


def write(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def streaming(spark):
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    yield spark
    for name in (*STREAM_CONF, "spark.sql.streaming.noDataMicroBatches.enabled"):
        spark.conf.unset(name)


@pytest.fixture(scope="module", params=["table", "stream"])
def outcome(request, streaming, tmp_path_factory) -> Outcome:
    """Good lines in a first file; in a later one all that are bad, and a new column."""
    top = tmp_path_factory.mktemp(request.param)
    folder, out = top / "in put", top / "out"
    folder.mkdir()
    told: list[str] = []
    write(folder / "1.jsonl", *(line_of(number) for number in range(GOOD // 2)))
    lines = [line_of(number) for number in range(GOOD // 2, GOOD)]
    lines[0] = line_of(GOOD // 2, new=7)
    later = (*lines[:3], "", *BAD, *lines[3:])
    if request.param == "table":
        # No more than the first files are looked at for the columns.
        for number in range(2, 18):
            write(folder / f"{number:02}.jsonl", line_of(0, x=-number))
        write(folder / "99.jsonl", *later)
        counts = order_table(streaming, folder, out, PLAN, tell=told.append)
    else:
        stream = Stream(folder=folder, out=out, checkpoint=top / "state")
        order_stream(streaming, stream, PLAN, until="read")
        write(folder / "99.jsonl", *later)
        counts = order_stream(streaming, stream, PLAN, until="empty", tell=told.append)
    rows = streaming.read.parquet(str(out)).where("x >= 0").orderBy("delivered_seq").collect()
    return Outcome(counts, told, rows, read_rejects(folder_of_rejects(out)))


@pytest.mark.spark
def test_a_broken_line_in_a_later_file_came_out_as_a_row_of_nulls(outcome):
    assert [row.x for row in outcome.rows] == list(range(GOOD))
    assert not any(row.reset or row.process is None for row in outcome.rows)
    found = {row["raw"]: row["why"] for row in outcome.rejects}
    assert found == BAD


@pytest.mark.spark
def test_a_reject_says_in_which_file_and_on_which_line_it_stood(outcome):
    assert {Path(row["file"]).parts[-2:] for row in outcome.rejects} == {("in put", "99.jsonl")}
    assert [row["line"] for row in outcome.rejects] == list(range(5, 5 + len(BAD)))


@pytest.mark.spark
@pytest.mark.parametrize("why", ["`time` is no time", WRONG_TYPE])
def test_an_unparsable_time_or_a_wrong_type_became_null_without_a_mark(outcome, why):
    expected = [raw for raw, reason in BAD.items() if reason == why]
    assert [row["raw"] for row in outcome.rejects if row["why"] == why] == expected


@pytest.mark.spark
def test_broken_lines_counted_as_delivered(outcome):
    assert outcome.counts["rejected"] == len(BAD) == len(outcome.rejects)
    assert outcome.counts["delivered"] < GOOD + len(BAD) + 10
    assert outcome.counts["reset"] == 0


@pytest.mark.spark
def test_a_new_column_disappeared_untold(outcome):
    assert outcome.counts["unknown_columns"] == 1
    assert any("`new`" in text for text in outcome.told)


@pytest.mark.spark
def test_numbers_and_timestamps_as_text_in_one_column_are_refused(streaming, tmp_path):
    write(tmp_path / "1.jsonl", '{"process": 1, "time": "17"}', line_of(1))
    with pytest.raises(InputError, match="`time` is text: 1 whole numbers, 1 timestamps"):
        order_table(streaming, tmp_path, tmp_path.with_name("out"), PLAN)


def write_times(path: Path, processes: list[int | None], **others: list[Any]) -> None:
    at = [10_000 * number for number in range(len(processes))]
    pq.write_table(
        pa.table({"process": pa.array(processes, pa.int64()), "time": at} | others), path
    )


@pytest.mark.spark
def test_a_parquet_file_removed_and_put_back_was_lost(streaming, tmp_path, capfd):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    write_times(folder / "1.parquet", [1, 2])
    stream, told = Stream(folder=folder, out=out, checkpoint=tmp_path / "state"), []
    order_stream(streaming, stream, PLAN, until="empty")

    broken = folder / "2.parquet"
    broken.write_bytes(b"PAR1 half of a file PAR1")
    with pytest.raises(Exception, match="the stream failed") as caught:
        order_stream(streaming, stream, PLAN, until="read")
    assert "nothing is lost" in caught.value.hint
    broken.unlink()
    with pytest.raises(InputError, match=r"2\.parquet` was being read") as caught:
        order_stream(streaming, stream, PLAN, until="read")
    assert "put it back" in caught.value.hint
    write_times(broken, [1, None, 3], extra=["a", "b", "c"])
    counts = order_stream(streaming, stream, PLAN, until="empty", tell=told.append)
    assert (counts["delivered"], counts["rejected"], counts["gone"]) == (2, 1, 0)
    assert streaming.read.parquet(str(out)).count() == 4
    # The same of rows of Parquet files: told of their columns, and rejected with their number.
    assert any("`extra`" in text for text in told)
    (reject,) = read_rejects(folder_of_rejects(out))
    assert (reject["line"], reject["why"]) == (2, "no `process`")
    assert json.loads(reject["raw"]) == {"time": 10_000}

    out.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="the output is gone"):
        order_stream(streaming, stream, PLAN, until="read")
    (tmp_path / "moved").rename(out)
    (tmp_path / "state").rename(tmp_path / "old")
    with pytest.raises(InputError, match="there is something already"):
        order_stream(streaming, stream, PLAN, until="read")
    capfd.readouterr()  # what Spark has to say about the broken file


def test_rejects_of_a_batch_that_is_done_again_are_there_once(tmp_path):
    (tmp_path / "in.jsonl").write_text("bad\nworse\nbad\n")
    marks = {WHY: ["?", None, "?"], RAW: ["bad", None, "bad"], LINE: pa.array([None] * 3, "int64")}
    marks |= {FILE: [(tmp_path / "in.jsonl").as_uri()] * 3, KEY: ["eye"] * 3, "x": [1, 2, 3]}
    for _ in range(2):
        (packet,) = pack(iter(pa.table(marks).to_batches()), tmp_path / "rejects")
    assert open_packets(packet[ROWS].to_pylist()).to_pylist() == [{"x": 2}]
    found = read_rejects(tmp_path / "rejects")
    assert [(row["line"], row["raw"]) for row in found] == [(1, "bad"), (3, "bad")]
    assert [file.suffix for file in (tmp_path / "rejects").iterdir()] == [".jsonl"]
