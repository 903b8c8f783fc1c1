"""Names are untrusted text: they are shown without control characters."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from tests.commands.zoo import CONTACTS
from tests.verify.test_verdict import CHAIN, table_of

OBEYED = "\x1b[2Jx", "x\nverdict: valid", "x\ry", "\u202ex", "x\u2028y", "x\x9b2J"


@pytest.fixture
def judge(tmp_path, capsys):
    """Return the output of `verify --explain` for a run of that name."""

    def call(run):
        pq.write_table(table_of(CHAIN, run=run), tmp_path / "events.parquet")
        code = main(["verify", str(tmp_path / "events.parquet"), "--explain"])
        return code, capsys.readouterr()

    return call


@pytest.mark.parametrize("name", ["[/x]", "[red]x[/red]", "[bold", "\\[x]", ":smile:"])
def test_a_run_with_square_brackets_in_its_name_crashed_or_lost_them(judge, name):
    code, shown = judge(name)
    assert code == 1, shown.err
    assert shown.out.count(name) == 2  # in the table, and in the proof


@pytest.mark.parametrize("name", OBEYED)
def test_a_name_with_control_characters_wrote_extra_lines(judge, name):
    code, shown = judge(name)
    assert code == 1
    assert shown.out.count("verdict: ") == 1 + 2 * name.count("verdict: ")
    assert "\nverdict: valid" not in shown.out
    told = shown.out.replace("\n", "")
    assert not any(char in told for char in "\x1b\r\u202e\u2028\x9b")
    assert told.count("\N{REPLACEMENT CHARACTER}") == 2


def test_a_long_name_left_no_room_for_the_verdict_beside_it(judge):
    _, shown = judge("x" * 500)
    row = next(line for line in shown.out.splitlines() if "xxx" in line)
    assert "invalid" in row


@pytest.mark.parametrize("name", OBEYED)
def test_an_error_escapes_control_characters(tmp_path, capsys, name):
    path = tmp_path / name.replace("/", "")
    assert main(["contacts", str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: no such file or folder\n  at /")
    path.write_text("node,t,x,y\n" + f"{name!r},0,0,0\n" * 2 + "a,1,1\n")
    assert main(["contacts", str(path), "--range", "5m"]) == 2
    told = capsys.readouterr().err
    assert not any(char in told for char in "\x1b\r\u202e\u2028\x9b")
    assert "\nverdict" not in told


def test_a_file_name_that_is_not_utf8_was_shown_as_another_file(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9"
    command = [sys.executable, "-m", "beforehand.cli", "contacts", path]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8:strict"}  # as most machines have it
    missing = subprocess.run(command, capture_output=True, env=environment)
    assert missing.returncode == 2
    assert missing.stderr.startswith(b"error: no such file or folder\n")
    with open(path, "w") as file:
        file.write(CONTACTS)
    there = subprocess.run(command, capture_output=True, env=environment)
    assert there.returncode == 0, there.stderr
    assert "caf\N{REPLACEMENT CHARACTER}".encode() in there.stdout
