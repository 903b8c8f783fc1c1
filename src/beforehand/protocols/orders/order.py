"""The order of deliveries, a layer between the epidemic layer and the application.

`Epidemic` forwards messages; an `Order` decides when a received message is delivered. The epidemic
layer calls `on_receive` with a message only while its cache holds that message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import (
    BroadcastRequest,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import MessageT, Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.epidemic.sizes import OWN_BYTES_MAX, fits, wire_bytes

ORDER_TIMER: Timer = ("order", None)
LONG_AGO = -(1 << 62)
LONG_AHEAD = 1 << 62
"""LONG_AGO is smaller than any seq, LONG_AHEAD larger."""
CHAIN_GRACE_US = 1_000_000
"""The allowance for chains of causes: each dependent broadcast may move the deadline by 1 µs, and
no node broadcasts a million messages at once."""
EARLY_MAX = 1024
"""How many ids of messages with a stamp too far ahead the node remembers."""
PURGE_AT_MIN = 64
"""The least size of a registry at which the node searches it for expired entries. It does so
whenever the registry has doubled."""

OWN = Table("own", str, int)
"""The node's state about itself: `seq` of its last message, and its `horizon`. Deadlines up to the
horizon have passed, however the clock is set later."""


class Lifetimes(msgspec.Struct, frozen=True):
    """The group's agreement on deadlines (OPP section V)."""

    default_us: int
    longest_us: int
    """The longest lifetime that a message may have."""
    skew_us: int = 5_000_000
    """The largest expected difference between two clocks of the group. The causal order does not
    depend on it. If a sender's clock is further ahead, its message is delivered later, by the
    excess. A larger skew makes senders name expired causes for longer."""

    def chosen_us(self, node: NodeId, lifetime_us: int | None) -> int:
        """Return the lifetime of one message. Raise LocalError if the group does not allow it."""
        chosen = self.default_us if lifetime_us is None else lifetime_us
        if not 0 < chosen <= self.longest_us:
            raise LocalError(
                f"a lifetime of {chosen} us is outside 1..{self.longest_us} us",
                where=f"node {node}",
                hint="choose a shorter lifetime, or raise the group's longest lifetime",
            )
        return chosen

    def latest_us(self, stamp_us: int) -> int:
        """Return the latest deadline that a message with this stamp can have.

        The deadline exceeds `stamp + longest` only if it must follow the deadline of a cause. The
        sender delivered that cause, so the cause's stamp exceeds the sender's by at most the skew.

        Without this bound, one node with a clock far ahead would lengthen the lifetime of every
        message that depends on its messages.
        """
        return stamp_us + self.longest_us + self.skew_us + CHAIN_GRACE_US

    def is_valid(self, stamp_us: int, deadline_us: int) -> bool:
        """Return whether stamp and deadline fit together. The result does not depend on a clock.

        A deadline at or before `stamp - skew` would pass before any node may deliver the message.
        """
        return stamp_us - self.skew_us < deadline_us <= self.latest_us(stamp_us)


class Order(ABC):
    """The base class of delivery orders."""

    tables: tuple[Table, ...]
    """The tables that a durable order saves."""
    message_type: type[Message] = Message
    """The type of its messages."""
    has_floor = False
    """Whether the order can give up causes that no peer holds (`protocols.orders.stamped`). The
    seq of its ids is then a stamp, and no deadline."""
    expires: bool
    """Whether `seq` is a deadline."""
    durable = False
    """Whether the order saves its state. The epidemic layer sets it for both layers: if only one
    were durable, the node would forget its own messages or deliver them twice."""
    proofs: Proofs | None = None
    """Signs own messages, if the group requires proofs. The epidemic layer sets it."""

    def __init__(self, node: NodeId, lifetimes: Lifetimes | None = None) -> None:
        self.node = node
        self.counters = Counters()
        self.expires = lifetimes is not None
        self.clocks_within_us: int | None = None
        """The largest difference of clocks that the order tolerates; None for any. Stamps make it
        None: clocks further apart than the skew delay messages, but cannot break the order."""
        self.early: dict[MessageId, int] = {}
        """The messages that `screen` rejected only because this node's clock is too far behind the
        stamp: id -> the horizon from which on the node accepts it. It holds the latest EARLY_MAX.
        The epidemic layer gets them with `take_early` and requests them again."""
        self._lifetimes = lifetimes
        self._skew_us = lifetimes.skew_us if lifetimes else LONG_AHEAD
        self._lead_us = lifetimes.latest_us(0) if lifetimes else 2 * LONG_AHEAD
        """The largest amount by which a deadline may exceed its stamp."""
        self._last_seq = LONG_AGO if lifetimes else 0
        """The seq of the last own message."""
        self._horizon_us = self._saved_horizon_us = LONG_AGO
        """The horizon: deadlines up to it have passed. It never falls, whatever the clock does."""

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Any], lifetime_us: int | None = None
    ) -> Message:
        """Return the next own message, stamped and already delivered at this node."""
        return self.on_broadcasts(now_us, [(payload, lifetime_us)], out)[0]

    @abstractmethod
    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        """Return a batch of own messages, each causally after the one before it.

        The batch is atomic. A signer may fail, so all messages are stamped and proven before the
        first of them changes the state.
        """

    @abstractmethod
    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        """Take messages that the cache now holds, and deliver all that can be delivered."""

    @abstractmethod
    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        """Drop those of the evicted messages that are pending. The node may receive them again."""

    @abstractmethod
    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        """Process ORDER_TIMER, which is due."""

    def screen(self, now_us: int, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages that the node accepts, and count the others by reason.

        The node neither stores nor forwards a message that has expired, that no correct peer can
        have sent, or whose stamp is too far ahead of this node's clock (`early`).
        """
        node, skew_us, lead_us = self.node, self._skew_us, self._lead_us
        after, until = LONG_AGO, LONG_AHEAD
        if self.expires:
            after = now_us if now_us > self._horizon_us else self._horizon_us
            until = after + 2 * skew_us
            for message in messages if self.early else ():
                self.early.pop(message.id, None)
        fine = [
            message
            for message in messages
            if after < (id := message.id)[1] <= (stamp := message.stamp) + lead_us
            and stamp - skew_us < id[1]
            and stamp <= until
            and id[0] != node
            and id not in message.past
        ]
        if len(fine) == len(messages):
            return messages
        return [message for message in messages if self._is_fine(message, after, until)]

    def take_early(self, now_us: int) -> list[MessageId]:
        """Remove the ids from `early` that the node accepts now, and return those not expired."""
        horizon_us = max(now_us, self._horizon_us)
        due = [id for id, at_us in self.early.items() if at_us <= horizon_us or id[1] <= horizon_us]
        for id in due:
            del self.early[id]
        return [id for id in due if id[1] > horizon_us]

    def next_early_us(self) -> int | None:
        """Return the horizon at which `take_early` next has ids to return; None if `early` is
        empty."""
        return min(self.early.values(), default=None)

    @abstractmethod
    def has_delivered(self, message: MessageId) -> bool:
        """Return whether the node delivered the message. It may have forgotten an expired one."""

    def has_expired(self, message: MessageId, now_us: int) -> bool:
        """Return whether the deadline of a message that the node held has passed."""
        return self.expires and message[1] <= now_us

    def entry_of(self, origin: NodeId) -> int:
        """Return the entry of this node's version vector for the origin: each of its messages up to
        this seq is delivered or never will be. LONG_AGO where there is no causal order."""
        return LONG_AGO

    def id_floor(self, horizon_us: int) -> int:
        """Return the seq up to which the node delivers no message any more."""
        return horizon_us

    def is_blocked(self) -> bool:
        """Return whether `blocked` may return anything. It costs no scan."""
        return False

    def blocked(self) -> list[MessageId]:
        """Return the causes for which messages wait and that were not received, if the order can
        give them up."""
        return []

    def is_new(self) -> bool:
        """Return whether the node has not delivered anything yet."""
        return self.counters.delivered == 0

    def has_settled(self, message: MessageId) -> bool:
        """Return whether the node delivered the message or gave it up, although it is alive."""
        return False

    def skip(self, now_us: int, cause: MessageId, out: Outbox[Any]) -> None:  # noqa: B027
        """Give up a cause that no peer holds, if the order can."""

    @abstractmethod
    def restore(self, rows: Rows) -> None:
        """Load the saved state of an earlier incarnation. The epidemic layer then passes the held
        messages to `on_receive` again."""

    @abstractmethod
    def explain(self, message: MessageId) -> MessageStatus:
        """Return the status of a message, and the predecessors that it waits for."""

    def horizon_us(self) -> int:
        """Return the horizon: deadlines up to it have passed, however the clock is set."""
        return self._horizon_us

    def last_seq(self) -> int:
        """Return the seq of the last own message; the next one is larger."""
        return self._last_seq

    def pending(self) -> tuple[MessageId, ...]:
        """Return the received messages that wait for their delivery, the longest waiting first."""
        return ()

    @abstractmethod
    def gauges(self, now_us: int) -> dict[str, int]:
        """Return the size of each registry."""

    def _is_fine(self, message: Message, after: int, until: int) -> bool:
        """Return whether the node accepts the message; if not, count the reason.

        after: the deadline must lie beyond this. until: the stamp must not lie beyond this.
        """
        if message.id[1] <= after:
            self.counters.stale += 1
        elif not self._is_honest(message):
            self.counters.refused += 1
        elif message.stamp > until:
            self._note_early(message.id, message.stamp)
        else:
            return True
        return False

    def _is_honest(self, message: Message) -> bool:
        """Return whether a correct node can have sent the message, whatever its clock shows."""
        (origin, seq), lifetimes = message.id, self._lifetimes
        if (origin == self.node and not self._may_be_own(seq)) or message.id in message.past:
            return False
        return lifetimes is None or lifetimes.is_valid(message.stamp, seq)

    def _may_be_own(self, seq: int) -> bool:
        """Return whether this node can have broadcast a received message that has its name."""
        return seq <= self._last_seq

    def _note_early(self, id: MessageId, stamp_us: int) -> None:
        assert self._lifetimes is not None, "can't happen: without lifetimes nothing is early"
        self.counters.early += 1
        self.early[id] = stamp_us - 2 * self._lifetimes.skew_us
        if len(self.early) > EARLY_MAX:
            del self.early[next(iter(self.early))]

    def _give_up_late(self, late: list[Message], out: Outbox[Any]) -> None:
        """Count and report messages that a later message of their origin overtook. The node never
        delivers them."""
        self.counters.late += len(late)
        out.losses += [("drop", message.id) for message in late]
        late.clear()

    def _chosen_us(self, broadcasts: Sequence[BroadcastRequest]) -> list[int]:
        """Return the lifetime of each broadcast, or 0 if the group has no lifetimes. Raise
        LocalError if the group forbids one."""
        if self._lifetimes is None:
            for _, lifetime_us in broadcasts:
                refuse_lifetime(self.node, lifetime_us)
            return [0] * len(broadcasts)
        return [self._lifetimes.chosen_us(self.node, lifetime_us) for _, lifetime_us in broadcasts]

    def _stamp(self, deadline_us: int) -> int:
        """Return the stamp of an own message: the horizon, or the least larger value for which the
        deadline is valid. Return 0 where there are no lifetimes.

        It exceeds the horizon in two cases only. Either a faulty peer made the deadline of a cause
        as late as its stamp allows. Or peers returned own messages that an earlier incarnation
        sent with a clock further ahead. A larger stamp is always safe: other nodes only defer the
        delivery.
        """
        return max(self._horizon_us, deadline_us - self._lead_us) if self.expires else 0

    def _proven(self, messages: list[MessageT]) -> list[MessageT]:
        """Return own messages with their proofs, if the group requires proofs, and count them. If
        signing fails, no message is broadcast."""
        if self.proofs is not None:
            messages = self.proofs.prove_all(messages)
            for message in messages:
                refuse_oversize(message)
        self.counters.broadcast += len(messages)
        return messages

    def _save_horizon(self, out: Outbox[Any]) -> None:
        """Save the horizon. The next incarnation must not accept expired messages again, even if
        its clock is behind: it would deliver them after their effects, or a second time."""
        if self.durable and self._horizon_us > self._saved_horizon_us:
            self._saved_horizon_us = self._horizon_us
            out.saves.append(("own", "horizon", self._horizon_us))

    def _restore_own(self, rows: Rows) -> int | None:
        """Restore the horizon, and return the seq of the last own message, if there was one."""
        own = rows.get(OWN.name, {})
        self._horizon_us = self._saved_horizon_us = own.get("horizon", LONG_AGO)
        last_seq: int | None = own.get("seq")
        return last_seq


def refuse_oversize(message: Message) -> None:
    """Raise LocalError for an own message that peers would refuse because of its size."""
    if not fits(message, OWN_BYTES_MAX):
        raise LocalError(
            f"a message of {wire_bytes(message):,} bytes with {len(message.past):,} causes; "
            f"{OWN_BYTES_MAX:,} are allowed",
            where=f"message {message.id}",
            hint="divide the payload; if the causes are too many, wait until some of them expire",
        )


def refuse_lifetime(node: NodeId, lifetime_us: int | None) -> None:
    """Raise LocalError if the caller gives a lifetime in a group without lifetimes."""
    if lifetime_us is not None:
        raise LocalError(
            "this group has no message lifetimes",
            where=f"node {node}",
            hint="use the Δ-causal order, or broadcast without a lifetime",
        )
