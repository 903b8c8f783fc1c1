"""How far a command is: the stage, how many of all, how long still."""

from __future__ import annotations

import io

import pyarrow.parquet as pq

from beforehand.pipeline.stages import _counted
from beforehand.verify.verdict import verify_events
from tests.verify.test_verdict import CHAIN, table_of


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_runs_here_is_counted_on_a_terminal_and_nowhere_else(monkeypatch):
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        assert list(_counted("positions", [1, 2, 3])) == [1, 2, 3]
        drawn = stream.getvalue()
        assert ("positions" in drawn and "3/3" in drawn) == stream.isatty()
        assert stream.isatty() or drawn == ""


def test_verify_tells_how_many_logs_are_judged(tmp_path):
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        pq.write_table(table_of(CHAIN[:10], run=run), tmp_path / run / "events.parquet")
    heard = []
    verify_events(tmp_path, on_done=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 2), (2, 2)]
