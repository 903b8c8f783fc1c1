"""The event log of a node: complete files, in the order of its steps, without a lost event."""

from __future__ import annotations

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.tables import Store
from beforehand.runtime.storage.event_log import EventLog
from beforehand.verify.verdict import verify_events

SECOND_US = 1_000_000


class Killed(Exception):
    pass


class Transactions(Store):
    """A store that writes its transactions on request. Rows saved but not written are gone after a
    kill."""

    def __init__(self, disk=None):
        super().__init__()
        self.disk = disk or Store()
        self.open, self.waiting = [], []
        self._rows = self.disk._rows

    def save(self, saves):
        self.open += list(saves)

    def after(self, action):
        self.waiting.append(action)

    def commit(self):
        Store.save(self.disk, self.open)
        waiting, self.open, self.waiting = self.waiting, [], []
        for action in waiting:
            action()


class Clock:
    now_us = 10**15

    def __call__(self):
        return self.now_us


def message(origin, seq):
    return Message((origin, seq), (), b"")


def events(folder):
    rows = []
    for file in sorted(folder.glob("*.node.parquet")):
        table = pq.read_table(file)
        columns = (table[name].to_pylist() for name in ("step", "kind", "origin", "seq", "value"))
        rows += zip(*columns, strict=True)
    return rows


def kinds(folder):
    return [kind for _, kind, *_ in events(folder)]


def test_the_log_of_a_node_keeps_its_order_and_verifies(tmp_path):
    ann, bob = EventLog(tmp_path, "ann"), EventLog(tmp_path, "bob")
    first, second = message("ann", 1), message("bob", 1)
    ann.broadcasted(first.id, [first])
    ann.delivered([first])
    bob.received([first])
    bob.delivered([first])
    bob.broadcasted(second.id, [second])
    bob.delivered([second])
    ann.received([second])
    ann.lost([("drop", second.id)])
    ann.close()
    bob.close()
    assert [row[:4] for row in events(tmp_path)] == [
        (0, "start", "", 0),
        (1, "broadcast", "ann", 1),
        (2, "deliver", "ann", 1),
        (3, "receive", "bob", 1),
        (4, "drop", "bob", 1),
        (5, "stop", "", 0),
        (0, "start", "", 0),
        (1, "receive", "ann", 1),
        (2, "deliver", "ann", 1),
        (3, "broadcast", "bob", 1),
        (4, "deliver", "bob", 1),
        (5, "stop", "", 0),
    ]
    (run,) = verify_events(tmp_path).runs
    assert (run.run, run.state, run.promise, run.deliveries) == ("group", "valid", "causal", 3)


def test_deliveries_before_a_broadcast_of_the_same_step_are_logged_before_it(tmp_path):
    log = EventLog(tmp_path, "ann")
    cause, own = message("bob", 1), message("ann", 1)
    log.broadcasted(own.id, [cause, own])
    log.delivered([cause, own])
    log.close()
    assert [row[1:4] for row in events(tmp_path)][1:-1] == [
        ("deliver", "bob", 1),
        ("broadcast", "ann", 1),
        ("deliver", "ann", 1),
    ]


def test_files_are_rotated_by_rows_and_by_age(tmp_path):
    clock = Clock()
    log = EventLog(tmp_path, "ann", rows_max=10, age_us_max=60 * SECOND_US, now_us=clock)
    for seq in range(25):
        log.delivered([message("bob", seq)])
    assert [len(pq.read_table(f)) for f in sorted(tmp_path.iterdir())] == [10, 10]
    clock.now_us += 61 * SECOND_US
    log.delivered([message("bob", 25)])
    assert len(list(tmp_path.iterdir())) == 3
    clock.now_us -= 3600 * SECOND_US  # set back: the log does not wait for the clock to catch up
    log.delivered([message("bob", 26)])
    assert len(list(tmp_path.iterdir())) == 4
    log.close()
    assert [step for step, *_ in events(tmp_path)] == list(range(29))


def test_a_node_without_a_store_that_is_killed_is_not_valid(tmp_path):
    log = EventLog(tmp_path, "ann", rows_max=3)
    for seq in range(5):
        log.broadcasted(("ann", seq), [message("ann", seq)])
        log.delivered([message("ann", seq)])
    (run,) = verify_events(tmp_path).runs
    assert run.state == "unknown"
    assert "no stop event, so killed or running: `ann`" in run.reason


def live(folder, disk, incarnation, seqs, *, commits, rows_max):
    """Run a node that broadcasts, and kill it after so many commits. Return its deliveries."""
    store = Transactions(disk)
    left = commits
    got = []

    def commit():
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        store.commit()

    log = EventLog(folder, "ann", store=store, incarnation=incarnation, rows_max=rows_max)
    try:
        commit()
        for seq in seqs:
            log.broadcasted(("ann", seq), [message("ann", seq)])
            log.delivered([message("ann", seq)])
            commit()
            got.append(seq)
        log.close()
        commit()
        commit()  # of what the last file made superfluous
    except Killed:
        pass
    return got


@pytest.mark.parametrize("rows_max", [2, 3, 5, 100])
@pytest.mark.parametrize("commits", range(5))
def test_a_node_killed_at_any_commit_has_logged_exactly_its_events(tmp_path, rows_max, commits):
    disk = Store()
    first = live(tmp_path, disk, 1, range(10), commits=commits, rows_max=rows_max)
    starts = 1 + bool(commits)  # the first life is one only if it was written down
    then = live(tmp_path, disk, starts, range(100, 110), commits=99, rows_max=rows_max)
    spoken = [seq for _, kind, _, seq, _ in events(tmp_path) if kind == "broadcast"]
    assert spoken == [*first, *then]
    assert kinds(tmp_path).count("start") == starts
    (run,) = verify_events(tmp_path).runs
    assert (run.state, run.deliveries) == ("valid", len(spoken))


def test_log_files_contained_events_lost_in_a_crash(tmp_path):
    """One transaction that is enough for several files, and never got to the disk."""
    disk = Store()
    store = Transactions(disk)
    log = EventLog(tmp_path, "ann", store=store, rows_max=4)
    store.commit()
    for seq in range(20):
        log.delivered([message("bob", seq)])
    assert list(tmp_path.iterdir()) == []
    live(tmp_path, disk, 2, range(3), commits=99, rows_max=100)
    assert kinds(tmp_path) == ["start", "start", *["broadcast", "deliver"] * 3, "stop"]
    (run,) = verify_events(tmp_path).runs
    assert run.state == "valid"


def test_a_start_without_a_log_is_recorded(tmp_path):
    disk = Store()
    live(tmp_path, disk, 1, range(3), commits=99, rows_max=100)
    live(tmp_path, disk, 3, range(10, 13), commits=99, rows_max=100)
    (run,) = verify_events(tmp_path).runs
    assert run.state == "unknown"
    assert "ran without a log: `ann`" in run.reason


def test_escaped_file_names_of_different_nodes_differ(tmp_path):
    for name in ("a/b", "a_b", "..", "é" * 128, "ann"):
        log = EventLog(tmp_path, name)
        log.broadcasted((name, 1), [message(name, 1)])
        log.delivered([message(name, 1)])
        log.close()
    assert len(list(tmp_path.iterdir())) == 5
    (run,) = verify_events(tmp_path).runs
    assert (run.state, run.broadcasts) == ("valid", 5)


def test_numbered_nodes_are_called_by_their_names(tmp_path):
    log = EventLog(tmp_path, "ann", name_of=("ann", "bob").__getitem__)
    log.delivered([message(1, 7)])
    log.close()
    assert (1, "deliver", "bob", 7, 0) in events(tmp_path)


def test_a_place_where_nothing_can_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a folder"):
        EventLog(tmp_path / "file", "ann")


def test_pyarrow_is_imported_when_an_event_log_is_opened_and_reported_if_missing(tmp_path):
    script = (
        "import sys; from pathlib import Path; import beforehand.runtime.storage.event_log as e; "
        "early = 'pyarrow' in sys.modules; sys.modules['pyarrow'] = None\n"
        f"try: e.EventLog(Path({str(tmp_path)!r}), 'ann')\n"
        "except e.InputError as error: print(early, error.problem)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False an event log needs `pyarrow`", done.stderr


FIRST_FILE = """
import sys
from pathlib import Path
from beforehand.runtime.storage.event_log import EventLog
log = EventLog(Path(sys.argv[1]), "ann")
before = set(sys.modules)
log.close()
print(sorted(set(sys.modules) - before))
"""


def test_all_that_a_file_needs_is_imported_before_the_node_has_links(tmp_path):
    """Arrow looks for pandas when it makes its first array: half a second in which no heartbeat is
    answered, and many seconds on a busy machine."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST_FILE, tmp_path / "log"], capture_output=True, text=True
    )
    assert found.stdout == "[]\n", found.stderr
