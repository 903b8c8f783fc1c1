"""A station step by step: the messages that it relays, transmits and keeps."""

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.pace import Pace, ranges_of
from beforehand.protocols.mobile.was.frames import (
    BroadcastAck,
    Cast,
    Connect,
    ConnectAck,
    Delete,
    Forgotten,
    HostAck,
    HostBroadcast,
    Join,
    Leave,
    LeaveAck,
    Place,
    Relay,
    Request1,
    StationAck,
)
from beforehand.protocols.mobile.was.station import ACK, RETRY, Station

LINE = ((0, 1), (1, 2))
H, G = 7, 8


class Bench:
    """The station in the middle of three, with the effects of its last step."""

    def __init__(self, node=1, **pace):
        self.core = Station(node, LINE, Pace(**pace))
        self.out = Outbox()

    def get(self, source, frame, now_us=0):
        self.out.clear()
        self.core.on_message(now_us, source, frame, self.out)
        return list(self.out.sends)

    def fire(self, timer, now_us=0):
        self.out.clear()
        self.core.on_timer(now_us, timer, self.out)
        return list(self.out.sends)

    def join(self, host, ses=1):
        return self.get(host, Join(1, host, ses, ()))

    def say(self, seq, host=H, ses=1):
        return self.get(host, HostBroadcast(1, host, ses, message(seq, host)))

    def ack(self, next, *ranges, host=H):
        return self.get(host, HostAck(1, host, Place(1, False, next), ranges))

    def kept(self):
        return [kept.message.id for kept in self.core.cell.kept.values()]


def message(seq, origin=9):
    return Message((origin, seq), (), b"")


def cast(seq, origin=9):
    return EVERYBODY, Cast(1, seq - 1, message(seq, origin))


def test_a_joining_host_starts_with_the_oldest_kept_message():
    bench = Bench()
    assert bench.join(G) == [(EVERYBODY, ConnectAck(1, G, 1, 1, 0, is_new=True))]
    bench.get(0, Relay(message(1)))
    bench.get(0, Relay(message(2)))
    bench.ack(1, host=G)
    assert bench.join(H) == [(EVERYBODY, ConnectAck(1, H, 1, 1, 1, is_new=True))]


def test_a_repeated_join_is_answered_again():
    bench = Bench()
    assert bench.join(H) == bench.join(H) != []


def test_a_join_ends_earlier_registrations():
    sent = Bench().get(H, Join(1, H, 3, ((0, 1), (2, 2), (1, 1))))
    assert sent[:2] == [(0, Delete(1, 0, H, 1)), (2, Delete(1, 2, H, 2))]


def test_broadcasts_of_a_host_go_to_the_cell_and_all_wired_stations():
    bench = Bench()
    bench.join(H)
    relay = Relay(message(1, H))
    assert bench.say(1) == [(0, relay), (2, relay), cast(1, origin=H)]


def test_relayed_messages_are_not_returned_to_their_sender():
    bench = Bench()
    bench.join(H)
    assert bench.get(0, Relay(message(1))) == [(2, Relay(message(1))), cast(1)]


def test_broadcasts_of_a_host_are_relayed_in_order_and_once():
    bench = Bench()
    bench.join(H)
    assert bench.say(2) == []
    ids = [f.message.id for _, f in bench.say(1) if isinstance(f, Relay)]
    assert ids == [(H, 1), (H, 1), (H, 2), (H, 2)]
    assert bench.say(1) == []


def test_broadcasts_of_another_connection_or_cell_are_not_relayed():
    bench = Bench()
    bench.join(H, ses=2)
    assert bench.say(1, ses=1) == []
    assert bench.get(H, HostBroadcast(0, H, 2, message(1, H))) == []


def test_a_cell_without_hosts_transmits_and_keeps_nothing():
    bench = Bench()
    assert bench.get(0, Relay(message(1))) == [(2, Relay(message(1)))]
    assert bench.kept() == []


def test_a_message_is_kept_until_all_hosts_have_acknowledged_it():
    bench = Bench()
    bench.join(H)
    bench.join(G)
    bench.get(0, Relay(message(1)))
    bench.ack(1)
    assert bench.kept() == [(9, 1)]
    bench.ack(1, host=G)
    assert bench.kept() == []


def test_an_acknowledgement_of_another_connection_is_ignored():
    bench = Bench()
    bench.join(H, ses=2)
    bench.get(0, Relay(message(1)))
    bench.ack(1)
    assert bench.kept() == [(9, 1)]


def test_only_messages_that_some_host_lacks_are_cast_again():
    bench = Bench()
    bench.join(H)
    for seq in (1, 2, 3):
        bench.get(0, Relay(message(seq)))
    assert bench.fire(RETRY) == []  # all of it was just transmitted
    bench.ack(0, (1, 1))
    assert bench.fire(RETRY) == [cast(1), cast(3)]


def test_with_three_rounds_in_an_interval_every_third_repeats_a_message():
    bench = Bench(rounds=3)
    bench.join(H)
    bench.get(0, Relay(message(1)))
    assert bench.out.timers == [(RETRY, bench.core._pace.retry_us(1) // 3)]
    again = [bench.fire(RETRY) for _ in range(5)]
    bench.get(0, Relay(message(2)))
    again += [bench.fire(RETRY) for _ in range(5)]
    assert again == [[], [], [], [cast(1)], [], [], [cast(1)], [], [cast(2)], [cast(1)]]


def test_no_more_than_agreed_is_in_flight():
    bench = Bench(inflight_max=2)
    bench.join(H)
    sent = [bench.get(0, Relay(message(seq)))[1:] for seq in (1, 2, 3)]
    assert sent == [[cast(1)], [cast(2)], []]
    assert bench.ack(1) == [cast(3)]


def test_hosts_learn_which_of_their_broadcasts_the_station_has():
    bench = Bench()
    bench.join(H)
    bench.say(1)
    bench.say(3)
    assert bench.fire(ACK) == [(EVERYBODY, StationAck(1, (BroadcastAck(H, 1, 2, ((3, 3),)),)))]
    assert bench.fire(ACK) == []


def test_a_silent_host_that_owes_acknowledgements_is_unregistered_and_notified():
    bench = Bench(silence_us=1_000)
    bench.join(H)
    assert bench.fire(RETRY, 5_000) == []
    bench.get(0, Relay(message(1)), 9_000)
    bench.ack(0)
    bench.core.cell.guests[H].last_frame_us = 9_000
    bench.fire(RETRY, 9_999)
    assert bench.kept() == [(9, 1)]
    bench.fire(RETRY, 10_000)
    assert (bench.kept(), bench.core.cell.guests) == ([], {})
    assert bench.ack(1) == [(EVERYBODY, Forgotten(1, H, 1))]


def test_a_leaving_host_is_unregistered_at_every_station():
    bench = Bench()
    bench.join(H)
    sent = bench.get(H, Leave(1, H, 1, ((0, 1),)))
    assert sent == [(0, Delete(1, 0, H, 1)), (EVERYBODY, LeaveAck(1, H, 1))]
    assert bench.core.cell.guests == {}


def test_late_frames_of_a_host_that_left_do_not_register_it_again():
    bench = Bench()
    bench.join(H)
    bench.get(H, Leave(1, H, 1, ()))
    assert bench.join(H) == []
    assert bench.get(H, Connect(1, H, 1, Place(), 1, ())) == []
    assert bench.core.cell.guests == {}


def test_a_delete_applies_to_its_connection_and_earlier_ones():
    bench = Bench()
    bench.join(H, ses=3)
    bench.get(0, Delete(0, 1, H, 2))
    assert H in bench.core.cell.guests
    bench.get(0, Delete(0, 1, H, 3))
    assert H not in bench.core.cell.guests


def test_frames_for_other_stations_are_forwarded_hop_by_hop():
    request = Request1(0, 2, H, 2, Place(1))
    assert Bench().get(0, request) == [(2, request)]


@pytest.mark.parametrize("wires", [((0, 1), (1, 2), (2, 0)), ((0, 1), (2, 3)), ((5, 6),)])
def test_wires_that_are_no_tree_are_refused(wires):
    with pytest.raises(LocalError, match="no tree"):
        Station(0, wires)


def test_ranges_are_as_few_as_possible():
    assert ranges_of([1, 2, 3, 7, 9, 10]) == ((1, 3), (7, 7), (9, 10))
