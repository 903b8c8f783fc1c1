"""What stands between the opportunistic layer and the application: the order of deliveries.

`Epidemic` carries messages; an `Order` decides when a received message is delivered. The layer
guarantees that `on_receive` is given a message only while it holds that message in its cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from beforehand.core.base import Counters, Fate, Message, MessageId, NodeId, Said, Timer
from beforehand.core.outbox import Outbox
from beforehand.core.proof import Proofs
from beforehand.core.tables import Rows, Table
from beforehand.errors import LocalError

ORDER_TIMER: Timer = ("order", None)
LONG_AGO = -(1 << 62)
LONG_AHEAD = 1 << 62
"""Smaller and larger than any seq."""
CHAIN_GRACE_US = 1_000_000
"""Each dependent broadcast may push a deadline 1 µs further; nobody sends a million at once."""
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
    """Any two clocks of the group differ by less than this."""

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

    def latest_us(self, now_us: int) -> int:
        """No clock within the agreed skew can have given a later deadline than this.

        Without the bound one clock far ahead would lengthen the lifetime of everything that
        depends on its messages.
        """
        return now_us + self.longest_us + self.skew_us + CHAIN_GRACE_US


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
        self.clocks_within_us = max(0, lifetimes.skew_us - 1) if lifetimes else None
        """What it needs of the clocks of a group."""
        self._lifetimes = lifetimes
        self._last_seq = LONG_AGO if lifetimes else 0
        """Of the last own message."""
        self._horizon_us = self._saved_horizon_us = LONG_AGO
        """Up to here deadlines have passed. It never falls, whatever the clock does."""

    @abstractmethod
    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Any], lifetime_us: int | None = None
    ) -> Message:
        """The next own message, stamped and already delivered here."""

    def on_broadcasts(self, now_us: int, said: Sequence[Said], out: Outbox[Any]) -> list[Message]:
        """Several at once, each after the one before it: all of them, or none."""
        self._chosen_us(said)
        return [self.on_broadcast(now_us, payload, out, us) for payload, us in said]

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
        """Without what has expired, and without what only a broken peer can have sent: neither is
        stored or forwarded, both are counted."""
        node, after, until = self.node, LONG_AGO, LONG_AHEAD
        if self._lifetimes is not None:
            after = max(now_us, self._horizon_us)
            until = self._lifetimes.latest_us(now_us)
        fine = [
            m
            for m in messages
            if after < m.id[1] <= until and m.id[0] != node and m.id not in m.past
        ]
        if len(fine) == len(messages):
            return messages
        return [message for message in messages if self._is_fine(message, after, until)]

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
    def explain(self, message: MessageId) -> Fate:
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
        """Whether `after < seq <= until`, and it neither names itself as its cause nor claims to be
        ours while we never sent it."""
        origin, seq = message.id
        is_ours = origin == self.node
        if seq <= after:
            self.counters.stale += 1
        elif seq > until or (is_ours and seq > self._last_seq) or message.id in message.past:
            self.counters.refused += 1
        else:
            return True
        return False

    def _give_up_late(self, late: list[Message], out: Outbox[Any]) -> None:
        """What was overtaken by its own origin is not delivered any more."""
        self.counters.late += len(late)
        out.losses += [("drop", message.id) for message in late]
        late.clear()

    def _chosen_us(self, said: Sequence[Said]) -> list[int]:
        """The lifetime of each, 0 where there are none; LocalError if the group forbids one."""
        if self._lifetimes is None:
            for _, lifetime_us in said:
                refuse_lifetime(self.node, lifetime_us)
            return [0] * len(said)
        return [self._lifetimes.chosen_us(self.node, lifetime_us) for _, lifetime_us in said]

    def _proven(self, messages: list[Message]) -> list[Message]:
        """Own messages, proven if the group asks for that. If that fails, nothing was said."""
        if self.proofs is not None:
            messages = self.proofs.prove_all(messages)
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


def refuse_lifetime(node: NodeId, lifetime_us: int | None) -> None:
    """For orders without lifetimes: a caller that asks for one is told."""
    if lifetime_us is not None:
        raise LocalError(
            "this group has no message lifetimes",
            where=f"node {node}",
            hint="use the Δ-causal order, or broadcast without a lifetime",
        )
