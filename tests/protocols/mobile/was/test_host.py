"""A host step by step: its requests, its deliveries and its saved state."""

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import (
    BroadcastAck,
    Cast,
    CatchUp,
    Connect,
    ConnectAck,
    Forgotten,
    HostAck,
    HostBroadcast,
    Join,
    Leave,
    LeaveAck,
    Place,
    StationAck,
)
from beforehand.protocols.mobile.was.host import ACK, BROADCASTS, CONNECT, MEMORY, RETRY, Host

A, B = "a", "b"
ME = 7


class Bench:
    """One host, with the effects of its last step."""

    def __init__(self, **options):
        self.core = Host(ME, **options)
        self.out = Outbox()
        self.store = Store()

    def do(self, name, *args, now_us=0):
        self.out.clear()
        getattr(self.core, name)(now_us, *args, self.out)
        self.store.save(self.out.saves)
        return [frame for _, frame in self.out.sends]

    def enter(self, cell):
        return self.do("on_link", cell, True)

    def hear(self, frame, source=None):
        return self.do("on_message", source or frame.cell, frame)

    def fire(self, timer, now_us=0):
        return self.do("on_timer", timer, now_us=now_us)

    def say(self, payload=b""):
        return self.do("on_broadcast", payload)

    def join(self, cell=A, next=0):
        self.enter(cell)
        self.hear(ConnectAck(cell, ME, 1, 1, next, is_new=True))

    def delivered(self):
        return [message.id for message in self.out.deliveries]

    def crash(self):
        self.core = Host(ME, durable=True)
        self.do("restore", self.store.load(self.core.tables))


def message(seq, origin=9):
    return Message((origin, seq), (), b"")


def cast(seq, cell=A):
    return Cast(cell, seq, message(seq))


def test_a_host_joins_as_soon_as_it_is_in_a_cell_and_asks_until_it_is_answered():
    bench = Bench()
    assert bench.enter(A) == [Join(A, ME, 1, ())]
    assert bench.fire(CONNECT) == [Join(A, ME, 1, ())]
    bench.hear(ConnectAck(A, ME, 1, 1, 5, is_new=True))
    assert bench.core.state == "connected"
    assert bench.fire(CONNECT) == []


def test_a_host_that_moves_before_an_answer_names_the_station_that_may_have_registered_it():
    bench = Bench()
    bench.enter(A)
    assert bench.enter(B) == [Join(B, ME, 2, ((A, 1),))]
    bench.hear(ConnectAck(B, ME, 2, 1, 0, is_new=True))
    assert bench.enter(A) == [Connect(A, ME, 3, Place(2, False, 0), 1, ((B, 2),))]


def test_an_answer_to_an_earlier_connection_is_ignored():
    bench = Bench()
    bench.enter(A)
    bench.enter(B)
    bench.enter(A)
    bench.hear(ConnectAck(A, ME, 1, 1, 0))
    assert bench.core.state == "connecting"


def test_every_broadcast_has_a_number_of_its_own():
    bench = Bench()
    bench.join()
    assert [bench.say() for _ in range(2)] == [
        [HostBroadcast(A, ME, 1, message(1, ME))],
        [HostBroadcast(A, ME, 1, message(2, ME))],
    ]
    assert bench.delivered() == []


def test_its_own_message_is_delivered_when_it_comes_back():
    bench = Bench()
    bench.join()
    bench.say()
    bench.hear(Cast(A, 0, message(1, ME)))
    assert bench.delivered() == [(ME, 1)]


def test_messages_are_delivered_in_the_order_of_the_cell():
    bench = Bench()
    bench.join(next=3)
    bench.hear(cast(5))
    bench.hear(cast(4))
    assert bench.delivered() == []
    bench.hear(cast(3))
    assert bench.delivered() == [(9, 3), (9, 4), (9, 5)]
    bench.hear(cast(4))
    assert bench.delivered() == []


def test_messages_delivered_elsewhere_are_skipped_and_their_successors_delivered():
    bench = Bench()
    bench.enter(A)
    bench.hear(ConnectAck(A, ME, 1, 1, 0, delivered=((1, 2), (4, 4))))
    bench.hear(cast(3))
    bench.hear(cast(5))
    bench.hear(cast(0))
    assert bench.delivered() == [(9, 0), (9, 3), (9, 5)]
    assert bench.fire(ACK) == [HostAck(A, ME, Place(1, False, 6))]


def test_a_copy_that_was_sent_before_the_handoff_ended_is_not_delivered_again():
    bench = Bench()
    bench.enter(A)
    bench.hear(ConnectAck(A, ME, 1, 1, 0, delivered=((1, 1),)))
    bench.hear(cast(1))
    bench.hear(cast(0))
    assert bench.delivered() == [(9, 0)]
    assert bench.core.gauges(0)["early"] == 0
    bench.hear(cast(1))
    assert bench.delivered() == []


def test_messages_delivered_elsewhere_have_numbers_of_the_cell():
    bench = Bench()
    bench.enter(A)
    bench.hear(ConnectAck(A, ME, 1, 1, 0, delivered=((0, 0),)))
    bench.enter(B)
    bench.hear(CatchUp(B, ME, 2, 0, message(8)))
    assert bench.delivered() == [(9, 8)]


def test_an_acknowledgement_names_the_received_ranges():
    bench = Bench()
    bench.join()
    for seq in (0, 2, 3, 5):
        bench.hear(cast(seq))
    assert bench.fire(ACK) == [HostAck(A, ME, Place(1, False, 1), ((2, 3), (5, 5)))]
    assert bench.fire(ACK) == []


def test_out_of_order_messages_of_one_cell_are_dropped_in_the_next():
    bench = Bench()
    bench.join()
    bench.hear(cast(1))
    bench.enter(B)
    bench.hear(ConnectAck(B, ME, 2, 1, 1))
    assert bench.delivered() == []
    bench.hear(Cast(B, 1, message(8)))
    assert bench.delivered() == [(9, 8)]


def test_a_frame_of_another_cell_is_ignored():
    bench = Bench()
    bench.join()
    for frame, source in ((cast(0, cell=B), B), (cast(0), B), (cast(0, cell=B), A)):
        bench.hear(frame, source)
        assert bench.delivered() == []


def test_casts_before_the_connection_is_established_are_not_counted():
    bench = Bench()
    bench.join()
    bench.enter(B)
    bench.hear(cast(0, cell=B))
    assert bench.delivered() == []


def test_an_acknowledgement_clears_broadcasts_and_changes_nothing_else():
    bench = Bench()
    bench.join()
    for _ in range(3):
        bench.say()
    bench.hear(StationAck(A, (BroadcastAck(ME, 1, 2, ((3, 3),)), BroadcastAck(8, 1, 9))))
    assert bench.fire(RETRY) == [HostBroadcast(A, ME, 1, message(2, ME))]
    bench.hear(cast(0))
    assert bench.delivered() == [(9, 0)]


def test_unacknowledged_broadcasts_are_repeated_sooner_the_more_there_are():
    bench = Bench(pace=Pace(inflight_max=4))
    bench.join()
    bench.say()
    assert bench.out.timers == [(RETRY, 800_000)]
    for _ in range(4):
        bench.say()
    assert bench.say() == []  # no more than four in flight
    assert len(bench.fire(RETRY)) == 4
    assert bench.out.timers == [(RETRY, 200_000)]


def test_broadcasts_known_after_the_handoff_are_not_repeated():
    bench = Bench()
    bench.join()
    bench.say()
    bench.say()
    bench.enter(B)
    sent = bench.hear(ConnectAck(B, ME, 2, 2, 0))
    assert sent == [HostBroadcast(B, ME, 2, message(2, ME))]
    assert bench.out.losses == []


def test_a_message_that_only_the_old_station_had_is_repeated_in_the_new_cell():
    """The old station had 3 ahead of its turn, and drops it in the handoff."""
    bench = Bench()
    bench.join()
    for _ in range(3):
        bench.say()
    bench.hear(StationAck(A, (BroadcastAck(ME, 1, 1, ((3, 3),)),)))
    assert bench.fire(RETRY) == [HostBroadcast(A, ME, 1, message(seq, ME)) for seq in (1, 2)]
    bench.enter(B)
    sent = bench.hear(ConnectAck(B, ME, 2, 1, 0))
    assert sent == [HostBroadcast(B, ME, 2, message(seq, ME)) for seq in (1, 2, 3)]
    assert bench.fire(RETRY) == sent, "none of them was heard there"


def test_a_host_registered_as_new_drops_its_broadcasts_and_reports_them():
    bench = Bench()
    bench.join()
    bench.say()
    bench.enter(B)
    assert bench.hear(ConnectAck(B, ME, 2, 2, 0, is_new=True)) == []
    assert bench.out.losses == [("drop", (ME, 1))]


def test_a_host_catches_up_before_casts_and_repeats_its_confirmation():
    bench = Bench()
    bench.join(next=4)
    bench.enter(B)
    bench.hear(CatchUp(B, ME, 2, 1, message(2)))
    bench.hear(CatchUp(B, ME, 2, 0, message(1)))
    assert bench.delivered() == [(9, 1), (9, 2)]
    for _ in range(2):
        assert bench.fire(ACK) == [HostAck(B, ME, Place(2, True, 2))]
    bench.hear(ConnectAck(B, ME, 2, 1, 9))
    bench.hear(CatchUp(B, ME, 2, 1, message(2)))
    assert bench.delivered() == []
    bench.hear(cast(9, cell=B))
    assert bench.delivered() == [(9, 9)]


def test_a_host_that_moves_during_catch_up_reports_its_position():
    bench = Bench()
    bench.join()
    bench.enter(B)
    bench.hear(CatchUp(B, ME, 2, 0, message(1)))
    assert bench.enter(A) == [Connect(A, ME, 3, Place(2, True, 1), 1, ((A, 1), (B, 2)))]


def test_an_unregistered_host_connects_again():
    bench = Bench()
    bench.join()
    assert bench.hear(Forgotten(A, ME, 1)) == [Connect(A, ME, 2, Place(1, False, 0), 1, ((A, 1),))]


def test_a_leaving_host_repeats_leave_until_answered_and_stays_silent():
    bench = Bench()
    bench.join()
    assert bench.do("on_leave") == [Leave(A, ME, 1, ((A, 1),))]
    assert bench.enter(B) == [Leave(B, ME, 2, ((A, 1),))]
    bench.hear(LeaveAck(B, ME, 2))
    assert bench.core.state == "gone"
    assert bench.enter(A) == []
    with pytest.raises(LocalError, match="has left"):
        bench.say()


def test_a_host_that_crashes_while_leaving_continues_to_leave():
    bench = Bench(durable=True)
    bench.join()
    bench.do("on_leave")
    bench.crash()
    assert bench.enter(A) == [Leave(A, ME, 2, None)]


def test_a_recovering_host_queries_all_stations_in_a_new_connection():
    bench = Bench(durable=True)
    bench.join()
    bench.say()
    bench.hear(cast(0))
    bench.crash()
    assert bench.enter(A) == [Connect(A, ME, 2, Place(1, False, 1), 2, None)]
    sent = bench.hear(ConnectAck(A, ME, 2, 1, 1))
    assert sent == [HostBroadcast(A, ME, 2, message(1, ME))]


@pytest.mark.parametrize(("saves", "next"), [("delivery", 2), ("acknowledgement", 1)])
def test_the_position_after_a_crash_is_that_of_the_last_delivery_or_acknowledgement(saves, next):
    bench = Bench(durable=True, saves=saves)
    bench.join()
    bench.hear(cast(0))
    bench.fire(ACK)
    bench.hear(cast(1))
    bench.crash()
    assert bench.enter(A)[0].place == Place(1, False, next)


def test_a_host_without_saved_state_is_new():
    bench = Bench()
    bench.do("restore", {})
    assert bench.enter(A) == [Join(A, ME, 1, ())]


def test_acknowledged_broadcasts_are_forgotten():
    bench = Bench(durable=True)
    bench.join()
    bench.say()
    bench.hear(StationAck(A, (BroadcastAck(ME, 1, 2),)))
    assert bench.store.load((BROADCASTS, MEMORY))[BROADCASTS.name] == {}


def test_a_host_that_may_be_unregistered_sends_acknowledgements_without_broadcasts():
    bench = Bench(pace=Pace(silence_us=3_000_000))
    bench.join()
    assert (ACK, 1_000_000) in bench.out.timers
    assert bench.fire(ACK) == [HostAck(A, ME, Place(1, False, 0))]
    assert (ACK, 1_000_000) in bench.out.timers


def test_messages_have_no_lifetimes():
    bench = Bench()
    with pytest.raises(LocalError, match="no lifetimes"):
        bench.core.on_broadcast(0, b"", bench.out, 1)


def test_an_acknowledged_range_without_end_costs_nothing():
    bench = Bench()
    bench.join()
    bench.say()
    bench.say()
    bench.hear(StationAck(A, (BroadcastAck(ME, 1, 1, ((2, (1 << 62) - 1),)),)))
    assert bench.fire(RETRY) == [HostBroadcast(A, ME, 1, Message((ME, 1), (), b""))]
