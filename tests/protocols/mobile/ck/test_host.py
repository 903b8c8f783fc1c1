"""A host of CK step by step."""

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.frames import (
    Ack,
    Cast,
    Connect,
    ConnectAck,
    HostBroadcast,
    Join,
)
from beforehand.protocols.mobile.ck.host import CONNECT, RETRY, CkHost
from beforehand.protocols.mobile.was.frames import BroadcastAck, StationAck

H = 7


class Bench:
    """A host, with the effects of its last step."""

    def __init__(self):
        self.core = CkHost(H)
        self.out = Outbox()

    def do(self, name, *args):
        self.out.clear()
        getattr(self.core, f"on_{name}")(0, *args, self.out)
        return list(self.out.sends)

    def get(self, frame):
        return self.do("message", frame.cell, frame)

    def delivered(self):
        return [message.id for message in self.out.deliveries]


def connected(ses=1, turn=3, start=(2, 5)):
    bench = Bench()
    bench.do("link", 1, True)
    bench.get(ConnectAck(1, H, ses, 1, turn, start))
    return bench


def message(seq):
    return Message((9, seq), (), b"")


def cast(number, *hosts, turn=3, cell=1):
    return Cast(cell, turn, 0, number, message(number), hosts)


def test_a_host_repeats_join_until_answered_and_sends_connect_afterwards():
    bench = Bench()
    assert bench.do("link", 1, True) == [(1, Join(1, H, 1))]
    assert bench.do("timer", CONNECT) == [(1, Join(1, H, 1))]
    assert bench.do("link", 2, True) == [(2, Join(2, H, 2))]
    bench.get(ConnectAck(2, H, 2, 1, 1, (0,)))
    assert bench.do("timer", CONNECT) == []
    bench.do("link", 2, False)
    assert bench.do("link", 3, True) == [(3, Connect(3, H, 3, 2))]
    assert bench.do("link", 1, True) == [(1, Connect(1, H, 4, 2))]


def test_a_received_message_is_delivered_and_acknowledged_at_once():
    bench = connected()
    assert bench.get(cast(3)) == [(1, Ack(1, H, 1, 0, 3))]
    assert bench.delivered() == [(9, 3)]


def test_a_duplicate_is_acknowledged_again_and_not_delivered():
    bench = connected()
    first = bench.get(cast(3))
    assert bench.get(cast(3, H)) == first
    assert bench.delivered() == []


def test_frames_for_other_hosts_are_ignored():
    bench = connected()
    assert bench.get(cast(3, 8, 9)) == []
    assert bench.delivered() == []


def test_casts_before_the_registration_are_not_delivered():
    bench = connected(turn=3)
    assert bench.get(cast(3, turn=2)) == []
    assert bench.delivered() == []


def test_before_its_registration_a_host_delivers_nothing():
    bench = Bench()
    bench.do("link", 1, True)
    assert bench.get(cast(3)) == []
    assert bench.get(ConnectAck(1, H, 2, 1, 1, (0,))) == []
    assert bench.core.state == "connecting"


def test_a_frame_of_another_cell_is_ignored():
    bench = connected()
    assert bench.do("message", 2, cast(3, cell=2)) == bench.do("message", 2, cast(3)) == []


def test_a_broadcast_carries_the_deliveries_that_preceded_it():
    bench = connected()
    bench.get(cast(4))
    bench.core.on_broadcast(0, b"x", bench.out)
    bench.get(cast(3))
    [(_, say)] = bench.do("timer", RETRY)
    assert say == HostBroadcast(1, H, 1, Message((H, 1), (), b"x"), (4, 5))


def test_broadcasts_before_the_join_have_no_causes():
    bench = Bench()
    bench.core.on_broadcast(0, b"", bench.out)
    bench.do("link", 1, True)
    sent = bench.get(ConnectAck(1, H, 1, 1, 1, (2, 5)))
    assert sent == [(1, HostBroadcast(1, H, 1, Message((H, 1), (), b""), (0, 0)))]


def test_a_host_repeats_broadcasts_that_its_station_lacks():
    bench = connected()
    for _ in range(3):
        bench.core.on_broadcast(0, b"", bench.out)
    bench.get(StationAck(1, (BroadcastAck(H, 1, 2, ((3, 3),)), BroadcastAck(8, 1, 9))))
    assert [say.message.seq for _, say in bench.do("timer", RETRY)] == [2]


def test_broadcasts_known_to_the_new_station_are_not_repeated():
    bench = connected()
    for _ in range(2):
        bench.core.on_broadcast(0, b"", bench.out)
    bench.do("link", 2, True)
    sent = bench.get(ConnectAck(2, H, 2, 2, 1))
    assert [say.message.seq for _, say in sent] == [2]
    assert bench.core.explain((H, 2)).state == "waiting"


def test_a_message_that_only_the_old_station_had_is_repeated_in_the_new_cell():
    """The old station had 3 ahead of its turn, and drops it in the handoff."""
    bench = connected()
    for _ in range(3):
        bench.do("broadcast", b"")
    bench.get(StationAck(1, (BroadcastAck(H, 1, 1, ((3, 3),)),)))
    assert [frame.message.seq for _, frame in bench.do("timer", RETRY)] == [1, 2]
    bench.do("link", 2, True)
    sent = bench.get(ConnectAck(2, H, 2, 1, 1, (0, 0)))
    assert [frame.message.seq for _, frame in sent] == [1, 2, 3]
    assert bench.do("timer", RETRY) == sent, "none of them was heard there"


def test_messages_have_no_lifetimes():
    with pytest.raises(LocalError):
        CkHost(H).on_broadcast(0, b"", Outbox(), 5)
