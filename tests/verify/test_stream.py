"""A long log is indexed in two passes, and gets the verdict and the proofs of the short one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.verify import stream
from beforehand.verify.event_log import read_logs
from beforehand.verify.verdict import verify_events
from tests.kernels.verify.test_causality import draw_log


def table_of(log, steps=None):
    """The columns of an event log, with receptions between the broadcasts and deliveries."""
    rows = [row for one in log for row in (one, (one[0], "receive", one[2]))]
    return pa.table(
        {
            "run": ["r"] * len(rows),
            "step": list(range(len(rows))) if steps is None else steps,
            "t_us": [1000 * at for at in range(len(rows))],
            "node": [node for node, _, _ in rows],
            "kind": [kind for _, kind, _ in rows],
            "origin": [origin for _, _, (origin, _) in rows],
            "seq": [seq for _, _, (_, seq) in rows],
        }
    )


def told(path):
    verdict = verify_events(path)
    (run,) = verdict.runs
    facts = (run.run, run.state, run.reason, run.promise, run.broadcasts, run.deliveries)
    return (*facts, run.counts, list(verdict.stories()))


@pytest.fixture
def is_streamed(monkeypatch):
    """Returns whether a log is read in two passes, of which short logs are not in need."""

    def switch(size):
        monkeypatch.setattr(stream, "ROWS_MIN", size)
        monkeypatch.setattr(stream, "BATCH_ROWS", 7)

    return switch


def test_a_long_log_gets_the_verdict_and_the_proofs_of_a_short_one(tmp_path, is_streamed):
    states = set()
    for seed in range(60):
        table = table_of(draw_log(seed, disorder=0.3 * (seed % 3) / 2))
        # Every third log lacks a step, and every fifth has a kind that nobody knows.
        table = table.slice(0, 11) if seed % 3 == 2 else table
        if seed % 5 == 4:
            kinds = ["Deliver", *table["kind"].to_pylist()[1:]]
            table = table.set_column(4, "kind", pa.array(kinds))
        path = tmp_path / "events.parquet"
        pq.write_table(table, path, row_group_size=13)
        is_streamed(10**9)
        whole = told(path)
        is_streamed(1)
        (log,) = read_logs(path)
        assert log.indexed is not None
        assert told(path) == whole, f"seed {seed}"
        states.add(whole[1])
    assert states == {"valid", "invalid", "unknown"}


def test_parts_are_taken_in_the_order_of_their_steps(tmp_path, is_streamed):
    table = table_of(draw_log(3))
    folder = tmp_path / "log"
    folder.mkdir()
    for name, low, high in (("b", 0, 40), ("c", 40, 90), ("a", 90, len(table))):
        part = table.slice(low, high - low)
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=9)
    is_streamed(10**9)
    whole = told(folder)
    is_streamed(1)
    (log,) = read_logs(sorted(folder.iterdir()))
    assert log.indexed is not None
    assert told(folder) == whole


@pytest.mark.parametrize("odd", ["several runs", "unordered rows", "unordered groups"])
def test_a_long_log_in_another_order_is_read_at_once(tmp_path, is_streamed, odd):
    table = table_of(draw_log(3))
    steps = np.arange(len(table))
    if odd == "several runs":
        table = table.set_column(0, "run", pa.array(["r", "s"] * (len(table) // 2)))
    elif odd == "unordered rows":
        steps[[2, 3]] = steps[[3, 2]]
    else:
        steps = np.roll(steps, 20)
    table = table.set_column(1, "step", pa.array(steps)) if odd != "several runs" else table
    path = tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=13)
    is_streamed(1)
    assert all(log.indexed is None for log in read_logs(path))


def test_a_message_that_a_long_log_broadcasts_twice_is_refused_with_its_steps(
    tmp_path, is_streamed
):
    log = draw_log(3)
    first = next(at for at, row in enumerate(log) if row[1] == "broadcast")
    pq.write_table(table_of([*log, log[first]]), tmp_path / "log.parquet", row_group_size=13)
    is_streamed(1)
    with pytest.raises(InputError, match=f"steps {2 * first} and {2 * len(log)} of run `r`"):
        verify_events(tmp_path / "log.parquet")


@pytest.mark.parametrize("column", ["node", "kind", "t_us"])
def test_an_empty_field_in_a_long_log_is_refused(tmp_path, is_streamed, column):
    table = table_of(draw_log(3))
    at = table.column_names.index(column)
    values = [*table[column].to_pylist()[:-1], None]
    pq.write_table(table.set_column(at, column, pa.array(values)), tmp_path / "log.parquet")
    is_streamed(1)
    with pytest.raises(InputError, match=f"empty fields in the column `{column}`"):
        verify_events(tmp_path / "log.parquet")


def test_a_long_log_without_broadcasts_or_deliveries_is_judged(tmp_path, is_streamed):
    table = table_of([(1, "receive", (1, 1))] * 5)
    pq.write_table(table, tmp_path / "log.parquet")
    is_streamed(1)
    assert told(tmp_path / "log.parquet")[1:3] == ("unknown", "nothing was delivered")


def test_memory_of_a_long_log_is_eight_bytes_per_event(tmp_path, is_streamed):
    pq.write_table(table_of(draw_log(3)), tmp_path / "log.parquet")
    is_streamed(1)
    (log,) = read_logs(tmp_path / "log.parquet")
    history = log.history()
    assert history.node.nbytes + history.message.nbytes == 8 * len(history.node)
    for column in (log.step, log.t_us, log.node, log.is_broadcast, log.origin, log.seq):
        assert isinstance(column, stream.StoredColumn)
