"""The frames of hosts and stations as bytes."""

import random

import pytest

from beforehand.check.fuzz.draw_frames import draw_frame
from beforehand.errors import RemoteError
from beforehand.protocols.codecs import MOBILE
from beforehand.protocols.contract.base import Message
from beforehand.protocols.mobile.was.frames import (
    BroadcastAck,
    Cast,
    CatchUp,
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
    Request2,
    Response1,
    Response2,
    StationAck,
)

MESSAGE = Message((7, 3), (), b"hi")
MESSAGE_HEX = "9592070390c4026869c40000"
PLACE = Place(2, True, 9)
PLACE_HEX = "9302c309"


def tag(name):
    return bytes([0xA0 + len(name)]).hex() + name.encode().hex()


GOLDEN = [
    (Join(1, 7, 2, ((0, 1),)), "0295" + tag("join") + "01070291920001"),
    (
        Connect(1, 7, 2, PLACE, 4, None),
        "0297" + tag("connect") + "010702" + PLACE_HEX + "04c0",
    ),
    (Leave(1, 7, 2, None), "0295" + tag("leave") + "010702c0"),
    (HostBroadcast(1, 7, 2, MESSAGE), "0295" + tag("say") + "010702" + MESSAGE_HEX),
    (
        HostAck(1, 7, PLACE, ((11, 12),)),
        "0295" + tag("host_ack") + "0107" + PLACE_HEX + "91920b0c",
    ),
    (Cast(1, 300, MESSAGE), "0294" + tag("cast") + "01cd012c" + MESSAGE_HEX),
    (CatchUp(1, 7, 2, 0, MESSAGE), "0296" + tag("catch_up") + "01070200" + MESSAGE_HEX),
    (StationAck(1, (BroadcastAck(7, 2, 4),)), "0293" + tag("station_ack") + "01919407020490"),
    (
        ConnectAck(1, 7, 2, 4, 5, True, ((6, 8),)),
        "0298" + tag("connect_ack") + "0107020405c3" + "91920608",
    ),
    (LeaveAck(1, 7, 2), "0294" + tag("leave_ack") + "010702"),
    (Forgotten(1, 7, 2), "0294" + tag("forgotten") + "010702"),
    (Relay(MESSAGE), "0292" + tag("relay") + MESSAGE_HEX),
    (Request1(0, 1, 7, 2, PLACE), "0296" + tag("request1") + "00010702" + PLACE_HEX),
    (
        Response1(1, 0, 7, 2, True, 1, 4, ((7, 3),)),
        "0299" + tag("response1") + "01000702c3010491920703",
    ),
    (Request2(0, 1, 7, 2, ((7, 3),)), "0296" + tag("request2") + "0001070291920703"),
    (
        Response2(1, 0, 7, 2, (MESSAGE,), ((8, 1),)),
        "0297" + tag("response2") + "0100070291" + MESSAGE_HEX + "91920801",
    ),
    (Delete(0, 1, 7, 2), "0295" + tag("delete") + "00010702"),
]


def test_there_is_an_example_of_every_frame():
    assert {type(frame) for frame, _ in GOLDEN} == set(MOBILE.kinds)


@pytest.mark.parametrize(("frame", "golden"), GOLDEN, ids=lambda value: type(value).__name__)
def test_the_wire_has_not_changed(frame, golden):
    """If it must: raise WIRE_VERSION, then change these bytes."""
    assert MOBILE.encode(frame).hex() == golden
    assert MOBILE.decode(bytes.fromhex(golden)) == frame


@pytest.mark.parametrize("kind", MOBILE.kinds)
def test_drawn_frames_reach_the_edges_of_what_a_type_allows(kind):
    """Else the strings that the codec is fuzzed with are made of tame frames only."""
    drawn = [draw_frame(random.Random(seed), kind) for seed in range(300)]
    hexes = {MOBILE.encode(frame).hex() for frame in drawn}
    largest = "cf3fffffffffffffff"
    assert any(largest in string for string in hexes)
    assert len(hexes) > 200


def test_a_position_that_is_not_a_number_is_refused():
    data = bytearray.fromhex("0295" + tag("host_ack") + "0107" + "9302c3c0" + "90")
    with pytest.raises(RemoteError, match="Expected `int`"):
        MOBILE.decode(data)
