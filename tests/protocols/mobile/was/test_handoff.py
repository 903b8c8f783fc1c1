"""The three phases of a handoff, station by station, and what may come between them."""

from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import (
    CatchUp,
    Connect,
    ConnectAck,
    Delete,
    HostAck,
    HostBroadcast,
    Join,
    Leave,
    LeaveAck,
    Place,
    Relay,
    Request1,
    Request2,
    Response1,
    Response2,
)
from beforehand.protocols.mobile.was.station import RETRY, Station

STAR = ((1, 0), (1, 2), (1, 3))
H, G = 7, 8


class Bench:
    """The station in the middle of four, with the effects of its last step."""

    def __init__(self, **pace):
        self.core = Station(1, STAR, Pace(**pace))
        self.out = Outbox()

    def get(self, source, frame):
        self.out.clear()
        self.core.on_message(0, source, frame, self.out)
        return list(self.out.sends)

    def hear(self, frame):
        return self.get(frame.host, frame)

    def wire(self, frame):
        return self.get(frame.source, frame)

    def relay(self, *seqs):
        for seq in seqs:
            self.get(0, Relay(message(seq)))

    def connect(self, ses, place, *visits, next_broadcast=1):
        return self.hear(Connect(1, H, ses, place, next_broadcast, visits))

    def recover(self, ses, place, next_broadcast=1):
        return self.hear(Connect(1, H, ses, place, next_broadcast, None))

    def kept(self):
        return [kept.message.id for kept in self.core.cell.kept.values()]

    @property
    def guest(self):
        return self.core.cell.guests.get(H)


def message(seq):
    return Message((9, seq), (), b"")


def ids(*seqs):
    return tuple((9, seq) for seq in seqs)


def accepted(ses, next, next_broadcast=1, **options):
    return EVERYBODY, ConnectAck(1, H, ses, next_broadcast, next, **options)


def request(ses, place, source=0):
    return Request1(source, 1, H, ses, place)


def unknown(ses, target=0):
    return target, Response1(1, target, H, ses)


def joined(ses=1):
    """A station at which the host has joined, with the ConnectAck received."""
    bench = Bench()
    bench.hear(Join(1, H, ses, ()))
    return bench


# ---- the example of MOB section 4.4 --------------------------------------------------------------


def test_the_new_station_requests_discarded_messages_and_marks_delivered_ones():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    bench.relay(2, 1)
    bench.hear(HostAck(1, G, Place(1, False, 1)))  # discards 2
    place = Place(1, False, 2)
    assert bench.connect(2, place, (0, 1)) == [(0, Request1(1, 0, H, 2, place))]
    known = Response1(0, 1, H, 2, True, 1, 5, ids(2))
    assert bench.wire(known) == [(0, Request2(1, 0, H, 2, ids(2)))]
    bench.relay(3)
    sent = bench.wire(Response2(0, 1, H, 2, (message(2),), ids(3)))
    assert sent == [(EVERYBODY, CatchUp(1, H, 2, 0, message(2)))]
    assert bench.hear(HostAck(1, H, Place(2, True, 1))) == [accepted(2, 2, 5)]
    marks = [kept.delivered_by for kept in bench.core.cell.kept.values()]
    assert marks == [(H,), ()]


def test_the_old_station_reports_undelivered_and_later_messages():
    bench = joined()
    bench.relay(1, 2)
    [(target, answer)] = bench.wire(request(2, Place(1, False, 1)))
    assert (target, answer) == (0, Response1(1, 0, H, 2, True, 1, 1, ids(2)))
    bench.relay(3)
    assert bench.kept() == [*ids(2), *ids(3)]
    sent = bench.wire(Request2(0, 1, H, 2, ids(2)))
    assert sent == [(0, Response2(1, 0, H, 2, (message(2),), ids(3)))]
    assert (bench.guest, bench.kept()) == (None, [])


def test_messages_after_the_second_request_are_never_marked_delivered():
    bench = Bench()
    bench.connect(2, Place(1), (0, 1))
    bench.wire(Response1(0, 1, H, 2, True, 1, 1))
    bench.relay(1)
    assert bench.wire(Response2(0, 1, H, 2, (), ())) == [accepted(2, 0)]
    assert bench.core.cell.kept[0].delivered_by == ()


# ---- places --------------------------------------------------------------------------------------


def test_a_place_in_another_connection_is_no_acknowledgement():
    bench = joined(ses=2)
    bench.relay(1, 2)
    bench.hear(HostAck(1, H, Place(2, False, 0)))
    bench.guest.is_fresh = False
    [(_, answer)] = bench.wire(request(3, Place(1, False, 2)))
    assert answer.missing == ids(1, 2)


def caught_up_on(*seqs, **pace):
    """A station that still has to send the host the messages to catch up on."""
    bench = Bench(**pace)
    bench.connect(2, Place(1), (0, 1))
    bench.wire(Response1(0, 1, H, 2, True, 1, 1, ids(*seqs)))
    bench.wire(Response2(0, 1, H, 2, tuple(map(message, seqs)), ()))
    return bench


def test_numbers_of_the_catching_up_are_not_those_of_the_cell():
    bench = caught_up_on(5, 6)
    bench.relay(7)
    [(_, answer)] = bench.wire(request(3, Place(2, True, 1)))
    assert answer.missing == ids(6, 7)


def test_a_host_that_returns_during_catch_up_continues_with_new_numbers():
    bench = caught_up_on(5, 6)
    sent = bench.connect(4, Place(2, True, 1), (1, 2), (0, 3))
    assert sent == [(0, Delete(1, 0, H, 3)), (EVERYBODY, CatchUp(1, H, 4, 0, message(6)))]


def test_catch_up_messages_are_repeated_until_acknowledged():
    bench = caught_up_on(5)
    bench.out.clear()
    bench.core.on_timer(0, RETRY, bench.out)
    assert bench.out.sends == [(EVERYBODY, CatchUp(1, H, 2, 0, message(5)))]
    ack = HostAck(1, H, Place(2, True, 1))
    assert bench.hear(ack) == bench.hear(ack) == [accepted(2, 0)]


def test_with_three_rounds_in_an_interval_every_third_repeats_catch_up_messages():
    bench = caught_up_on(5, rounds=3)
    sent = []
    for _ in range(6):
        bench.out.clear()
        bench.core.on_timer(0, RETRY, bench.out)
        sent.append(len(bench.out.sends))
    assert sent == [0, 0, 1, 0, 0, 1]


def test_the_catch_up_window_is_respected():
    bench = caught_up_on(5, 6, 7, inflight_max=2)
    assert [frame.seq for _, frame in bench.out.sends] == [0, 1]
    bench.hear(HostAck(1, H, Place(2, True, 1)))
    bench.out.clear()
    bench.core.on_timer(0, RETRY, bench.out)
    assert [frame.seq for _, frame in bench.out.sends] == [1, 2]


def test_a_host_that_returns_to_its_station_continues_at_its_position():
    bench = joined()
    bench.relay(1, 2, 3)
    sent = bench.connect(3, Place(1, False, 2), (1, 1), (0, 2))
    assert sent == [(0, Delete(1, 0, H, 2)), accepted(3, 2)]
    assert bench.kept() == [*ids(3)]


def test_a_returning_host_has_dropped_its_out_of_order_messages():
    bench = joined()
    bench.relay(1, 2)
    bench.hear(HostAck(1, H, Place(1, False, 0), ((1, 1),)))
    bench.connect(2, Place(1, False, 1))
    assert bench.core.cell.is_wanted(1)


def test_a_repeated_connect_is_answered_again():
    bench = joined()
    first = bench.connect(2, Place(1))
    assert bench.connect(2, Place(1)) == first == [accepted(2, 0)]


# ---- corrections ---------------------------------------------------------------------------------


def test_from_connect_on_nothing_is_discarded_that_the_host_may_need():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    bench.relay(1)
    bench.connect(2, Place(1), (0, 1))
    bench.relay(2)
    bench.hear(HostAck(1, G, Place(1, False, 2)))
    assert bench.kept() == [*ids(1, 2)]


def test_after_its_answer_the_old_station_takes_nothing_more_from_the_host():
    bench = joined()
    bench.wire(request(2, Place(1)))
    said = Message((H, 1), (), b"")
    assert (
        bench.hear(HostBroadcast(1, H, 1, said)) == bench.hear(HostBroadcast(1, H, 2, said)) == []
    )


def test_during_the_handoff_the_new_station_takes_nothing_from_the_host():
    bench = Bench()
    bench.connect(2, Place(1), (0, 1))
    assert bench.hear(HostBroadcast(1, H, 2, Message((H, 1), (), b""))) == []


def test_a_station_that_never_registered_the_host_answers_unknown():
    assert Bench().wire(request(2, Place(1))) == [unknown(2)]


def test_a_station_in_an_older_handoff_answers_at_its_end():
    bench = Bench()
    bench.connect(2, Place(1), (0, 1))
    assert bench.get(2, request(3, Place(1), source=2)) == []
    bench.wire(Response1(0, 1, H, 2, True, 1, 4))
    sent = bench.wire(Response2(0, 1, H, 2, (), ()))
    assert sent == [(2, Response1(1, 2, H, 3, True, 2, 4))]


def test_the_newer_of_two_waiting_requests_is_served_and_the_older_answered():
    for order in ((3, 4), (4, 3)):
        bench = Bench()
        bench.connect(2, Place(1), (0, 1))
        sent = [bench.get(ses - 1, request(ses, Place(1), source=ses - 1)) for ses in order]
        assert sent == [[], [unknown(3, 2)]]
        bench.wire(Response1(0, 1, H, 2, True, 1, 4))
        assert [target for target, _ in bench.wire(Response2(0, 1, H, 2, (), ()))] == [3]


def test_a_station_that_saw_a_newer_connection_answers_unknown_to_an_older_one():
    bench = joined(ses=5)
    assert bench.wire(request(4, Place(1))) == [unknown(4)]
    assert bench.guest.ses == 5


def test_a_station_that_handed_the_host_over_answers_unknown_to_a_third_one():
    bench = joined()
    bench.wire(request(2, Place(1)))
    assert bench.get(2, request(3, Place(1), source=2)) == [unknown(3, 2)]
    assert len(bench.wire(Request2(0, 1, H, 2, ()))) == 1


def test_a_saved_request_is_answered_although_the_host_was_deleted_meanwhile():
    bench = Bench()
    bench.connect(2, Place(1), (0, 1))
    bench.get(2, request(3, Place(1), source=2))
    bench.wire(Delete(0, 1, H, 2))
    assert bench.wire(Response1(0, 1, H, 2)) == [unknown(3, 2)]
    assert bench.guest is None


def test_the_second_request_is_answered_although_the_host_has_left():
    bench = joined()
    bench.wire(request(2, Place(1)))
    assert bench.hear(Leave(1, H, 2, ())) == [(EVERYBODY, LeaveAck(1, H, 2))]
    sent = bench.wire(Request2(0, 1, H, 2, ()))
    assert sent == [(0, Response2(1, 0, H, 2, (), ()))]


def test_a_registration_of_an_earlier_incarnation_of_the_host_is_invalid():
    bench = joined(ses=1)
    assert bench.wire(request(3, Place(2))) == [unknown(3)]
    assert bench.guest is None


def test_an_unconfirmed_registration_as_new_is_invalid():
    bench = Bench()
    assert bench.connect(2, Place(1)) == [accepted(2, 0, is_new=True)]
    assert bench.wire(request(3, Place(1))) == [unknown(3)]
    bench.connect(2, Place(1))
    assert bench.connect(4, Place(1), (0, 3)) == [(0, Request1(1, 0, H, 4, Place(1)))]


def test_a_recovering_host_is_new_only_after_all_stations_have_answered():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    place = Place(1, False, 4)
    targets = [target for target, _ in bench.recover(2, place, next_broadcast=6)]
    assert sorted(targets) == [0, 2, 3]
    bench.relay(1)
    assert bench.wire(Response1(0, 1, H, 2)) == bench.wire(Response1(2, 1, H, 2)) == []
    assert bench.wire(Response1(3, 1, H, 2)) == [accepted(2, 1, 6, is_new=True)]


def test_messages_a_host_may_have_delivered_are_not_cast_when_it_registers_as_new():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    bench.relay(1)
    bench.connect(2, Place(1), (0, 1))
    assert bench.wire(Response1(0, 1, H, 2)) == [accepted(2, 1, is_new=True)]
    assert bench.kept() == [*ids(1)]


def test_the_registration_of_the_later_connection_counts():
    bench = Bench()
    bench.recover(4, Place(1))
    bench.wire(Response1(0, 1, H, 4, True, 3, 9))
    bench.wire(Response1(2, 1, H, 4))
    sent = bench.wire(Response1(3, 1, H, 4, True, 2, 1))
    assert sent == [(3, Delete(1, 3, H, 4)), (0, Request2(1, 0, H, 4, ()))]


def test_a_host_learns_which_messages_of_the_cell_it_delivered_elsewhere():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    bench.relay(1, 2, 3, 4)
    bench.connect(2, Place(1), (0, 1))
    bench.wire(Response1(0, 1, H, 2, True, 1, 1, ids(2)))
    assert bench.wire(Response2(0, 1, H, 2, (), ())) == [accepted(2, 1, delivered=((2, 3),))]


def test_messages_delivered_elsewhere_are_not_repeated_for_a_host():
    bench = Bench()
    bench.hear(Join(1, G, 1, ()))
    bench.relay(1, 2)
    bench.connect(2, Place(1), (0, 1))
    bench.wire(Response1(0, 1, H, 2, True, 1, 1, ids(1)))
    bench.wire(Response2(0, 1, H, 2, (), ()))
    bench.hear(HostAck(1, G, Place(1, False, 2)))
    assert [bench.core.cell.is_wanted(seq) for seq in bench.core.cell.kept] == [True, False]
