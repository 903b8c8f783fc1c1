"""The output of one command is the input of the next, packed or through a pipe."""

from __future__ import annotations

import gzip
import io
from types import SimpleNamespace

import pytest

from beforehand.cli import main

CONTACTS = "a b 0 600\nb c 100 900\nc d 500 1200\n"


class Pipe(io.StringIO):
    """A stdout that collects text and bytes."""

    def __init__(self):
        super().__init__()
        self.buffer = io.BytesIO()


@pytest.fixture
def met(tmp_path):
    path = tmp_path / "met.txt"
    path.write_text(CONTACTS)
    return path


def test_simulate_writes_the_same_bytes_to_stdout_and_to_a_file(met, tmp_path, monkeypatch):
    assert main(["-q", "simulate", str(met), "--events", str(tmp_path / "log")]) == 0
    monkeypatch.setattr("sys.stdout", pipe := Pipe())
    assert main(["-q", "simulate", str(met), "--events", "-"]) == 0
    assert pipe.getvalue() == ""  # a table would spoil it
    assert pipe.buffer.getvalue() == (tmp_path / "log").read_bytes()


def test_verify_reads_what_simulate_pipes(met, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", pipe := Pipe())
    main(["-q", "simulate", str(met), "--events", "-"])
    monkeypatch.undo()
    log = io.BytesIO(pipe.buffer.getvalue())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=log))
    assert main(["verify", "-"]) == 0
    assert "verdict: valid" in capsys.readouterr().out


def test_an_event_log_is_not_written_to_a_terminal(met, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["simulate", str(met), "--events", "-"]) == 2
    assert "a terminal cannot show it" in capsys.readouterr().err


def test_contacts_writes_only_the_file_to_stdout(met, tmp_path, capsys):
    assert main(["-q", "contacts", str(met), "--out", str(tmp_path / "out.csv")]) == 0
    capsys.readouterr()
    assert main(["-q", "contacts", str(met), "--out", "-"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out.csv").read_text()


def test_a_name_that_ends_with_gz_is_packed_and_read_back(met, tmp_path):
    plain, packed = tmp_path / "out.csv", tmp_path / "out.csv.gz"
    for path in (plain, packed):
        assert main(["-q", "contacts", str(met), "--out", str(path)]) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert main(["-q", "simulate", str(packed)]) == 0
