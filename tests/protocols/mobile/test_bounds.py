"""The length of messages: what a station accepts fits into every frame in which it is sent on."""

from __future__ import annotations

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.bounds import COUNT_MAX, message_bytes, message_bytes_max
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import (
    BroadcastAck,
    Cast,
    CatchUp,
    ConnectAck,
    Downlink,
    Frame,
    HostBroadcast,
    Join,
    Relay,
    Response2,
    StationAck,
    Uplink,
    messages_of,
)
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import ACK, Station
from beforehand.runtime.radio.cell_settings import (
    FRAME_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX,
    RADIO,
    fit,
)

LINE = ((0, 1), (1, 2))
H, G = 7, 8
LONG = "x" * NAME_BYTES_MAX


def give(core, name, *arguments):
    out = Outbox()
    getattr(core, name)(0, *arguments, out)
    return out


def message_of(size, origin=H, seq=1):
    """A message whose encoding has just this length."""
    empty = message_bytes(Message((origin, seq), (), bytes(300)))
    message = Message((origin, seq), (), bytes(300 + size - empty))
    assert message_bytes(message) == size
    return message


def longest_frame(kind, message):
    """A frame of this kind with a message, and all else as long as it may be."""
    fields = {"cell": LONG, "host": LONG, "message": message}
    return kind(**{name: fields.get(name, COUNT_MAX) for name in kind.__struct_fields__})


def carriers():
    radio = (*Uplink.__args__, *Downlink.__args__)
    return [kind for kind in radio if {"message", "messages"} & {*kind.__struct_fields__}]


def test_the_longest_message_fits_into_every_radio_frame_and_a_longer_one_does_not():
    assert {*carriers()} == {HostBroadcast, Cast, CatchUp}
    longest = message_of(MESSAGE_BYTES_MAX, LONG, COUNT_MAX)
    sizes = [len(RADIO.encode(longest_frame(kind, longest))) for kind in carriers()]
    assert max(sizes) == FRAME_BYTES_MAX
    with pytest.raises(LocalError, match="too large"):
        RADIO.encode(longest_frame(CatchUp, message_of(MESSAGE_BYTES_MAX + 1, LONG, COUNT_MAX)))


@pytest.mark.parametrize("frame_bytes_max", [600, 1_000, 60_000])
def test_the_bound_follows_from_the_length_of_a_frame(frame_bytes_max):
    codec = Codec("mobile", Frame, bytes_max=frame_bytes_max)
    bound = message_bytes_max(frame_bytes_max, 48)
    data = codec.encode(longest_frame(CatchUp, message_of(bound, LONG, COUNT_MAX)))
    assert len(data) <= frame_bytes_max


def test_a_broadcast_too_long_for_a_cast_is_refused_on_receipt_and_affects_only_its_host():
    station = Station(1, LINE, message_bytes_max=500)
    for host in (H, G):
        give(station, "on_message", host, Join(1, host, 1, ()))
    sends = give(station, "on_message", H, HostBroadcast(1, H, 1, message_of(501))).sends
    assert not [frame for _, frame in sends if messages_of(frame)]
    assert station.counters.refused == 1
    sends = give(station, "on_message", G, HostBroadcast(1, G, 1, message_of(500, G))).sends
    assert [type(frame) for _, frame in sends] == [Relay, Relay, Cast]
    sends = give(station, "on_message", H, HostBroadcast(1, H, 1, message_of(500))).sends
    assert [type(frame) for _, frame in sends] == [Relay, Relay, Cast], "a shorter one is heard"


def test_a_station_refuses_long_messages_of_other_stations_too():
    station = Station(1, LINE, message_bytes_max=500)
    give(station, "on_message", H, Join(1, H, 1, ()))
    frames = (Relay(message_of(501, G)), Response2(0, 1, H, 1, (message_of(501, G),), ()))
    for refused, frame in enumerate(frames, start=1):
        assert give(station, "on_message", 0, frame).sends == []
        assert station.counters.refused == refused
    assert not station.cell.kept


def test_a_host_refuses_what_stations_would_refuse_and_loses_no_number():
    host = Host(H, message_bytes_max=500)
    give(host, "on_link", 1, True)
    give(host, "on_message", 1, ConnectAck(1, H, 1, 1, 1, is_new=True))
    out = Outbox()
    with pytest.raises(LocalError, match=r"a message of 5\d\d bytes by radio; 500 are allowed"):
        host.on_broadcast(0, bytes(500), out)
    assert (out.sends, out.saves) == ([], [])
    assert host.on_broadcast(0, bytes(400), out) == (H, 1)


def test_a_host_that_repeated_the_message_of_another_had_it_delivered_twice():
    station = Station(1, LINE)
    for host in (H, G):
        give(station, "on_message", host, Join(1, host, 1, ()))
    message = message_of(400)
    give(station, "on_message", H, HostBroadcast(1, H, 1, message))
    sends = give(station, "on_message", G, HostBroadcast(1, G, 1, message)).sends
    assert not [frame for _, frame in sends if messages_of(frame)]
    assert station.counters.refused == 1


def test_a_host_that_uses_unbounded_numbers_does_not_fill_its_station():
    """Messages received out of order are kept, and their ranges must fit in an acknowledgement."""
    pace = Pace(inflight_max=150)
    station = Station(LONG, ((LONG, "b"),), pace)
    give(station, "on_message", "ann", Join(LONG, "ann", 1, ()))
    for seq in range(2, 10_000, 2):
        say = HostBroadcast(LONG, "ann", 1, Message(("ann", seq), (), b""))
        give(station, "on_message", "ann", say)
    assert station.gauges(0)["early"] == 75
    out = give(station, "on_timer", ACK)
    (ack,) = [frame for _, frame in out.sends if isinstance(frame, StationAck)]
    assert [*fit(ack)] == [ack]
    assert RADIO.encode(ack)


def test_the_longest_acknowledgement_of_one_host_fits_into_a_frame():
    ranges = tuple((COUNT_MAX - at, COUNT_MAX - at) for at in range(75))
    ack = StationAck(LONG, (BroadcastAck(LONG, COUNT_MAX, COUNT_MAX, ranges),))
    assert len(RADIO.encode(ack)) <= FRAME_BYTES_MAX


def test_a_sound_host_is_never_too_far_ahead_of_its_station():
    pace = Pace(inflight_max=4)
    host, station = Host(H, pace), Station(1, LINE, pace)
    give(host, "on_link", 1, True)
    queue = give(station, "on_message", H, Join(1, H, 1, ())).sends
    for seq in range(40):
        for _, frame in queue:
            give(host, "on_message", 1, frame)
        sends = give(host, "on_broadcast", b"x").sends
        if seq % 5 == 4:
            sends += give(host, "on_timer", ("broadcast again", None)).sends
        for _, frame in reversed(sends):
            give(station, "on_message", H, frame)
        queue = give(station, "on_timer", ACK).sends if seq % 3 == 0 else []
    assert station.counters.refused == 0
    assert station.cell.guests[H].next_broadcast > 10
