"""The frames between hosts and stations of TCP-Flooding."""

from __future__ import annotations

from typing import Union

import msgspec

from beforehand.protocols.contract.base import Count, Message, NodeId
from beforehand.protocols.mobile.was.frames import Relay


class Syn(msgspec.Struct, frozen=True, tag="tcp_syn"):
    """A host opens a connection. `ses` distinguishes its connections, as ports do."""

    cell: NodeId
    host: NodeId
    ses: Count


class SynAck(msgspec.Struct, frozen=True, tag="tcp_syn_ack"):
    """The station has opened the connection, too."""

    cell: NodeId
    host: NodeId
    ses: Count


class Segment(msgspec.Struct, frozen=True, tag="tcp_segment"):
    """Messages and an acknowledgement, from a station to a host or back.

    Sequence numbers count messages, not bytes.
    """

    cell: NodeId
    host: NodeId
    ses: Count
    first: Count
    """The sequence number of the first message."""
    ack: Count
    """The sender of this segment has received all messages before this number."""
    messages: tuple[Message, ...] = ()
    """Empty for a plain acknowledgement."""


Frame = Union[Syn, SynAck, Segment, Relay]  # noqa: UP007
