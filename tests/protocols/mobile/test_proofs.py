"""Hosts sign their messages; stations and hosts accept only proven messages."""

import msgspec

from beforehand.protocols.codecs import MOBILE
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.mobile.was.frames import (
    Cast,
    CatchUp,
    ConnectAck,
    HostBroadcast,
    Join,
    Relay,
    Response2,
    messages_of,
)
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station

HOST, OTHER = 7, 8


def proofs(node):
    """Return signatures that anyone could make: they only distinguish signed from unsigned."""
    return Proofs("port", lambda data: repr(node).encode() + data, is_signed)


def is_signed(origin, data, proof):
    return proof == repr(origin).encode() + data


def give(core, name, *arguments):
    out = Outbox()
    getattr(core, name)(0, *arguments, out)
    return out


def connected():
    host = Host(HOST, proofs=proofs(HOST))
    give(host, "on_link", 1, True)
    give(host, "on_message", 1, ConnectAck(1, HOST, 1, 1, 1, is_new=True))
    return host


def said():
    sends = give(connected(), "on_broadcast", b"fog").sends
    (message,) = [frame.message for _, frame in sends if isinstance(frame, HostBroadcast)]
    return message


def test_broadcasts_of_a_host_carry_proofs():
    assert proofs(OTHER).is_proven(said())


def test_a_station_relays_only_proven_messages():
    for message, is_taken in ((said(), True), (Message((HOST, 1), (), b"forged"), False)):
        station = Station(1, ((0, 1), (1, 2)), proofs=proofs(1))
        give(station, "on_message", HOST, Join(1, HOST, 1, ()))
        sends = give(station, "on_message", HOST, HostBroadcast(1, HOST, 1, message)).sends
        sends += give(station, "on_message", 0, Relay(message)).sends
        relayed = [frame for _, frame in sends if isinstance(frame, Relay | Cast)]
        assert bool(relayed) == is_taken
        assert station.counters.refused == (0 if is_taken else 2)


def test_a_host_delivers_only_proven_messages():
    host, message = connected(), said()
    forged = msgspec.structs.replace(message, payload=b"forged")
    assert give(host, "on_message", 1, Cast(1, 1, forged)).deliveries == []
    assert host.counters.refused == 1
    assert give(host, "on_message", 1, Cast(1, 1, message)).deliveries == [message]


def test_every_frame_that_carries_messages_is_verified():
    message = Message((HOST, 1), (), b"")
    carried = {
        HostBroadcast(1, HOST, 1, message),
        Cast(1, 1, message),
        CatchUp(1, HOST, 1, 1, message),
        Relay(message),
        Response2(1, 2, HOST, 1, (message,), ()),
    }
    assert all(messages_of(frame) == (message,) for frame in carried)
    kinds = {k for k in MOBILE.kinds if {"message", "messages"} & {*k.__struct_fields__}}
    assert {type(frame) for frame in carried} == kinds
