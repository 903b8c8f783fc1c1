"""Options for choices that the papers leave open: pace, CK and TCP."""

import pytest

from beforehand.protocols.contract.base import CANCEL, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.frames import Cast as CkCast
from beforehand.protocols.mobile.ck.frames import (
    ConnectAck,
    HostBroadcast,
    Join,
    Relay,
    SeenAck,
    Welcome,
)
from beforehand.protocols.mobile.ck.host import HOST_ACK, CkHost
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.ck.station import CkStation
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.tcp_flooding.connection import ACK, RESEND, Connection, Tcp
from beforehand.protocols.mobile.tcp_flooding.frames import Segment
from beforehand.protocols.mobile.was.frames import Cast, HostAck, Place
from beforehand.protocols.mobile.was.frames import ConnectAck as WasConnectAck
from beforehand.protocols.mobile.was.host import ACK as WAS_ACK
from beforehand.protocols.mobile.was.host import Host

H, S = 7, 1
SECOND_US = 1_000_000
INET = Tcp(
    timeout_us_first=3 * SECOND_US, timeout_us_min=SECOND_US, measures=True, ack_us=0, window=1
)


class Stepper:
    """A core, with the effects of its last step."""

    def __init__(self, core):
        self.core = core
        self.out = Outbox()

    def do(self, name, *args, now_us=0):
        self.out.clear()
        getattr(self.core, name)(now_us, *args, self.out)
        return [frame for _, frame in self.out.sends]

    def get(self, source, frame):
        return self.do("on_message", source, frame)

    def due(self, timer):
        return [due_us for name, due_us in self.out.timers if name == timer][-1:]


def message(seq, origin=9):
    return Message((origin, seq), (), b"")


# ---- pace ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("full_at", "pending", "retry_ms"),
    [(None, 75, 600), (None, 150, 200), (50, 25, 600), (50, 50, 200), (50, 150, 200)],
)
def test_the_interval_is_shortest_from_the_given_number_of_messages_on(full_at, pending, retry_ms):
    assert Pace(retry_full_at=full_at).retry_us(pending) == 1000 * retry_ms


@pytest.mark.parametrize(("has_ranges", "ranges"), [(True, ((2, 2),)), (False, ())])
def test_a_cumulative_acknowledgement_names_nothing_behind_a_gap(has_ranges, ranges):
    host = Stepper(Host(H, Pace(ack_ranges=has_ranges)))
    host.do("on_link", S, True)
    host.get(S, WasConnectAck(S, H, 1, 1, 0))
    host.get(S, Cast(S, 0, message(1)))
    host.get(S, Cast(S, 2, message(3)))
    assert host.do("on_timer", WAS_ACK) == [HostAck(S, H, Place(1, False, 1), ranges)]


# ---- CK ------------------------------------------------------------------------------------------


def ck_host(**options):
    host = Stepper(CkHost(H, options=CkOptions(**options)))
    host.do("on_link", S, True)
    host.get(S, ConnectAck(S, H, 1, 1, 1, (0, 0)))
    return host


def ck_station(**options):
    """Station 1 of a line of three, with the hosts 7 and 8."""
    station = Stepper(CkStation(S, ((0, 1), (1, 2)), options=CkOptions(**options)))
    for host in (H, 8):
        station.get(host, Join(S, host, 1))
        for peer in (0, 2):
            station.get(peer, Welcome(peer, S, host, 1, 0))
    return station


def test_a_periodic_acknowledgement_has_all_that_a_ck_host_has_delivered():
    host = ck_host(ack_us=25_000)
    assert host.get(S, CkCast(S, 1, 0, 1, message(1))) == []
    assert host.due(HOST_ACK) == [25_000]
    host.get(S, CkCast(S, 1, 1, 2, message(2)))
    assert host.due(HOST_ACK) == []
    assert host.do("on_timer", HOST_ACK) == [SeenAck(S, H, 1, (1, 0), ((1, 2),))]
    assert host.due(HOST_ACK) == []
    assert host.do("on_timer", HOST_ACK) == []


def test_a_ck_host_acknowledges_always_if_it_is_set_to():
    host = ck_host(ack_us=25_000, acks_always=True)
    assert host.do("on_timer", HOST_ACK, now_us=7) == [SeenAck(S, H, 1, (0, 0))]
    assert host.due(HOST_ACK) == [25_007]


def test_a_periodic_acknowledgement_of_the_old_cell_is_none_in_the_next():
    host = ck_host(ack_us=25_000)
    host.get(S, CkCast(S, 1, 0, 1, message(1)))
    host.do("on_link", 2, True)
    host.get(2, ConnectAck(2, H, 2, 1, 1))
    host.get(2, CkCast(2, 1, 0, 2, message(2)))
    assert host.due(HOST_ACK) == [25_000]


@pytest.mark.parametrize(("needs", "past"), [("host", (1, 0)), ("station", ())])
def test_a_ck_host_names_what_it_has_delivered_unless_its_station_does(needs, past):
    host = ck_host(needs=needs)
    host.get(S, CkCast(S, 1, 0, 1, message(1)))
    assert host.do("on_broadcast", b"") == [HostBroadcast(S, H, 1, message(1, H), past)]


@pytest.mark.parametrize(("option", "past", "needs"), [("host", (0, 0, 0), 0), ("station", (), 1)])
def test_a_ck_message_depends_on_what_its_host_or_its_station_has(option, past, needs):
    station = ck_station(needs=option)
    station.get(0, Relay(0, 1, (0, 0, 0), message(1)))
    sent = station.get(H, HostBroadcast(S, H, 1, message(1, H), past))
    relays = [frame.needs for frame in sent if isinstance(frame, Relay)]
    assert relays == [(needs, 0, 0)] * 2


def test_a_periodic_acknowledgement_frees_the_messages_behind_it():
    station = ck_station(ack_us=25_000)
    station.get(0, Relay(0, 1, (0, 0, 0), message(1)))
    station.get(0, Relay(0, 2, (1, 0, 0), message(2)))
    before = station.core.gauges(0)["lacking"]
    station.get(H, SeenAck(S, H, 1, (1, 0, 0)))
    assert station.core.gauges(0)["lacking"] == before - 1
    station.get(H, SeenAck(S, H, 1, (1 << 62, 0, 0)))  # a wrong host costs no more than this
    assert station.core.gauges(0)["lacking"] == before - 2


def test_an_acknowledgement_with_another_number_of_stations_is_refused():
    station = ck_station(ack_us=25_000)
    station.get(H, SeenAck(S, H, 1, (1,)))
    assert station.core.counters.refused == 1


# ---- TCP -----------------------------------------------------------------------------------------


class Sender:
    """The station's end of a connection that measures its round trips."""

    def __init__(self, tcp=INET):
        self.core = Connection(S, S, H, 1, tcp)
        self.out = Outbox()
        self.offered = 0

    def send(self, now_us):
        self.core.offer(message(self.offered))
        self.offered += 1
        self.out.clear()
        self.core.push(now_us, self.out)
        return self.timeout_us(now_us)

    def acknowledge(self, now_us):
        self.out.clear()
        self.core.on_segment(now_us, Segment(S, H, 1, 0, self.offered, ()), self.out)

    def time_out(self, now_us):
        self.out.clear()
        self.core.on_timer(now_us, (RESEND, H), self.out)
        return self.timeout_us(now_us)

    def timeout_us(self, now_us):
        return max(due_us for timer, due_us in self.out.timers if timer == (RESEND, H)) - now_us


def test_the_first_timeout_is_given_and_the_next_ones_follow_the_round_trips():
    sender = Sender()
    assert sender.send(0) == 3_000_000
    sender.acknowledge(80_000)
    # A smoothed 10 ms, and a deviation of 750 - (750 - 80) / 8 ms.
    assert sender.send(SECOND_US) == 10_000 + 4 * 666_250


def test_the_timeout_never_falls_below_the_least_one():
    sender = Sender()
    for turn in range(40):
        timeout_us = sender.send(turn * SECOND_US)
        sender.acknowledge(turn * SECOND_US + 1_000)
    assert timeout_us == SECOND_US


def test_a_doubled_timeout_stays_until_a_segment_is_measured_that_was_sent_once():
    sender = Sender()
    sender.send(0)
    assert sender.time_out(3 * SECOND_US) == 6 * SECOND_US
    sender.acknowledge(3 * SECOND_US + 80_000)
    assert sender.send(10 * SECOND_US) == 6 * SECOND_US
    sender.acknowledge(10 * SECOND_US + 80_000)
    assert sender.send(20 * SECOND_US) < 3 * SECOND_US


@pytest.mark.parametrize(("ack_us", "acks"), [(200_000, []), (0, [1])])
def test_an_acknowledgement_is_delayed_only_if_it_is_set_to(ack_us, acks):
    end = Sender(Tcp(ack_us=ack_us))
    end.core.on_segment(0, Segment(S, H, 1, 0, 0, (message(1),)), end.out)
    assert [frame.ack for _, frame in end.out.sends] == acks
    is_set = any(timer == (ACK, H) and due_us is not CANCEL for timer, due_us in end.out.timers)
    assert is_set == (not acks)
