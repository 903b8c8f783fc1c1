"""The frames of CK between hosts and stations, by radio and by wire.

A message is identified as the n-th one of the station that initiated it. `site` is the index of
that station in the sorted names of all stations. A vector has a count for each station.
"""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, NodeId
from beforehand.protocols.mobile.was.frames import StationAck

Vector = tuple[Count, ...]
Id = tuple[Count, Count]
"""(site, number); the numbers of a site start with 1."""

# ---- radio, up -----------------------------------------------------------------------------------


class Join(msgspec.Struct, frozen=True, tag="ck_join"):
    """A host that no station has registered yet asks to be registered."""

    cell: NodeId
    host: NodeId
    ses: Count


class Connect(msgspec.Struct, frozen=True, tag="ck_connect"):
    """A host has changed its cell."""

    cell: NodeId
    host: NodeId
    ses: Count
    old: NodeId
    """The last station of which the host knows that it registered it."""


class HostBroadcast(msgspec.Struct, frozen=True, tag="ck_say"):
    """A host's message, and `past`: per site, what the host had delivered at the broadcast."""

    cell: NodeId
    host: NodeId
    ses: Count
    message: Message
    past: Vector


class Ack(msgspec.Struct, frozen=True, tag="ck_ack"):
    """A host has delivered message `number` of `site`."""

    cell: NodeId
    host: NodeId
    ses: Count
    site: Count
    number: Count


class SeenAck(msgspec.Struct, frozen=True, tag="ck_host_ack"):
    """The messages that a host has delivered: a count per site without gaps, and those beyond."""

    cell: NodeId
    host: NodeId
    ses: Count
    counts: Vector
    extra: tuple[Id, ...] = ()


# ---- radio, down ---------------------------------------------------------------------------------


class Cast(msgspec.Struct, frozen=True, tag="ck_cast"):
    """A message for hosts that have delivered all its causes."""

    cell: NodeId
    turn: Count
    """How many registrations there were in this cell at the transmission."""
    site: Count
    number: Count
    message: Message
    hosts: tuple[NodeId, ...] = ()
    """The hosts that are to deliver it; empty: all hosts that were registered by that turn."""


class ConnectAck(msgspec.Struct, frozen=True, tag="ck_connect_ack"):
    """The host is registered here, in this connection."""

    cell: NodeId
    host: NodeId
    ses: Count
    next_broadcast: Count
    turn: Count
    start: Vector = ()
    """For a joining host: it gets only messages after these counts."""


# ---- wire ----------------------------------------------------------------------------------------


class Relay(msgspec.Struct, frozen=True, tag="ck_relay"):
    """A message on its way over the tree, and `needs`: what must be delivered before it."""

    site: Count
    number: Count
    needs: Vector
    message: Message


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """A host's acknowledgement, on its way to the station where the message was initiated."""

    site: Count
    host: NodeId
    number: Count


class Bundle(msgspec.Struct, frozen=True, tag="ck_bundle"):
    """Control data gathered for one wire: acknowledgements, and messages to discard."""

    receipts: tuple[Receipt, ...]
    deletes: tuple[Id, ...]


class Joined(msgspec.Struct, frozen=True, tag="ck_joined"):
    """A host is new: stations wait for its acknowledgements from now on. Flooded."""

    source: NodeId
    host: NodeId
    ses: Count


class Welcome(msgspec.Struct, frozen=True, tag="ck_welcome"):
    """The answer of every station to `Joined`: how many messages it had initiated before."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    count: Count


class Fetch(msgspec.Struct, frozen=True, tag="ck_fetch"):
    """The host is in the source's cell now: the target is to hand over its state."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count


class HostState(msgspec.Struct, frozen=True, tag="ck_given"):
    """The state of a host, handed over: the target is responsible for the host now."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    next_broadcast: Count
    last_broadcast: Id
    """The id of the host's last message; (0, 0) if there is none."""
    counts: Vector
    extra: tuple[Id, ...]
    """The messages that the host has acknowledged out of order."""


class Refused(msgspec.Struct, frozen=True, tag="ck_refused"):
    """The answer to an outdated `Fetch`: a newer connection of the host has asked meanwhile."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count


Uplink = Join | Connect | HostBroadcast | Ack | SeenAck
Downlink = Cast | ConnectAck | StationAck
Routed = Welcome | Fetch | HostState | Refused
Frame = Union[Uplink, Downlink, Relay, Bundle, Joined, Routed]  # noqa: UP007
