"""Another project's test suite checks its logs: the assertion, the plugin and JUnit XML."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from beforehand import assert_causal
from beforehand.cli import main
from tests.logs.test_tables import LATE, MAP, ROWS, csv_of


@pytest.fixture
def late(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text(csv_of(LATE))
    return path


def test_the_assertion_fails_with_the_causal_chain(late, tmp_path):
    (tmp_path / "sound.csv").write_text(csv_of(ROWS))
    assert assert_causal(tmp_path / "sound.csv", mapping=MAP).state == "valid"
    with pytest.raises(AssertionError, match="the log is invalid, not valid") as caught:
        assert_causal(late, mapping=MAP)
    assert f"{late}:2  node ann  broadcast m1" in str(caught.value)
    assert f"{late}:6  node eve  deliver m1" in str(caught.value)


def test_an_unknown_log_fails_unless_that_is_allowed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("node,kind,message\na,receive,1\n")
    with pytest.raises(AssertionError, match="the log is unknown"):
        assert_causal(path)
    assert assert_causal(path, allow_unknown=True).state == "unknown"


def test_the_plugin_gives_a_fixture_to_another_test_suite(late):
    test = late.parent / "test_it.py"
    test.write_text(
        f"def test_log(assert_causal):\n    assert_causal({str(late)!r}, mapping={MAP})\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "beforehand.verify.pytest_plugin"]
    answer = subprocess.run([*words, str(test)], capture_output=True, text=True, cwd=late.parent)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "delivered `m1` after a message that causally follows it" in answer.stdout


def test_junit_has_a_case_per_run_with_its_chain(late, tmp_path, capsys):
    out = tmp_path / "junit.xml"
    words = ["verify", str(late), "--junit", str(out)]
    assert main([*words, "--map", *(f"{role}={field}" for role, field in MAP.items())]) == 1
    (suite,) = ET.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure.get("message") == "1 late"
    assert f"{late}:6  node eve  deliver m1" in failure.text
