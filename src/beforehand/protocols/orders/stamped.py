"""Δ-causal broadcast with free lifetimes and a stamp floor.

It differs from the Δ order (`protocols.orders.barrier`) in three points. A message does not live
longer because of its causes. A node can give up causes that no peer holds any more, and still never
delivers a cause after its effect. Messages name their causes by digest. The rules:

- *Stamps.* The id of a message is (writer, stamp). The stamp is a hybrid logical clock: the
  horizon, or one more than the largest stamp among the causes. A message whose stamp is not above
  those of its causes is invalid.
- *Cover.* A cause leaves the barrier because a message names it only if that message lives at least
  as long. Causes that live longer are taken over into the barrier, delivered here or not.
- *Leaving out.* A sender omits a cause only when `deadline <= stamp - skew`.
- *Deferral.* A node delivers a message only when `stamp <= horizon + skew`.
- *Floor.* Each node has one number. It does not wait for causes with a stamp up to it, and never
  delivers undelivered messages up to it. It only rises (`skip`).

Proof of the order. Let c happen before e. By the rules of cover and leaving out there is a path
e = y0, y1, ..., yr, each naming the next. Each yj (j >= 1) lives at least as long as c and has a
larger stamp, and yr names c or left it out. Assume that node X delivers e and later c. Then c was
neither expired nor at or below the floor when X delivered e. So none of the yj was, and X delivered
each before the one that names it. If yr names c, X delivered c before it: a contradiction. If yr
left c out, then deadline(c) <= stamp(yr) - skew <= horizon of X, by deferral: c had expired. No
assumption about clocks is used. `tests/protocols/orders/test_stamped_lemma.py` is the model.

The price: a brief message whose longer-lived cause does not come in time expires undelivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from beforehand.protocols.contract.base import (
    BroadcastRequest,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
)
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.orders.order import (
    LONG_AGO,
    LONG_AHEAD,
    ORDER_TIMER,
    OWN,
    PURGE_AT_MIN,
    Lifetimes,
    Order,
)
from beforehand.protocols.orders.stamped_draft import Draft
from beforehand.protocols.orders.stamped_message import (
    NO_DIGEST,
    PAST_MAX,
    CauseKey,
    StampedMessage,
)
from beforehand.protocols.orders.stamped_waiting import Held, StampedWaiting

DIGESTS_MAX = 400_000
"""How many delivered messages a node remembers by their digests: twice the capacity of a store."""
EXPIRED_MAX = 1024
"""For how many expired messages the node remembers the missing causes."""


class Stamped(Order):
    """The stamped order of one node."""

    message_type = StampedMessage
    has_floor = True
    tables = (
        OWN,
        Table("barrier", CauseKey, int),
        Table("settled", NodeId, tuple[int, int]),
        Table("digest", MessageId, tuple[bytes, int]),
        Table("previous", NodeId, bytes),
        Table("expired", MessageId, tuple[MessageId, ...]),
    )

    def __init__(self, node: NodeId, lifetimes: Lifetimes) -> None:
        super().__init__(node, lifetimes)
        self._agreed = lifetimes
        self._barrier: dict[CauseKey, int] = {}
        """The deadline of each cause that the next own message names."""
        self._until: dict[NodeId, int] = {}
        """By writer, the latest deadline of its delivered messages."""
        self._previous = NO_DIGEST
        self._waiting = StampedWaiting(lifetimes.skew_us)
        self._forgotten_to = LONG_AGO
        """Digests of messages with a stamp up to this may have been forgotten before their
        deadline."""
        self._expired: dict[MessageId, tuple[MessageId, ...]] = {}
        """The causes that messages missed when they expired."""
        self._armed_us = LONG_AHEAD
        self._purge_at = PURGE_AT_MIN

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        """Broadcast a batch. The result may contain merge messages besides the payloads."""
        lifetimes_us = self._chosen_us(broadcasts)
        self._expire(now_us, out)
        waiting = self._waiting
        last = max(waiting.floor, self._last_seq)
        draft = Draft(self.node, self._agreed, self._horizon_us, last, self._barrier)
        draft.previous = self._previous
        for (payload, _), lifetime_us in zip(broadcasts, lifetimes_us, strict=True):
            draft.add(payload, lifetime_us)
        messages = self._proven(draft.messages)
        self.counters.broadcast -= sum(message.is_internal for message in messages)
        self._last_seq, self._previous = messages[-1].seq, draft.previous
        if self.durable:
            removed = [key for key in self._barrier if key not in draft.barrier]
            out.saves += [("barrier", key, None) for key in removed]
            out.saves += [("barrier", key, until) for key, until in draft.barrier.items()]
            out.saves += [("own", "seq", self._last_seq), ("previous", self.node, self._previous)]
        self._barrier = draft.barrier
        settled = [m for message in messages for m in waiting.settle([message], self._horizon_us)]
        self._note_delivered(messages, out)
        # A faulty peer can name a stamp that this node then uses. No message of the batch names
        # what that releases: deliver it after the batch.
        self._deliver([message for message in settled if message.id[0] != self.node], out)
        self._arm(out)
        return list[Message](messages)

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        """Deliver the messages or keep them pending."""
        self._expire(now_us, out)
        waiting, horizon_us = self._waiting, self._horizon_us
        delivered: list[StampedMessage] = []
        for message in sorted(messages, key=lambda message: message.id[1]):
            assert isinstance(message, StampedMessage), "can't happen: `screen` refuses it"
            if message.deadline <= horizon_us:
                self.counters.stale += 1
                if not waiting.is_settled(message.id):
                    self._note_expired(message, out)
            elif waiting.is_settled(message.id) or message.id in waiting.pending:
                self.counters.duplicate += 1
            else:
                ready = list(waiting.admit(now_us, message, horizon_us))
                delivered += waiting.settle(ready, horizon_us)
        self._deliver(delivered, out)
        self._arm(out)

    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        for id in ids:
            if self._waiting.drop(id):
                self.counters.dropped += 1
                out.losses.append(("drop", id))

    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        self._armed_us = LONG_AHEAD
        self._expire(now_us, out)
        self._arm(out)

    def skip(self, now_us: int, cause: MessageId, out: Outbox[Any]) -> None:
        """Give up a cause that no peer holds: raise the floor to its stamp. The floor is saved with
        the deliveries that this releases: else a crash could bring back what was skipped."""
        self._expire(now_us, out)
        waiting, horizon_us = self._waiting, self._horizon_us
        if cause[1] > horizon_us:
            return
        below, ready, skipped = waiting.raise_floor(cause, horizon_us)
        if not skipped:
            return  # nothing waits for it any more
        if self.durable:
            out.saves.append(("own", "floor", waiting.floor))
        self.counters.missed += len(skipped)
        out.floors.append((self.node, waiting.floor))
        out.losses += [("miss", id) for id in skipped]
        self._deliver(below, out)
        self._deliver(waiting.settle(ready, horizon_us), out)
        self._arm(out)

    def screen(self, now_us: int, messages: Sequence[Message]) -> Sequence[Message]:
        for message in messages if self.early else ():
            self.early.pop(message.id, None)
        horizon_us = max(self._horizon_us, now_us)
        welcome = [message for message in messages if self._is_welcome(message, horizon_us)]
        if welcome:
            self._horizon_us = horizon_us  # else `on_receive`, which releases messages, may not run
        return welcome

    def take_early(self, now_us: int) -> list[MessageId]:
        horizon_us = max(now_us, self._horizon_us)
        due = [id for id, at_us in self.early.items() if at_us <= horizon_us]
        for id in due:
            del self.early[id]
        return due

    # ---- queries --------------------------------------------------------------------------------

    def id_floor(self, horizon_us: int) -> int:
        return self._waiting.floor

    def has_delivered(self, message: MessageId) -> bool:
        return self._waiting.is_settled(message)

    def has_expired(self, message: MessageId, now_us: int) -> bool:
        waiting = self._waiting
        if (entry := waiting.pending.get(message)) is not None:
            return entry.message.deadline <= now_us
        # A digest is forgotten when the message has expired, and live ones fill no simulation.
        return message not in waiting.digests or waiting.digests[message][1] <= now_us

    def entry_of(self, origin: NodeId) -> int:
        return max(self._waiting.settled.get(origin, LONG_AGO), self._waiting.floor)

    def is_blocked(self) -> bool:
        return self._waiting.is_blocked()

    def blocked(self) -> list[MessageId]:
        return self._waiting.blocked()

    def is_new(self) -> bool:
        return not self._waiting.settled

    def has_settled(self, message: MessageId) -> bool:
        """Return whether the node delivered the message or gave it up, although it is alive."""
        waiting = self._waiting
        if message in waiting.digests or message[1] <= waiting.floor:
            return True
        return waiting.is_settled(message) and message[1] <= self._forgotten_to

    def explain(self, message: MessageId) -> MessageStatus:
        waiting = self._waiting
        if (entry := waiting.pending.get(message)) is not None:
            missing = waiting.missing(entry, self._horizon_us)
            until_us = waiting.deferred_until_us(entry)
            return MessageStatus("waiting", missing, entry.since_us, until_us)
        if message in waiting.digests:
            return MessageStatus("delivered")
        if message in self._expired:
            return MessageStatus("expired", self._expired[message])
        # A stamp below a delivered one proves nothing: perhaps no message has it.
        return MessageStatus("missed" if message[1] <= waiting.floor else "unknown")

    def pending(self) -> tuple[MessageId, ...]:
        return tuple(self._waiting.pending)

    def gauges(self, now_us: int) -> dict[str, int]:
        return {
            "barrier": len(self._barrier),
            "delivered": len(self._waiting.settled),
            "digests": len(self._waiting.digests),
            "explained": len(self._expired),
            **self._waiting.gauges(),
        }

    def restore(self, rows: Rows) -> None:
        last_seq = self._restore_own(rows)
        self._last_seq = self._last_seq if last_seq is None else last_seq
        own, waiting = rows.get(OWN.name, {}), self._waiting
        waiting.floor = own.get("floor", LONG_AGO)
        self._forgotten_to = own.get("forgotten", LONG_AGO)
        self._barrier = dict(rows.get("barrier", {}))
        for writer, (stamp, until_us) in rows.get("settled", {}).items():
            waiting.settled[writer], self._until[writer] = stamp, until_us
        waiting.digests = dict(rows.get("digest", {}))
        self._expired = dict(rows.get("expired", {}))
        self._previous = rows.get("previous", {}).get(self.node, NO_DIGEST)

    # ---- internals ------------------------------------------------------------------------------

    def _is_welcome(self, message: Message, horizon_us: int) -> bool:
        """Return whether the node accepts the message; if not, count the reason."""
        if not isinstance(message, StampedMessage) or not self._is_valid(message):
            self.counters.refused += 1
        elif message.deadline <= horizon_us:
            self.counters.stale += 1
        elif message.id[1] <= self._waiting.floor:
            self.counters.missed += 1
        elif message.id[1] > horizon_us + 2 * self._skew_us:
            self._note_early(message.id, message.id[1])
        else:
            return True
        return False

    def _is_valid(self, message: StampedMessage) -> bool:
        """Return whether a correct node can have sent the message, whatever its clock shows."""
        (writer, stamp), agreed = message.id, self._agreed
        if message.flaw() or len(message.past) > PAST_MAX:
            return False
        if writer == self.node and stamp > self._last_seq:
            return False
        if not stamp - agreed.skew_us < message.deadline <= stamp + agreed.longest_us:
            return False
        # A false deadline of a cause would shorten or lengthen the wait for it.
        digests = self._waiting.digests
        return all(
            digests[id] == (digest, until_us) or digests[id][0] != digest
            for id, (until_us, digest) in message.entries()
            if id in digests
        )

    def _deliver(self, messages: list[StampedMessage], out: Outbox[Any]) -> None:
        """Deliver received messages, and note them in the barrier of the next own message."""
        if not messages and not self._waiting.late:
            return
        changed: dict[CauseKey, None] = {}
        for message in messages:
            for id, (until_us, digest) in message.entries():
                # Longer-lived causes are taken over: the message does not stand for them.
                if until_us <= message.deadline:
                    if self._barrier.pop((id, digest), None) is not None:
                        changed[id, digest] = None
                elif until_us > self._horizon_us - self._skew_us:
                    self._barrier[id, digest] = until_us
                    changed[id, digest] = None
            key = (message.id, self._waiting.digests[message.id][0])
            self._barrier[key] = message.deadline
            changed[key] = None
        if self.durable:
            out.saves += [("barrier", key, self._barrier.get(key)) for key in changed]
        self._note_delivered(messages, out)
        if self._waiting.late:
            self._give_up_late(list[Message](self._waiting.late), out)
            self._waiting.late.clear()

    def _note_delivered(self, messages: list[StampedMessage], out: Outbox[Any]) -> None:
        waiting, until = self._waiting, self._until
        for message in messages:
            writer = message.id[0]
            until[writer] = max(until.get(writer, LONG_AGO), message.deadline)
        if self.durable:
            writers = dict.fromkeys([message.id[0] for message in messages])
            out.saves += [("settled", w, (waiting.settled[w], until[w])) for w in writers]
            out.saves += [("digest", m.id, waiting.digests[m.id]) for m in messages]
        shown = [message for message in messages if not message.is_merge]
        out.deliveries += shown
        self.counters.delivered += len(shown)
        self._save_horizon(out)

    def _expire(self, now_us: int, out: Outbox[Any]) -> None:
        """Advance the horizon, expire pending messages, and forget what no longer matters."""
        self._horizon_us = max(self._horizon_us, now_us)
        lapsed, ready = self._waiting.expire(self._horizon_us)
        self._report_expired(lapsed, out)
        self._deliver(self._waiting.settle(ready, self._horizon_us), out)
        sizes = (len(self._waiting.digests), len(self._barrier), len(self._waiting.settled))
        if max(sizes) >= self._purge_at:
            self._purge(out)

    def _report_expired(self, lapsed: list[Held], out: Outbox[Any]) -> None:
        for entry in lapsed:
            message = entry.message
            self._note_expired(message, out)
            if not message.is_merge:
                self.counters.expired += 1
                out.losses.append(("expire", message.id))

    def _note_expired(self, message: StampedMessage, out: Outbox[Any]) -> None:
        """Note which causes the message lacked. They are judged just before its deadline, because
        those that kept it live longer."""
        id = message.id
        if id in self._expired:
            return
        missing = self._expired[id] = self._waiting.missing_of(message, message.deadline - 1)
        oldest = next(iter(self._expired)) if len(self._expired) > EXPIRED_MAX else None
        if self.durable:
            out.saves.append(("expired", id, missing))
            out.saves += [("expired", oldest, None)] if oldest is not None else []
        if oldest is not None:
            del self._expired[oldest]

    def _purge(self, out: Outbox[Any]) -> None:
        """Forget what has expired. The next purge waits until a registry has doubled, which keeps
        the cost per delivery constant."""
        waiting, horizon_us = self._waiting, self._horizon_us
        digests = [id for id, (_, until_us) in waiting.digests.items() if until_us <= horizon_us]
        if (over := len(waiting.digests) - len(digests) - DIGESTS_MAX) > 0:
            alive = waiting.digests.keys() - set(digests)
            by_stamp = sorted(alive, key=lambda id: (id[1], str(id[0])))
            digests += by_stamp[: over + DIGESTS_MAX // 2]
            self._forgotten_to = max(self._forgotten_to, digests[-1][1])
        writers = [writer for writer, until_us in self._until.items() if until_us <= horizon_us]
        left_us = horizon_us - self._skew_us
        causes = [key for key, until_us in self._barrier.items() if until_us <= left_us]
        for id in digests:
            del waiting.digests[id]
        for writer in writers:
            del waiting.settled[writer], self._until[writer]
        for key in causes:
            del self._barrier[key]
        if self.durable:
            out.saves += [("digest", id, None) for id in digests]
            out.saves += [("settled", writer, None) for writer in writers]
            out.saves += [("barrier", key, None) for key in causes]
            out.saves.append(("own", "forgotten", self._forgotten_to))
        self._save_horizon(out)
        sizes = (len(waiting.digests), len(self._barrier), len(waiting.settled))
        self._purge_at = max(PURGE_AT_MIN, 2 * max(sizes))

    def _arm(self, out: Outbox[Any]) -> None:
        due_us = self._waiting.next_due_us()
        if due_us is not None and due_us < self._armed_us:
            self._armed_us = due_us
            out.timers.append((ORDER_TIMER, due_us))
