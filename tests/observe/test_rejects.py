"""Rows that cannot be read, in tables and in streams: none is lost, none guessed, all are
reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from beforehand.errors import InputError
from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.reading import NO_LETTER, NO_OBJECT, NO_TEXT, WRONG_TYPE
from beforehand.observe.rejects import FILE, LINE, RAW, WHY, folder_of_rejects, read_rejects, sift
from beforehand.observe.settings import Plan
from beforehand.observe.stamps import KEY

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
    r'{"process": 1, "time": "2026-01-01T00:00:01Z", "x": 1, "y": "\ud83d"}': NO_LETTER,
    r'{"process": 1, "time": "2026-01-01T00:00:01Z", "x": 1, "y": "\\\\\uDE00!"}': NO_LETTER,
    '{"process": 1, "time": "2026-01-01T00:00:01Z", "x": 1, "y": "caf\ufffd"}': NO_TEXT,
}
"""`write` replaces this letter by a byte that is not UTF-8."""


class Outcome(NamedTuple):
    counts: dict[str, int]
    told: list[str]
    rows: list[Any]
    rejects: list[dict[str, Any]]


def line_of(number: int, **others: object) -> str:
    at = f"2026-01-01T00:00:00.{number:03}Z"
    return json.dumps({"process": number % 3, "time": at, "x": number, "y": "é"} | others)


def write(path: Path, *lines: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(text.encode().replace("\ufffd".encode(), b"\xe9"))


@pytest.fixture(scope="module", params=["table", "stream"])
def outcome(request, spark, tmp_path_factory) -> Outcome:
    """Order good lines in a first file, and all bad lines and a new column in a later one."""
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
        counts = order_table(spark, folder, out, PLAN, note=told.append)
    else:
        stream = Stream(folder=folder, out=out, checkpoint=top / "state")
        order_stream(spark, stream, PLAN, until="read")
        write(folder / "99.jsonl", *later)
        counts = order_stream(spark, stream, PLAN, until="empty", note=told.append)
    rows = spark.read.parquet(str(out)).where("x >= 0").orderBy("delivered_seq").collect()
    return Outcome(counts, told, rows, read_rejects(folder_of_rejects(out)))


@pytest.mark.spark
def test_a_broken_line_in_a_later_file_came_out_as_a_row_of_nulls(outcome):
    assert [row.x for row in outcome.rows] == list(range(GOOD))
    assert not any(row.reset or row.process is None for row in outcome.rows)
    found = {row["raw"]: row["why"] for row in outcome.rejects}
    assert found == BAD


@pytest.mark.spark
def test_a_reject_names_its_file_and_line(outcome):
    assert {Path(row["file"]).parts[-2:] for row in outcome.rejects} == {("in put", "99.jsonl")}
    assert [row["line"] for row in outcome.rejects] == list(range(5, 5 + len(BAD)))


@pytest.mark.spark
def test_invalid_utf8_was_replaced_and_the_row_delivered(outcome):
    whys = [row["why"] for row in outcome.rejects]
    assert (whys.count(NO_TEXT), whys.count(NO_LETTER)) == (1, 2)


@pytest.mark.spark
def test_letters_of_two_escapes_and_escaped_backslashes_are_delivered(spark, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    words = [r"\ud83d\ude00", r"\\ud83d", r"\uD83D\uDE00\uD83D\uDE00", "caf\u00e9", r"a\\\\ude00"]
    start = '{"process": 1, "time": "2026-01-01T00:00:01Z", "x": "'
    write(folder / "1.jsonl", *(f'{start}{word}"}}' for word in words))
    assert order_table(spark, folder, out, PLAN)["rejected"] == 0
    found = {row.x for row in spark.read.parquet(str(out)).collect()}
    assert found == {json.loads(f'"{word}"') for word in words}


@pytest.mark.spark
@pytest.mark.parametrize("why", ["`time` is no time", WRONG_TYPE])
def test_an_unparsable_time_or_a_wrong_type_silently_became_null(outcome, why):
    expected = [raw for raw, reason in BAD.items() if reason == why]
    assert [row["raw"] for row in outcome.rejects if row["why"] == why] == expected


@pytest.mark.spark
def test_broken_lines_counted_as_delivered(outcome):
    assert outcome.counts["rejected"] == len(BAD) == len(outcome.rejects)
    assert outcome.counts["delivered"] < GOOD + len(BAD) + 10
    assert outcome.counts["reset"] == 0


@pytest.mark.spark
def test_a_new_column_disappeared_silently(outcome):
    assert outcome.counts["unknown_columns"] == 1
    assert any("`new`" in text for text in outcome.told)


@pytest.mark.spark
def test_numbers_and_timestamps_as_text_in_one_column_are_refused(spark, tmp_path):
    write(tmp_path / "1.jsonl", '{"process": 1, "time": "17"}', line_of(1))
    with pytest.raises(InputError, match="`time` is text: 1 whole numbers, 1 timestamps"):
        order_table(spark, tmp_path, tmp_path.with_name("out"), PLAN)


SECONDS = 1_767_225_600  # 2026


@pytest.mark.spark
@pytest.mark.parametrize(
    ("unit", "factor", "written"),
    [
        *(("s", 1, str), ("ms", 1000, int), ("ms", 1000, str)),
        *(("us", 10**6, int), ("us", 10**6, str), ("ns", 10**9, int)),
    ],
)
def test_whole_milliseconds_were_taken_for_microseconds(spark, tmp_path, unit, factor, written):
    folder, out, told = tmp_path / "in", tmp_path / "out", []
    folder.mkdir()
    # Twenty seconds, in which the second process is behind by one: more than ε.
    at = [SECONDS + number - number % 2 for number in range(20)]
    rows = [{"process": n % 2, "time": written(s * factor), "x": n} for n, s in enumerate(at)]
    write(folder / "1.jsonl", *map(json.dumps, rows))
    if unit == "us":
        assert order_table(spark, folder, out, PLAN, note=told.append)["delivered"] == 20
    else:
        names = {"s": "seconds", "ms": "milliseconds", "ns": "nanoseconds"}
        with pytest.raises(InputError, match=f"look like {names[unit]} since 1970") as refused:
            order_table(spark, folder, out, PLAN, note=told.append)
        assert f"`--time-unit {unit}`; if not, `--time-unit us`" in refused.value.hint
        asked = structs.replace(PLAN, time_unit=unit)
        assert order_table(spark, folder, out, asked, note=told.append)["delivered"] == 20
    found = spark.read.parquet(str(out)).orderBy("delivered_seq").collect()
    assert [row.delivered_at.timestamp() for row in found[:3]] == pytest.approx(
        [SECONDS, SECONDS, SECONDS + 2], abs=0.1
    )
    assert told == []  # the unit was given, or follows from the values


@pytest.mark.spark
def test_whole_numbers_without_a_unit_are_reported_and_others_among_dates_rejected(spark, tmp_path):
    told: list[str] = []
    small, dates, mixed = (tmp_path / name for name in ("small", "dates", "mixed"))
    for folder in (small, dates, mixed):
        folder.mkdir()
    write_times(small / "1.parquet", [1, 2, 3])
    order_table(spark, small, tmp_path / "1", PLAN, note=told.append)
    assert told == [
        "`time` is whole numbers, taken as microseconds; `--time-unit` names another unit"
    ]
    late = [SECONDS * 10**6 + number for number in range(30)]
    late[7] = SECONDS * 1000
    pq.write_table(pa.table({"process": [1] * 30, "time": late}), dates / "1.parquet")
    counts = order_table(spark, dates, tmp_path / "2", PLAN, note=told.append)
    assert (counts["delivered"], counts["rejected"]) == (29, 1)
    (reject,) = read_rejects(folder_of_rejects(tmp_path / "2"))
    assert reject["why"] == "`time` looks like milliseconds, and others are microseconds"
    half = [SECONDS, SECONDS * 10**6] * 15
    pq.write_table(pa.table({"process": [1] * 30, "time": half}), mixed / "1.parquet")
    with pytest.raises(InputError, match="seconds and microseconds") as refused:
        order_table(spark, mixed, tmp_path / "3", PLAN)
    assert refused.value.hint == "write all of them in one unit"
    assert len(told) == 1


@pytest.mark.spark
def test_stamps_of_microseconds_were_taken_for_milliseconds(spark, tmp_path):
    stamp = {"c": 0, "kn": [1]}
    rows = [{"process": n, "stamp": stamp | {"r": SECONDS * 10**6 + n}} for n in range(5)]
    write(tmp_path / "1.jsonl", *map(json.dumps, rows))
    with pytest.raises(InputError, match=r"`stamp\.r` .* look like microseconds") as refused:
        order_table(spark, tmp_path, tmp_path.with_name("out"), PLAN)
    assert "pass `--tick 1us`; if not, `--tick 1ms`" in refused.value.hint


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("http.method", "a dot or a quote in the name of the column 'http.method'"),
        ("`x`", "a dot or a quote"),
        *((name, f"the column `{name}` is one of our own") for name in ("_why", "_row", "_ends")),
    ],
)
def test_a_column_with_a_dot_or_a_reserved_name_was_an_internal_error(
    spark, tmp_path, name, problem
):
    write(tmp_path / "1.jsonl", line_of(1, **{name: 1}))
    with pytest.raises(InputError, match=problem):
        order_table(spark, tmp_path, tmp_path.with_name("out"), PLAN)


@pytest.mark.spark
def test_columns_with_other_odd_names_are_unchanged(spark, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    odd = {"c d": 2, "é": 4, "A-b": 5, "value": 7, "%s": 1, "$": 3, "_parts": 6}
    write(folder / "1.jsonl", line_of(1, **odd))
    assert order_table(spark, folder, out, PLAN)["delivered"] == 1
    found = spark.read.parquet(str(out)).first().asDict()
    assert {name: found[name] for name in odd} == odd


def write_times(path: Path, processes: list[int | None], **others: list[Any]) -> None:
    at = [10_000 * number for number in range(len(processes))]
    pq.write_table(
        pa.table({"process": pa.array(processes, pa.int64()), "time": at} | others), path
    )


@pytest.mark.spark
def test_a_parquet_file_removed_and_put_back_was_lost(spark, tmp_path, capfd):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    write_times(folder / "1.parquet", [1, 2])
    stream, told = Stream(folder=folder, out=out, checkpoint=tmp_path / "state"), []
    order_stream(spark, stream, PLAN, until="empty")

    broken = folder / "2.parquet"
    broken.write_bytes(b"PAR1 half of a file PAR1")
    with pytest.raises(Exception, match="the stream failed") as caught:
        order_stream(spark, stream, PLAN, until="read")
    assert "nothing is lost" in caught.value.hint
    broken.unlink()
    with pytest.raises(InputError, match=r"2\.parquet` was being read") as caught:
        order_stream(spark, stream, PLAN, until="read")
    assert "put it back" in caught.value.hint
    write_times(broken, [1, None, 3], extra=["a", "b", "c"])
    counts = order_stream(spark, stream, PLAN, until="empty", note=told.append)
    assert (counts["delivered"], counts["rejected"], counts["gone"]) == (2, 1, 0)
    assert spark.read.parquet(str(out)).count() == 4
    # The same of rows of Parquet files: told of their columns, and rejected with their number.
    assert any("`extra`" in text for text in told)
    (reject,) = read_rejects(folder_of_rejects(out))
    assert (reject["line"], reject["why"]) == (2, "no `process`")
    assert json.loads(reject["raw"]) == {"time": 10_000}

    out.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="the output is gone"):
        order_stream(spark, stream, PLAN, until="read")
    (tmp_path / "moved").rename(out)
    (tmp_path / "state").rename(tmp_path / "old")
    with pytest.raises(InputError, match="there is something already"):
        order_stream(spark, stream, PLAN, until="read")
    capfd.readouterr()  # what Spark has to say about the broken file


def test_rejects_of_a_repeated_batch_are_written_once(tmp_path):
    (tmp_path / "in.jsonl").write_text("bad\nworse\nbad\n")
    marks = {WHY: ["?", None, "?"], RAW: ["bad", None, "bad"], LINE: pa.array([None] * 3, "int64")}
    marks |= {FILE: [(tmp_path / "in.jsonl").as_uri()] * 3, KEY: ["eye"] * 3, "x": [1, 2, 3]}
    for order in ([0, 1, 2], [2, 1, 0]):
        kept = sift(pa.table(marks).take(order), tmp_path / "rejects")
    assert kept.to_pylist() == [{KEY: "eye", "x": 2}]
    found = read_rejects(tmp_path / "rejects")
    assert [(row["line"], row["raw"]) for row in found] == [(1, "bad"), (3, "bad")]
    assert [file.suffix for file in (tmp_path / "rejects").iterdir()] == [".jsonl"]
