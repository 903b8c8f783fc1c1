"""What every protocol core has in common: names, messages, needs, counters, `explain`.

A core is a pure state machine. Inputs are `on_<noun>(now_us, ..., out)`: they change the core and
append effects to the caller's `Outbox`, and return nothing. A core reads no clock (time is an int
of microseconds, passed in), opens no socket and draws no randomness of its own (a generator is
handed in). The driver gives one input, drains the outbox to empty, then gives the next.

*receive* is the network handing a message to a node; *deliver* is the node handing it to the
application. The two words are never mixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from beforehand.core.outbox import Outbox

NodeId = int | str
MessageId = tuple[NodeId, int]
"""(origin, seq). `seq` grows strictly along one origin's messages, not necessarily by one."""

NEVER_US = -1
"""As the due time of a timer: cancel it."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One broadcast message, the same object on every node of a simulation.

    Where messages have lifetimes, `seq` is the deadline on the origin's clock (OPP section V):
    one number that identifies, orders and bounds the message.
    """

    id: MessageId
    past: tuple[MessageId, ...]
    """What must be delivered before: a causal barrier, or a vector clock, or nothing."""
    payload: bytes

    @property
    def origin(self) -> NodeId:
        return self.id[0]

    @property
    def seq(self) -> int:
        return self.id[1]


class Needs(msgspec.Struct, frozen=True):
    """What a core must have from its network. A world that does not give it is refused."""

    fifo_links: bool = False
    reliable_links: bool = False
    """Nothing is lost or duplicated between two neighbours while their link is up."""
    clocks_within_us: int | None = None
    """The clocks of any two nodes differ by no more than this."""


class Fate(msgspec.Struct, frozen=True):
    """The answer to `explain(message)`."""

    state: Literal["delivered", "waiting", "expired", "unknown"]
    missing: tuple[MessageId, ...] = ()
    """While waiting: the predecessors that were neither delivered nor given up."""
    since_us: int | None = None
    """While waiting: when it was received, on the node's clock."""


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
    """Overtaken by a later message of its origin, so never delivered: a clock is out of bounds."""
    evicted: int = 0
    """Pushed out of a full cache."""
    dropped: int = 0
    """Pushed out of a full cache while still waiting for its delivery."""
    refused: int = 0
    """A peer's error: a deadline too far ahead, or a message of ours that we never sent."""


class Core(Protocol):
    """What a world, a socket runtime and the explorer drive."""

    node: NodeId

    @property
    def counters(self) -> Counters: ...

    @property
    def needs(self) -> Needs: ...

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Any], lifetime_us: int | None = None
    ) -> None: ...

    def on_message(self, now_us: int, source: NodeId, frame: Any, out: Outbox[Any]) -> None: ...

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Any]) -> None: ...

    def on_timer(self, now_us: int, name: str, out: Outbox[Any]) -> None: ...

    def explain(self, message: MessageId) -> Fate: ...

    def gauges(self, now_us: int) -> dict[str, int]: ...
