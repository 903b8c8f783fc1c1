"""What hosts and stations of TCP-Flooding say to each other."""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, NodeId
from beforehand.protocols.mobile.was.frames import Relay


class Syn(msgspec.Struct, frozen=True, tag="tcp_syn"):
    """A host opens a connection. `ses` tells its connections apart, as ports do."""

    cell: NodeId
    host: NodeId
    ses: Count


class SynAck(msgspec.Struct, frozen=True, tag="tcp_syn_ack"):
    """The station has opened it too."""

    cell: NodeId
    host: NodeId
    ses: Count


class Segment(msgspec.Struct, frozen=True, tag="tcp_segment"):
    """Either way, between a station and one host. Numbers count messages, not bytes."""

    cell: NodeId
    host: NodeId
    ses: Count
    first: Count
    """The number of the first message."""
    ack: Count
    """All before this number has arrived at the sender of this segment."""
    messages: tuple[Message, ...] = ()
    """None: a plain acknowledgement."""


Frame = Union[Syn, SynAck, Segment, Relay]  # noqa: UP007
