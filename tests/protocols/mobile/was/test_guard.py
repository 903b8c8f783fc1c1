"""The guard unregisters the hosts that fill a cell with retransmissions."""

from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import Connect, ConnectAck, HostAck, Join, Place, Relay
from beforehand.protocols.mobile.was.host import ACK, Host
from beforehand.protocols.mobile.was.station import RETRY, Station

G, H = 7, 8
SECOND_US = 1_000_000
STRICT = {"repeats_max": 0.5, "repeats_window": 4}


class Bench:
    """A station with two hosts, to which `said` messages were transmitted once."""

    def __init__(self, said=1, **pace):
        self.core = Station(1, ((0, 1),), Pace(**pace))
        self.out = Outbox()
        for host in (G, H):
            self.core.on_message(0, host, Join(1, host, 1, ()), self.out)
        for seq in range(1, said + 1):
            self.core.on_message(0, 0, Relay(Message((9, seq), (), b"")), self.out)

    def ack(self, host, next, now_us):
        self.core.on_message(now_us, host, HostAck(1, host, Place(1, False, next)), self.out)

    def repeat(self, *at_us):
        """Return the registered hosts after each round of retransmissions."""
        there = []
        for now_us in at_us:
            self.core.on_timer(now_us, RETRY, self.out)
            there.append(list(self.core.cell.guests))
        return there


def seconds(*times):
    return [time * SECOND_US for time in times]


def test_if_most_transmissions_are_repeats_the_host_that_blocks_most_is_unregistered():
    bench = Bench(said=2, **STRICT)
    bench.ack(G, 1, 0)
    there = bench.repeat(*seconds(1, 2, 3, 4))
    assert there == [[G, H], [G, H], [G, H], [G]]


def test_a_host_that_acknowledged_recently_stays_registered_despite_repeats():
    bench = Bench(**STRICT)
    for second in range(1, 10):
        for host in (G, H):
            bench.ack(host, 0, second * SECOND_US)
        assert bench.repeat(second * SECOND_US) == [[G, H]]


def test_the_others_are_judged_by_what_is_transmitted_afterwards():
    bench = Bench(**STRICT)
    there = bench.repeat(*seconds(*range(1, 10)))
    assert [len(guests) for guests in there] == [2, 2, 2, 2, 1, 1, 1, 1, 0]


def test_few_repeats_unregister_no_host():
    bench = Bench(repeats_max=0.5, repeats_window=4)
    for second in range(1, 10):
        for seq in (1, 2):
            relay = Relay(Message((9, 10 * second + seq), (), b""))
            bench.core.on_message(second * SECOND_US, 0, relay, bench.out)
        bench.ack(G, bench.core.cell.next, second * SECOND_US)
        bench.core.cell.guests[H].next = bench.core.cell.next - 1
        bench.core.cell.discard()
        assert bench.repeat(second * SECOND_US) == [[G, H]]


def test_by_default_no_host_is_unregistered_for_repeats():
    assert Bench().repeat(*seconds(*range(1, 200)))[-1] == [G, H]


def test_a_clock_that_was_set_back_neither_silences_nor_keeps_a_host():
    bench = Bench(**STRICT)
    for host in (G, H):
        bench.ack(host, 0, 1_000 * SECOND_US)
    there = bench.repeat(*seconds(1, 2, 3, 4, 5))
    assert [len(guests) for guests in there] == [2, 2, 2, 2, 1]


def test_catch_up_messages_count_as_repeats_and_as_owed():
    bench = Bench(said=0, **STRICT)
    guest = bench.core.cell.guests[H]
    guest.catch_up = {0: Message((9, 1), (), b"")}
    bench.core._is_repeating = True
    there = bench.repeat(*seconds(1, 2, 3, 4, 5))
    assert [len(guests) for guests in there] == [2, 2, 2, 2, 1]


def test_an_idle_host_acknowledges_periodically_to_stay_registered():
    core, out = Host(H, Pace(repeats_max=0.5)), Outbox()
    core.on_link(0, 1, True, out)
    core.on_message(0, 1, ConnectAck(1, H, 1, 1, 0), out)
    assert (ACK, 500_000) in out.timers
    out.clear()
    core.on_timer(500_000, ACK, out)
    assert [type(frame) for _, frame in out.sends] == [HostAck]
    assert (ACK, 1_000_000) in out.timers


def test_a_host_during_a_handoff_is_not_unregistered():
    bench = Bench(said=1, **STRICT)
    connect = Connect(1, 9, 2, Place(1), 1, ((0, 1),))
    bench.core.on_message(0, 9, connect, bench.out)
    assert bench.repeat(*seconds(*range(1, 30)))[-1] == [9]


def test_patience_is_the_shorter_of_the_two_limits():
    assert Pace().patience_us is None
    assert Pace(silence_us=5).patience_us == 5
    assert Pace(silence_us=5, repeats_max=0.1).patience_us == 5
    assert Pace(repeats_max=0.1, quiet_us=3).patience_us == 3
