"""Diagrams of logs: the proof is in them, each arrow is in the log, and their size is bounded."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from beforehand.cli import main
from beforehand.diagram import story as stories
from beforehand.diagram.read import read_story
from beforehand.diagram.story import PROOF, VIOLATION, Arrow, Step, Story
from beforehand.diagram.svg import sign, svg_text
from beforehand.diagram.write import SUFFIXES
from beforehand.events import BROADCAST, CRASH, DELIVER, DROP, EXPIRE, JOIN, RECEIVE, RECOVER
from tests.logs.test_clocks import PLANTED, text_of
from tests.logs.test_tables import LATE as LATE_ROWS
from tests.logs.test_tables import PLANTED as PLANTED_ROWS
from tests.logs.test_tables import SENDS, csv_of
from tests.play.made_up import HOSTILE, SECOND_US, late_log, write_log
from tests.play.test_model import chain_log
from tests.verify.test_node_logs import LATE as LATE_OF_NODES
from tests.verify.test_node_logs import split, write_all

MAPPING = ("node=host", "kind=what", "message=uuid")


def words(story):
    return [(step.node, step.kind, step.message) for step in story.steps]


def edges(story):
    """The arrows as pairs of (node, kind, message), and whether each is a hop."""
    at = words(story)
    return [(at[arrow.cause], at[arrow.effect], arrow.is_hop) for arrow in story.arrows]


def in_order(story):
    columns = story.columns()
    lines = {}
    for step, column in zip(story.steps, columns, strict=True):
        lines.setdefault(step.node, []).append(column)
    is_right = all(
        columns[a.cause] < columns[a.effect] for a in story.arrows if not story.is_backward(a)
    )
    return is_right and all(line == sorted(set(line)) for line in lines.values())


def test_the_first_violation_is_drawn_with_its_proof(tmp_path):
    story = read_story(late_log(tmp_path / "late.parquet"))
    a, b, c = story.nodes
    first, reply = f"{HOSTILE[0]} #1", "\ufffdltr #1"
    assert (
        story.summary
        == f"{c} delivered {first} after {reply}, which causally follows it".replace(
            c, f"{c[:35]}…{c[-4:]}"
        )
    )
    proof = [(s.node, s.kind, s.message) for s in story.steps if s.mark]
    assert proof == [
        (a, "broadcast", first),
        (b, "deliver", first),
        (b, "broadcast", reply),
        (c, "deliver", reply),
        (c, "deliver", first),
    ]
    assert [s.mark for s in story.steps if s.mark] == [PROOF] * 4 + [VIOLATION]
    assert in_order(story)


def test_an_arrow_goes_from_the_sender_or_is_marked_as_one_from_the_broadcast(tmp_path):
    story = read_story(late_log(tmp_path / "late.parquet"))
    a, b, c = story.nodes
    first, reply = f"{HOSTILE[0]} #1", "\ufffdltr #1"
    assert edges(story) == [
        ((a, "broadcast", first), (b, "receive", first), True),
        ((b, "broadcast", reply), (c, "receive", reply), True),
        ((a, "broadcast", first), (c, "receive", first), False),  # the log has no sender there
    ]


def test_the_longest_wait_is_drawn_with_the_cause_that_was_missing(tmp_path):
    story = read_story(chain_log(tmp_path))
    assert story.summary == "c received b #1, and delivered it 2s later, after its cause a #1"
    at = words(story)
    assert [(at[i], at[j]) for i, j in story.waits] == [
        (("c", "receive", "b #1"), ("c", "deliver", "b #1"))
    ]
    assert ("a", "broadcast", "a #1") in at
    assert (("a", "broadcast", "a #1"), ("c", "deliver", "a #1"), True) in edges(story)
    assert in_order(story)


def test_the_message_that_waited_longest_is_not_the_last_one(tmp_path):
    rows = [
        (0, 0, BROADCAST, 0, 1),
        (1, 1, RECEIVE, 0, 1),
        (9, 1, DELIVER, 0, 1),
        (10, 0, BROADCAST, 0, 2),
        (11, 1, RECEIVE, 0, 2),
        (12, 1, DELIVER, 0, 2),
    ]
    log = write_log(tmp_path / "log.parquet", [(t * SECOND_US, *rest) for t, *rest in rows])
    assert read_story(log).summary == "1 received 0 #1, and delivered it 8s later"


def test_events_of_several_files_are_drawn_after_their_causes(tmp_path):
    (tmp_path / "a.csv").write_text(csv_of([{"node": "a", "kind": "receive", "message": "m"}]))
    (tmp_path / "b.csv").write_text(csv_of([{"node": "b", "kind": "send", "message": "m"}]))
    story = read_story(tmp_path)
    assert [step.node for step in story.steps] == ["b", "a"]
    assert [(arrow.cause, arrow.effect) for arrow in story.arrows] == [(0, 1)]


def test_without_causes_in_the_log_no_cause_is_named(tmp_path):
    story = read_story(chain_log(tmp_path, with_pasts=False))
    assert story.summary == "c received b #1, and delivered it 2s later"
    assert "the log does not keep the causes that messages name" in story.notes


def test_losses_crashes_and_recoveries_are_steps_of_their_own(tmp_path):
    rows = [
        (0, 0, JOIN, -1, -1),
        (1, 0, BROADCAST, 0, 1),
        (2, 1, RECEIVE, 0, 1),
        (3, 2, RECEIVE, 0, 1),
        (4, 1, CRASH, -1, -1),
        (5, 1, RECOVER, -1, -1),
        (6, 1, EXPIRE, 0, 1),
        (7, 2, DROP, 0, 1),
        (9, 3, RECEIVE, 0, 1),
        (10, 3, DELIVER, 0, 1),
    ]
    log = write_log(tmp_path / "log.parquet", [(t * SECOND_US, *rest) for t, *rest in rows])
    story = read_story(log, around="0 #1")
    assert [(s.node, s.kind) for s in story.steps if s.kind not in ("receive", "deliver")] == [
        ("0", "broadcast"),
        ("1", "crash"),
        ("1", "recover"),
        ("1", "expire"),
        ("2", "drop"),
    ]
    signs = {sign(Step("", kind), 9, 9) for kind in ("crash", "recover", "expire", "drop")}
    assert len(signs) == 4
    assert all(shape in svg_text(story) for shape in ("crash", "recovered", "expired", "dropped"))
    story = read_story(log, around="0:1")
    assert words(story)[0] == ("0", "broadcast", "0 #1")


@pytest.mark.parametrize("kind", ["folder of nodes", "csv"])
def test_a_log_of_any_origin_shows_its_late_delivery(tmp_path, kind):
    if kind == "folder of nodes":
        path = write_all(tmp_path / "logs", split(LATE_OF_NODES))
    else:
        path = tmp_path / "log.csv"
        path.write_text(csv_of(LATE_ROWS))
    story = read_story(path, mapping=MAPPING if kind == "csv" else ())
    assert story.steps[-1].mark == VIOLATION
    assert story.steps[-1].kind == "deliver"
    assert sum(step.mark == PROOF for step in story.steps) >= 3
    assert story.arrows
    assert in_order(story)


@pytest.mark.parametrize("kind", PLANTED)
def test_vector_clocks_are_drawn_with_the_edges_that_they_prove(tmp_path, kind):
    events, _ = PLANTED[kind]
    path = tmp_path / "log.txt"
    path.write_text(text_of(events))
    story = read_story(path)
    assert sum(step.mark == VIOLATION for step in story.steps) == 1
    assert any(story.steps[a.cause].node != story.steps[a.effect].node for a in story.arrows)


def test_a_receive_before_its_send_is_an_arrow_that_points_back(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(csv_of(PLANTED_ROWS["receive before send"]))
    story = read_story(path)
    assert any(story.is_backward(arrow) for arrow in story.arrows)
    path.write_text(csv_of(SENDS))
    assert not any(map(read_story(path).is_backward, read_story(path).arrows))


def test_around_takes_the_id_of_a_message_of_another_system(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(csv_of(SENDS))
    message = SENDS[0]["message"]
    story = read_story(path, around=message)
    assert message in {step.message for step in story.steps}
    assert main(["diagram", str(path), "--around", "none such", "--out", "x.svg"]) == 2
    assert "none such" in capsys.readouterr().err


def test_an_unknown_message_is_refused_with_the_ways_to_name_one(tmp_path, capsys):
    log = chain_log(tmp_path)
    for around in ("z #1", "a #2", "a:9", "a"):
        assert main(["diagram", str(log), "--around", around, "--out", "x.svg"]) == 2
        assert "L6-5 #12" in capsys.readouterr().err


def test_a_long_run_is_cut_to_what_fits_and_notes_it(tmp_path, monkeypatch):
    rows = [(0, 0, BROADCAST, 0, 1)]
    rows += [(at, at, kind, 0, 1) for at in range(1, 60) for kind in (RECEIVE, DELIVER)]
    log = write_log(tmp_path / "log.parquet", rows, senders=np.arange(59, dtype=np.int32))
    story = read_story(log)
    assert len(story.steps) <= stories.STEPS_MAX
    assert len(story.nodes) <= stories.NODES_MAX
    assert any("of 119 events at" in note and "of 60 nodes" in note for note in story.notes)
    assert any("full" in note for note in story.notes)
    log = tmp_path / "log.csv"
    hosts = [{"node": f"n{i % 50}", "kind": "local", "message": ""} for i in range(500)]
    log.write_text(csv_of([*SENDS, *hosts]))
    story = read_story(log)
    assert len(story.steps) <= stories.STEPS_MAX


def test_every_format_holds_every_node_and_message_of_the_diagram(tmp_path):
    log = chain_log(tmp_path)
    written = {}
    for ending in SUFFIXES:
        out = tmp_path / f"d{ending}"
        assert main(["diagram", str(log), "--out", str(out), "-q"]) == 0
        written[ending] = out.read_bytes()
    assert written.pop(".png").startswith(b"\x89PNG")
    root = ElementTree.fromstring(written[".svg"])
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c", "a #1", "b #1"} <= {*texts}
    assert written[".txt"].isascii()
    for ending, number in ((".txt", b"#1"), (".mmd", b"#35;1"), (".tex", rb"\#1")):
        for name in (b"a ", b"b "):
            assert name + number in written[ending], ending


def test_hostile_names_stay_text_in_every_format(tmp_path):
    log = late_log(tmp_path / "late.parquet")
    texts = {}
    for ending in (".svg", ".txt", ".mmd", ".tex"):
        out = tmp_path / f"d{ending}"
        assert main(["diagram", str(log), "--out", str(out), "-q"]) == 0
        texts[ending] = out.read_text()
    ElementTree.fromstring(texts[".svg"])
    assert "<script" not in texts[".svg"]
    drawn = [line for line in texts[".mmd"].splitlines() if "%%" not in line]
    assert not any(";" in re.sub(r"#\d+;", "", line) or "<" in line for line in drawn)
    story = Story("t", "t", ("%$_{end}",), (Step("%$_{end}", "send", "end"),), ())
    from beforehand.diagram.mermaid import mermaid_text
    from beforehand.diagram.tikz import tikz_text

    assert r"\%\$\_\{end\}" in tikz_text(story)
    assert not re.search(r"\bend\b", mermaid_text(story))


def test_labels_of_one_line_do_not_overlap(tmp_path):
    story = read_story(late_log(tmp_path / "late.parquet"))
    root = ElementTree.fromstring(svg_text(story))
    spots = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") == "middle":
            half = len(text.text) * (2.5 if text.get("font-size") == "9" else 3.1)
            x = float(text.get("x"))
            spots.setdefault(text.get("y"), []).append((x - half, x + half))
    assert any(len(row) > 1 for row in spots.values())
    for row in map(sorted, spots.values()):
        assert all(one[1] < two[0] for one, two in pairwise(row))


def test_a_backward_arrow_and_an_inferred_one_have_signs_of_their_own():
    steps = (Step("a", "receive", "m"), Step("b", "send", "m"), Step("a", "deliver", "m"))
    story = Story("t", "t", ("a", "b"), steps, (Arrow(1, 0), Arrow(1, 2, is_hop=False)))
    assert svg_text(story).count('stroke="#c2211b"') == 1
    assert svg_text(story).count('stroke-dasharray="5 3"') == 2  # the arrow and the legend
    plain = svg_text(replace(story, arrows=(Arrow(1, 2),)))
    assert "stroke-dasharray" not in plain


def test_verify_writes_the_diagram_of_its_first_violation(tmp_path, capsys):
    path, out = tmp_path / "log.csv", tmp_path / "why.svg"
    path.write_text(csv_of(LATE_ROWS))
    how = ["--map", *MAPPING, "--explain"]
    assert main(["verify", str(path), *how, "--diagram", str(out)]) == 1
    assert "after a message that causally follows it" in out.read_text()
    assert main(["verify", str(path), "--diagram", str(out)]) == 2
    assert main(["verify", str(path), "--explain", "--diagram", str(tmp_path / "x.jpg")]) == 2


def test_a_suffix_without_a_format_is_refused_before_the_log_is_read(tmp_path, capsys):
    assert main(["diagram", "no-such-log", "--out", str(tmp_path / "x.pdf")]) == 2
    assert ".svg" in capsys.readouterr().err


def test_json_names_the_file_and_what_it_shows(tmp_path, capsys):
    out = tmp_path / "d.txt"
    assert main(["diagram", str(chain_log(tmp_path)), "--out", str(out), "--json", "-q"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["diagram"] == str(out)
    assert summary["nodes"] == ["a", "b", "c"]
