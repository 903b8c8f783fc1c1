"""What hosts and stations of CK say to each other, by radio and by wire.

A message is the n-th one of the station where it was initiated. `site` is that station, as its
place in the order of all stations' names; a vector has a count for each of them.
"""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, NodeId
from beforehand.protocols.mobile.was.frames import StationAck

Vector = tuple[Count, ...]
Id = tuple[Count, Count]
"""(site, number): the numbers of a site start with 1."""

# ---- radio, up -----------------------------------------------------------------------------------


class Join(msgspec.Struct, frozen=True, tag="ck_join"):
    """A host that never heard from anybody asks to be registered."""

    cell: NodeId
    host: NodeId
    ses: Count


class Connect(msgspec.Struct, frozen=True, tag="ck_connect"):
    """A host has changed its cell."""

    cell: NodeId
    host: NodeId
    ses: Count
    old: NodeId
    """The last station that it heard of being registered at."""


class Say(msgspec.Struct, frozen=True, tag="ck_say"):
    """A host's message, and what it had delivered when it was said: up to there, of each site."""

    cell: NodeId
    host: NodeId
    ses: Count
    message: Message
    past: Vector


class Ack(msgspec.Struct, frozen=True, tag="ck_ack"):
    """A host has delivered this."""

    cell: NodeId
    host: NodeId
    ses: Count
    site: Count
    number: Count


# ---- radio, down ---------------------------------------------------------------------------------


class Cast(msgspec.Struct, frozen=True, tag="ck_cast"):
    """A message, for hosts that have delivered all that it depends on."""

    cell: NodeId
    turn: Count
    """How many registrations there were in this cell."""
    site: Count
    number: Count
    message: Message
    hosts: tuple[NodeId, ...] = ()
    """For whom it is; nobody is named if it is for all who were registered by that turn."""


class ConnectAck(msgspec.Struct, frozen=True, tag="ck_connect_ack"):
    """The host is registered here, in this connection."""

    cell: NodeId
    host: NodeId
    ses: Count
    next_said: Count
    turn: Count
    start: Vector = ()
    """For one that joins: up to where it is spared what was said."""


# ---- wire ----------------------------------------------------------------------------------------


class Relay(msgspec.Struct, frozen=True, tag="ck_relay"):
    """A message on its way over the tree, and what must be delivered before."""

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
    """What came together for one wire: acknowledgements, and what may be discarded."""

    receipts: tuple[Receipt, ...]
    deletes: tuple[Id, ...]


class Joined(msgspec.Struct, frozen=True, tag="ck_joined"):
    """A host is new: from here on its acknowledgements are waited for. Flooded."""

    source: NodeId
    host: NodeId
    ses: Count


class Welcome(msgspec.Struct, frozen=True, tag="ck_welcome"):
    """Every station's answer: how many messages it had initiated before."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    count: Count


class Fetch(msgspec.Struct, frozen=True, tag="ck_fetch"):
    """The host is in another cell now: hand over what you know of it."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count


class Given(msgspec.Struct, frozen=True, tag="ck_given"):
    """All that is known of a host, which is the other's now."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count
    next_said: Count
    spoken: Id
    """Its last message; (0, 0) if there is none."""
    counts: Vector
    extra: tuple[Id, ...]
    """What it has acknowledged out of order."""


class Refused(msgspec.Struct, frozen=True, tag="ck_refused"):
    """A newer connection of the host has asked meanwhile."""

    source: NodeId
    target: NodeId
    host: NodeId
    ses: Count


Uplink = Join | Connect | Say | Ack
Downlink = Cast | ConnectAck | StationAck
Routed = Welcome | Fetch | Given | Refused
Frame = Union[Uplink, Downlink, Relay, Bundle, Joined, Routed]  # noqa: UP007
