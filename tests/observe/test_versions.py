"""The saved states of the observers: one file for each batch, which never changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from beforehand.errors import LocalError
from beforehand.observe.stamps import NOW_US, PARTITION, Reordering
from beforehand.observe.task import BATCH, QUERY, OrderTask, _whole_observers
from beforehand.observe.versions import Versions, newest_states
from beforehand.protocols.observer.observer import cbd
from beforehand.sim.drift import rule_of
from tests.observe.test_state import SMALL, events

ORDER = Reordering(rule_of(cbd(100), SMALL), 1000, "event")


class FakeContext:
    """The context that Spark gives a task of a micro-batch."""

    def __init__(self, batch: int | None) -> None:
        self._properties = {BATCH: None if batch is None else str(batch), QUERY: "query"}

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties[name]

    def partitionId(self) -> int:
        return 0


def run_batch(
    monkeypatch: pytest.MonkeyPatch, folder: str, batch: int | None, *rows: Any
) -> list[str]:
    """Return the names of the rows that the task of a batch delivers."""
    task = OrderTask(ORDER, None, None, folder, 1, "beforehand")
    monkeypatch.setattr(TaskContext, "get", lambda: FakeContext(batch))
    batches: list[pa.RecordBatch] = []
    if rows:
        table = events(*rows)
        table = table.append_column(PARTITION, pa.array([0] * len(table), pa.int32()))
        batches = table.append_column(NOW_US, pa.array([0] * len(table))).to_batches()
    return [name for out in task.order_batch(iter(batches)) for name in out["name"].to_pylist()]


@pytest.mark.parametrize("make", [str, Path.as_uri], ids=["path", "address"])
def test_a_repeated_batch_starts_from_the_same_state(tmp_path, monkeypatch, make):
    folder = make(tmp_path / "a folder")
    first, second = [("b", 0, 5, 0, None), ("a", 1, 4, 0, None)], [("c", 0, 30, 0, None)]
    for _ in range(2):
        assert run_batch(monkeypatch, folder, 0, *first) == []
    for _ in range(3):
        assert run_batch(monkeypatch, folder, 1, *second) == ["a", "b"]
    # A batch without rows keeps the state; one that was not run at all does so too.
    assert run_batch(monkeypatch, folder, 2) == []
    assert run_batch(monkeypatch, folder, 4, ("d", 0, 60, 0, None)) == ["c"]
    (state,) = newest_states(folder, "query", "beforehand")
    assert state[:16] == b"\1" + bytes(7) + b"\1" + bytes(7)


def test_versions_that_are_not_needed_are_removed(tmp_path):
    states = Versions(str(tmp_path), "query", "name", 3)
    for batch in (0, 1, 2, 3, 5, 6, 7):
        found, versions = states.read_before(batch)
        assert found == (b"%d" % max((n for n in versions), default=0) if batch else None)
        states.write(batch, b"%d" % batch, versions)
    assert sorted(path.name for path in (tmp_path / "query/name/3").iterdir()) == ["5", "6", "7"]


def test_a_lost_state_is_refused(tmp_path):
    one, two = (Versions(str(tmp_path), "query", "name", number) for number in (0, 1))
    with pytest.raises(LocalError, match="the state of the observers before batch 3 is gone"):
        one.read_before(3)
    for batch in range(3):
        for states in (one, two):
            states.write(batch, b"", [])
    (tmp_path / "query/name/0/2").unlink()
    with pytest.raises(LocalError, match="before batch 3 is gone"):
        one.read_before(3)
    # Both lack it: the batch had no rows.
    (tmp_path / "query/name/1/2").unlink()
    assert one.read_before(3) == (b"", [0, 1])


def test_states_on_an_unknown_system_and_batches_without_a_number_are_refused(
    tmp_path, monkeypatch
):
    with pytest.raises(LocalError, match="no state can be kept there"):
        Versions("ftp://host/states", "query", "name", 0)
    with pytest.raises(LocalError, match="not a micro-batch"):
        run_batch(monkeypatch, str(tmp_path), None)


def test_a_table_is_ordered_by_whole_observers(monkeypatch):
    monkeypatch.setattr("beforehand.observe.task.TABLE_ROWS_MIN", 4)
    keys = [None, None, "a", "a", "a", "a", "a", "b", "c", "c", "d"]
    table = pa.table({"_observer": pa.array(keys)})
    found = list(_whole_observers(iter(table.to_batches(max_chunksize=2))))
    assert [name for part in found for name in part["_observer"].to_pylist()] == keys
    assert [len(part) for part in found] == [2, 6, 3]
