"""A group for scripts, over real links on loopback."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from beforehand.errors import InputError, LocalError
from beforehand.runtime.blocking import BlockingGroup
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.storage.group_commit import GroupCommit
from tests.waiting import SECONDS_MAX


@pytest.fixture
def harbour(tmp_path):
    new_group("harbour").write(tmp_path / "harbour.key")
    return tmp_path


def member(folder, name, *peers, **options):
    return BlockingGroup(
        "harbour",
        name=name,
        store=folder / f"{name}.db",
        key=folder / "harbour.key",
        lifetime="20m",
        listen="127.0.0.1:0",
        peers=peers,
        discover=False,
        **options,
    )


def test_a_script_broadcasts_and_reads(harbour):
    with member(harbour, "ann") as ann, member(harbour, "bob", str(ann.addresses[0])) as bob:
        ids = [ann.broadcast(b"%d" % index) for index in range(3)]
        messages = [bob.receive(timeout=SECONDS_MAX) for _ in range(3)]
        assert [message.payload for message in messages] == [b"0", b"1", b"2"]
        assert [message.id for message in messages] == ids
        assert [peer.name for peer in bob.peers] == ["ann"]
        assert bob.explain(ids[0]).state == "delivered"
        assert bob.pending == ()
        assert bob.receive(timeout=0.01) is None
        bob.broadcast(b"last", lifetime="5m")
        assert next(ann.messages(timeout=SECONDS_MAX)).payload == b"last"
        assert list(ann.messages(timeout=0.01)) == []
    assert bob.counters.messages.delivered == 4


def test_messages_acknowledged_in_a_script_are_not_delivered_again(harbour):
    with member(harbour, "ann") as ann:
        peer = str(ann.addresses[0])
        ann.broadcast(b"one")
        ann.broadcast(b"two")
        with member(harbour, "bob", peer, inbox=True) as bob:
            first = bob.receive(timeout=SECONDS_MAX)
            bob.receive(timeout=SECONDS_MAX)
            bob.acknowledge([first.id])
        with member(harbour, "bob", peer, inbox=True) as bob:
            again = bob.receive(timeout=SECONDS_MAX)
            assert again.payload == b"two"
            again.ack()
            assert bob.receive(timeout=0.1) is None
        with member(harbour, "bob", peer, inbox=True) as bob:
            assert bob.receive(timeout=0.1) is None


def test_several_threads_may_use_it(harbour):
    with member(harbour, "ann") as ann, member(harbour, "bob", str(ann.addresses[0])) as bob:
        speakers = [
            threading.Thread(target=lambda: [ann.broadcast(b"x") for _ in range(10)])
            for _ in range(4)
        ]
        for speaker in speakers:
            speaker.start()
        for speaker in speakers:
            speaker.join()
        assert len([bob.receive(timeout=SECONDS_MAX) for _ in range(40)]) == 40


def test_a_message_was_acknowledged_in_the_thread_of_its_reader(harbour, monkeypatch):
    """The event loop was not woken, and two threads changed the store."""
    threads = []

    def save(self, saves):
        threads.append(threading.current_thread().name)
        original(self, saves)

    original = GroupCommit.save
    with member(harbour, "ann") as ann:
        ann.broadcast(b"one")
        with member(harbour, "bob", str(ann.addresses[0]), inbox=True) as bob:
            message = bob.receive(timeout=SECONDS_MAX)
            monkeypatch.setattr(GroupCommit, "save", save)
            message.ack()
            assert threads == ["beforehand-harbour"]
        with pytest.raises(LocalError, match="not open"):
            message.ack()


def test_using_a_closed_group_raises_not_open(harbour):
    told = []

    def speak():
        try:
            while True:
                ann.broadcast(b"x")
        except LocalError as error:
            told.append(error)

    with member(harbour, "ann", durable="os") as ann:
        speakers = [threading.Thread(target=speak) for _ in range(4)]
        for speaker in speakers:
            speaker.start()
        ann.broadcast(b"y")
    for speaker in speakers:
        speaker.join(SECONDS_MAX)
    assert len(told) == 4


def test_a_process_that_was_forked_cannot_use_it_and_does_it_no_harm(harbour):
    script = """
import os, sys
from beforehand import BlockingGroup, LocalError
with BlockingGroup("harbour", name="ann", store="ann.db", key="harbour.key", lifetime="20m",
                   listen="127.0.0.1:0", discover=False) as ann:
    before = ann.broadcast(b"before")
    if os.fork() == 0:
        try:
            ann.broadcast(b"in the child")
        except LocalError:
            sys.exit(7)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
    after = ann.broadcast(b"after")
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=harbour, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode == -9
    with member(harbour, "ann") as ann:
        assert ann.held == 2


def test_a_thread_that_waits_is_woken_when_the_group_is_closed(harbour):
    answers = []
    with member(harbour, "ann") as ann:
        reader = threading.Thread(target=lambda: answers.append(ann.receive()))
        reader.start()
    reader.join(SECONDS_MAX)
    assert answers == [None]


def test_using_a_group_outside_of_its_block_raises_not_open(harbour):
    ann = member(harbour, "ann")
    with pytest.raises(LocalError, match="not open"):
        ann.broadcast(b"early")
    with ann:
        pass
    with pytest.raises(LocalError, match="not open"):
        ann.receive()
    with pytest.raises(LocalError, match="opened before"):
        ann.__enter__()


def test_a_failed_opening_raises_its_cause_and_leaves_no_thread(harbour):
    before = threading.active_count()
    (harbour / "ann.db").write_bytes(b"no store")
    with pytest.raises(InputError, match="not a store"):
        member(harbour, "ann").__enter__()
    assert threading.active_count() == before
