"""The way of a host from station to station in CK, and what may come between."""

from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.frames import (
    Ack,
    Connect,
    ConnectAck,
    Fetch,
    HostBroadcast,
    HostState,
    Join,
    Joined,
    Refused,
    Relay,
    Welcome,
)
from beforehand.protocols.mobile.ck.station import GATHER, CkStation

STAR = ((1, 0), (1, 2), (1, 3))
H = 7
NOTHING = ((0, 0), (0, 0, 0, 0), ())


class Bench:
    """The station in the middle of four, with the effects of its last step."""

    def __init__(self):
        self.core = CkStation(1, STAR)
        self.out = Outbox()

    def get(self, source, frame):
        self.out.clear()
        self.core.on_message(0, source, frame, self.out)
        return list(self.out.sends)

    def connect(self, ses, old):
        return self.get(H, Connect(1, H, ses, old))

    def fetch(self, ses, source=0):
        return self.get(source, Fetch(source, 1, H, ses))

    def give(self, ses, next_broadcast=1, rest=NOTHING, source=0):
        return self.get(source, HostState(source, 1, H, ses, next_broadcast, *rest))


def joined():
    bench = Bench()
    bench.get(H, Join(1, H, 1))
    for station in (0, 2, 3):
        bench.get(station, Welcome(station, 1, H, 1, 0))
    return bench


def handed_on(ses=2, to=0):
    bench = joined()
    bench.fetch(ses, to)
    return bench


def accepted(ses, turn=1, next_broadcast=1):
    return EVERYBODY, ConnectAck(1, H, ses, next_broadcast, turn)


def given(ses, target=0, next_broadcast=1, rest=NOTHING):
    return target, HostState(1, target, H, ses, next_broadcast, *rest)


def refused(ses, target=0):
    return target, Refused(1, target, H, ses)


def test_the_new_station_fetches_the_state_before_it_registers_the_host():
    bench = Bench()
    assert bench.connect(2, old=0) == [(0, Fetch(1, 0, H, 2))]
    assert bench.connect(2, old=0) == []
    rest = ((0, 3), (4, 0, 0, 0), ((0, 6),))
    assert bench.give(2, 5, rest) == [accepted(2, next_broadcast=5)]
    assert bench.connect(2, old=0) == [accepted(2, next_broadcast=5)]
    bench.get(0, Relay(0, 5, (4, 0, 0, 0), Message((9, 1), (), b"")))
    assert list(bench.core.handoff.guests[H].in_flight) == [(0, 5)]


def test_the_old_station_hands_over_acknowledgements_and_broadcasts():
    bench = joined()
    bench.get(H, HostBroadcast(1, H, 1, Message((H, 1), (), b""), (0, 0, 0, 0)))
    bench.get(H, Ack(1, H, 1, 1, 1))
    bench.get(H, Ack(1, H, 1, 3, 2))
    assert bench.fetch(2) == [given(2, 0, 2, ((1, 1), (0, 1, 0, 0), ((3, 2),)))]
    assert bench.core.handoff.guests == {}


def test_messages_unacknowledged_at_the_old_station_are_sent_by_the_new_one():
    bench = Bench()
    bench.get(0, Relay(0, 1, (0, 0, 0, 0), Message((9, 1), (), b"")))
    bench.connect(2, old=0)
    bench.give(2)
    bench.out.clear()
    bench.core.on_timer(0, GATHER, bench.out)
    assert [frame.number for _, frame in bench.out.sends] == [1]


def test_after_a_handoff_the_old_station_ignores_the_host():
    bench = handed_on()
    say = HostBroadcast(1, H, 1, Message((H, 1), (), b""), (0, 0, 0, 0))
    assert bench.get(H, say) == bench.get(H, Ack(1, H, 1, 0, 1)) == []


def test_a_later_request_is_redirected_to_the_station_that_has_the_host():
    bench = handed_on(ses=2, to=0)
    assert bench.fetch(3, source=2) == [(0, Fetch(2, 0, H, 3))]


def test_an_older_connection_is_refused_wherever_it_asks():
    assert handed_on(ses=3).fetch(2, source=2) == [refused(2, 2)]
    bench = joined()
    bench.connect(4, old=1)
    assert bench.fetch(3) == [refused(3)]
    bench = Bench()
    bench.connect(4, old=0)
    assert bench.fetch(3, source=2) == [refused(3, 2)]


def test_a_host_that_returns_to_its_station_continues_at_once():
    bench = joined()
    assert bench.connect(3, old=1) == [accepted(3, turn=2)]
    assert bench.connect(2, old=1) == []


def test_a_host_that_returns_after_a_handoff_is_fetched_from_the_next_station():
    bench = handed_on(ses=2, to=0)
    assert bench.connect(3, old=1) == [(0, Fetch(1, 0, H, 3))]
    bench.give(3)
    assert bench.fetch(4, source=2) == [given(4, 2)]


def test_a_station_forwards_its_own_returned_request_to_the_station_that_has_the_host():
    bench = handed_on(ses=7, to=2)
    bench.connect(8, old=0)
    assert bench.get(0, Fetch(1, 1, H, 8)) == [(2, Fetch(1, 2, H, 8))]


def test_a_request_during_a_handoff_is_served_at_its_end():
    bench = handed_on(ses=2, to=0)
    bench.connect(3, old=1)
    assert bench.fetch(4, source=2) == []
    assert bench.give(3) == [accepted(3, turn=2), given(4, 2)]


def test_the_newer_of_two_waiting_requests_is_served_and_the_older_refused():
    for order in ((4, 5), (5, 4)):
        bench = handed_on(ses=2, to=0)
        bench.connect(3, old=1)
        sent = [bench.fetch(ses, source=ses - 2) for ses in order]
        assert sent == [[], [refused(4, 2)]]
        assert bench.give(3)[1:] == [given(5, 3)]


def test_a_refused_station_redirects_waiting_requests():
    bench = handed_on(ses=2, to=0)
    bench.connect(3, old=1)
    bench.fetch(5, source=2)
    assert bench.get(0, Refused(0, 1, H, 3)) == [(0, Fetch(2, 0, H, 5))]
    assert bench.core.handoff.pending == {}


def test_a_refused_station_requests_again_if_the_host_returned_meanwhile():
    bench = Bench()
    bench.connect(2, old=0)
    assert bench.connect(4, old=0) == []
    assert bench.get(0, Refused(0, 1, H, 2)) == [(0, Fetch(1, 0, H, 4))]
    assert bench.give(4) == [accepted(4)]


def test_frames_for_other_stations_are_forwarded_hop_by_hop():
    fetch = Fetch(0, 2, H, 2)
    assert Bench().get(0, fetch) == [(2, fetch)]


def test_a_join_at_another_station_ends_an_unanswered_one():
    bench = joined()
    bench.get(0, Joined(0, H, 2))
    assert bench.core.handoff.guests == {}
    bench = Bench()
    bench.get(H, Join(1, H, 1))
    bench.get(0, Joined(0, H, 2))
    assert bench.core.handoff.pending == {}


def test_a_repeated_join_is_answered_again_and_a_later_one_starts_anew():
    bench = joined()
    [(_, again)] = bench.get(H, Join(1, H, 1))
    assert again.start == (0, 0, 0, 0)
    assert [frame for _, frame in bench.get(H, Join(1, H, 3))] == [Joined(1, H, 3)] * 3
    assert bench.core.handoff.guests == {}
