"""`beforehand play`: inputs that it reads, inputs that it refuses by name, files that it does not
touch."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.events import BROADCAST, RECEIVE, SEND
from tests.play.made_up import late_log, simulate_buses, write_log


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return simulate_buses(tmp_path_factory.mktemp("buses"), minutes=60)


def head_of(page):
    text = page.read_text().split('<script id="head" type="application/json">')[1]
    return json.loads(text.split("</script>")[0])


def columns_of(head):
    return {column["name"]: column["n"] for column in head["columns"]}


def test_a_log_plays_with_the_tables_beside_it(log, tmp_path, capsys):
    page = tmp_path / "play.html"
    assert main(["play", str(log), "--out", str(page), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == page.stat().st_size
    assert told["notes"] == []
    head = head_of(page)
    assert head["about"]["protocol"] == "causal"
    assert head["about"]["range_m"] == 200
    has = columns_of(head)
    table = pq.read_table(log).to_pydict()
    assert has["reception.t"] == table["kind"].count("receive")
    assert has["message.t"] == table["kind"].count("broadcast")
    assert has["past.back"] == pq.read_metadata(log.with_name("buses.pasts.parquet")).num_rows > 0
    assert has["contact.a"] > 0
    assert has["point.t"] > 0


def test_the_page_has_at_most_5_bytes_per_reception_and_150_kb(log, tmp_path):
    page = tmp_path / "play.html"
    assert main(["play", str(log), "--out", str(page), "-q"]) == 0
    receptions = columns_of(head_of(page))["reception.t"]
    assert page.stat().st_size <= 5 * receptions + 150_000


def test_the_same_log_gives_the_same_page(log, tmp_path):
    for name in ("a", "b"):
        assert main(["play", str(log), "--out", str(tmp_path / name), "-q"]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_log_of_an_earlier_version_plays_without_arrows_and_a_note(log, tmp_path, capsys):
    old = tmp_path / "old.parquet"
    pq.write_table(pq.read_table(log).drop_columns(["sender"]), old)
    page = tmp_path / "play.html"
    assert main(["play", str(old), "--out", str(page)]) == 0
    shown = capsys.readouterr().err
    assert "does not name senders" in shown
    assert "contacts were not kept" in shown
    assert head_of(page)["about"]["has_senders"] is False


def test_a_trace_alone_plays_its_contacts(tmp_path, capsys):
    trace = tmp_path / "meetings.txt"
    trace.write_text("a b 0 60\nb c 30 90\n")
    page = tmp_path / "play.html"
    assert main(["play", str(trace), "--out", str(page)]) == 0
    head = head_of(page)
    assert columns_of(head)["contact.a"] == 2
    assert head["verdict"] == ""
    assert "no messages" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--from", "2h", "--to", "1h"], "ends before it begins"),
        (["--nodes", "nobody-here"], "no node is named"),
        (["--run", "delta"], "no run is named"),
        (["--range", "200m"], "cannot apply"),
        (["--from", "100h"], "ends before this time"),
    ],
)
def test_flags_that_make_no_sense_are_refused(log, tmp_path, capsys, arguments, fragment):
    page = tmp_path / "play.html"
    assert main(["play", str(log), "--out", str(page), *arguments]) == 2
    assert fragment in capsys.readouterr().err
    assert not page.exists()


def test_the_page_does_not_replace_its_input(log, capsys):
    assert main(["play", str(log), "--out", str(log)]) == 2
    assert "replace the input" in capsys.readouterr().err


def test_packets_without_numbers_are_refused(tmp_path, capsys):
    rows = [(0, 0, BROADCAST, 0, 1), (0, 0, SEND, 0, 1), (5, 1, RECEIVE, 0, 1)]
    log = write_log(tmp_path / "log.parquet", rows, senders=np.array([0], np.int32))
    pq.write_table(pq.read_table(log).drop_columns("value"), log)
    assert main(["play", str(log), "--out", str(tmp_path / "play.html")]) == 2
    assert "packets without numbers" in capsys.readouterr().err


def test_a_folder_without_a_finished_run_is_refused(tmp_path, capsys):
    plan = {"scenario": "vcube-quick", "world": "overlay", "stages": {}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert main(["play", str(tmp_path)]) == 2
    assert "no run is finished" in capsys.readouterr().err
    assert not (tmp_path / "play.html").exists()


def test_a_damaged_table_beside_the_log_is_refused(log, tmp_path, capsys):
    copy = tmp_path / "run.parquet"
    copy.write_bytes(log.read_bytes())
    (tmp_path / "run.pasts.parquet").write_bytes(b"PAR1 and no more")
    assert main(["play", str(copy), "--out", str(tmp_path / "play.html")]) == 2
    assert "run.pasts.parquet" in capsys.readouterr().err


def test_tables_beside_a_log_are_not_judged_as_logs(log, capsys):
    assert main(["verify", str(log.parent)]) == 0
    assert "verdict: valid" in capsys.readouterr().out


def test_verify_draws_the_violations_that_it_explains(tmp_path, capsys):
    log, page = late_log(tmp_path / "late.parquet"), tmp_path / "late.html"
    assert main(["verify", str(log), "--explain", "--diagram", str(page)]) == 1
    assert columns_of(head_of(page))["wrong.t"] == 3
    assert main(["verify", str(log), "--diagram", str(page)]) == 2
    assert "--explain" in capsys.readouterr().err
