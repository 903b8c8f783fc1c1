"""Vector clocks in text: each kind of violation is found and reported with its lines."""

from __future__ import annotations

import json

import pytest

from beforehand.errors import InputError
from beforehand.verify.verdict import verify_events

EVENTS = [
    ("a", {"a": 1}),
    ("a", {"a": 2}),
    ("b", {"a": 2, "b": 1}),
    ("b", {"a": 2, "b": 2}),
    ("c", {"a": 2, "b": 2, "c": 1}),
]
HEADERS = {
    "clock first": "",
    "header": "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\n",
}


def text_of(events, header=""):
    return header + "".join(f"{host} {json.dumps(clock)}\nevent\n" for host, clock in events)


def judged(path, events, header=""):
    path.write_text(text_of(events, header))
    return verify_events(path)


PLANTED = {
    "not monotone": ([*EVENTS, ("c", {"a": 1, "b": 2, "c": 2})], [5, 6]),
    "not closed": ([*EVENTS[:4], ("c", {"b": 2, "c": 1})], [4, 5]),
    "cycle": ([EVENTS[0], ("a", {"a": 2, "b": 1}), *EVENTS[2:]], [3, 2]),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_violation_of_clocks_is_reported_with_its_lines(tmp_path, kind, header):
    path = tmp_path / "log.txt"
    (run,) = judged(path, EVENTS, HEADERS[header]).runs
    assert (run.state, run.messages, run.edges) == ("valid", 2, 4)
    events, rows = PLANTED[kind]
    (run,) = judged(path, events, HEADERS[header]).runs
    assert (run.state, run.counts) == ("invalid", {kind: 1})
    (story,) = run.stories()
    ahead = HEADERS[header].count("\n")
    places = [line.split()[0] for line in story.splitlines()[1:]]
    assert sorted(places) == sorted(f"{path}:{ahead + 2 * row - 1}" for row in rows)


def test_a_clock_entry_outside_the_log_is_unknown(tmp_path):
    (run,) = judged(tmp_path / "log", EVENTS[1:]).runs
    assert run.state == "unknown"
    assert "1 events of `a` are missing" in run.reason
    (run,) = judged(tmp_path / "log", EVENTS[2:]).runs
    assert "clocks name 2 events of `a` whose log is missing" in run.reason


def test_two_runs_without_a_delimiter_are_refused_and_with_one_are_two(tmp_path):
    with pytest.raises(InputError, match="two events claim counter 1 of `a`"):
        judged(tmp_path / "log", [*EVENTS, *EVENTS])
    text = f"=== one ===\n{text_of(EVENTS)}=== two ===\n{text_of(EVENTS)}"
    (tmp_path / "log").write_text(text)
    assert [run.run for run in verify_events(tmp_path / "log").runs] == ["one", "two"]


def test_files_of_one_host_each_are_one_run_in_any_order(tmp_path):
    for name, host in (("z", "a"), ("y", "b"), ("x", "c")):
        events = [event for event in EVENTS if event[0] == host]
        (tmp_path / name).write_text(text_of(events))
    (run,) = verify_events(tmp_path).runs
    assert (run.state, run.nodes, run.events, run.messages) == ("valid", 3, 5, 2)


def test_a_regular_expression_of_a_file_is_bounded_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr("beforehand.logs.bounded.SECONDS_MIN", 0.3)
    path = tmp_path / "log"
    path.write_text("(?<host>(a*)*b) (?<clock>{.*})\n" + "a" * 60 + "\n")
    with pytest.raises(InputError, match="took more than"):
        verify_events(path)


PROFILE = """
title = "x"
re = '^(?P<node>[ab]) (?P<text>.*)$'
fields = {{ node = "node", text = "text" }}
{more}
"""


@pytest.mark.parametrize(
    "more",
    ["split = '(a*)*b'", "comment = '(a*)*b'", "kind_re = { send = '(a*)*b' }"],
    ids=["split", "comment", "kind"],
)
def test_each_regular_expression_of_a_profile_is_bounded_in_time(tmp_path, monkeypatch, more):
    monkeypatch.setattr("beforehand.logs.bounded.SECONDS_MIN", 0.3)
    (tmp_path / "our.toml").write_text(PROFILE.format(more=more))
    (tmp_path / "log").write_text("a " + "a" * 60 + "\n")
    with pytest.raises(InputError, match="took more than"):
        verify_events(tmp_path / "log", profile=tmp_path / "our.toml")
