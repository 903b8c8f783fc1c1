"""The frames of WAS between hosts and stations, by radio and by wire.

In a radio frame, `cell` names the station of the cell. Every receiver checks it (correction 9),
because cells may overlap. `ses` numbers the host's connections; it grows with every change of cell.
"""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, MessageId, NodeId
from beforehand.protocols.contract.proof import Proofs

Visits = tuple[tuple[NodeId, Count], ...]
"""The paper's list PS: the stations that may have registered a host, each with the connection."""
Ranges = tuple[tuple[Count, Count], ...]
"""(first, last), both included."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a host has delivered: the paper's SesLC and seqNC, which mean nothing separately."""

    ses: Count = 0
    """The last connection in which a frame of its station reached the host; 0: it never joined."""
    is_catching: bool = False
    """True: `next` numbers the catch-up messages of this connection. False: it numbers the messages
    of the cell. In the paper the two share a number space (correction 7)."""
    next: Count = 0
    """The number that the host expects next (correction 4)."""


# ---- radio, up -----------------------------------------------------------------------------------


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    """A host that no station has registered yet asks to be registered."""

    cell: NodeId
    host: NodeId
    ses: Count
    visits: Visits | None
    """None: the host crashed and does not remember. Any station may have registered it."""


class Connect(msgspec.Struct, frozen=True, array_like=True, tag="connect"):
    """A host has changed its cell, or it recovers from a crash (`visits` is None)."""

    cell: NodeId
    host: NodeId
    ses: Count
    place: Place
    next_broadcast: Count
    """The sequence number of the host's next broadcast. A host registered as new starts there."""
    visits: Visits | None


class Leave(msgspec.Struct, frozen=True, array_like=True, tag="leave"):
    """A host leaves for good."""

    cell: NodeId
    host: NodeId
    ses: Count
    visits: Visits | None


class HostBroadcast(msgspec.Struct, frozen=True, array_like=True, tag="say"):
    """App_hs: a host's message, which its station is to broadcast."""

    cell: NodeId
    host: NodeId
    ses: Count
    message: Message


class HostAck(msgspec.Struct, frozen=True, array_like=True, tag="host_ack"):
    """A host's acknowledgement: it has all messages before `place.next`, and the ranges."""

    cell: NodeId
    host: NodeId
    place: Place
    ranges: Ranges = ()


# ---- radio, down: each is one transmission to all hosts in the cell ------------------------------


class Cast(msgspec.Struct, frozen=True, array_like=True, tag="cast"):
    """App_sh: a message with its number in this cell."""

    cell: NodeId
    seq: Count
    message: Message


class CatchUp(msgspec.Struct, frozen=True, array_like=True, tag="catch_up"):
    """App_Co: for one host, a message that its new station had already discarded."""

    cell: NodeId
    host: NodeId
    ses: Count
    seq: Count
    message: Message


class BroadcastAck(msgspec.Struct, frozen=True, array_like=True):
    """A station has all broadcasts of one host before `next`, and the ranges."""

    host: NodeId
    ses: Count
    next: Count
    ranges: Ranges = ()


class StationAck(msgspec.Struct, frozen=True, array_like=True, tag="station_ack"):
    """ack_C: the acknowledgement for all hosts that sent a broadcast since the last one."""

    cell: NodeId
    acks: tuple[BroadcastAck, ...]


class ConnectAck(msgspec.Struct, frozen=True, array_like=True, tag="connect_ack"):
    """The host is registered here, in this connection."""

    cell: NodeId
    host: NodeId
    ses: Count
    next_broadcast: Count
    """seq_h: the host need not repeat its broadcasts before this number."""
    next: Count
    """The cell's number from which the host goes on."""
    is_new: bool = False
    """Whether no station knew the host any more. It then has missed the messages that came
    meanwhile, and its unacknowledged broadcasts may be lost."""
    delivered: Ranges = ()
    """Numbers after `next` that the host has delivered in another cell: the paper's M_d. In the
    paper each message carries it. But a copy transmitted before the handoff ended would not name
    the host, and may arrive after it."""


class LeaveAck(msgspec.Struct, frozen=True, array_like=True, tag="leave_ack"):
    """The station acknowledges a Leave: no station waits for the host any more."""

    cell: NodeId
    host: NodeId
    ses: Count


class Forgotten(msgspec.Struct, frozen=True, array_like=True, tag="forgotten"):
    """The station unregistered the host because it was silent too long; it must connect again."""

    cell: NodeId
    host: NodeId
    ses: Count


# ---- wire ----------------------------------------------------------------------------------------


class Relay(msgspec.Struct, frozen=True, array_like=True, tag="relay"):
    """App_ss: a message on its way over the tree."""

    message: Message


class Request1(msgspec.Struct, frozen=True, array_like=True, tag="request1"):
    """Ask whether the target knows the host, and which messages the host has not delivered.

    Like all frames below, it travels hop by hop.
    """

    source: NodeId
    target: NodeId | None
    """None, if handoffs are flooded: all other stations."""
    host: NodeId
    ses: Count
    place: Place


class Response1(msgspec.Struct, frozen=True, array_like=True, tag="response1"):
    """Answer a Request1; every Request1 gets an answer (correction 13)."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    is_known: bool = False
    held_ses: Count = 0
    """The connection in which the answering station had registered the host."""
    next_broadcast: Count = 0
    missing: tuple[MessageId, ...] = ()
    """m_nd: the messages that the host has not delivered."""


class Request2(msgspec.Struct, frozen=True, array_like=True, tag="request2"):
    """Ask the old station for the messages that the new station has discarded."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    wanted: tuple[MessageId, ...]


class Response2(msgspec.Struct, frozen=True, array_like=True, tag="response2"):
    """Hand the host over, with the wanted messages and the ids that arrived since Request1."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    messages: tuple[Message, ...]
    since: tuple[MessageId, ...]


class Delete(msgspec.Struct, frozen=True, array_like=True, tag="delete"):
    """Tell the target to unregister the host if it registered it in this connection or before."""

    source: NodeId
    target: NodeId | None
    host: NodeId
    ses: Count


Uplink = Join | Connect | Leave | HostBroadcast | HostAck
Downlink = Cast | CatchUp | StationAck | ConnectAck | LeaveAck | Forgotten
Routed = Request1 | Response1 | Request2 | Response2 | Delete
Frame = Union[Uplink, Downlink, Relay, Routed]  # noqa: UP007


def messages_of(frame: Frame) -> tuple[Message, ...]:
    """Return the messages of hosts that a frame carries."""
    if isinstance(frame, HostBroadcast | Cast | CatchUp | Relay):
        return (frame.message,)
    return frame.messages if isinstance(frame, Response2) else ()


def is_proven(frame: Frame, proofs: Proofs) -> bool:
    """Return whether all messages in a frame are proven to be of their hosts."""
    return all(map(proofs.is_proven, messages_of(frame)))
