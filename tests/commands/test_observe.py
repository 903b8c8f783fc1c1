"""`beforehand observe`, as a user meets it."""

from __future__ import annotations

import contextlib
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.observe.input import default_tick_us
from tests.observe.drifting import drifting_rows

GUARANTEES = ("--epsilon", "10ms", "--delta", "10ms")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    pq.write_table(drifting_rows(1, 4000), folder / "1.parquet")
    return folder


def observe(folder, *arguments: str) -> int:
    return main(["observe", str(folder), *GUARANTEES, *arguments])


def test_tune_prints_the_curve_and_the_flags_that_keep_the_budget(sample, capsys):
    assert observe(sample, "--tune", "--budget", "1%", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    chosen = found["chosen"]
    assert chosen["violations_percent"] <= 1 < found["waits"][0]["violations_percent"]
    assert [point["wait_percent"] for point in found["waits"]] == list(range(0, 101, 5))
    assert found["messages"] == len(pq.read_table(sample))
    assert observe(sample, "--tune", "--budget", "1%") == 0
    shown = capsys.readouterr()
    flags = f"--order cbd --wait {chosen['wait_percent']}% --elements {chosen['elements']}"
    assert shown.out.splitlines()[-1] == f"{flags} --tick 1ms"
    assert found["confirmed"]["violations_percent"] <= 1
    assert "100 %" in shown.out
    assert "on the other half" in shown.err


def test_tune_reads_lines_and_takes_their_order_where_no_arrival_is_given(sample, tmp_path, capsys):
    rows = pq.read_table(sample).drop_columns(["arrived"]).to_pylist()
    (tmp_path / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert observe(tmp_path, "--tune", "--budget", "1%", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["waits"][0]["violations_percent"] > 1 >= found["chosen"]["violations_percent"]


def test_a_budget_that_cannot_be_kept_exits_1(tmp_path, capsys):
    # The second message knows the first, and says that it was sent long before it.
    rows = [
        {"process": 0, "stamp": {"r": 90, "c": 0, "kn": []}, "past": [1, 0]},
        {"process": 1, "stamp": {"r": 10, "c": 0, "kn": []}, "past": [1, 1]},
    ] * 2
    pq.write_table(pa.Table.from_pylist(rows[::-1]), tmp_path / "1.parquet")
    assert observe(tmp_path, "--tune", "--budget", "0%") == 1
    assert "may be too small" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass `--out DIR`"),
        (["--tune"], "pass `--budget 1%`"),
        (["--tune", "--budget", "1%", "--out", "x"], "writes nothing"),
        (["--tune", "--budget", "1"], "not a share: `1`"),
        (["--tune", "--budget", "200%"], "not a share of the messages: `200%`"),
        (["--tune", "--budget", "100.1%"], "not a share of the messages: `100.1%`"),
        (["--out", "x", "--budget", "1%"], "a budget is for `--tune`"),
        (["--out", "x", "--flush"], "are for streams"),
        (["--out", "x", "--clock", "wall"], "no wall clock"),
        (["--out", "x", "--checkpoint", "y", "--once", "--idle", "10s"], "does not wait"),
        (["--out", "x", "--checkpoint", "y", "--remote", "sc://h"], "not report what a stream"),
        (["--out", "x", "--every", "5s"], "are for streams"),
        (["--out", "x", "--wait", "60"], "write it as `60%`"),
        (["--out", "x", "--wait", "101%"], "write `0%` to `100%`"),
        (["--out", "x", "--wait", "60.5%"], "write `0%` to `100%`"),
        (["--out", "x", "--elements", "-1"], "from 0 to"),
        (["--out", "x", "--tick", "0s"], "longer than zero"),
        (["--out", "x", "--files-per-batch", "0"], "from 1 to"),
    ],
)
def test_flags_that_make_no_sense_are_refused(sample, capsys, arguments, message):
    assert observe(sample, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err


def test_tune_took_a_tick_of_1_ms_where_the_run_took_one_of_1_us(tmp_path, capsys):
    rows = [
        {"process": 0, "time": 90_000, "past": [1, 0]},
        {"process": 1, "time": 100_000, "past": [1, 1]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "1.parquet")
    assert observe(tmp_path, "--tune", "--budget", "0%", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tick_us"] == default_tick_us(has_stamp=False) == 1
    assert observe(tmp_path, "--tune", "--budget", "0%") == 0
    assert "--tick 1us" in capsys.readouterr().out


def test_tune_took_milliseconds_for_microseconds_too(tmp_path, capsys):
    at = 1_767_225_600_000
    rows = [
        {"process": 0, "time": at, "past": [1, 0]},
        {"process": 1, "time": at + 100, "past": [1, 1]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "1.parquet")
    assert observe(tmp_path, "--tune", "--budget", "0%") == 2
    assert "`time` is whole numbers that look like milliseconds" in capsys.readouterr().err
    assert observe(tmp_path, "--tune", "--budget", "0%", "--time-unit", "ms", "--json") == 0
    full = json.loads(capsys.readouterr().out)["waits"][-1]
    assert full["waited_mean"] > 10_000  # ticks of a microsecond: δ + 2ε, and no more than that
    assert full["waited_mean"] <= 30_000


@pytest.mark.parametrize(
    ("out", "checkpoint", "message"),
    [
        ("in/out", None, "the output lies in the input"),
        ("in", None, "the input lies in the output"),
        ("in/out", "state", "the output lies in the input"),
        ("out", "in/state", "the checkpoint lies in the input"),
        ("out", "out/state", "the checkpoint lies in the output"),
        (".", None, "the input lies in the output"),
        ("full", "state", "there is something already"),
        ("full", None, "there is something already"),
    ],
)
def test_an_output_inside_the_input_was_read_as_input(
    tmp_path, capsys, monkeypatch, out, checkpoint, message
):
    for name in ("in", "full"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jsonl").write_text("{}\n")
    # No session is opened: this is refused before anything runs.
    monkeypatch.setattr("beforehand.spark.session.open_session", None)
    stream = () if checkpoint is None else ("--checkpoint", str(tmp_path / checkpoint))
    assert observe(tmp_path / "in", "--out", str(tmp_path / out), *stream) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "no file in it yet"),
        ("x.csv", "unknown kind of files: `.csv`"),
        ("_x.json", "no file in it yet"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_before_spark_starts(
    tmp_path, capsys, name, message
):
    if name is not None:
        (tmp_path / name).write_text("{}")
    assert observe(tmp_path, "--out", "x") == 2
    assert message in capsys.readouterr().err
    assert observe(tmp_path / "none", "--out", "x") == 2
    assert "no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"past": None}, "needs the column `past`"),
        ({"stamp": None}, "needs the column `stamp` or `time`"),
        ({"process": ["a", "b"]}, "`process` is not an integer"),
        ({"process": [0, 2]}, "not one integer for each process"),
        ({"past": [[1], [1, 1]]}, "not one integer for each process"),
        ({"stamp": [1, 2]}, "not a struct of r, c and kn"),
        ({"observer": ["x", "y"]}, "more than one observer"),
    ],
)
def test_a_sample_that_cannot_be_used_is_refused(tmp_path, capsys, change, message):
    stamps = [{"r": 1, "c": 0, "kn": [1]}, {"r": 2, "c": 0, "kn": [1]}]
    columns = {"process": [0, 1], "stamp": stamps, "past": [[1, 0], [1, 1]]} | change
    table = pa.table({name: values for name, values in columns.items() if values is not None})
    pq.write_table(table, tmp_path / "1.parquet")
    assert observe(tmp_path, "--tune", "--budget", "1%") == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def session(spark, monkeypatch):
    """The session of all tests is the one that the command opens."""
    opened = contextlib.nullcontext(spark)
    monkeypatch.setattr("beforehand.spark.session.open_session", lambda *_, **__: opened)


def write_times(folder, *times: str | None) -> None:
    rows = [{"process": number % 3, "time": at} for number, at in enumerate(times)]
    (folder / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_microseconds_as_text_gave_30_of_30_reset(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    write_times(tmp_path / "in", *(str(10**15 + 100 * number) for number in range(30)))
    assert observe(tmp_path / "in", "--out", str(tmp_path / "out"), "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["delivered"], found["reset"], found["rejected"]) == (30, 0, 0)
    assert shown.err == ""  # by their size they are microseconds: nothing was guessed


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_with_all_rows_reset_or_rejected_the_exit_code_was_0(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    write_times(tmp_path / "in", "noon", None, "midnight", None)
    assert observe(tmp_path / "in", "--out", str(tmp_path / "out"), "--json") == 3
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["delivered"], found["reset"], found["rejected"]) == (2, 2, 2)
    assert found["rejects"] == str(tmp_path / "out-rejects")
    assert "all were reset or rejected" in shown.err
    assert "1.jsonl:3: `time` is no time" in shown.err


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_single_file_is_accepted_and_text_may_be_compressed(tmp_path, capsys):
    lines = '{"process": 0, "time": 5}\n{"process": 1, "time": 6}\nhello\n'
    (tmp_path / "in.json.gz").write_bytes(gzip.compress(lines.encode()))
    assert observe(tmp_path / "in.json.gz", "--out", str(tmp_path / "out"), "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["delivered"], found["rejected"]) == (2, 1)
    assert "in.json.gz:3: not one JSON object" in shown.err


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_truncated_file_or_one_of_another_type_was_an_internal_error(tmp_path, capsys):
    sound, other = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"process": [0, 1], "time": [5, 6]}), sound)
    pq.write_table(pa.table({"process": ["a", "b"], "time": [5, 6]}), other)
    for name, second in (("cut", sound.read_bytes()[:-9]), ("other", other.read_bytes())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.parquet").write_bytes(sound.read_bytes())
        (tmp_path / name / "2.parquet").write_bytes(second)
        assert observe(tmp_path / name, "--out", str(tmp_path / f"{name}-out")) == 2
        told = capsys.readouterr().err
        assert "error: cannot be read: " in told
        assert f"at {tmp_path}/{name}/2.parquet" in told
        assert not (tmp_path / f"{name}-out").exists()


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_folder_is_ordered_once_or_as_it_grows(spark, sample, tmp_path, capsys):
    dial = ("--order", "cbd", "--wait", "60%", "--elements", "2")
    assert observe(sample, *dial, "--out", str(tmp_path / "table"), "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["delivered"] == len(pq.read_table(sample))
    stream = ("--checkpoint", str(tmp_path / "state"), "--out", str(tmp_path / "out"))
    assert observe(sample, *dial, *stream, "--once", "--json") == 0
    shown = capsys.readouterr()
    read = json.loads(shown.out)
    assert read["delivered"] + read["held"] == whole["delivered"]
    assert f"{read['held']} events are held" in shown.err
    assert observe(sample, *dial, *stream, "--flush") == 0
    assert "delivered" in capsys.readouterr().out
    assert spark.read.parquet(str(tmp_path / "out")).count() == whole["delivered"]
