"""Real processes on a bad network, a few seeds: `benchmarks/soak_runtime.py` runs as many as one
likes. It makes its own network namespaces; where that is not permitted it says `loopback`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak_runtime.py"
PATIENCE = 240.0


def soak(folder, *options):
    """Return its exit code, its line of results, and its lines about failed seeds."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(("kind", "seeds"), [("group", 2), ("overlay", 1), ("host", 1)])
def test_after_healing_every_member_has_every_message_once_in_order(tmp_path, kind, seeds):
    options = ("--kind", kind, "--seeds", seeds, "--start", 11, "--nodes", 6)
    code, told, said = soak(tmp_path, *options)
    assert code == 0, said
    assert told["failed_seeds"] == [], said
    assert told["network"] in ("namespaces", "loopback")
    assert (told["violations"], told["duplicates"], told["lost"]) == (0, 0, 0)
    assert told["broadcasts"] > 10, "seeds in which nothing happens show nothing"
    assert told["deliveries"] > told["broadcasts"]
    assert told["kills"] > 0
    if told["network"] == "namespaces":
        assert told["packets_lost"] > 0


def test_without_namespaces_the_soak_uses_loopback_and_reports_it(tmp_path):
    code, told, said = soak(tmp_path, "--loopback", "--start", 12, "--seeds", 1, "--nodes", 4)
    assert code == 0, said
    assert (told["network"], told["packets"]) == ("loopback", 0)
    assert told["deliveries"] > told["broadcasts"] > 0


@pytest.mark.parametrize(("kind", "nodes"), [("group", 3), ("host", 5)])
def test_kills_under_load_break_no_guarantee(tmp_path, kind, nodes):
    """The requested number of kills, although stations are not killed."""
    options = ("--kind", kind, "--kills", 12, "--seeds", 1, "--nodes", nodes)
    code, told, said = soak(tmp_path, *options)
    assert code == 0, said
    assert told["kills"] == 12
    assert (told["violations"], told["duplicates"], told["lost"]) == (0, 0, 0)


MISSING = ("its program never got", "never delivered")
"""One of them is among the first problems, which are those that are shown."""

NOT_STORED = ("an older copy: others have message", "bring the newer store back")
"""A restarted node refuses to go on if a peer shows it a message of its own that its disk lacks:
the node itself notices before the soak test can."""


@pytest.mark.parametrize(
    ("how", "clues"),
    [
        (
            "early",
            ("was told that", "` and `", "twice", "has not everything", *NOT_STORED, *MISSING),
        ),
        ("forgetful", ("a second time", "twice", "has not everything")),
        ("inbox", MISSING),
    ],
)
def test_a_deliberately_broken_node_is_detected(tmp_path, monkeypatch, how, clues):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where it keeps what a failing seed left
    options = ("--kills", 12, "--seeds", 1, "--nodes", 3, "--break", how, "--patience", 6)
    code, told, said = soak(tmp_path, *options)
    assert code == 1
    assert told["failed_seeds"] == [1]
    assert any(clue in said for clue in clues), said
    assert "repeat: python benchmarks/soak_runtime.py --start 1 --seeds 1 --nodes 3" in said
    assert list(tmp_path.glob("soak-1-*/*.jsonl")), "all that its nodes left is kept"
