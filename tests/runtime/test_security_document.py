"""Every promise of docs/security.md has a test, and its limits are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from beforehand.runtime.transport.disconnects import LinkCounters
from beforehand.runtime.transport.limits import Limits

REPO = Path(__file__).parent.parent.parent
TEXT = (REPO / "docs" / "security.md").read_text()
PROMISED = re.findall(r"`(test_\w+)`", TEXT)


def test_every_test_that_is_named_is_there():
    there = set()
    for path in (REPO / "tests").rglob("test_*.py"):
        there |= set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE))
    assert len(PROMISED) > 30
    assert set(PROMISED) <= there, set(PROMISED) - there


def test_every_row_of_the_guarantees_names_a_test():
    promised = TEXT.partition("## What is promised")[2].partition("## What is not promised")[0]
    rows = [line for line in promised.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row != "| promise | shown by |"]
    assert len(rows) > 15
    assert [row for row in rows if "`test_" not in row] == []


def test_every_attack_that_is_a_test_is_named():
    attacks = (REPO / "tests/runtime/transport/test_attacks.py").read_text()
    tests = set(re.findall(r"^def (test_\w+)\(", attacks, re.MULTILINE))
    told_with_another = {
        "test_a_peer_that_connects_and_hangs_up_is_counted",
        "test_another_protocol_version_is_reported_as_such",
        "test_a_tampered_hello_is_refused_on_both_ends",
        "test_a_peer_that_takes_the_decision_of_the_other_end_loses_the_connection",
    }
    assert tests - set(PROMISED) == told_with_another


@pytest.mark.parametrize("field", Limits.__struct_fields__)
def test_every_limit_is_documented(field):
    assert f"`{field}`" in TEXT


def test_the_refusals_that_are_named_are_counted():
    for kind in ("too_large", "overflow", "too_many_connections", "flood", "silent", "malformed"):
        assert f"`{kind}`" in TEXT
        assert kind in LinkCounters.__struct_fields__
