"""`contacts` and `verify`: the commands that need no Spark."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main

WALK = "node,t,x,y\na,0,0,0\na,600,0,0\nb,0,900,0\nb,600,0,0\n"


@pytest.fixture
def walk(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text(WALK)
    return path


@pytest.fixture
def events(tmp_path, capsys):
    path = tmp_path / "events.parquet"
    contacts = tmp_path / "contacts.txt"
    contacts.write_text("a b 0 600\nb c 100 900\nc d 500 1200\n")
    assert main(["simulate", str(contacts), "--events", str(path)]) == 0
    capsys.readouterr()
    return path


def test_contacts_are_found_described_and_written(walk, tmp_path, capsys):
    out = tmp_path / "contacts.csv"
    assert main(["contacts", str(walk), "--range", "200m", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contacts"] == 1
    assert found["contact_s_avg"] == pytest.approx(600 * 200 / 900, abs=0.01)
    assert out.read_text().splitlines() == [
        "a,b,start,end,kind",
        '"a",,0,600,presence',
        '"b",,0,600,presence',
        '"a","b",466.666667,600,contact',
    ]
    assert main(["contacts", str(out)]) == 0
    assert "contact avg" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--range 200m"),
        (["--range", "200"], "write a number and a unit"),
        (["--range", "200m", "--format", "tarot"], "the formats are"),
        (["--range", "200m", "--out", "nowhere/at/all.csv"], "no such folder"),
    ],
)
def test_contacts_refuses_before_it_works(walk, capsys, arguments, message):
    assert main(["contacts", str(walk), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_sound_log_is_valid(events, capsys):
    assert main(["verify", str(events)]) == 0
    assert "verdict: valid" in capsys.readouterr().out


def test_a_swapped_pair_of_deliveries_is_found_and_explained(events, capsys):
    table = pq.read_table(events)
    rows = table.to_pylist()
    # At node d, the last one in the chain, swap the first two deliveries of one origin.
    at = [
        i
        for i, r in enumerate(rows)
        if r["kind"] == "deliver" and r["node"] == 3 and not r["origin"]
    ]
    first, second = at[0], at[1]
    for name in ("origin", "seq"):
        rows[first][name], rows[second][name] = rows[second][name], rows[first][name]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), events)
    assert main(["verify", str(events), "--explain"]) == 1
    shown = capsys.readouterr().out
    assert "which causally follows it" in shown
    assert "verdict: invalid" in shown
    assert main(["verify", str(events), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["violations"]["late"] >= 1


def test_a_log_with_a_hole_is_unknown(events, capsys):
    table = pq.read_table(events)
    pq.write_table(table.filter(pc.not_equal(table["step"], 7)), events)
    assert main(["verify", str(events)]) == 3
    assert "verdict: unknown" in capsys.readouterr().out


def test_a_table_without_messages_has_an_unknown_verdict(walk, capsys):
    assert main(["verify", str(walk)]) == 3
    assert "no clocks, no parents, no messages" in capsys.readouterr().out


def test_a_log_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none.parquet")]) == 2
    assert "none.parquet" in capsys.readouterr().err


def test_status_and_report_name_what_they_need(tmp_path, capsys):
    assert main(["status", str(tmp_path)]) == 2
    assert "beforehand run" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "beforehand run" in capsys.readouterr().err
