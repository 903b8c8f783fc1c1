"""Stations and hosts of TCP-Flooding step by step."""

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.tcp_flooding.connection import RESEND, Tcp
from beforehand.protocols.mobile.tcp_flooding.flooding import CONNECT, GAP, TcpHost, TcpStation
from beforehand.protocols.mobile.tcp_flooding.frames import Segment, Syn, SynAck
from beforehand.protocols.mobile.was.frames import Relay

LINE = ((0, 1), (1, 2))
F, G, H = 6, 7, 8


class Bench:
    """A core, with the effects of its last step."""

    def __init__(self, core):
        self.core = core
        self.out = Outbox()

    def do(self, name, *args, now_us=0):
        self.out.clear()
        getattr(self.core, f"on_{name}")(now_us, *args, self.out)
        return list(self.out.sends)

    def get(self, source, frame, now_us=0):
        return self.do("message", source, frame, now_us=now_us)

    def due(self, key):
        return [due_us for timer, due_us in self.out.timers if timer == key][-1:]


def station(*hosts):
    bench = Bench(TcpStation(1, LINE))
    for host in hosts:
        bench.get(host, Syn(1, host, 1))
    return bench


def host(ses=1):
    bench = Bench(TcpHost(H))
    bench.do("link", 1, True)
    bench.get(1, SynAck(1, H, ses))
    return bench


def message(seq, origin=9):
    return Message((origin, seq), (), b"")


def segment(first, *messages, host=H, ack=0, ses=1):
    return Segment(1, host, ses, first, ack, messages)


def test_a_message_goes_to_each_host_separately_with_a_gap_in_between():
    bench = station(F, G, H)
    sent = bench.get(0, Relay(message(1)))
    assert sent == [(2, Relay(message(1))), (F, segment(0, message(1), host=F))]
    assert bench.due(GAP) == [5_000]
    assert bench.do("timer", GAP, now_us=5_000) == [(G, segment(0, message(1), host=G))]
    assert bench.due(GAP) == [10_000]
    assert bench.do("timer", GAP, now_us=10_000) == [(H, segment(0, message(1), host=H))]
    assert bench.due(GAP) == []


def test_broadcasts_of_a_host_are_flooded_and_not_returned_to_it():
    bench = station(G, H)
    sent = bench.get(H, segment(0, message(1, H)))
    relay = Relay(message(1, H))
    assert sent == [(0, relay), (2, relay), (G, segment(0, message(1, H), host=G))]


def test_broadcasts_of_a_host_are_flooded_in_order_and_once():
    bench = station(H)
    assert len(bench.get(H, segment(1, message(2, H)))) == 1  # it acknowledges the gap
    floods = [f.message.seq for peer, f in bench.get(H, segment(0, message(1, H))) if peer == 0]
    assert floods == [1, 2]
    assert [type(f) for _, f in bench.get(H, segment(0, message(1, H)))] == [Segment]


def test_messages_reach_a_host_in_the_order_of_its_station():
    bench = station(F, G)
    bench.get(0, Relay(message(1)))
    bench.core.guests.pop(F)  # so that the next one would be due at once
    assert bench.get(0, Relay(message(2)), now_us=1) == [(2, Relay(message(2)))]
    [(_, sent)] = bench.do("timer", GAP, now_us=5_000)
    assert sent.messages == (message(1), message(2))


def test_the_next_turn_is_not_missed_because_a_later_one_was_set():
    bench = station(*range(10, 20))
    bench.get(0, Relay(message(1)))
    for _ in range(8):
        bench.do("timer", GAP, now_us=40_000)
    assert bench.due(GAP) == [45_000]
    bench.get(0, Relay(message(2)), now_us=41_000)
    assert bench.due(GAP) == [45_000]
    bench.do("timer", GAP, now_us=45_000)
    assert bench.due(GAP) == [46_000]


def test_a_clock_that_was_set_back_delays_nothing():
    bench = station(F, G)
    bench.get(0, Relay(message(1)), now_us=1_000_000_000)
    assert [peer for peer, _ in bench.do("timer", GAP, now_us=7)] == [G]


def test_a_connection_is_opened_again_for_a_host_that_missed_the_answer():
    bench = station(H)
    bench.get(0, Relay(message(1)))
    assert bench.get(H, Syn(1, H, 1)) == [(H, SynAck(1, H, 1))]
    assert bench.core.gauges(0)["kept"] == 1


def test_a_returning_host_starts_anew_and_its_queued_messages_are_lost():
    bench = station(H)
    bench.get(0, Relay(message(1)))
    assert bench.get(H, Syn(1, H, 2)) == [(H, SynAck(1, H, 2))]
    assert bench.core.gauges(0) == {"guests": 1, "kept": 0, "early": 0}
    assert bench.get(H, Syn(1, H, 1)) == []
    assert bench.get(H, segment(0, message(1, H))) == []  # of the connection before


def test_a_station_accepts_only_frames_addressed_to_it():
    bench = station(H)
    assert bench.get(H, Segment(0, H, 1, 0, 0, (message(1, H),))) == []
    assert bench.get(G, segment(0, message(1, G), host=G)) == []


def test_the_timers_of_a_host_are_those_of_its_connection():
    bench = station(H)
    bench.get(0, Relay(message(1)))
    assert bench.do("timer", (RESEND, H)) == [(H, segment(0, message(1)))]
    assert bench.do("timer", (RESEND, G)) == []


def test_a_host_requests_a_connection_with_growing_intervals():
    bench = Bench(TcpHost(H))
    assert bench.do("link", 1, True) == [(1, Syn(1, H, 1))]
    dues_us = bench.due(CONNECT)
    for _ in range(2):
        assert bench.do("timer", CONNECT) == [(1, Syn(1, H, 1))]
        dues_us += bench.due(CONNECT)
    assert dues_us == [200_000, 400_000, 800_000]
    bench.get(1, SynAck(1, H, 1))
    assert bench.do("timer", CONNECT) == []


def test_its_own_messages_are_delivered_at_once_and_sent_when_it_is_connected():
    bench = Bench(TcpHost(H))
    id = bench.core.on_broadcast(0, b"", bench.out)
    assert [m.id for m in bench.out.deliveries] == [id]
    assert bench.core.explain(id).state == "delivered"
    bench.do("link", 1, True)
    assert bench.get(1, SynAck(1, H, 1)) == [(1, segment(0, message(1, H)))]


def test_broadcasts_of_others_are_delivered_in_order():
    bench = host()
    bench.get(1, segment(1, message(2)))
    assert bench.out.deliveries == []
    bench.get(1, segment(0, message(1)))
    assert bench.out.deliveries == [message(1), message(2)]


def test_a_host_accepts_only_frames_of_its_station_and_connection():
    bench = host()
    assert bench.get(2, segment(0, message(1))) == []
    assert bench.get(1, segment(0, message(1), ses=2)) == []
    assert bench.get(1, segment(0, message(1), host=G)) == []
    assert bench.core.gauges(0) == {"unacked": 0, "early": 0}


def test_a_host_that_changes_cells_drops_unsure_broadcasts_and_sends_the_rest_in_the_new_cell():
    bench = Bench(TcpHost(H, tcp=Tcp(window_start=1)))
    bench.do("link", 1, True)
    bench.get(1, SynAck(1, H, 1))
    for _ in range(2):
        bench.core.on_broadcast(0, b"", bench.out)
    bench.do("link", 2, True)
    assert bench.out.losses == [("drop", (H, 1))]
    [(_, sent)] = bench.get(2, SynAck(2, H, 2))
    assert (sent.first, sent.messages) == (0, (message(2, H),))


def test_messages_have_no_lifetimes():
    with pytest.raises(LocalError):
        TcpHost(H).on_broadcast(0, b"", Outbox(), 5)


def test_the_system_declares_that_its_hosts_neither_move_nor_crash():
    system = SYSTEMS["tcp_flooding"]
    assert (system.is_mobile, system.survives_crashes) == (False, False)
