"""A station of CK: its transmissions, retransmissions and discards."""

from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.discard import FLUSH
from beforehand.protocols.mobile.ck.frames import (
    Ack,
    Bundle,
    Cast,
    ConnectAck,
    HostBroadcast,
    Join,
    Joined,
    Receipt,
    Relay,
    Welcome,
)
from beforehand.protocols.mobile.ck.seen import Seen
from beforehand.protocols.mobile.ck.station import ACK, GATHER, RETRY, CkStation
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import BroadcastAck, StationAck

LINE = ((0, 1), (1, 2))
G, H = 7, 8


class Bench:
    """The station in the middle of three, with the effects of its last step."""

    def __init__(self, *hosts, **pace):
        self.core = CkStation(1, LINE, Pace(**pace))
        self.out = Outbox()
        for host in hosts:
            self.join(host)

    def get(self, source, frame):
        self.out.clear()
        self.core.on_message(0, source, frame, self.out)
        return list(self.out.sends)

    def fire(self, timer):
        self.out.clear()
        self.core.on_timer(0, timer, self.out)
        return list(self.out.sends)

    def join(self, host, ses=1, counts=(0, 0)):
        self.get(host, Join(1, host, ses))
        self.get(0, Welcome(0, 1, host, ses, counts[0]))
        return self.get(2, Welcome(2, 1, host, ses, counts[1]))

    def relay(self, number, *needs):
        return self.get(0, Relay(0, number, needs or (0, 0, 0), message(number)))[1:]

    def ack(self, host, number, site=0):
        return self.get(host, Ack(1, host, 1, site, number))


def message(seq, origin=9):
    return Message((origin, seq), (), b"")


def cast(number, *hosts, turn=2):
    return EVERYBODY, Cast(1, turn, 0, number, message(number), hosts)


def test_a_message_is_sent_at_once_to_hosts_that_have_its_causes():
    bench = Bench(G, H)
    assert bench.relay(1) == [cast(1)]


def test_a_message_waits_until_its_host_has_acknowledged_its_causes():
    bench = Bench(G, H)
    bench.relay(1)
    assert bench.relay(2, 1, 0, 0) == []
    bench.ack(H, 1)
    assert bench.fire(GATHER) == [cast(2, H)]


def test_a_message_with_two_causes_waits_for_both():
    bench = Bench(G)
    bench.relay(1)
    bench.get(2, Relay(2, 1, (0, 0, 0), message(7)))
    assert bench.relay(2, 1, 0, 1) == []
    bench.ack(G, 1)
    assert bench.fire(GATHER) == []
    bench.ack(G, 1, site=2)
    assert bench.fire(GATHER) == [cast(2, turn=1)]


def test_messages_behind_a_gap_are_sent_when_the_gap_is_filled():
    bench = Bench(G)
    bench.relay(1)
    bench.relay(2)
    assert bench.relay(3, 2, 0, 0) == []
    bench.ack(G, 2)
    assert bench.fire(GATHER) == []
    bench.ack(G, 1)
    assert bench.fire(GATHER) == [cast(3, turn=1)]


def test_with_room_for_one_message_the_oldest_is_sent():
    bench = Bench(G, inflight_max=1)
    bench.relay(1)
    assert bench.relay(2, 1, 0, 0) + bench.relay(3) == []  # 3 waits for nothing but room
    bench.ack(G, 1)
    assert bench.fire(GATHER) == [cast(2, turn=1)]


def test_concurrent_messages_are_sent_together():
    bench = Bench(G)
    assert bench.relay(1) + bench.relay(2) == [cast(1, turn=1), cast(2, turn=1)]


def test_one_transmission_serves_all_hosts_that_acknowledged_shortly_before():
    bench = Bench(G, H)
    bench.relay(1)
    bench.relay(2, 1, 0, 0)
    bench.ack(G, 1)
    bench.ack(H, 1)
    assert bench.fire(GATHER) == [cast(2)]
    assert bench.fire(GATHER) == []


def test_no_more_than_agreed_is_in_flight_to_a_host():
    bench = Bench(G, inflight_max=1)
    assert [bench.relay(number) for number in (1, 2, 3)] == [[cast(1, turn=1)], [], []]
    bench.ack(G, 1)
    assert bench.fire(GATHER) == [cast(2, turn=1)]


def test_a_retransmission_names_only_the_hosts_that_lack_the_message():
    bench = Bench(G, H)
    bench.relay(1)
    assert bench.fire(RETRY) == []  # it was just transmitted
    bench.ack(G, 1)
    assert bench.fire(RETRY) == [cast(1, H)]


def test_with_three_rounds_in_an_interval_every_third_repeats_a_message():
    bench = Bench(G, rounds=3)
    bench.relay(1)
    assert bench.out.timers[-1] == (RETRY, bench.core._pace.retry_us(1) // 3)
    again = [bench.fire(RETRY) for _ in range(8)]
    assert [len(sent) for sent in again] == [0, 0, 0, 1, 0, 0, 1, 0]


def test_a_message_depends_on_earlier_deliveries_and_broadcasts_of_its_host():
    bench = Bench(G)
    relays = [
        bench.get(G, HostBroadcast(1, G, 1, message(seq, G), past))[0][1]
        for seq, past in ((1, (3, 0, 0)), (2, (3, 0, 5)))
    ]
    assert [(relay.number, relay.needs) for relay in relays] == [(1, (3, 0, 0)), (2, (3, 1, 5))]


def test_broadcasts_of_a_host_are_relayed_in_order_and_once():
    bench = Bench(G)
    broadcasts = [HostBroadcast(1, G, 1, message(seq, G), (0, 0, 0)) for seq in (1, 2)]
    assert bench.get(G, broadcasts[1]) == []
    relayed = [frame.message.seq for peer, frame in bench.get(G, broadcasts[0]) if peer == 0]
    assert relayed == [1, 2]
    assert bench.get(G, broadcasts[0]) == []
    assert bench.fire(ACK) == [(EVERYBODY, StationAck(1, (BroadcastAck(G, 1, 3),)))]


def test_broadcasts_and_acknowledgements_of_another_connection_are_ignored():
    bench = Bench(G)
    bench.relay(1)
    assert bench.get(G, HostBroadcast(1, G, 2, message(1, G), (0, 0, 0))) == []
    bench.get(G, Ack(1, G, 2, 0, 1))
    assert bench.fire(FLUSH) == []


def test_acknowledgements_are_bundled_to_the_initiating_station():
    bench = Bench(G, H)
    bench.relay(1)
    assert bench.ack(G, 1) == bench.ack(H, 1) == bench.ack(H, 1) == []
    bundle = Bundle((Receipt(0, G, 1), Receipt(0, H, 1)), ())
    assert bench.fire(FLUSH) == [(0, bundle)]
    assert bench.fire(FLUSH) == []


def test_receipts_for_other_stations_are_forwarded_with_the_next_bundle():
    bench = Bench()
    bench.get(0, Bundle((Receipt(2, 5, 4),), ()))
    assert bench.fire(FLUSH) == [(2, Bundle((Receipt(2, 5, 4),), ()))]


def test_a_message_is_kept_until_its_initiating_station_reports_it_complete():
    bench = Bench(G)
    bench.relay(1)
    bench.ack(G, 1)
    assert list(bench.core.kept) == [(0, 1)]
    bench.get(0, Bundle((), ((0, 1),)))
    assert list(bench.core.kept) == []
    sent = dict(bench.fire(FLUSH))
    assert sent == {0: Bundle((Receipt(0, G, 1),), ()), 2: Bundle((), ((0, 1),))}


def test_a_station_discards_its_own_message_when_the_last_host_anywhere_has_it():
    bench = Bench(G)
    bench.get(2, Joined(2, 5, 1))
    bench.get(G, HostBroadcast(1, G, 1, message(1, G), (0, 0, 0)))
    bench.ack(G, 1, site=1)
    assert list(bench.core.kept) == [(1, 1)]
    bench.get(2, Bundle((Receipt(1, 5, 1),), ()))
    assert list(bench.core.kept) == []
    delete = Bundle((), ((1, 1),))
    assert bench.fire(FLUSH) == [(0, delete), (2, delete)]


def test_a_joining_host_starts_after_the_messages_already_initiated():
    bench = Bench(G)
    bench.get(G, HostBroadcast(1, G, 1, message(1, G), (0, 0, 0)))
    [(_, joined), _] = bench.get(H, Join(1, H, 1))
    assert joined == Joined(1, H, 1)
    assert bench.get(0, Welcome(0, 1, H, 1, 4)) == []
    accepted = ConnectAck(1, H, 1, 1, 2, (4, 1, 6))
    assert bench.get(2, Welcome(2, 1, H, 1, 6)) == [(EVERYBODY, accepted)]
    assert bench.relay(4) == [cast(4, G)]


def test_a_host_must_acknowledge_only_messages_after_its_join():
    bench = Bench()
    answer = Welcome(1, 0, H, 1, 0)
    assert bench.get(0, Joined(0, H, 1)) == [(2, Joined(0, H, 1)), (0, answer)]
    bench.join(G)
    bench.get(G, HostBroadcast(1, G, 1, message(1, G), (0, 0, 0)))
    bench.ack(G, 1, site=1)
    assert list(bench.core.kept) == [(1, 1)]
    bench.get(0, Joined(2, H, 2))  # it joins again, elsewhere
    assert list(bench.core.kept) == []


def test_an_earlier_join_does_not_affect_a_later_one():
    bench = Bench()
    bench.get(0, Joined(0, H, 2))
    assert bench.get(2, Joined(2, H, 1)) == [(0, Joined(2, H, 1))]


def test_receptions_out_of_order_count_when_the_gap_is_filled():
    seen = Seen((3, 0))
    assert seen.add((0, 5)) == []
    assert ((0, 5) in seen, (0, 4) in seen, seen.counts, seen.last()) == (
        *(True, False),
        *((3, 0), (5, 0)),
    )
    assert (seen.first_missing((5, 0)), seen.first_missing((3, 0))) == ((0, 5), None)
    assert seen.add((0, 4)) == [(0, 4), (0, 5)]
    assert (seen.counts, seen.extra, seen.first_missing((5, 0))) == ((5, 0), (), None)
