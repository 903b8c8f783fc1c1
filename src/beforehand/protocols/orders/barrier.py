"""Causal and Δ-causal broadcast with causal barriers (OPP sections IV and V).

A message carries its *causal barrier*: (origin, seq) of what its sender delivered since its own
last broadcast. A node delivers it when everything in the barrier is delivered; the rest of its
causal past follows, because each message in the barrier had a barrier of its own.

With lifetimes, `seq` is the message's deadline, and a predecessor whose deadline has passed is not
waited for any more. Three rules go beyond the paper, whose own are kept as `literal_deadlines`:

- *Deadlines grow along causality*: `max(now + lifetime, 1 + the largest in the barrier)`. With the
  paper's `now + lifetime`, a shorter lifetime or a slower clock gives an effect m2 an earlier
  deadline than its cause m1. A third node that gives m2 up delivers m3, which names only m2, and
  later still accepts m1.
- *A sender names what may be alive elsewhere*: it leaves a predecessor out only when the deadline
  passed on its own horizon by more than the agreed skew, not when it has just passed (Code 9).
- *Deliveries are deferred by stamps*: a message carries the sender's horizon at the broadcast, its
  *stamp*, in the signed content. A node delivers it only when `stamp <= horizon + skew`, on its own
  horizon. A stamp further ahead than that makes the message wait for the clock.

A horizon is the largest clock reading that a node has used. It never falls, and is saved.

Why the order then holds, whatever the clocks show: let m1 happen before m2, and let node X deliver
m2 while m1 is undelivered and beyond X's horizon. The deadline of each message on the chain from m1
to m2 is beyond that of m1, so none of them has expired at X: each was delivered, and before it the
one that it names, down to a message m that named m1 or left it out. If m named m1, X delivered m1
before m. If m left m1 out, then deadline(m1) <= stamp(m) - skew, and X delivered m only when
stamp(m) - skew <= X's horizon: m1 had expired. Both contradict the assumption. Without deferral the
last step needs clocks that stay within skew/2 of a time that never falls; that any two of them
differ by less than the skew is not enough if clocks are set back
(`tests/protocols/orders/test_deadline_lemma.py` has all four cases as models).

It follows too that what is received in time is delivered in time: all that a message waits for
expires before it does, and a message is deferred until `stamp - skew` at most, which is before its
deadline. So the skew is no assumption but a delay: it is how far a sender's clock may be ahead of a
receiver's without the message waiting for the clock.
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
        """The seq of a message that is proven to be ours, and of which we knew nothing: what was
        restored is older than what we have said."""
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
        """Code 2, and Code 9 with lifetimes; of several, each names the one before it."""
        lifetimes_us = self._chosen_us(broadcasts)
        self._refuse_while_own_wait()
        if self.expires:
            self._expire(now_us, out)
        seqs = self._next_seqs(now_us, lifetimes_us)
        if self.expires:
            self._purge_barrier(out)
        pasts = [tuple(self._barrier.items()), *(((self.node, seq),) for seq in seqs)]
        stamped = zip(seqs, pasts, broadcasts, strict=False)  # nobody names the last one yet
        messages = self._proven([self._make(s, p, text) for s, p, (text, _) in stamped])
        self._last_seq = seqs[-1]
        if self.durable:
            out.saves.append(("own", "seq", self._last_seq))
            out.saves += [("barrier", origin, None) for origin in self._barrier]
        self._barrier.clear()
        settled = [m for own in messages for m in self._waiting.settle([own], self._horizon_us)]
        if len(settled) > len(messages):
            # Somebody named an own message before it was said. The others do not name what that
            # set free: so it comes after them.
            settled.sort(key=lambda message: message.id[0] != self.node)
        self._deliver(settled, out)
        self._arm(out)
        return messages

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        """Code 5, and Code 11 with lifetimes."""
        if self.expires:
            self._expire(now_us, out)
        if self.forgotten != self._saved_forgotten and self.durable:
            self._saved_forgotten = self.forgotten
            out.saves += [("own", "seq", self._last_seq), ("own", "forgotten", self.forgotten)]
        if len(messages) > 1:
            # They came together, so any order will do. By seq, a cause mostly comes before its
            # effects (with lifetimes always: deadlines grow along causality) and few must wait.
            messages = sorted(messages, key=_seq)
        waiting, horizon_us = self._waiting, self._horizon_us
        delivered, pending = waiting.delivered, waiting.pending
        ready: list[Message] = []
        for message in messages:
            origin, seq = message.id
            if seq <= horizon_us:
                self.counters.stale += 1
            elif delivered.get(origin, LONG_AGO) >= seq or message.id in pending:
                # It was evicted and came again: this registry prevents a second delivery.
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

    def reached(self, origin: NodeId) -> int:
        return self._waiting.delivered.get(origin, LONG_AGO)

    def restore(self, rows: Rows) -> None:
        last_seq = self._restore_own(rows)
        self._last_seq = self._last_seq if last_seq is None else last_seq
        self.forgotten = self._saved_forgotten = rows.get(OWN.name, {}).get("forgotten")
        self._barrier = dict(rows.get("barrier", {}))
        self._waiting.delivered = dict(rows.get("delivered", {}))

    # ---- questions ------------------------------------------------------------------------------

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
        # Past the deadline the registries have forgotten; before it, nothing came.
        return MessageStatus("expired" if seq <= self._horizon_us else "unknown")

    def pending(self) -> tuple[MessageId, ...]:
        return tuple(self._waiting.pending)

    def gauges(self, now_us: int) -> dict[str, int]:
        """Sizes of the three registries (OPP figures 6 and 11)."""
        live = self._waiting.delivered.values()
        return {
            "barrier": len(self._barrier),
            "delivered": sum(seq > now_us for seq in live) if self.expires else len(live),
            **self._waiting.gauges(),
        }

    # ---- steps ----------------------------------------------------------------------------------

    def _is_fine(self, message: Message, after: int, until: int) -> bool:
        """What we said in a life that we have forgotten is taken like that of anybody else: others
        name it, and what we say next must come after it."""
        if not super()._is_fine(message, after, until):
            return False
        origin, seq = message.id
        if origin == self.node and seq > self._last_seq:
            self.counters.regained += 1
            self.forgotten = self._last_seq = seq
        return True

    def _may_be_own(self, seq: int) -> bool:
        # The layer below has checked proofs: no other node can have sent it.
        return self.proofs is not None or super()._may_be_own(seq)

    def _refuse_while_own_wait(self) -> None:
        """Raise LocalError while own messages of a lost incarnation wait for their causes.

        A broadcast would overtake them. A pending message that names one of them would then be
        delivered before the causes that this one waits for.
        """
        if self.forgotten is None:  # only a node that lost its state has to look
            return
        if waiting := [id for id in self._waiting.pending if id[0] == self.node]:
            raise LocalError(
                f"{len(waiting)} messages that this node broadcast before it lost its state wait "
                "for their causes",
                where=f"node {self.node}",
                hint="wait until they are delivered or expired, or come back under another name",
            )

    def _make(self, seq: int, past: tuple[MessageId, ...], payload: bytes) -> Message:
        """An own message, not proven yet."""
        return Message((self.node, seq), past, payload, stamp=self._stamp(seq))

    def _deliver(self, messages: list[Message], out: Outbox[Any]) -> None:
        """Code 3: the barrier of the next own message now names these."""
        barrier, covered = self._barrier, []
        for message in messages:
            if not self._literal_barriers:
                # What this message names is reached through it: naming it again is redundant.
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
        """As it is now: what an origin had said before its last message is of no interest."""
        delivered, barrier = self._waiting.delivered, self._barrier
        origins = dict.fromkeys([message.id[0] for message in messages])
        out.saves += [("delivered", origin, delivered[origin]) for origin in origins]
        origins.update(dict.fromkeys(covered))
        out.saves += [("barrier", origin, barrier.get(origin)) for origin in origins]

    def _next_seqs(self, now_us: int, lifetimes_us: list[int]) -> list[int]:
        """One for each. With lifetimes they are deadlines, which grow along causality."""
        seqs, last = [], self._last_seq
        if self.expires and not self._literal_deadlines:
            last = max(last, max(self._barrier.values(), default=LONG_AGO))
            # What lives only up to the horizon would be dead here, and everywhere soon.
            now_us = self._horizon_us
        for lifetime_us in lifetimes_us:
            # One's own must grow strictly even so: they are the identity of the messages.
            last = max(now_us + lifetime_us, last + 1) if self.expires else last + 1
            seqs.append(last)
        return seqs

    def _purge_barrier(self, out: Outbox[Any]) -> None:
        """Code 10. Without what has expired here by more than the skew, so that no node delivers it
        after the next own message; or to the letter, without what has expired."""
        assert self._lifetimes is not None
        passed_us = self._horizon_us
        if not self._literal_deadlines:
            passed_us -= self._lifetimes.skew_us
        if passed := [origin for origin, seq in self._barrier.items() if seq <= passed_us]:
            for origin in passed:
                del self._barrier[origin]
                if self.durable:
                    out.saves.append(("barrier", origin, None))
            # The next own message leaves these out: its stamp must not lie before this horizon.
            self._save_horizon(out)
        self._purge_barrier_at = max(PURGE_AT_MIN, 2 * len(self._barrier))

    def _expire(self, now_us: int, out: Outbox[Any]) -> None:
        """Code 12: what has passed its deadline is neither delivered nor waited for."""
        # A clock that was set back must not bring back to life what was given up.
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
            self._purge_barrier(out)  # whoever only listens must forget too

    def _purge(self, out: Outbox[Any]) -> None:
        """The co-delivered registry shrinks. Halving at least, or waiting for twice the size,
        keeps the cost per delivery constant."""
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
