"""A group for scripts, over real links on loopback."""

from __future__ import annotations

import threading

import pytest

from beforehand.errors import InputError, LocalError
from beforehand.runtime.blocking import BlockingGroup
from beforehand.runtime.keys import new_group


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


def test_a_script_says_and_reads(harbour):
    with member(harbour, "ann") as ann, member(harbour, "bob", str(ann.addresses[0])) as bob:
        ids = [ann.broadcast(b"%d" % index) for index in range(3)]
        messages = [bob.receive(timeout=10) for _ in range(3)]
        assert [message.payload for message in messages] == [b"0", b"1", b"2"]
        assert [message.id for message in messages] == ids
        assert [peer.name for peer in bob.peers] == ["ann"]
        assert bob.explain(ids[0]).state == "delivered"
        assert bob.pending == ()
        assert bob.receive(timeout=0.01) is None
        bob.broadcast(b"last", lifetime="5m")
        assert [m.payload for m in ann.messages(timeout=1)] == [b"last"]
    assert bob.counters.messages.delivered == 4


def test_acknowledged_in_a_script_they_do_not_come_again(harbour):
    with member(harbour, "ann") as ann:
        peer = str(ann.addresses[0])
        ann.broadcast(b"one")
        ann.broadcast(b"two")
        with member(harbour, "bob", peer, inbox=True) as bob:
            first = bob.receive(timeout=10)
            bob.receive(timeout=10)
            bob.acknowledge([first.id])
        with member(harbour, "bob", peer, inbox=True) as bob:
            again = bob.receive(timeout=10)
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
        assert len([bob.receive(timeout=10) for _ in range(40)]) == 40


def test_who_waits_in_another_thread_is_told_when_the_group_is_closed(harbour):
    answers = []
    with member(harbour, "ann") as ann:
        reader = threading.Thread(target=lambda: answers.append(ann.receive()))
        reader.start()
    reader.join(10)
    assert answers == [None]


def test_outside_of_its_block_it_says_so(harbour):
    ann = member(harbour, "ann")
    with pytest.raises(LocalError, match="not open"):
        ann.broadcast(b"early")
    with ann:
        pass
    with pytest.raises(LocalError, match="not open"):
        ann.receive()
    with pytest.raises(LocalError, match="opened before"):
        ann.__enter__()


def test_what_keeps_it_from_opening_is_raised_and_leaves_no_thread(harbour):
    before = threading.active_count()
    (harbour / "ann.db").write_bytes(b"no store")
    with pytest.raises(InputError, match="not a store"):
        member(harbour, "ann").__enter__()
    assert threading.active_count() == before
