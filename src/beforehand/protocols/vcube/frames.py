"""What travels between the nodes of a VCube, and how much fits into a packet (VCU section 5)."""

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
"""(origin, seq): up to here the origin's messages are in the past. Also the id of a message."""


class VCubeMessage(Message, frozen=True, array_like=True, gc=False):
    """`past` holds the entries of the vector clock that changed since the sender's last broadcast
    (Birman's compression, section 5). The others are those of the previous message of the same
    origin, which every node delivers, and forwards, before this one: nothing is rebuilt.

    The entries come in order of their origins, and its own is not among them. There is no message
    for which that does not hold, so a node need only look at the last one to know that it knows
    them all, and no message waits for itself.
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
    """Messages for one child. The last of them is the one whose arrival made the packet leave.

    That order keeps an aggregate together: the next node holds back the first messages until it
    reads the last, and then sends all of them on at once.
    """

    height: Count
    """The receiver answers for its clusters 1..height."""
    messages: tuple[VCubeMessage, ...]

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        """What is wrong with it, for node `me` that has sent so many messages; empty if nothing
        is."""
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
    """Send me what I lack, and tell me what of it you no longer have."""

    clock: tuple[Count, ...]
    """How many messages of each origin the sender has delivered, or passed over."""

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return _vector_problem(self.clock, nodes)


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="answer"):
    """All that you lack is in the packets before this, but for what is no longer here."""

    gone: tuple[Count, ...]
    """The first messages of each origin that the sender keeps no more, a set that is closed under
    causes. Empty if nothing of it was lacking."""

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return _vector_problem(self.gone, nodes) if self.gone else ""


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="known"):
    """You have sent more than you remember: I know your messages up to this one."""

    seq: Seq

    def problem(self, nodes: int, dimension: int, me: int, sent: int) -> str:
        return "" if self.seq >= 1 else f"no such message: {self.seq}"


CubeFrame = Packet | Ask | Answer | Known
CubeOutbox = Outbox[CubeFrame]


def _vector_problem(vector: tuple[int, ...], nodes: int) -> str:
    if len(vector) != nodes:
        return f"a clock of {len(vector)} entries in a group of {nodes}"
    return f"a clock with negative entries: {vector}" if min(vector) < 0 else ""


def pack(messages: list[VCubeMessage], mtu_bytes: int) -> list[list[VCubeMessage]]:
    """In this order, into as few packets as that allows: one that cannot take the next message is
    closed. A message too large for any packet travels alone; to cut it up is up to the network."""
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
    """Payload, proof and clock entries, the origin's own included (section 5.2)."""
    return len(message.payload) + len(message.proof) + ENTRY_BYTES * (1 + len(message.past))
