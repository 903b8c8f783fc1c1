"""What stands between the opportunistic layer and the application: the order of deliveries.

`Epidemic` carries messages; an `Order` decides when a received message is delivered. The layer
guarantees that `on_receive` is given a message only while it holds that message in its cache.
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
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.epidemic.sizes import OWN_BYTES_MAX, fits, wire_bytes

ORDER_TIMER: Timer = ("order", None)
LONG_AGO = -(1 << 62)
LONG_AHEAD = 1 << 62
"""Smaller and larger than any seq."""
CHAIN_GRACE_US = 1_000_000
"""Each dependent broadcast may push a deadline 1 µs further; nobody sends a million at once."""
EARLY_MAX = 1024
"""How many messages that came too early are remembered."""
PURGE_AT_MIN = 64
"""A registry is searched for what has expired when it has doubled, and never below this size."""

OWN = Table("own", str, int)
"""What a node knows of itself: `seq` of its last message; `horizon`, up to where deadlines have
passed for it, however its clock may be set later."""


class Lifetimes(msgspec.Struct, frozen=True):
    """The group's agreement on deadlines (OPP section V)."""

    default_us: int
    longest_us: int
    """The longest lifetime that anybody may give to a message."""
    skew_us: int = 5_000_000
    """By how much clocks of the group are expected to differ at most. The causal order does not
    depend on it. A message of a node whose clock is ahead by more than this is delivered later, by
    the difference; a larger skew makes senders name expired causes for longer."""

    def chosen_us(self, node: NodeId, lifetime_us: int | None) -> int:
        """The lifetime of one message, or LocalError if the group does not allow it."""
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

        The deadline exceeds `stamp + longest` only if it follows that of a cause, which the sender
        delivered, so that the cause's stamp is beyond the sender's by the skew at most.

        Without the bound one clock far ahead would lengthen the lifetime of everything that
        depends on its messages.
        """
        return stamp_us + self.longest_us + self.skew_us + CHAIN_GRACE_US

    def is_valid(self, stamp_us: int, deadline_us: int) -> bool:
        """Whether stamp and deadline can belong together: no clock decides that.

        A deadline at or before `stamp - skew` would expire before any node may deliver the message.
        """
        return stamp_us - self.skew_us < deadline_us <= self.latest_us(stamp_us)


class Order(ABC):
    """One rule of delivery."""

    tables: tuple[Table, ...]
    """What it saves if it is durable."""
    expires: bool
    """Is `seq` a deadline?"""
    durable = False
    """The layer below decides that for both: one without the other would forget its own messages
    or deliver them twice."""
    proofs: Proofs | None = None
    """Put the origin's proof on own messages; also the layer's to decide."""

    def __init__(self, node: NodeId, lifetimes: Lifetimes | None = None) -> None:
        self.node = node
        self.counters = Counters()
        self.expires = lifetimes is not None
        self.clocks_within_us: int | None = None
        """What it needs of the clocks of a group. With stamps that is nothing: clocks further apart
        than the agreed skew delay messages, and cannot break the order."""
        self.early: dict[MessageId, int] = {}
        """What `screen` turned away only because this node's clock is behind the stamp: for each id
        the horizon from which on it is taken. The latest EARLY_MAX are remembered; the layer asks
        for them again with `take_early`."""
        self._lifetimes = lifetimes
        self._skew_us = lifetimes.skew_us if lifetimes else LONG_AHEAD
        self._lead_us = lifetimes.latest_us(0) if lifetimes else 2 * LONG_AHEAD
        """By how much a deadline may exceed its stamp."""
        self._last_seq = LONG_AGO if lifetimes else 0
        """Of the last own message."""
        self._horizon_us = self._saved_horizon_us = LONG_AGO
        """Up to here deadlines have passed. It never falls, whatever the clock does."""

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Any], lifetime_us: int | None = None
    ) -> Message:
        """The next own message, stamped and already delivered here."""
        return self.on_broadcasts(now_us, [(payload, lifetime_us)], out)[0]

    @abstractmethod
    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        """Several at once, each after the one before it: all of them, or none. So all are stamped
        and proven before the first of them changes anything: a signer may fail."""

    @abstractmethod
    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        """The layer has these now. What can be delivered is delivered."""

    @abstractmethod
    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        """The cache lost these for want of room. Those that waited are dropped; they may return."""

    @abstractmethod
    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        """The timer that it set is due."""

    def screen(self, now_us: int, messages: Sequence[Message]) -> Sequence[Message]:
        """Without what has expired, what only a broken peer can have sent, and what is so far ahead
        of this node's clock that it is not kept (`early`): none of it is stored or forwarded, all
        is counted."""
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
        """Return and forget the ids in `early` that would be taken now, without the expired."""
        horizon_us = max(now_us, self._horizon_us)
        due = [id for id, at_us in self.early.items() if at_us <= horizon_us or id[1] <= horizon_us]
        for id in due:
            del self.early[id]
        return [id for id in due if id[1] > horizon_us]

    def next_early_us(self) -> int | None:
        """Return when `take_early` has something to return, if nothing else happens."""
        return min(self.early.values(), default=None)

    @abstractmethod
    def has_delivered(self, message: MessageId) -> bool:
        """As far as it remembers: what has expired may be forgotten."""

    def reached(self, origin: NodeId) -> int:
        """All that this origin said up to here was delivered, or never will be. Where there is no
        causal order nobody can tell."""
        return LONG_AGO

    @abstractmethod
    def restore(self, rows: Rows) -> None:
        """Take up what an earlier incarnation saved. Held messages are then received anew."""

    @abstractmethod
    def explain(self, message: MessageId) -> MessageStatus:
        """What became of a message, and what it waits for."""

    def passed_us(self) -> int:
        """Up to here deadlines have passed, however the clock is set."""
        return self._horizon_us

    def last_seq(self) -> int:
        """Of the last own message; the next one is beyond it."""
        return self._last_seq

    def pending(self) -> tuple[MessageId, ...]:
        """What was received and waits for its delivery, the longest waiting first."""
        return ()

    @abstractmethod
    def gauges(self, now_us: int) -> dict[str, int]:
        """The size of each registry."""

    def _is_fine(self, message: Message, after: int, until: int) -> bool:
        """Whether it lives beyond `after`, keeps to the rules, and has a stamp up to `until`; else
        count why not."""
        if message.id[1] <= after:
            self.counters.stale += 1
        elif not self._is_honest(message):
            self.counters.refused += 1
        elif message.stamp > until:
            self._note_early(message)
        else:
            return True
        return False

    def _is_honest(self, message: Message) -> bool:
        """Whether a node that follows the rules can have sent it, whatever its clock shows."""
        (origin, seq), lifetimes = message.id, self._lifetimes
        if (origin == self.node and not self._may_be_own(seq)) or message.id in message.past:
            return False
        return lifetimes is None or lifetimes.is_valid(message.stamp, seq)

    def _may_be_own(self, seq: int) -> bool:
        """Whether a received message under this node's name can be its own."""
        return seq <= self._last_seq

    def _note_early(self, message: Message) -> None:
        assert self._lifetimes is not None, "can't happen: without lifetimes nothing is early"
        self.counters.early += 1
        self.early[message.id] = message.stamp - 2 * self._lifetimes.skew_us
        if len(self.early) > EARLY_MAX:
            del self.early[next(iter(self.early))]

    def _give_up_late(self, late: list[Message], out: Outbox[Any]) -> None:
        """What was overtaken by its own origin is not delivered any more."""
        self.counters.late += len(late)
        out.losses += [("drop", message.id) for message in late]
        late.clear()

    def _chosen_us(self, broadcasts: Sequence[BroadcastRequest]) -> list[int]:
        """The lifetime of each, 0 where there are none; LocalError if the group forbids one."""
        if self._lifetimes is None:
            for _, lifetime_us in broadcasts:
                refuse_lifetime(self.node, lifetime_us)
            return [0] * len(broadcasts)
        return [self._lifetimes.chosen_us(self.node, lifetime_us) for _, lifetime_us in broadcasts]

    def _stamp(self, deadline_us: int) -> int:
        """Return the stamp of an own message: the horizon, or as much more as the deadline needs to
        be valid. 0 where there are no lifetimes.

        It is more only if a faulty peer made the deadline of a cause as late as its stamp allows,
        or if own messages came back from others, which an earlier incarnation sent with a clock
        further ahead. A larger stamp is always safe: it defers the delivery elsewhere.
        """
        return max(self._horizon_us, deadline_us - self._lead_us) if self.expires else 0

    def _proven(self, messages: list[Message]) -> list[Message]:
        """Own messages, proven if the group asks for that. If that fails, nothing was said."""
        if self.proofs is not None:
            messages = self.proofs.prove_all(messages)
            for message in messages:
                refuse_oversize(message)
        self.counters.broadcast += len(messages)
        return messages

    def _save_horizon(self, out: Outbox[Any]) -> None:
        """What was given up, or forgotten as delivered, must stay so in the next life, even if the
        clock is behind then: it would come again, after its effects or a second time."""
        if self.durable and self._horizon_us > self._saved_horizon_us:
            self._saved_horizon_us = self._horizon_us
            out.saves.append(("own", "horizon", self._horizon_us))

    def _restore_own(self, rows: Rows) -> int | None:
        """The seq of the last own message, if there was one; the horizon is as it was."""
        own = rows.get(OWN.name, {})
        self._horizon_us = self._saved_horizon_us = own.get("horizon", LONG_AGO)
        last_seq: int | None = own.get("seq")
        return last_seq


def refuse_oversize(message: Message) -> None:
    """A message that peers would refuse is not broadcast."""
    if not fits(message, OWN_BYTES_MAX):
        raise LocalError(
            f"a message of {wire_bytes(message):,} bytes with {len(message.past):,} causes; "
            f"{OWN_BYTES_MAX:,} are allowed",
            where=f"message {message.id}",
            hint="divide the payload; if the causes are too many, wait until some of them expire",
        )


def refuse_lifetime(node: NodeId, lifetime_us: int | None) -> None:
    """For orders without lifetimes: a caller that asks for one is told."""
    if lifetime_us is not None:
        raise LocalError(
            "this group has no message lifetimes",
            where=f"node {node}",
            hint="use the Δ-causal order, or broadcast without a lifetime",
        )
