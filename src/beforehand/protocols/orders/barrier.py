"""Causal and Δ-causal broadcast with causal barriers (OPP sections IV and V).

A message carries its *causal barrier*: the (origin, seq) of each message that its sender delivered
since its own last broadcast. A node delivers the message when it has delivered everything in the
barrier. The rest of the causal past is then delivered too, because each message in the barrier had
a barrier of its own.

With lifetimes, `seq` is the message's deadline. A node does not wait for a predecessor whose
deadline has passed. Three rules go beyond the paper; `literal_deadlines` keeps the paper's rules:

- *Deadlines grow along causality*: `max(now + lifetime, 1 + the largest in the barrier)`. With the
  paper's `now + lifetime`, a shorter lifetime or a slower clock gives an effect m2 an earlier
  deadline than its cause m1. A third node lets m2 expire, delivers m3, which names only m2, and
  later still accepts m1.
- *A sender names each predecessor that may be alive at another node*. It leaves a predecessor out
  only when the deadline lies at least the agreed skew behind its own horizon. In the paper
  (Code 9) it does so as soon as the deadline has passed.
- *Stamps defer deliveries*: a message carries the sender's horizon at the broadcast, its *stamp*,
  in the signed content. A node delivers the message only when `stamp <= horizon + skew`, on its own
  horizon. Until then the message is deferred.

A horizon is the largest clock reading that a node has used. It never falls, and is saved.

Proof that the order then holds, whatever the clocks show. Let m1 happen before m2. Assume that node
X delivers m2 while m1 is undelivered and m1's deadline is beyond X's horizon. The deadline of each
message on the causal chain from m1 to m2 is beyond that of m1, so none of them has expired at X.
Hence X delivered each of them, and before it the one that it names, down to a message m that named
m1 or left it out. If m named m1, X delivered m1 before m. If m left m1 out, then
deadline(m1) <= stamp(m) - skew, and X delivered m only when stamp(m) - skew <= X's horizon: m1 had
expired. Both contradict the assumption.

Without deferral the last step needs clocks that stay within skew/2 of a time that never falls. If
clocks are set back, it is not enough that any two of them differ by less than the skew
(`tests/protocols/orders/test_deadline_lemma.py` has all four cases as models).

It also follows that a message received in time is delivered in time. All that it waits for expires
before it does. It is deferred until `stamp - skew` at most, which is before its deadline. So the
order does not depend on the skew. The skew is how far a sender's clock may be ahead of a receiver's
without the receiver deferring the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from beforehand.errors import LocalError
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
from beforehand.protocols.orders.pending import NO_DEFERRAL, Waiting


def _seq(message: Message) -> int:
    return message.id[1]


class Barrier(Order):
    """Causal order without lifetimes, Δ-causal order with them."""

    tables = (OWN, Table("barrier", NodeId, int), Table("delivered", NodeId, int))

    def __init__(
        self,
        node: NodeId,
        lifetimes: Lifetimes | None = None,
        *,
        literal_deadlines: bool = False,
        literal_barriers: bool = False,
    ) -> None:
        super().__init__(node, lifetimes)
        self._literal_deadlines = literal_deadlines
        self._literal_barriers = literal_barriers
        self.forgotten: int | None = None
        """The seq of a received message that has this node's proof and that it did not know. The
        restored state is older than that message."""
        self._saved_forgotten: int | None = None
        self._barrier: dict[NodeId, int] = {}
        ahead_us = NO_DEFERRAL
        if lifetimes is not None and literal_deadlines:
            self.clocks_within_us = max(0, lifetimes.skew_us - 1)
        elif lifetimes is not None:
            ahead_us = lifetimes.skew_us
        self._waiting = Waiting(expires=self.expires, ahead_us=ahead_us)
        self._armed_us = LONG_AHEAD
        self._purge_at = self._purge_barrier_at = PURGE_AT_MIN

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        """Broadcast a batch (Code 2, and Code 9 with lifetimes). Each message names the one before
        it."""
        lifetimes_us = self._chosen_us(broadcasts)
        self._refuse_while_own_wait()
        if self.expires:
            self._expire(now_us, out)
        seqs = self._next_seqs(now_us, lifetimes_us)
        if self.expires:
            self._purge_barrier(out)
        pasts = [tuple(self._barrier.items()), *(((self.node, seq),) for seq in seqs)]
        stamped = zip(seqs, pasts, broadcasts, strict=False)  # no message names the last seq yet
        messages = self._proven([self._make(s, p, text) for s, p, (text, _) in stamped])
        self._last_seq = seqs[-1]
        if self.durable:
            out.saves.append(("own", "seq", self._last_seq))
            out.saves += [("barrier", origin, None) for origin in self._barrier]
        self._barrier.clear()
        settled = [m for own in messages for m in self._waiting.settle([own], self._horizon_us)]
        if len(settled) > len(messages):
            # A pending message named an own message before this node broadcast it. No message of
            # the batch names the messages that this released: deliver them after the batch.
            settled.sort(key=lambda message: message.id[0] != self.node)
        self._deliver(settled, out)
        self._arm(out)
        return messages

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        """Deliver the messages or keep them pending (Code 5, and Code 11 with lifetimes)."""
        if self.expires:
            self._expire(now_us, out)
        if self.forgotten != self._saved_forgotten and self.durable:
            self._saved_forgotten = self.forgotten
            out.saves += [("own", "seq", self._last_seq), ("own", "forgotten", self.forgotten)]
        if len(messages) > 1:
            # The messages arrived together, so any order is allowed. Sorted by seq, a cause mostly
            # precedes its effects, and few messages become pending. With lifetimes it always does,
            # because deadlines grow along causality.
            messages = sorted(messages, key=_seq)
        waiting, horizon_us = self._waiting, self._horizon_us
        delivered, pending = waiting.delivered, waiting.pending
        ready: list[Message] = []
        for message in messages:
            origin, seq = message.id
            if seq <= horizon_us:
                self.counters.stale += 1
            elif delivered.get(origin, LONG_AGO) >= seq or message.id in pending:
                # It was evicted and received again. This registry prevents a second delivery.
                self.counters.duplicate += 1
            else:
                ready += waiting.admit(now_us, message, horizon_us)
        if ready or waiting.late:
            self._deliver(ready, out)
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

    def has_delivered(self, message: MessageId) -> bool:
        return self._waiting.delivered.get(message[0], LONG_AGO) >= message[1]

    def entry_of(self, origin: NodeId) -> int:
        return self._waiting.delivered.get(origin, LONG_AGO)

    def restore(self, rows: Rows) -> None:
        last_seq = self._restore_own(rows)
        self._last_seq = self._last_seq if last_seq is None else last_seq
        self.forgotten = self._saved_forgotten = rows.get(OWN.name, {}).get("forgotten")
        self._barrier = dict(rows.get("barrier", {}))
        self._waiting.delivered = dict(rows.get("delivered", {}))

    # ---- queries --------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> MessageStatus:
        origin, seq = message
        entry = self._waiting.pending.get(message)
        if entry is not None:
            missing = self._waiting.missing(entry, self._horizon_us)
            until_us = self._waiting.deferred_until_us(entry)
            return MessageStatus("waiting", missing, entry.since_us, until_us)
        last = self._waiting.delivered.get(origin, LONG_AGO)
        if seq == last or (seq < last and seq > self._horizon_us):
            return MessageStatus("delivered")
        # The registries forget messages after their deadline. Before it, an absent one is unknown.
        return MessageStatus("expired" if seq <= self._horizon_us else "unknown")

    def pending(self) -> tuple[MessageId, ...]:
        return tuple(self._waiting.pending)

    def gauges(self, now_us: int) -> dict[str, int]:
        """Return the sizes of the three registries (OPP figures 6 and 11)."""
        live = self._waiting.delivered.values()
        return {
            "barrier": len(self._barrier),
            "delivered": sum(seq > now_us for seq in live) if self.expires else len(live),
            **self._waiting.gauges(),
        }

    # ---- internals ------------------------------------------------------------------------------

    def _is_fine(self, message: Message, after: int, until: int) -> bool:
        """Accept also own messages of a lost incarnation, as if another node had sent them: peers
        name them, and the next own message must follow them."""
        if not super()._is_fine(message, after, until):
            return False
        origin, seq = message.id
        if origin == self.node and seq > self._last_seq:
            self.counters.regained += 1
            self.forgotten = self._last_seq = seq
        return True

    def _may_be_own(self, seq: int) -> bool:
        # The epidemic layer has checked the proof: no other node can have sent the message.
        return self.proofs is not None or super()._may_be_own(seq)

    def _refuse_while_own_wait(self) -> None:
        """Raise LocalError while own messages of a lost incarnation wait for their causes.

        A new broadcast would overtake them. A pending message that names one of them would then be
        delivered before the causes for which that own message waits.
        """
        if self.forgotten is None:  # only a node that lost its state can have such messages
            return
        if waiting := [id for id in self._waiting.pending if id[0] == self.node]:
            raise LocalError(
                f"{len(waiting)} messages that this node broadcast before it lost its state wait "
                "for their causes",
                where=f"node {self.node}",
                hint="wait until they are delivered or expired, or restart under another name",
            )

    def _make(self, seq: int, past: tuple[MessageId, ...], payload: bytes) -> Message:
        """Return an own message without its proof."""
        return Message((self.node, seq), past, payload, stamp=self._stamp(seq))

    def _deliver(self, messages: list[Message], out: Outbox[Any]) -> None:
        """Deliver these messages and add them to the barrier of the next own message (Code 3)."""
        barrier, covered = self._barrier, []
        for message in messages:
            if not self._literal_barriers:
                # The barrier covers the predecessors of this message transitively: drop them.
                for origin, seq in message.past:
                    if barrier.get(origin, LONG_AHEAD) <= seq:
                        del barrier[origin]
                        covered.append(origin)
            origin, seq = message.id
            barrier[origin] = seq
        if self.durable:
            self._save_delivered(messages, covered, out)
        out.deliveries += messages
        self.counters.delivered += len(messages)
        if self._waiting.late:
            self._give_up_late(self._waiting.late, out)
        self._save_horizon(out)

    def _save_delivered(
        self, messages: list[Message], covered: list[NodeId], out: Outbox[Any]
    ) -> None:
        """Save the delivered and barrier entries of these origins. Only an origin's last message
        counts, so one row per origin is enough."""
        delivered, barrier = self._waiting.delivered, self._barrier
        origins = dict.fromkeys([message.id[0] for message in messages])
        out.saves += [("delivered", origin, delivered[origin]) for origin in origins]
        origins.update(dict.fromkeys(covered))
        out.saves += [("barrier", origin, barrier.get(origin)) for origin in origins]

    def _next_seqs(self, now_us: int, lifetimes_us: list[int]) -> list[int]:
        """Return the seqs of the next own messages. With lifetimes they are deadlines, which grow
        along causality."""
        seqs, last = [], self._last_seq
        if self.expires and not self._literal_deadlines:
            last = max(last, max(self._barrier.values(), default=LONG_AGO))
            # A message with a deadline at or before the horizon would expire at once at this node,
            # and soon at all others.
            now_us = self._horizon_us
        for lifetime_us in lifetimes_us:
            # The seqs of own messages must grow strictly, because they identify the messages.
            last = max(now_us + lifetime_us, last + 1) if self.expires else last + 1
            seqs.append(last)
        return seqs

    def _purge_barrier(self, out: Outbox[Any]) -> None:
        """Remove expired entries from the barrier (Code 10).

        An entry is removed when its deadline lies at least the skew behind the horizon: then no
        node delivers it after the next own message. With `literal_deadlines` an entry is removed
        when it expires.
        """
        assert self._lifetimes is not None
        until_us = self._horizon_us
        if not self._literal_deadlines:
            until_us -= self._lifetimes.skew_us
        if expired := [origin for origin, seq in self._barrier.items() if seq <= until_us]:
            for origin in expired:
                del self._barrier[origin]
                if self.durable:
                    out.saves.append(("barrier", origin, None))
            # The next own message leaves these out, so its stamp must not lie before this horizon,
            # not even after a crash.
            self._save_horizon(out)
        self._purge_barrier_at = max(PURGE_AT_MIN, 2 * len(self._barrier))

    def _expire(self, now_us: int, out: Outbox[Any]) -> None:
        """Advance the horizon and expire messages: the node neither delivers them nor waits for
        them (Code 12)."""
        # A clock that was set back must not revive an expired message.
        self._horizon_us = max(self._horizon_us, now_us)
        due_us = self._waiting.next_deadline_us()
        if due_us is not None and due_us <= self._horizon_us:
            expired, ready = self._waiting.expire(self._horizon_us)
            self.counters.expired += len(expired)
            out.losses += [("expire", message.id) for message in expired]
            self._deliver(ready, out)
        if len(self._waiting.delivered) >= self._purge_at:
            self._purge(out)
        if len(self._barrier) >= self._purge_barrier_at:
            self._purge_barrier(out)  # a node that never broadcasts must bound its barrier too

    def _purge(self, out: Outbox[Any]) -> None:
        """Remove expired entries from the co-delivered registry. The next purge waits until the
        registry has doubled, which keeps the cost per delivery constant."""
        delivered = self._waiting.delivered
        for origin in [o for o, seq in delivered.items() if seq <= self._horizon_us]:
            del delivered[origin]
            if self.durable:
                out.saves.append(("delivered", origin, None))
        self._save_horizon(out)
        self._purge_at = max(PURGE_AT_MIN, 2 * len(delivered))

    def _arm(self, out: Outbox[Any]) -> None:
        due_us = self._waiting.next_deadline_us()
        if due_us is not None and due_us < self._armed_us:
            self._armed_us = due_us
            out.timers.append((ORDER_TIMER, due_us))
