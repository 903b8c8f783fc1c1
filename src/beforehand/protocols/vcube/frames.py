"""The frames that VCube nodes exchange, and how messages are packed into them (VCU section 5)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import msgspec

from beforehand.protocols.contract.base import Count, Message
from beforehand.protocols.contract.outbox import Outbox

HEADER_BYTES = 20
ENTRY_BYTES = 4
MTU_BYTES = 1500

Seq = Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
Entry = tuple[Count, Seq]
"""(origin, seq). As a clock entry: the origin's messages up to seq are in the causal past. Also the
id of a message."""


class VCubeMessage(Message, frozen=True, array_like=True, gc=False):
    """A broadcast message with its compressed vector clock.

    `past` holds the entries of the vector clock that changed since the origin's last broadcast
    (Birman's compression, section 5). The other entries equal those of the origin's previous
    message. Every node delivers and forwards that message first, so no node rebuilds the clock.

    The entries are sorted by origin, and the message's own origin is not among them. The
    constructor enforces both. So a node need only check the last entry to know that all entries
    name existing nodes, and no message waits for itself.
    """

    id: Entry
    past: tuple[Entry, ...]

    def __post_init__(self) -> None:
        origins = [-1, *(origin for origin, _ in self.past)]
        if any(this >= following for this, following in pairwise(origins)):
            raise ValueError(f"causes out of order: {self.past}")
        if self.id[0] in origins[1:]:
            raise ValueError(f"a cause of the same origin: {self.id} after {self.past}")


class Packet(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="packet"):
    """Messages for one child. The last one is the message whose arrival triggered the packet.

    That order keeps an aggregate together: the child holds back the first messages until it reads
    the last one, and then forwards all of them at once.
    """

    height: Count
    """The receiver is responsible for its clusters 1..height."""
    messages: tuple[VCubeMessage, ...]

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        """Return what is wrong with the frame for node `me`, or an empty string.

        sent: the highest sequence number of `me` that the frame may contain.
        """
        problem = "" if 0 <= self.height <= dimension else f"height {self.height}"
        for message in self.messages:
            origin, seq = message.id
            if not 0 <= origin < nodes or seq < 1:
                problem = f"no such message: {message.id}"
            elif origin == me and seq > sent:
                problem = f"a message of this node that it never sent: {message.id}"
            elif message.past and message.past[-1][0] >= nodes:
                problem = f"message {message.id} depends on unknown nodes: {message.past[-1]}"
        return problem


class Ask(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="ask"):
    """Ask the peer for the messages that the sender lacks, and for those that the peer evicted."""

    clock: tuple[Count, ...]
    """The sender's version vector: per origin, how many messages it has delivered or skipped."""

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return _vector_problem(self.clock, nodes)


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="answer"):
    """End the reply to an `Ask`. The packets before it hold all requested messages still kept."""

    gone: tuple[Count, ...]
    """Per origin, the highest sequence number that the sender has evicted; a set that is closed
    under causes. Empty if the asking node lacks none of these messages."""

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return _vector_problem(self.gone, nodes) if self.gone else ""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="known"):
    """Tell a node that it lost its state: the sender knows its messages up to `seq`."""

    seq: Seq

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return "" if self.seq >= 1 else f"no such message: {self.seq}"


VCubeFrame = Packet | Ask | Answer | Known
VCubeOutbox = Outbox[VCubeFrame]


def _vector_problem(vector: tuple[int, ...], nodes: int) -> str:
    if len(vector) != nodes:
        return f"a clock of {len(vector)} entries in a group of {nodes}"
    return f"a clock with negative entries: {vector}" if min(vector) < 0 else ""


def pack(messages: list[VCubeMessage], mtu_bytes: int) -> list[list[VCubeMessage]]:
    """Divide the messages, in this order, into as few packets as the order allows.

    A packet without room for the next message is closed. A message too large for any packet
    travels alone, and the network must fragment it.
    """
    packed: list[list[VCubeMessage]] = []
    room = -1
    for message in messages:
        size = message_bytes(message)
        if size > room:
            packed.append([])
            room = mtu_bytes - HEADER_BYTES
        packed[-1].append(message)
        room -= size
    return packed


def message_bytes(message: VCubeMessage) -> int:
    """Return the size of payload, proof and clock entries, with the origin's own (section 5.2)."""
    return len(message.payload) + len(message.proof) + ENTRY_BYTES * (1 + len(message.past))
