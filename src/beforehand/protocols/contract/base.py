"""The contract of a protocol core, as types: what it is given, what it answers.

A core is a pure state machine. Inputs are `on_<noun>(now_us, ..., out)`: they change the core and
append effects to the caller's `Outbox`. A core reads no clock (time is an int of microseconds,
passed in), opens no socket and draws no randomness of its own (a generator is handed in). Whoever
drives it (`protocols.contract.driver`) gives one input, drains the outbox to empty, then gives the
next.

*receive* is the network handing a message to a node; *deliver* is the node handing it to the
application. The two words are never mixed.

*Links.* `needs` names the kinds of links that a core works over (`protocols.contract.needs`); the
kind says what `on_link` means and what becomes of a frame that comes without a link.

*Clocks.* A node's clock may be set back, and one rule holds for every core: what was decided stays
decided (a deadline that has passed has passed), and nobody waits for a clock to catch up (an
instant that was noted and lies ahead now counts as now). The Δ order is the exception: it defers a
message whose sender's clock is ahead by more than the agreed skew (`protocols.orders.barrier`).

*Timers.* A core is woken with the key that it set. A key that it does not know, or no longer waits
for, is nothing to it: a timer may outlive the reason for which it was set.

*Crashes.* A core that is built as durable saves what it must not forget; `restore` is the first
input of the next incarnation. Who restarts without what it saved is a new node, with a new name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from beforehand.protocols.contract.needs import Needs
    from beforehand.protocols.contract.outbox import Outbox
    from beforehand.protocols.contract.tables import Rows, Table

NAME_CHARS_MAX = 128
PROOF_BYTES_MAX = 8192

# The bounds of what a peer may send (`protocols.contract.codec`); nothing checks them inside a
# node. The sum of two such ints fits into 64 bits, and LONG_AGO and LONG_AHEAD lie outside.
Int62 = Annotated[int, msgspec.Meta(gt=-(1 << 62), lt=1 << 62)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Proof = Annotated[bytes, msgspec.Meta(max_length=PROOF_BYTES_MAX)]

NodeId = Int62 | Name
MessageId = tuple[NodeId, Int62]
"""(origin, seq). `seq` grows strictly along one origin's messages, not necessarily by one."""

EVERYBODY = None
"""As the target of a frame: one transmission that everybody in the cell may hear."""

Timer = tuple[str, NodeId | None]
"""What a timer is for, and for whom: (kind, subject)."""

CANCEL = None
"""In place of the due time of a timer: cancel the timer. Every int is a due time: a clock that
shows a time before 1970 gives negative ones."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One broadcast message, the same object on every node of a simulation.

    Where messages have lifetimes, `seq` is the deadline on the origin's clock (OPP section V):
    one number that identifies, orders and bounds the message.
    """

    id: MessageId
    past: tuple[MessageId, ...]
    """What must be delivered before: a causal barrier, or a vector clock, or nothing."""
    payload: bytes
    proof: Proof = b""
    """The origin's signature over all other fields, where a group asks for one."""
    stamp: Int62 = 0
    """Where messages have lifetimes: how far the origin's horizon had come at the broadcast, in µs.
    The order defers deliveries by it (`protocols.orders.barrier`). Else 0."""

    @property
    def origin(self) -> NodeId:
        return self.id[0]

    @property
    def seq(self) -> int:
        return self.id[1]


class MessageStatus(msgspec.Struct, frozen=True):
    """The answer to `explain(message)`."""

    state: Literal["delivered", "waiting", "expired", "missed", "unknown"]
    """*missed*: passed over for good, because nobody has it any more."""
    missing: tuple[MessageId, ...] = ()
    """While waiting: the predecessors that were neither delivered nor given up."""
    since_us: int | None = None
    """While waiting: when it was received, on the node's clock."""
    until_us: int | None = None
    """While waiting for the clock alone: the node's time at which it can be delivered."""


class Counters(msgspec.Struct):
    """What happened at one node since it started, by kind."""

    broadcast: int = 0
    received: int = 0
    """New messages from the network. A message that was evicted and came again counts twice."""
    delivered: int = 0
    """To the application, the node's own messages included."""
    duplicate: int = 0
    """Came again while still held, or after having been delivered."""
    expired: int = 0
    """Received in time, but the deadline passed before the delivery."""
    stale: int = 0
    """Came after its deadline."""
    late: int = 0
    """Overtaken by a later message of its origin, so never delivered: the origin, or a peer that
    claims to be it, broke the rules."""
    evicted: int = 0
    """Pushed out of a full cache."""
    dropped: int = 0
    """Pushed out of a full cache while still waiting for its delivery."""
    missed: int = 0
    """Passed over, because it was broadcast while this node was away and nobody has it any more."""
    refused: int = 0
    """A peer's error: a message without its origin's proof, with a deadline that does not fit its
    stamp, one that names itself as its cause, or one of ours that we never sent."""
    early: int = 0
    """Came while its stamp was more than twice the skew ahead of this node's clock. It was not
    stored, and can be asked for again."""
    regained: int = 0
    """Our own by our own proof, and unknown to us: what we were restored from is older than it."""


FrameT = TypeVar("FrameT")


class Core(Protocol[FrameT]):
    """What every core has: it takes in frames and timers, and answers questions."""

    node: NodeId

    @property
    def needs(self) -> Needs:
        """What its network must give it."""
        ...

    @property
    def tables(self) -> tuple[Table, ...]:
        """What it saves, with the types of keys and values; nothing if it is not durable."""
        ...

    @property
    def counters(self) -> Counters:
        """What happened here, by kind."""
        ...

    def on_message(self, now_us: int, source: NodeId, frame: FrameT, out: Outbox[FrameT]) -> None:
        """A frame has arrived from `source`."""
        ...

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[FrameT]) -> None:
        """A timer that it set is due."""
        ...

    def restore(self, now_us: int, rows: Rows, out: Outbox[FrameT]) -> None:
        """Go on from what an earlier incarnation saved: the first input, or none at all."""
        ...

    def explain(self, message: MessageId) -> MessageStatus:
        """What became of a message here, and what it waits for."""
        ...

    def gauges(self, now_us: int) -> dict[str, int]:
        """The size of each registry: what a bounded core keeps bounded."""
        ...


class Linked(Core[FrameT], Protocol[FrameT]):
    """A core that is told who is there."""

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[FrameT]) -> None:
        """Whether `peer` is there; what that means is said by the kind of link."""
        ...


class Broadcaster(Linked[FrameT], Protocol[FrameT]):
    """A core through which an application broadcasts."""

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[FrameT], lifetime_us: int | None = None
    ) -> MessageId:
        """The id of the new message. It is among the deliveries of this step, or of a later one
        where somebody else decides on its place."""
        ...


BroadcastRequest = tuple[bytes, int | None]
"""A payload, and its lifetime if it is not the default."""


@runtime_checkable
class BatchBroadcaster(Protocol[FrameT]):
    """A core that can take several broadcasts as one input, where that costs less."""

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[FrameT]
    ) -> list[MessageId]:
        """Each after the one before it."""
        ...


class Paced(Broadcaster[FrameT], Protocol[FrameT]):
    """A core with flow control: it lets out only what wire, program and disk allow."""

    def on_room(self, now_us: int, peer: NodeId, room: int, out: Outbox[FrameT]) -> None:
        """The wire to `peer` takes so many bytes, whatever it was said to take before. Right after
        a link came up it is said for the first time."""
        ...

    def on_open(self, now_us: int, is_open: bool, out: Outbox[FrameT]) -> None:
        """Whether the application takes in more; it does at the start."""
        ...

    def on_saved(self, now_us: int, step: int, out: Outbox[FrameT]) -> None:
        """All that was saved up to this step (`saving_step`) is on the disk."""
        ...

    def on_progress(self, now_us: int, peer: NodeId, out: Outbox[FrameT]) -> None:
        """Part of a frame has arrived from `peer`: it is slow, not silent."""
        ...

    def saving_step(self) -> int:
        """The number of the last step that saved something of which a frame may tell."""
        ...

    def room_left(self, peer: NodeId) -> int:
        """What is left of the room that it was told of."""
        ...


class Leaver(Broadcaster[FrameT], Protocol[FrameT]):
    """A core that can go for good, so that nobody waits for it."""

    def on_leave(self, now_us: int, out: Outbox[FrameT]) -> None:
        """It says nothing more. Under this name it never comes back."""
        ...
