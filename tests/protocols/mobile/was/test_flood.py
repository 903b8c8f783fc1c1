"""Handoffs that ask all stations: the flooded frames, their reach, and the last answer."""

from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.was.frames import (
    Connect,
    ConnectAck,
    Delete,
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

TREE = ((1, 0), (1, 2), (1, 3), (3, 4))
H = 7
STATION, HOST = SYSTEMS["was_flood"].make_station, SYSTEMS["was_flood"].make_host


class Bench:
    """Station 1 of five, with three adjacent stations, and the effects of its last step."""

    def __init__(self):
        self.core = STATION(1, TREE, Pace())
        self.out = Outbox()

    def get(self, source, frame):
        self.out.clear()
        self.core.on_message(0, source, frame, self.out)
        return list(self.out.sends)

    def connect(self, ses):
        return self.get(H, Connect(1, H, ses, Place(1), 1, None))


def to_all(frame, *stations):
    return [(station, frame) for station in stations]


def unknown(source, ses=2, target=1):
    return Response1(source, target, H, ses)


def test_a_connect_is_flooded_with_one_frame_to_each_wired_station():
    request = Request1(1, EVERYBODY, H, 2, Place(1))
    assert Bench().connect(2) == to_all(request, 0, 2, 3)


def test_a_request_is_answered_and_forwarded_to_all_other_wired_stations():
    request = Request1(0, EVERYBODY, H, 2, Place(1))
    sent = Bench().get(0, request)
    assert sent == [*to_all(request, 2, 3), (0, unknown(1, target=0))]


def test_the_host_is_new_only_after_the_farthest_station_has_answered():
    bench = Bench()
    bench.connect(2)
    for source, station in ((0, 0), (3, 3), (2, 2)):
        assert bench.get(source, unknown(station)) == []
    accepted = ConnectAck(1, H, 2, 1, 0, is_new=True)
    assert bench.get(3, unknown(4)) == [(EVERYBODY, accepted)]


def test_a_positive_answer_is_flooded_and_stops_at_its_target():
    answer = Response1(4, 0, H, 2, True, 1, 1)
    assert Bench().get(3, answer) == to_all(answer, 0, 2)
    bench = Bench()
    bench.connect(2)
    bench.get(3, Response1(4, 1, H, 2, True, 1, 1))
    assert bench.core.cell.guests[H].known != []


def test_a_negative_answer_takes_the_direct_path():
    answer = unknown(4, target=0)
    assert Bench().get(3, answer) == [(0, answer)]


def test_the_second_request_and_its_answer_are_flooded():
    bench = Bench()
    bench.connect(2)
    for source, station in ((0, 0), (2, 2), (3, 3)):
        bench.get(source, unknown(station))
    request2 = Request2(1, 4, H, 2, ())
    assert bench.get(3, Response1(4, 1, H, 2, True, 1, 5)) == to_all(request2, 0, 2, 3)
    response2 = Response2(4, 1, H, 2, (), ())
    assert bench.get(3, response2) == [(EVERYBODY, ConnectAck(1, H, 2, 5, 0))]
    assert Bench().get(0, Response2(0, 4, H, 2, (), ())) == to_all(
        Response2(0, 4, H, 2, (), ()), 2, 3
    )


def test_a_join_ends_earlier_registrations_at_every_station():
    sent = Bench().get(H, Join(1, H, 3, None))
    assert sent[:3] == to_all(Delete(1, EVERYBODY, H, 2), 0, 2, 3)


def test_a_delete_takes_effect_locally_and_is_forwarded():
    bench = Bench()
    bench.get(H, Join(1, H, 1, None))
    delete = Delete(0, EVERYBODY, H, 1)
    assert bench.get(0, delete) == to_all(delete, 2, 3)
    assert bench.core.cell.guests == {}


def test_a_leaving_host_is_forgotten_at_every_station_in_this_connection_too():
    bench = Bench()
    bench.get(H, Join(1, H, 1, None))
    sent = bench.get(H, Leave(1, H, 1, None))
    delete = Delete(1, EVERYBODY, H, 1)
    assert sent == [*to_all(delete, 0, 2, 3), (EVERYBODY, LeaveAck(1, H, 1))]


def test_a_single_station_sends_no_requests():
    core, out = STATION(1, (), Pace()), Outbox()
    core.on_message(0, H, Connect(1, H, 2, Place(1), 1, None), out)
    assert out.sends == [(EVERYBODY, ConnectAck(1, H, 2, 1, 0, is_new=True))]


def test_handoff_frames_stay_behind_the_messages():
    bench = Bench()
    relay = Relay(Message((9, 1), (), b""))
    bench.out.clear()
    bench.core.on_message(0, 0, relay, bench.out)
    bench.core.on_message(0, H, Connect(1, H, 2, Place(1), 1, None), bench.out)
    to_three = [type(frame) for peer, frame in bench.out.sends if peer == 3]
    assert to_three == [Relay, Request1]


def test_a_host_names_no_earlier_stations():
    core, out = HOST(H, Pace()), Outbox()
    core.on_link(0, 1, True, out)
    core.on_link(0, 1, False, out)
    core.on_link(0, 2, True, out)
    core.on_message(0, 2, ConnectAck(2, H, 2, 1, 0), out)
    core.on_link(0, 2, False, out)
    core.on_link(0, 3, True, out)
    assert [frame.visits for _, frame in out.sends] == [None, None, None]
