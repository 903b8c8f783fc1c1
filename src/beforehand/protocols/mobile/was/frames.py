"""What hosts and stations say to each other, by radio and by wire.

By radio, `cell` names the station whose cell it is, and everybody checks it (correction 9): cells
may overlap. `ses` is the host's connection, counted up with every change of cell.
"""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, MessageId, NodeId
from beforehand.protocols.contract.proof import Proofs

Visits = tuple[tuple[NodeId, Count], ...]
"""The list PS: the stations that may have registered a host, and in which connection."""
Ranges = tuple[tuple[Count, Count], ...]
"""(first, last), both included."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Up to where a host has delivered. The paper's SesLC and seqNC, which mean nothing apart."""

    ses: Count = 0
    """The last connection in which it heard from its station; 0: it never joined."""
    is_catching: bool = False
    """Whether `next` counts what it catches up on in this connection, or what the cell hears: the
    two share a number space in the paper (correction 7)."""
    next: Count = 0
    """The number that it expects next (correction 4)."""


# ---- radio, up -----------------------------------------------------------------------------------


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """A host that never heard from anybody asks to be registered."""

    cell: NodeId
    host: NodeId
    ses: Count
    visits: Visits | None
    """None: the host crashed and does not remember; it may be any station."""


class Connect(msgspec.Struct, frozen=True, array_like=True, tag="connect"):
    """A host has changed its cell; or, if `visits` is None, it recovers from a crash."""

    cell: NodeId
    host: NodeId
    ses: Count
    place: Place
    next_said: Count
    """The number of the message that it will broadcast next: where it starts as a new one."""
    visits: Visits | None


class Leave(msgspec.Struct, frozen=True, array_like=True, tag="leave"):
    """A host goes for good."""

    cell: NodeId
    host: NodeId
    ses: Count
    visits: Visits | None


class Say(msgspec.Struct, frozen=True, array_like=True, tag="say"):
    """App_hs: a host's message, to be broadcast by its station."""

    cell: NodeId
    host: NodeId
    ses: Count
    message: Message


class HostAck(msgspec.Struct, frozen=True, array_like=True, tag="host_ack"):
    """What a host has: all before `place.next`, and the ranges."""

    cell: NodeId
    host: NodeId
    place: Place
    ranges: Ranges = ()


# ---- radio, down: each is one transmission to everybody in the cell ------------------------------


class Cast(msgspec.Struct, frozen=True, array_like=True, tag="cast"):
    """App_sh: a message, under the number that it has in this cell."""

    cell: NodeId
    seq: Count
    message: Message


class CatchUp(msgspec.Struct, frozen=True, array_like=True, tag="catch_up"):
    """App_Co: a message that its new station had discarded already, for one host."""

    cell: NodeId
    host: NodeId
    ses: Count
    seq: Count
    message: Message


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """What a station has of one host: all before `next`, and the ranges."""

    host: NodeId
    ses: Count
    next: Count
    ranges: Ranges = ()


class StationAck(msgspec.Struct, frozen=True, array_like=True, tag="station_ack"):
    """ack_C: for all hosts from which something came since the last one."""

    cell: NodeId
    heard: tuple[Heard, ...]


class ConnectAck(msgspec.Struct, frozen=True, array_like=True, tag="connect_ack"):
    """The host is registered here, in this connection."""

    cell: NodeId
    host: NodeId
    ses: Count
    next_said: Count
    """seq_h: what the host broadcast before this number needs no repetition."""
    next: Count
    """Where in the cell's numbers it goes on."""
    is_new: bool = False
    """Nobody knew the host any more: what came meanwhile passed it by, and what it said and did not
    hear of again may have been lost."""
    delivered: Ranges = ()
    """Numbers after `next` that it has delivered elsewhere: the paper's M_d. There it travels with
    each message; but what was transmitted before the handoff ended would not tell, and may come
    after it."""


class LeaveAck(msgspec.Struct, frozen=True, array_like=True, tag="leave_ack"):
    """Nobody waits for the host any more."""

    cell: NodeId
    host: NodeId
    ses: Count


class Forgotten(msgspec.Struct, frozen=True, array_like=True, tag="forgotten"):
    """The host was silent for so long that it was unregistered; it has to connect again."""

    cell: NodeId
    host: NodeId
    ses: Count


# ---- wire ----------------------------------------------------------------------------------------


class Relay(msgspec.Struct, frozen=True, array_like=True, tag="relay"):
    """App_ss: a message on its way over the tree."""

    message: Message


class Request1(msgspec.Struct, frozen=True, array_like=True, tag="request1"):
    """Who knows the host, and what has it not delivered? Like all below, it travels hop by hop."""

    source: NodeId
    target: NodeId | None
    """None, where handoffs are flooded: all other stations."""
    host: NodeId
    ses: Count
    place: Place


class Response1(msgspec.Struct, frozen=True, array_like=True, tag="response1"):
    """The station's answer; every Request1 gets one (correction 13)."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    is_known: bool = False
    held_ses: Count = 0
    """The connection in which it had registered the host."""
    next_said: Count = 0
    missing: tuple[MessageId, ...] = ()
    """m_nd: what the host has not delivered."""


class Request2(msgspec.Struct, frozen=True, array_like=True, tag="request2"):
    """These have been discarded at the new station."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    wanted: tuple[MessageId, ...]


class Response2(msgspec.Struct, frozen=True, array_like=True, tag="response2"):
    """The messages, and what came in between the two requests. The host is the other's now."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    messages: tuple[Message, ...]
    since: tuple[MessageId, ...]


class Delete(msgspec.Struct, frozen=True, array_like=True, tag="delete"):
    """Forget the host if you registered it in this connection or before."""

    source: NodeId
    target: NodeId | None
    host: NodeId
    ses: Count


Uplink = Join | Connect | Leave | Say | HostAck
Downlink = Cast | CatchUp | StationAck | ConnectAck | LeaveAck | Forgotten
Routed = Request1 | Response1 | Request2 | Response2 | Delete
Frame = Union[Uplink, Downlink, Relay, Routed]  # noqa: UP007


def messages_of(frame: Frame) -> tuple[Message, ...]:
    """What it brings along of what hosts said."""
    if isinstance(frame, Say | Cast | CatchUp | Relay):
        return (frame.message,)
    return frame.messages if isinstance(frame, Response2) else ()


def is_proven(frame: Frame, proofs: Proofs) -> bool:
    """Did hosts say what it brings along?"""
    return all(map(proofs.is_proven, messages_of(frame)))
