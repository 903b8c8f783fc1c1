"""Progress: stage, done of all, how long still; on a terminal, and nowhere else."""

from __future__ import annotations

import io
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.commands import simulate
from beforehand.pipeline.stages import _counted
from beforehand.verify.verdict import LOGS, SENDERS, verify_events
from tests.verify.test_verdict import CHAIN, table_of


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def logs(tmp_path):
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        pq.write_table(table_of(CHAIN[:10], run=run), tmp_path / run / "events.parquet")
    return tmp_path


def test_local_work_draws_progress_only_on_a_terminal(monkeypatch):
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        assert list(_counted("positions", [1, 2, 3])) == [1, 2, 3]
        drawn = stream.getvalue()
        assert ("positions" in drawn and "3/3" in drawn) == stream.isatty()
        assert stream.isatty() or drawn == ""


def test_verify_shows_the_number_of_judged_logs_and_senders(logs):
    heard = []
    verify_events(logs, on_done=lambda *told: heard.append(told))
    assert [told[1:] for told in heard if told[0] == LOGS] == [(0, 2), (1, 2), (2, 2)]
    assert [told[1:] for told in heard if told[0] == SENDERS] == [(0, 3), (3, 3)] * 2


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        ("verify {logs}", ("logs judged", "senders of this log")),
        ("simulate {logs}/met --seed 1", ("reading the trace", "simulating")),
    ],
)
def test_a_command_draws_its_stages_on_a_terminal_and_not_in_a_pipe(
    logs, monkeypatch, capsys, words, stages
):
    (logs / "met").write_text("".join(f"a b {t} {t + 5}\n" for t in range(0, 6000, 10)))
    arguments = words.format(logs=logs).split()
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("COLUMNS", "120")
        assert main(arguments) == 0
        assert [stage in stream.getvalue() for stage in stages] == [stream.isatty()] * len(stages)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stderr", quiet := Terminal())
    main(["-q", *arguments])
    assert capsys.readouterr().out in piped
    assert quiet.getvalue() == ""


def test_simulate_shows_done_out_of_total_until_the_end(logs, monkeypatch):
    (logs / "met").write_text("".join(f"a b {t} {t + 5}\n" for t in range(0, 6000, 10)))
    heard = []

    @contextmanager
    def stages():
        yield lambda *told: heard.append(told)

    monkeypatch.setattr(simulate, "stage_bars", stages)
    assert main(["-q", "simulate", str(logs / "met")]) == 0
    counts = [told[1:] for told in heard if told[0] == "simulating"]
    assert len(counts) > 100
    assert counts == sorted(counts)
    assert len({of for _, of in counts}) == 1
    assert counts[-1][0] > 0.99 * counts[-1][1]
    assert heard[0] == ("reading the trace", 0, None)
