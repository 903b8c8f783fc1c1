"""A planted violation of each kind is found in each format, and proved by the right lines."""

from __future__ import annotations

import pytest

from beforehand.diagram.read import read_story
from beforehand.diagram.write import write_diagram
from beforehand.play.foreign import foreign_run
from beforehand.play.page import write_page
from beforehand.verify.verdict import verify_events
from tests.logs.plants import PLANTS, with_clocks
from tests.logs.writers import WRITERS

CASES = [(writer, kind) for writer in WRITERS for kind in writer.kinds]


def name_of(case):
    writer, kind = case
    return f"{writer.form}-{writer.source}-{writer.name}-{kind}"


def planted(writer, kind):
    plant = PLANTS[writer.source][kind]
    events = plant.events
    if writer.name == "akka" and writer.source == "broadcasts":
        events = with_clocks(events)
    is_direct = writer.is_direct and kind == "receive before send"
    return events, [plant.proof[0], plant.proof[-1]] if is_direct else plant.proof


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_planted_violation_is_proved_by_the_lines_of_its_events(case, tmp_path):
    writer, kind = case
    sound, _ = planted(writer, "")
    path, _ = writer.write(tmp_path / "sound", sound)
    (run,) = verify_events(path, **writer.options).runs
    assert run.format == writer.form
    assert not run.counts
    assert run.state == ("unknown" if run.reason else "valid")
    events, proof = planted(writer, kind)
    path, places = writer.write(tmp_path / "planted", events)
    (run,) = verify_events(path, **writer.options).runs
    found = {"own parent": "cycle"}.get(kind, kind)
    assert run.state == "invalid"
    assert run.counts.pop(found) == 1
    assert not run.counts or (kind, [*run.counts]) == ("late", ["gap"])
    (story,) = [finding.story(run.run) for finding in run.findings if finding.kind == found]
    lines = [line.split("  ")[1] for line in story.splitlines()[1:]]
    assert sorted(dict.fromkeys(lines)) == sorted(places[event] for event in proof)


PICTURED = [
    next(w for w in WRITERS if (w.form, w.source) == key)
    for key in dict.fromkeys((w.form, w.source) for w in WRITERS)
]


@pytest.mark.parametrize("writer", PICTURED, ids=lambda w: f"{w.form}-{w.source}")
def test_each_format_is_played_and_drawn_with_its_violation(writer, tmp_path):
    events, _ = planted(writer, writer.kinds[0])
    path, _ = writer.write(tmp_path / "log", events)
    run = foreign_run(path, None)
    assert len(run.violations.t_us) >= 1
    assert run.verdict == "invalid"
    assert write_page(run, tmp_path / "play.html") > 10_000
    story = read_story(path)
    write_diagram(story, tmp_path / "why.svg")
    drawn = (tmp_path / "why.svg").read_text()
    assert drawn.count("<circle") + drawn.count("<path") >= 2
