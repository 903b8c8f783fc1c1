"""Received messages that wait for their predecessors, indexed so that nothing is ever scanned.

Codes 4 and 7 of OPP walk through everything pending at each delivery. Here a pending message waits
under *one* missing predecessor, the first of its `past` that is not satisfied. When that one is
delivered or given up, the message looks for its next missing one from where it stopped, because
what was satisfied once stays so. A delivery costs what it unblocks, and each entry of a `past` is
looked at once.

With lifetimes a message can also be *deferred*: nothing of its `past` is missing, but its stamp
lies too far beyond this node's horizon (`protocols.orders.barrier` says why). It then waits for the
clock.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import msgspec

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.orders.order import LONG_AGO

DEADLINES_MIN = 64
"""The heap of deadlines is swept when most of it is idle, and never below this size."""
SEQS_MIN = 16
"""The same for the heap of seqs that are waited for, of one origin."""
NO_DEFERRAL = 1 << 63
"""As the distance from the horizon: no stamp lies beyond it."""


class Pending(msgspec.Struct, eq=False):
    """A received message, and how far down its `past` everything is satisfied."""

    message: Message
    since_us: int
    satisfied: int
    """The length of `past` if the message is deferred."""

    @property
    def is_deferred(self) -> bool:
        return self.satisfied == len(self.message.past)


class Waiting:
    """The co-delivered and the pending registry of one node (OPP Code 1).

    `horizon_us` is the instant up to which deadlines have passed: a predecessor whose seq is not
    beyond it needs no waiting for. Without lifetimes it is LONG_AGO.
    """

    def __init__(self, *, expires: bool, ahead_us: int = NO_DEFERRAL) -> None:
        """ahead_us: a message is deferred while its stamp is further beyond the horizon."""
        self.delivered: dict[NodeId, int] = {}
        """The seq of the last message delivered of each origin."""
        self.pending: dict[MessageId, Pending] = {}
        self.late: list[Message] = []
        """Ready, but overtaken by a later message of the same origin. The caller empties it."""
        self._expires = expires
        self._ahead_us = ahead_us
        self._waiters: dict[NodeId, dict[int, dict[Pending, None]]] = {}
        """The messages that wait for a predecessor: by its origin, then by its seq. A dict, so that
        one of many leaves at constant cost."""
        self._seqs: dict[NodeId, list[int]] = {}
        """For each origin in `_waiters`, a heap with all of its seqs there: a delivery finds the
        smaller ones without a scan. A seq that no message waits for may remain for a while."""
        self._deadlines: list[tuple[int, int, NodeId]] = []
        """A heap of (seq, ticket, origin): what must be looked at when it expires."""
        self._careless: set[MessageId] = set()
        """Pending messages that are in that heap themselves."""
        self._deferred: list[tuple[int, int, Pending]] = []
        """A heap of (instant, ticket, entry): what must be looked at when the horizon gets there.
        An entry that is not pending any more may remain for a while."""
        self._lapsed: list[Message] = []
        self._ticket = 0  # breaks ties in the heap, so that origins are never compared

    def admit(self, now_us: int, message: Message, horizon_us: int) -> list[Message]:
        """What can be delivered now that `message` is here, in this order; nothing if it waits.

        The caller has made sure that the message is neither delivered, pending nor expired.
        """
        delivered = self.delivered
        for index, (origin, seq) in enumerate(message.past):
            if delivered.get(origin, LONG_AGO) < seq and seq > horizon_us:
                entry = Pending(message, now_us, index)
                self.pending[message.id] = entry
                self._park(entry, origin, seq)
                return []
        if message.stamp > horizon_us + self._ahead_us:
            entry = self.pending[message.id] = Pending(message, now_us, len(message.past))
            self._defer(entry)
            return []
        return self.settle([message], horizon_us)

    def settle(self, ready: list[Message], horizon_us: int) -> list[Message]:
        """Deliver what is ready, and all that this makes ready in turn."""
        delivered, settled = self.delivered, []
        while ready:
            message = ready.pop()
            origin, seq = message.id
            if delivered.get(origin, LONG_AGO) >= seq:
                # A later message of this origin went first. Only a faulty peer, or an origin that
                # lost its store, brings that about; the order is kept by never delivering this one.
                self.late.append(message)
                continue
            delivered[origin] = seq
            settled.append(message)
            if origin in self._waiters:
                self._wake(origin, seq, horizon_us, ready)
        return settled

    def expire(self, now_us: int) -> tuple[list[Message], list[Message]]:
        """(pending messages whose deadline has passed, what can be delivered now: without the
        expired, and because it is deferred no longer).

        All that has expired is taken out before anything is delivered: a message is not delivered
        at the instant of its own deadline, even if its last missing predecessor expires then too.
        """
        ready: list[Message] = []
        while self._deadlines and self._deadlines[0][0] <= now_us:
            seq, _, origin = heappop(self._deadlines)
            self._careless.discard((origin, seq))
            entry = self.pending.pop((origin, seq), None)
            if entry is not None:
                self._unpark(entry)
                self._lapsed.append(entry.message)
            if origin in self._waiters:
                self._wake(origin, seq, now_us, ready)
        self._end_deferrals(now_us, ready)
        lapsed, self._lapsed = self._lapsed, []
        return lapsed, self.settle(ready, now_us)

    def drop(self, id: MessageId) -> bool:
        """Whether it was pending; it is not any more, and does not wait any more."""
        entry = self.pending.pop(id, None)
        if entry is None:
            return False
        self._unpark(entry)
        return True

    def gauges(self) -> dict[str, int]:
        parked = (
            len(entries) for waiters in self._waiters.values() for entries in waiters.values()
        )
        return {
            "pending": len(self.pending),
            "parked": sum(parked),
            "deadlines": len(self._deadlines) + len(self._deferred),
        }

    def next_deadline_us(self) -> int | None:
        """The horizon at which `expire` must be called next, if nothing else happens."""
        deadline_us = self._next_expiry_us() if self._deadlines else None
        if self._deferred:
            deferred_us = self._next_deferred_us()
            if deadline_us is None or (deferred_us is not None and deferred_us < deadline_us):
                return deferred_us
        return deadline_us

    def deferred_until_us(self, entry: Pending) -> int | None:
        """The horizon at which a deferred message can be delivered; None if it is not deferred."""
        return entry.message.stamp - self._ahead_us if entry.is_deferred else None

    def _next_expiry_us(self) -> int | None:
        if len(self._deadlines) > DEADLINES_MIN + 4 * len(self.pending):
            self._sweep()
        while self._deadlines:
            seq, _, origin = self._deadlines[0]
            waiters = self._waiters.get(origin, {})
            if waiters.get(seq) or (origin, seq) in self.pending:
                return seq
            heappop(self._deadlines)  # delivered or gone meanwhile: nobody needs to be woken
            self._careless.discard((origin, seq))
            self._forget(origin, seq)
        return None

    def missing(self, entry: Pending, horizon_us: int) -> tuple[MessageId, ...]:
        """All that a pending message still waits for."""
        rest = entry.message.past[entry.satisfied :]
        return tuple(
            id for id in rest if self.delivered.get(id[0], LONG_AGO) < id[1] and id[1] > horizon_us
        )

    def _wake(self, origin: NodeId, seq: int, horizon_us: int, ready: list[Message]) -> None:
        """Look for the next missing predecessor of all that waited for `origin` up to `seq`."""
        waiters, seqs = self._waiters[origin], self._seqs[origin]
        woken: list[Pending] = []
        # Mostly it is this one seq alone. A smaller one was left out by a peer outside the rules:
        # it is never delivered any more.
        while seqs and seqs[0] <= seq:
            woken += waiters.pop(heappop(seqs), ())
        if not waiters:
            del self._waiters[origin], self._seqs[origin]
        for entry in woken:
            message = entry.message
            if message.id[1] <= horizon_us:
                del self.pending[message.id]
                self._lapsed.append(message)
            elif self._advance(entry, horizon_us):
                del self.pending[message.id]
                ready.append(message)

    def _advance(self, entry: Pending, horizon_us: int) -> bool:
        """True if nothing is missing any more; else the entry waits for the next one."""
        past = entry.message.past
        for index in range(entry.satisfied, len(past)):
            origin, seq = past[index]
            if self.delivered.get(origin, LONG_AGO) < seq and seq > horizon_us:
                entry.satisfied = index
                self._park(entry, origin, seq)
                return False
        if entry.message.stamp > horizon_us + self._ahead_us:
            entry.satisfied = len(past)
            self._defer(entry)
            return False
        return True

    def _defer(self, entry: Pending) -> None:
        """Wait for the clock. A message whose deadline comes first is looked at then."""
        self._ticket += 1
        stamp, deadline = entry.message.stamp, entry.message.id[1]
        due_us = min(stamp - self._ahead_us, deadline)
        heappush(self._deferred, (due_us, self._ticket, entry))

    def _is_waiting(self, entry: Pending) -> bool:
        """Whether it is this very entry that is pending: a message that was dropped may return."""
        return self.pending.get(entry.message.id) is entry

    def _next_deferred_us(self) -> int | None:
        if len(self._deferred) > DEADLINES_MIN + 2 * len(self.pending):
            self._deferred = [item for item in self._deferred if self._is_waiting(item[2])]
            heapify(self._deferred)
        while self._deferred:
            due_us, _, entry = self._deferred[0]
            if self._is_waiting(entry):
                return due_us
            heappop(self._deferred)
        return None

    def _end_deferrals(self, now_us: int, ready: list[Message]) -> None:
        while self._deferred and self._deferred[0][0] <= now_us:
            entry = heappop(self._deferred)[2]
            message = entry.message
            if self._is_waiting(entry):
                del self.pending[message.id]
                (self._lapsed if message.id[1] <= now_us else ready).append(message)

    def _park(self, entry: Pending, origin: NodeId, seq: int) -> None:
        waiters = self._waiters.get(origin)
        if waiters is not None and seq in waiters:
            waiters[seq][entry] = None
        else:
            if waiters is None:
                self._waiters[origin], self._seqs[origin] = {seq: {entry: None}}, [seq]
            else:
                waiters[seq] = {entry: None}
                self._note_seq(waiters, self._seqs[origin], seq)
            if self._expires:
                self._watch(seq, origin)
        id = entry.message.id
        if self._expires and seq >= id[1] and id not in self._careless:
            # From a careless peer: it expires before what it waits for.
            self._careless.add(id)
            self._watch(id[1], id[0])

    def _unpark(self, entry: Pending) -> None:
        if entry.is_deferred:
            return  # it is found missing when its instant comes
        origin, seq = entry.message.past[entry.satisfied]
        del self._waiters[origin][seq][entry]
        if not self._expires:  # else an empty list stays while it is watched, and only once
            self._forget(origin, seq)

    def _forget(self, origin: NodeId, seq: int) -> None:
        """That nobody waits for this one any more."""
        waiters = self._waiters.get(origin, {})
        if seq in waiters and not waiters[seq]:
            del waiters[seq]
            if not waiters:
                del self._waiters[origin], self._seqs[origin]

    @staticmethod
    def _note_seq(waiters: dict[int, dict[Pending, None]], seqs: list[int], seq: int) -> None:
        if len(seqs) > SEQS_MIN + 2 * len(waiters):
            seqs[:] = waiters
            heapify(seqs)
        else:
            heappush(seqs, seq)

    def _watch(self, seq: int, origin: NodeId) -> None:
        self._ticket += 1
        heappush(self._deadlines, (seq, self._ticket, origin))

    def _sweep(self) -> None:
        """Keep the deadlines of what is pending or waited for, each once: two per pending message
        at most. More than half go, so that the cost per message stays constant."""
        watched: dict[MessageId, tuple[int, int, NodeId]] = {}
        for deadline in sorted(self._deadlines):
            seq, _, origin = deadline
            if self._waiters.get(origin, {}).get(seq) or (origin, seq) in self.pending:
                watched.setdefault((origin, seq), deadline)
            else:
                self._forget(origin, seq)
        self._deadlines = list(watched.values())  # sorted, so it is a heap
        self._careless = {id for id in watched if id in self.pending}
