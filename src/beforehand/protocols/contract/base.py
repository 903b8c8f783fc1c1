"""The contract of a protocol core, as types: its inputs, its effects and its queries.

A core is a pure state machine. Inputs are `on_<noun>(now_us, ..., out)`: they change the core and
append effects to the caller's `Outbox`. A core reads no clock: the caller passes in the time, an
int of microseconds. It opens no socket, and it draws random numbers only from a generator that the
caller passes in. The driver (`protocols.contract.driver`) gives one input, drains the outbox to
empty, then gives the next input.

*receive*: the network hands a message to a node. *deliver*: the node hands a message to the
application. The two words are never mixed.

*Links.* `needs` names the kinds of links that a core works over (`protocols.contract.needs`). The
kind defines what `on_link` means and how a core treats a frame that arrives without a link.

*Clocks.* A node's clock may be set back. Two rules hold for every core. Decisions are final: a
deadline that has passed stays passed. A core does not wait for its clock to catch up: a recorded
instant that now lies in the future counts as now. The Δ order is the exception: it defers a message
whose sender's clock is ahead by more than the agreed skew (`protocols.orders.barrier`).

*Timers.* `on_timer` passes the key that the core set. A timer may outlive the reason for which it
was set, so a core ignores a key that it does not know or no longer waits for.

*Crashes.* A durable core saves the state that must survive a crash. `restore` is the first input of
the next incarnation. A node that restarts without its saved state is a new node and needs a new
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import msgspec

if TYPE_CHECKING:
    from beforehand.protocols.contract.needs import Needs
    from beforehand.protocols.contract.outbox import Outbox
    from beforehand.protocols.contract.tables import Rows, Table

NAME_CHARS_MAX = 128
PROOF_BYTES_MAX = 8192

# The bounds of values in frames. Only the codec checks them (`protocols.contract.codec`), not the
# cores. The sum of two such ints fits into 64 bits, and LONG_AGO and LONG_AHEAD lie outside.
Int62 = Annotated[int, msgspec.Meta(gt=-(1 << 62), lt=1 << 62)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Proof = Annotated[bytes, msgspec.Meta(max_length=PROOF_BYTES_MAX)]

NodeId = Int62 | Name
MessageId = tuple[NodeId, Int62]
"""(origin, seq). `seq` grows strictly along one origin's messages, not necessarily by one."""

EVERYBODY = None
"""As the target of a frame: one radio transmission that every host in the cell may receive."""

Timer = tuple[str, NodeId | None]
"""The key of a timer: (kind, subject). The subject is the node that the timer is about, if any."""

CANCEL = None
"""In place of the due time of a timer: cancel the timer. No int can mean that, because a clock that
shows a time before 1970 gives negative due times."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One broadcast message. The nodes of a simulation share the same object.

    Where messages have lifetimes, `seq` is the deadline on the origin's clock (OPP section V). One
    number then identifies the message, orders it and bounds its lifetime. In the stamped order the
    deadline is a field of its own (`protocols.orders.stamped_message`).
    """

    HEAD_MORE: ClassVar[int] = 0
    """The bytes that a message of this type has on the wire besides those of a plain one."""
    CAUSE_MORE: ClassVar[int] = 0
    """The same for each cause."""

    id: MessageId
    past: tuple[MessageId, ...]
    """The messages that must be delivered before this one: a causal barrier, a vector clock, or
    empty."""
    payload: bytes
    proof: Proof = b""
    """The origin's signature over all other fields; empty if the group does not require one."""
    stamp: Int62 = 0
    """The origin's horizon at the broadcast, in µs; 0 where messages have no lifetimes. The order
    defers deliveries by it (`protocols.orders.barrier`)."""

    @property
    def origin(self) -> NodeId:
        return self.id[0]

    @property
    def seq(self) -> int:
        return self.id[1]

    @property
    def deadline_us(self) -> int:
        """Return the deadline on the origin's clock, where messages have lifetimes."""
        return self.id[1]

    @property
    def is_internal(self) -> bool:
        """Return whether only the protocol needs the message: the application never sees it."""
        return False

    def signed_fields(self) -> tuple[Any, ...]:
        """Return what the origin signs. They differ for any two messages of one type.

        A stamp of 0 is left out. So the signed bytes of messages without lifetimes are those of
        earlier versions, and the proofs in existing stores stay valid.
        """
        signed = (self.id, self.past, self.payload)
        return (*signed, self.stamp) if self.stamp else signed


class MessageStatus(msgspec.Struct, frozen=True):
    """The status of one message at one node, as `explain` returns it."""

    state: Literal["delivered", "waiting", "expired", "missed", "unknown"]
    """*missed*: skipped for good, because no peer holds the message any more."""
    missing: tuple[MessageId, ...] = ()
    """While waiting: the predecessors that are neither delivered, expired nor skipped."""
    since_us: int | None = None
    """While waiting: when the node received the message, on the node's clock."""
    until_us: int | None = None
    """While waiting for the clock alone: the node's time at which it can deliver the message."""


class Counters(msgspec.Struct):
    """Counts of the events at one node since it started."""

    broadcast: int = 0
    received: int = 0
    """New messages from the network. A message that was evicted and received again counts twice."""
    delivered: int = 0
    """Messages delivered to the application, the node's own messages included."""
    duplicate: int = 0
    """Messages received again while still held, or after their delivery."""
    expired: int = 0
    """Messages received in time whose deadline passed before the delivery."""
    stale: int = 0
    """Messages received after their deadline."""
    late: int = 0
    """Messages overtaken by a later message of their origin, and so never delivered. The origin, or
    a peer that claims to be the origin, broke the protocol."""
    evicted: int = 0
    """Messages removed from a full cache."""
    dropped: int = 0
    """Messages removed from a full cache while they waited for their delivery."""
    missed: int = 0
    """Messages that this node skipped: they were broadcast while it was offline, and no peer holds
    them any more."""
    refused: int = 0
    """Messages that no correct peer sends: without the origin's proof, with a deadline that does
    not fit the stamp, with itself as its cause, or under this node's name though it never sent
    it."""
    early: int = 0
    """Messages received while their stamp was more than twice the skew ahead of this node's clock.
    They were not stored and can be requested again."""
    regained: int = 0
    """Messages that carry this node's own valid proof and that it did not know. The state from
    which it was restored is older than they are."""


FrameT = TypeVar("FrameT")


class Core(Protocol[FrameT]):
    """The interface of every core: inputs for frames and timers, and queries."""

    node: NodeId

    @property
    def needs(self) -> Needs:
        """Return the guarantees that the core requires of its network."""
        ...

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables that the core saves; none if it is not durable."""
        ...

    @property
    def counters(self) -> Counters:
        """Return the counts of events at this node."""
        ...

    def on_message(self, now_us: int, source: NodeId, frame: FrameT, out: Outbox[FrameT]) -> None:
        """Process a frame that arrived from `source`."""
        ...

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[FrameT]) -> None:
        """Process a timer that is due."""
        ...

    def restore(self, now_us: int, rows: Rows, out: Outbox[FrameT]) -> None:
        """Continue from the saved state of an earlier incarnation. It must be the first
        input."""
        ...

    def explain(self, message: MessageId) -> MessageStatus:
        """Return the status of a message at this node, and the predecessors that it waits for."""
        ...

    def gauges(self, now_us: int) -> dict[str, int]:
        """Return the size of each registry. A bounded core bounds each of them."""
        ...


class Linked(Core[FrameT], Protocol[FrameT]):
    """A core that learns which peers are up."""

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[FrameT]) -> None:
        """Process a link-up or link-down of `peer`. The kind of link defines what that means."""
        ...


class Broadcaster(Linked[FrameT], Protocol[FrameT]):
    """A core through which an application broadcasts."""

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[FrameT], lifetime_us: int | None = None
    ) -> MessageId:
        """Broadcast a payload and return the id of the new message. This step delivers the message,
        or a later one does where another node assigns its place in the order."""
        ...


BroadcastRequest = tuple[bytes, int | None]
"""(payload, lifetime in µs); a lifetime of None is the default one."""


@runtime_checkable
class BatchBroadcaster(Protocol[FrameT]):
    """A core that takes several broadcasts as one input, where that costs less."""

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[FrameT]
    ) -> list[MessageId]:
        """Broadcast several payloads and return their ids. Each causally follows the one before."""
        ...


class Paced(Broadcaster[FrameT], Protocol[FrameT]):
    """A core with flow control: it sends what the wire, the application and the disk allow."""

    def on_room(self, now_us: int, peer: NodeId, room: int, out: Outbox[FrameT]) -> None:
        """Set the number of bytes that the wire to `peer` takes; it replaces the earlier number.
        The first call follows the link-up immediately."""
        ...

    def on_open(self, now_us: int, is_open: bool, out: Outbox[FrameT]) -> None:
        """Set whether the application accepts more deliveries; at the start it does."""
        ...

    def on_saved(self, now_us: int, step: int, out: Outbox[FrameT]) -> None:
        """Note that the disk has all saves up to this step (`saving_step`)."""
        ...

    def on_progress(self, now_us: int, peer: NodeId, out: Outbox[FrameT]) -> None:
        """Note that part of a frame has arrived from `peer`: the peer is slow, not silent."""
        ...

    def saving_step(self) -> int:
        """Return the number of the last step whose saves a frame may refer to."""
        ...

    def room_left(self, peer: NodeId) -> int:
        """Return how many bytes are left of the room that `on_room` set."""
        ...


class Leaver(Broadcaster[FrameT], Protocol[FrameT]):
    """A core that can leave the group for good, so that no other node waits for it."""

    def on_leave(self, now_us: int, out: Outbox[FrameT]) -> None:
        """Leave the group. The node broadcasts nothing more and never returns under this name."""
        ...
