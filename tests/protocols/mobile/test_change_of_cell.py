"""A host that changes its cell keeps nothing of the old one that would mislead it in the next."""

from beforehand.protocols.contract.base import CANCEL, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.mobile.ck import frames as ck
from beforehand.protocols.mobile.ck.host import RETRY as CK_RETRY
from beforehand.protocols.mobile.ck.host import CkHost
from beforehand.protocols.mobile.tcp_flooding import flooding as tcp
from beforehand.protocols.mobile.tcp_flooding.frames import Segment, Syn, SynAck
from beforehand.protocols.mobile.was.frames import (
    Cast,
    CatchUp,
    Connect,
    ConnectAck,
    HostAck,
    HostBroadcast,
    Place,
)
from beforehand.protocols.mobile.was.host import ACK, RETRY, Host

A, B, C = 1, 2, 3
ME, ORIGIN = 7, 9


class Walker:
    """A host, with the effects of its last step."""

    def __init__(self, core):
        self.core = core
        self.out = Outbox()
        self.store = Store()

    def do(self, name, *args):
        self.out.clear()
        getattr(self.core, name)(0, *args, self.out)
        self.store.save(self.out.saves)
        return [frame for _, frame in self.out.sends]

    def enter(self, cell):
        return self.do("on_link", cell, True)

    def hear(self, frame):
        return self.do("on_message", frame.cell, frame)

    def fire(self, timer):
        return self.do("on_timer", timer)

    def is_set(self, timer):
        return any(name == timer and due_us is not CANCEL for name, due_us in self.out.timers)

    def delivered(self):
        return [message.seq for message in self.out.deliveries]

    def crash(self):
        self.core = Host(ME, durable=True)
        self.do("restore", self.store.load(self.core.tables))


def message(seq, origin=ORIGIN):
    return Message((origin, seq), (), b"")


def connected(next=0, **options):
    walker = Walker(Host(ME, **options))
    walker.enter(A)
    walker.hear(ConnectAck(A, ME, 1, 1, next))
    return walker


# ---- WAS -----------------------------------------------------------------------------------------


def test_messages_caught_up_are_acknowledged_although_the_old_station_was_owed_an_ack():
    walker = connected()
    walker.hear(Cast(A, 0, message(1)))
    walker.enter(B)
    walker.hear(CatchUp(B, ME, 2, 0, message(2)))
    assert walker.is_set(ACK)


def test_messages_are_acknowledged_after_a_catch_up_that_still_waited_for_its_answer():
    walker = connected()
    walker.enter(B)
    walker.hear(CatchUp(B, ME, 2, 0, message(1)))
    walker.fire(ACK)
    walker.hear(ConnectAck(B, ME, 2, 1, 4))
    walker.hear(Cast(B, 4, message(2)))
    assert walker.is_set(ACK)
    assert walker.fire(ACK) == [HostAck(B, ME, Place(2, False, 5))]


def test_broadcasts_are_repeated_in_the_next_cell_although_the_old_timer_was_running():
    walker = connected()
    walker.do("on_broadcast", b"")
    assert walker.is_set(RETRY)
    walker.enter(B)
    walker.hear(ConnectAck(B, ME, 2, 1, 0))
    assert walker.is_set(RETRY)
    assert walker.fire(RETRY) == [HostBroadcast(B, ME, 2, message(1, ME))]


def test_a_position_in_the_old_cell_is_none_in_the_next():
    walker = connected(next=8)
    walker.enter(B)
    walker.hear(ConnectAck(B, ME, 2, 1, 3))
    walker.hear(Cast(B, 3, message(1)))
    assert walker.delivered() == [1]


def test_a_host_without_a_cell_sends_nothing_and_keeps_its_broadcasts():
    walker = connected()
    walker.do("on_link", A, False)
    assert walker.do("on_broadcast", b"") == []
    walker.enter(B)
    sent = walker.hear(ConnectAck(B, ME, 2, 1, 0))
    assert sent == [HostBroadcast(B, ME, 2, message(1, ME))]


def test_a_connection_number_is_never_used_again_after_a_crash():
    walker = connected(durable=True)
    walker.enter(B)
    walker.crash()
    assert walker.enter(A) == [Connect(A, ME, 3, Place(1, False, 0), 1, None)]


def test_a_host_that_crashes_right_after_its_registration_knows_its_position():
    walker = connected(next=4, durable=True)
    walker.crash()
    assert walker.enter(B) == [Connect(B, ME, 2, Place(1, False, 4), 1, None)]


# ---- CK ------------------------------------------------------------------------------------------


def connected_ck():
    walker = Walker(CkHost(ME))
    walker.enter(A)
    walker.hear(ck.ConnectAck(A, ME, 1, 1, 1, (0, 0, 0)))
    return walker


def test_ck_broadcasts_are_repeated_in_the_next_cell_although_the_old_timer_was_running():
    walker = connected_ck()
    walker.do("on_broadcast", b"")
    walker.enter(B)
    sent = walker.hear(ck.ConnectAck(B, ME, 2, 1, 1))
    assert walker.is_set(CK_RETRY)
    assert walker.fire(CK_RETRY) == sent != []


def test_ck_asks_the_last_station_that_registered_the_host():
    walker = connected_ck()
    walker.enter(B)
    walker.hear(ck.ConnectAck(B, ME, 2, 1, 1))
    assert walker.enter(C) == [ck.Connect(C, ME, 3, B)]


# ---- TCP-Flooding --------------------------------------------------------------------------------


def test_tcp_asks_the_next_station_as_patiently_as_the_first():
    walker = Walker(tcp.TcpHost(ME))
    walker.enter(A)
    first = walker.out.timers[-1]
    walker.fire(tcp.CONNECT)
    assert walker.enter(B) == [Syn(B, ME, 2)]
    assert walker.out.timers[-1] == first


def test_tcp_sends_nothing_on_the_connection_that_it_left():
    walker = Walker(tcp.TcpHost(ME))
    walker.enter(A)
    walker.hear(SynAck(A, ME, 1))
    walker.do("on_link", A, False)
    assert walker.do("on_broadcast", b"") == []
    walker.enter(B)
    sent = walker.hear(SynAck(B, ME, 2))
    assert sent == [Segment(B, ME, 2, 0, 0, (message(1, ME),))]
