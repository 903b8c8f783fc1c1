"""Wrong answers that these commands once gave silently, each by its symptom."""

from __future__ import annotations

import io
import json
import os
import sys
import threading

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from tests.mobility.town import FEED, write_feed

HEADERS = (
    ("id,time,x,y", "{node},{t},{x},{y}"),
    ("Node,T,X,Y", "{node},{t},{x},{y}"),
    ("timestamp,id,x,y", "{t},{node},{x},{y}"),
    ("node,time,latitude,longitude", "{node},{t},{y},{x}"),
)
WALK = (("a", 0, 0, 0), ("a", 600, 0, 0), ("b", 0, 0.01, 0), ("b", 600, 0, 0))


@pytest.fixture
def run(capsys):
    """Exit code, JSON on stdout or None, stderr."""

    def call(*arguments):
        code = main([*map(str, arguments), "--json"])
        shown = capsys.readouterr()
        return code, json.loads(shown.out) if shown.out else None, shown.err

    return call


def written(tmp_path, text, name="trace.txt"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("header", "row"), HEADERS, ids=[header for header, _ in HEADERS])
@pytest.mark.parametrize("command", ["contacts", "simulate"])
def test_positions_are_not_read_as_a_list_of_contacts(tmp_path, run, command, header, row):
    rows = [row.format(node=n, t=t, x=x, y=y) for n, t, x, y in WALK]
    path = written(tmp_path, "\n".join([header, *rows]) + "\n")
    code, _, told = run(command, path)
    assert code == 2
    assert "the trace has places, not contacts" in told
    code, found, told = run(command, path, "--range", "200m")
    assert code == 0
    assert found["read"]["format"] == "csv"
    assert set(found["read"]["columns"].values()) == set(header.split(","))
    assert "read as csv" in told


@pytest.mark.parametrize("command", ["contacts", "simulate"])
def test_a_range_is_not_ignored_for_a_list_of_contacts(tmp_path, run, command):
    path = written(tmp_path, "a b 0 600\nb c 100 900\n")
    assert run(command, path)[0] == 0
    code, _, told = run(command, path, "--range", "200m")
    assert code == 2
    assert "no range applies" in told


def test_start_end_a_b_is_not_a_contact_of_two_times(tmp_path, run):
    _, found, _ = run("contacts", written(tmp_path, "start,end,a,b\n5,10,7,8\n"))
    assert (found["nodes"], found["contacts"], found["contact_s_avg"]) == (2, 1, 5)


def test_assumptions_about_a_file_without_a_header_are_reported(tmp_path, run):
    _, found, told = run("contacts", written(tmp_path, "a b 0 600\n"))
    assert "no header, so a line is `a b start end`" in told
    assert found["read"]["columns"]["start"] == "column 3"
    assert len(found["read"]["assumed"]) == 3


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("a,b,start,end\nx,y,0,60000\n", True),
        ("a b 0 60000\n", True),
        ("a,b,start_ms,end_ms\nx,y,0,60000\n", False),
        ("a,b,start [s],end [s]\nx,y,0,60\n", False),
        ("a,b,start_ms,end\nx,y,0,60\n", True),
        ("a,b,start,end\nx,y,1767225600,1767225660\n", False),
        ("a,b,start,end,kind\nx,y,0,60,contact\n", False),
    ],
)
def test_numbers_without_a_unit_were_silently_taken_for_seconds(tmp_path, run, text, is_told):
    _, _, told = run("contacts", written(tmp_path, text))
    assert ("assumed: times are seconds" in told) == is_told


@pytest.mark.parametrize(
    ("one", "other", "is_told"),
    [
        ("A", "a", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("\u200bx", "x", True),
        ('" x"', "x", True),
        ("x1", "x01", False),
    ],
)
def test_names_that_look_alike_silently_became_two_nodes(tmp_path, run, one, other, is_told):
    text = f"a,b,start,end\n{one},n,0,5\n{other},n,6,9\n"
    _, found, told = run("contacts", written(tmp_path, text))
    assert ("are two nodes" in told) == is_told
    assert found["nodes"] == 3


def without_reading(found):
    return {key: value for key, value in found.items() if key not in ("read", "trace_changes")}


def test_simulating_the_export_gives_what_simulating_the_feed_gives(tmp_path, run):
    trips = FEED["trips.txt"] + "r1,week,late,,\n"
    times = FEED["stop_times.txt"] + "late,10:00:00,10:00:00,A,1\nlate,10:30:00,10:30:00,D,2\n"
    times += "late2,8:05:00,8:05:00,D,1\nlate2,8:50:00,8:50:00,A,2\n"
    feed = write_feed(tmp_path / "feed", trips=trips + "r1,week,late2,,\n", stop_times=times)
    out = tmp_path / "contacts.csv"
    assert run("contacts", feed, "--range", "300m", "--day", "20240103", "--out", out)[0] == 0
    flags = ("--protocol", "delta", "--lifetime", "20m", "--seed", "3")
    code, of_feed, _ = run("simulate", feed, "--range", "300m", "--day", "20240103", *flags)
    assert code == 0
    assert of_feed["receptions"] > 0
    _, of_export, told = run("simulate", out, *flags)
    assert without_reading(of_export) == without_reading(of_feed)
    assert "presence from `kind`" in told
    # Without its rows of presence, the trace has every node present and broadcasting always.
    bare = [line for line in out.read_text().splitlines() if not line.endswith("presence")]
    bare_path = written(tmp_path, "\n".join(line.rpartition(",")[0] for line in bare) + "\n")
    _, of_bare, told = run("simulate", bare_path, *flags)
    assert of_bare["broadcasts"] != of_feed["broadcasts"]
    assert "every node is present" in told


@pytest.mark.slow
def test_simulating_the_export_of_a_city_gives_1975_broadcasts_and_not_2881(
    shared_data, tmp_path, run
):
    feed, out = shared_data / "gtfs_cairns" / "cairns_gtfs.zip", tmp_path / "contacts.csv"
    assert run("contacts", feed, "--range", "200m", "--out", out)[0] == 0
    _, of_feed, _ = run("simulate", feed, "--range", "200m", "--period", "20m")
    _, of_export, _ = run("simulate", out, "--period", "20m")
    assert of_feed["broadcasts"] == 1975
    assert without_reading(of_export) == without_reading(of_feed)


@pytest.mark.parametrize("command", ["contacts", "simulate"])
def test_the_options_of_a_scenario_are_flags_too(tmp_path, run, command):
    feed = write_feed(tmp_path / "feed")
    code, found, _ = run(
        *(command, feed, "--range", "1km", "--day", "2024-01-03", "--blocks", "trip"),
        *("--layover", "10m", "--format", "gtfs"),
    )
    assert code == 0
    assert found["read"]["day"] == "2024-01-03"
    assert found["read"]["vehicles"] == 2
    sightings = written(tmp_path, "t,i,j\n300,a,b\n600,b,c\n")
    code, found, _ = run(command, sightings, "--slot", "5m", "--presence", "seen")
    assert code == 0
    assert "a sighting counts for 5m, up to its time" in found["read"]["assumed"]


def test_presence_and_slot_change_what_comes_out(tmp_path, run):
    path = written(tmp_path, "t,i,j\n300,a,b\n600,b,c\n")
    assert run("contacts", path, "--slot", "5m")[1]["activity_s_min"] == 600
    assert run("contacts", path, "--slot", "5m", "--presence", "seen")[1]["activity_s_min"] == 300


def test_strict_mode_refuses_a_feed_that_needs_repairs_with_its_lines(tmp_path, run):
    times = FEED["stop_times.txt"].replace("24:20:00,24:20:00", "00:20:00,00:20:00")
    feed = write_feed(tmp_path / "feed", stop_times=times)
    flags = ("contacts", feed, "--range", "200m", "--day", "20240106")
    code, found, told = run(*flags)
    assert code == 0
    assert found["changes"]["past_midnight"] == 1
    assert "mended: past_midnight 1" in told
    code, _, told = run(*flags, "--strict")
    assert code == 2
    assert f"{feed}/stop_times.txt:9" in told


def test_a_period_of_a_microsecond_is_refused_before_anything_is_simulated(tmp_path, run):
    path = written(tmp_path, "a b 0 10000\n")
    code, _, told = run("simulate", path, "--period", "1us")
    assert code == 2
    assert told.startswith("error: a broadcast every 1us makes 19,960,000,000 of them")
    assert "at --period" in told


@pytest.mark.parametrize("flags", [("--range", "5m"), ("--presence", "seen"), ("--strict",)])
def test_flags_about_a_file_are_not_ignored_for_the_example(run, flags):
    code, _, told = run("simulate", "--example", *flags)
    assert code == 2
    assert "cannot apply" in told


@pytest.mark.parametrize(
    ("text", "code", "fragment"),
    [("a b 0 600\n", 0, "read as contacts"), ("a b 0 600\na b 9 3\n", 2, "at <stdin>:2")],
)
def test_a_trace_may_come_from_standard_input(monkeypatch, run, text, code, fragment):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = run("contacts", "-")
    assert found[0] == code
    assert fragment in found[2]


@pytest.mark.parametrize(
    ("text", "code", "fragment"),
    [("a b 0 600\n", 0, "read as contacts"), ("a b 0 600\na b 9 3\n", 2, "pipe:2")],
)
def test_a_pipe_was_read_twice_and_was_empty_the_second_time(tmp_path, run, text, code, fragment):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
    found = run("contacts", pipe)
    assert found[0] == code
    assert fragment in found[2]


def test_an_event_log_called_csv_was_parquet(tmp_path, capsys):
    trace, events = tmp_path / "met.txt", tmp_path / "run.csv"
    trace.write_text("a b 0 600\nb c 100 900\n")
    assert main(["simulate", str(trace), "--events", str(events)]) == 2
    assert "run.parquet" in capsys.readouterr().err
    assert not events.exists()


def test_links_are_written_beside_the_events_and_are_no_log(tmp_path, capsys):
    trace, events = tmp_path / "met.txt", tmp_path / "run.parquet"
    trace.write_text("a b 0 600\nb c 100 900\n")
    assert main(["simulate", str(trace), "--events", str(events)]) == 0
    links = pq.read_table(tmp_path / "run.links.parquet").to_pylist()
    assert [(row["t_us"] // 10**6, row["a"], row["b"], row["up"]) for row in links] == [
        (0, 0, 1, True),
        (100, 1, 2, True),
        (600, 0, 1, False),
        (900, 1, 2, False),
    ]
    assert main(["verify", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out.count('"run"') == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["simulate", "met.txt", "--lifetime", "-5m"], "`--lifetime=-5m`"),
        (["simulate", "met.txt", "--lifetime=-5m"], "not a duration: `-5m`"),
        (["simulate", "met.txt", "--bandwidth", "3bit/s"], "whole number of bytes per second"),
        (["contacts", "empty"], "the folder is empty"),
        (["contacts", "empty", "--range", "200m"], "the folder is empty"),
        (["contacts", "."], "no timetable and no `.gpx` in the folder"),
        (["simulate", ".", "--range", "200m"], "pass one file of it: `met.txt`"),
    ],
)
def test_an_error_names_the_first_cause(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "met.txt").write_text("a b 0 600\n")
    (tmp_path / "empty").mkdir()
    assert main(words) == 2
    assert told in capsys.readouterr().err


def test_a_run_without_a_broadcast_is_reported_with_its_reason(tmp_path, capsys):
    trace = tmp_path / "met.txt"
    trace.write_text("a b 0 5\nb c 3 9\n")
    assert main(["simulate", str(trace)]) == 0
    assert "no node broadcast anything: none was present for longer than 20s" in (
        capsys.readouterr().err
    )
