"""Logs of other systems as tables: CSV, JSON lines, Parquet, DataFrames, with names that differ."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.verify.verdict import verify_events

ROWS = [
    {"host": "ann", "what": "publish", "uuid": "m1"},
    {"host": "bob", "what": "deliver", "uuid": "m1"},
    {"host": "bob", "what": "publish", "uuid": "m2"},
    {"host": "eve", "what": "deliver", "uuid": "m1"},
    {"host": "eve", "what": "deliver", "uuid": "m2"},
]
LATE = [*ROWS[:3], ROWS[4], ROWS[3]]
MAP = {"node": "host", "kind": "what", "message": "uuid"}


def csv_of(rows):
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows), ""])


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


WRITERS = {
    "log.csv": csv_of,
    "log.tsv": lambda rows: csv_of(rows).replace(",", "\t"),
    "log.jsonl": lines_of,
    "log.json": lambda rows: json.dumps(rows, indent=1),
    "log.txt": csv_of,
}
LINES = {"log.csv": 5, "log.tsv": 5, "log.jsonl": 4, "log.txt": 5}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_gets_a_verdict_whatever_its_shape(tmp_path, name):
    path = tmp_path / name
    path.write_text(WRITERS[name](ROWS))
    assert verify_events(path, mapping=MAP).state == "valid"
    path.write_text(WRITERS[name](LATE))
    verdict = verify_events(path, mapping=MAP)
    (run,) = verdict.runs
    assert (run.state, run.counts, run.causality) == ("invalid", {"late": 1}, "messages")


@pytest.mark.parametrize("name", LINES)
def test_a_late_delivery_is_proved_by_file_and_line(tmp_path, name):
    path = tmp_path / name
    path.write_text(WRITERS[name](LATE))
    (story,) = verify_events(path, mapping=MAP).stories()
    places = [line.split()[0].rpartition(":")[2] for line in story.splitlines()[1:]]
    first = LINES[name] - 3
    assert places == [str(first + row) for row in (0, 1, 2, 3, 4)]


@pytest.mark.parametrize("pack", ["gzip", "zstd", "bz2", "zip", "stdin", "folder"])
def test_a_packed_log_and_a_folder_and_the_standard_input_are_read(tmp_path, monkeypatch, pack):
    text, path = csv_of(LATE).encode(), tmp_path / "log"
    if pack == "gzip":
        path.write_bytes(gzip.compress(text))
    elif pack == "bz2":
        path.write_bytes(bz2.compress(text))
    elif pack == "zstd":
        with pa.CompressedOutputStream(path, "zstd") as out:
            out.write(text)
    elif pack == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/log.csv", text)
    elif pack == "stdin":
        path = "-"
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    else:
        path.mkdir()
        (path / "log.csv").write_bytes(text)
    assert verify_events(path, mapping=MAP).state == "invalid"


def test_frames_and_tables_in_memory_get_the_verdict_and_the_lines_of_the_file(tmp_path):
    table = pa.Table.from_pylist(LATE)
    pq.write_table(table, tmp_path / "log.parquet")
    for log in (table, table.to_pandas(), tmp_path / "log.parquet"):
        verdict = verify_events(log, mapping=MAP)
        (story,) = verdict.stories()
        assert verdict.state == "invalid"
        assert [line.split()[0].rpartition(":")[2] for line in story.splitlines()[1:]] == [*"12345"]


def test_the_package_judges_a_log_when_it_is_called():
    code = "import beforehand, sys; import pandas as pd;"
    code += f" log = pd.DataFrame({LATE!r}); verdict = beforehand.verify(log, mapping={MAP!r});"
    code += " assert isinstance(verdict, beforehand.Verdict); sys.exit(verdict.exit_code)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1


def test_fields_are_detected_by_their_names_and_the_assumption_is_shown(tmp_path, capsys):
    names = {"host": "Node", "what": "Kind", "uuid": "message_id"}
    path = tmp_path / "log.csv"
    path.write_text(csv_of([{names[key]: row[key] for key in row} for row in LATE]))
    assert main(["verify", str(path), "--explain"]) == 1
    shown = capsys.readouterr().out
    assert "assumed: node is `Node`" in shown
    assert f"{path}:6  node eve  deliver m1" in shown


def test_a_field_that_no_record_has_is_refused_with_the_fields_there_are(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(csv_of(ROWS))
    with pytest.raises(InputError, match="no field `hots` for node"):
        verify_events(path, mapping={**MAP, "node": "hots"})
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no field is known to be the node") as told:
        verify_events(tmp_path / "other.csv", mapping={"message": "b"})
    assert "--map" in told.value.hint
    with pytest.raises(InputError, match="not a mapping"):
        verify_events(path, mapping=["nodes=host"])


def test_the_verdict_does_not_depend_on_the_order_of_files_or_lines(tmp_path):
    """Each node has a file and positions; the lines are shuffled and the files change names."""
    found = set()
    for seed in range(5):
        draw = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        names = draw.sample(["a.csv", "b.csv", "c.csv"], 3)
        for name, node in zip(names, ("ann", "bob", "eve"), strict=True):
            rows = [row for row in LATE if row["host"] == node]
            rows = [{"position": str(at), **row} for at, row in enumerate(rows)]
            draw.shuffle(rows)
            (folder / name).write_text(csv_of(rows))
        (run,) = verify_events(folder, mapping=MAP).runs
        found.add((run.state, str(run.counts), run.events, run.edges, run.reason))
    assert found == {("invalid", "{'late': 1}", 5, 5, "")}


def test_own_columns_as_csv_get_the_verdict_of_the_parquet_file(tmp_path):
    from tests.verify.test_verdict import CHAIN, table_of

    for rows in (CHAIN, CHAIN[:10]):
        table = table_of(rows)
        pq.write_table(table, tmp_path / "events.parquet")
        pyarrow.csv.write_csv(table, tmp_path / "events.csv")
        (own,) = verify_events(tmp_path / "events.parquet").runs
        (foreign,) = verify_events(tmp_path / "events.csv").runs
        assert foreign.state == own.state
        assert foreign.counts == {kind: count for kind, count in own.counts.items() if count}


def test_a_message_from_outside_the_files_is_unknown_with_the_reason(tmp_path):
    for node in ("bob", "eve"):
        rows = [row for row in ROWS if row["host"] == node]
        (tmp_path / f"{node}.csv").write_text(csv_of(rows))
    verdict = verify_events(tmp_path, mapping=MAP)
    assert verdict.state == "unknown"
    assert "1 delivered messages have no broadcast here: `m1`" in verdict.runs[0].reason
    assert verify_events(tmp_path, mapping=MAP, is_whole=True).state == "invalid"


SENDS = [
    {"node": "a", "kind": "send", "message": "1"},
    {"node": "b", "kind": "receive", "message": "1"},
    {"node": "b", "kind": "send", "message": "2"},
    {"node": "a", "kind": "receive", "message": "2"},
]
PLANTED = {
    "receive before send": [SENDS[3], SENDS[0], SENDS[1], SENDS[2]],
    "receive too many": [*SENDS, SENDS[1]],
    "receive without send": SENDS[1:],
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_violation_among_sends_and_receives_is_found(tmp_path, kind):
    path = tmp_path / "log.csv"
    path.write_text(csv_of(SENDS))
    assert verify_events(path).state == "valid"
    path.write_text(csv_of(PLANTED[kind]))
    (run,) = verify_events(path, is_whole=True).runs
    assert (run.state, run.counts) == ("invalid", {kind: 1})
    assert all(f"{path}:" in story for story in run.stories())


def test_sends_beside_broadcasts_are_judged_and_leave_the_order_open(tmp_path):
    """`b` learns of m1 by a send, and broadcasts m2: `c` delivers them in the wrong order."""
    texts = ["a broadcast m1", "a send x", "b receive x", "b broadcast m2", "c deliver m2"]
    rows = [dict(zip(("node", "kind", "message"), text.split(), strict=True)) for text in texts]
    late = {"node": "c", "kind": "deliver", "message": "m1"}
    path = tmp_path / "log.csv"
    path.write_text(csv_of([*rows, late]))
    (run,) = verify_events(path).runs
    assert run.state == "unknown"
    assert "2 sends and receives beside the broadcasts may order them" in run.reason
    path.write_text(csv_of([rows[2], *rows, late, {**rows[2]}]))
    (run,) = verify_events(path).runs
    assert (run.state, run.counts) == ("invalid", {"receive too many": 1})
    transport = [{**late, "kind": "receive"}, late]
    path.write_text(csv_of([rows[0], *transport]))
    assert verify_events(path).state == "valid"


def test_a_cycle_of_parents_is_found_and_a_parent_outside_is_unknown(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [
        {"node": "a", "id": "1", "parents": ["3"]},
        {"node": "b", "id": "2", "parents": ["1"]},
        {"node": "c", "id": "3", "parents": ["2"]},
        {"node": "c", "id": "4", "parents": ["3"]},
    ]
    path.write_text(lines_of(rows))
    (run,) = verify_events(path).runs
    assert (run.state, run.counts) == ("invalid", {"cycle": 1})
    (story,) = run.stories()
    assert [line.split()[0][-1] for line in story.splitlines()[1:]] == ["2", "3", "1"]
    path.write_text(lines_of(rows[1:]))
    (run,) = verify_events(path).runs
    assert (run.state, run.edges) == ("unknown", 2)
    assert "1 parents are not in the log: `1" in run.reason


def test_json_of_a_log_has_what_was_read_skipped_and_assumed(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(csv_of([*SENDS, {"node": "a", "kind": "sned", "message": "4"}]))
    assert main(["verify", str(path), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["readings"][0]["format"] == "csv"
    assert told["readings"][0]["skipped"] == {"records of the kind `sned`": 1}
    assert "message is `message`" in told["readings"][0]["assumed"]
    assert told["runs"][0]["reason"] == "1 events are of no known kind: `sned` 1"


def test_the_formats_are_listed_with_an_example_that_is_recognised(capsys):
    from beforehand.logs.formats import all_formats, detect
    from beforehand.logs.source import Source

    assert main(["logs"]) == 0
    shown = capsys.readouterr().out
    for form in all_formats():
        assert f"{form.name}: {form.title}" in shown
        found = detect(Source("example", (form.example + "\n").encode() * 3))
        assert found, form.name
        assert found[0].name == form.name
