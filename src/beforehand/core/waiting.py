"""Received messages that wait for their predecessors, indexed so that nothing is ever scanned.

Codes 4 and 7 of OPP walk through everything pending at each delivery. Here a pending message waits
under *one* missing predecessor, the first of its `past` that is not satisfied. When that one is
delivered or given up, the message looks for its next missing one from where it stopped, because
what was satisfied once stays so. A delivery costs what it unblocks, and each entry of a `past` is
looked at once.
"""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from beforehand.core.base import Message, MessageId, NodeId
from beforehand.core.order import LONG_AGO

DEADLINES_MIN = 64
"""The heap of deadlines is swept when most of it is idle, and never below this size."""


class Pending(msgspec.Struct, eq=False):
    """A received message, and how far down its `past` everything is satisfied."""

    message: Message
    since_us: int
    satisfied: int


class Waiting:
    """The co-delivered and the pending registry of one node (OPP Code 1).

    `horizon_us` is the instant up to which deadlines have passed: a predecessor whose seq is not
    beyond it needs no waiting for. Without lifetimes it is LONG_AGO.
    """

    def __init__(self, *, expires: bool) -> None:
        self.delivered: dict[NodeId, int] = {}
        """The seq of the last message delivered of each origin."""
        self.pending: dict[MessageId, Pending] = {}
        self.late: list[Message] = []
        """Ready, but overtaken by a later message of the same origin. The caller empties it."""
        self._expires = expires
        self._waiters: dict[NodeId, dict[int, list[Pending]]] = {}
        """Who waits for which message: by origin, then by seq."""
        self._deadlines: list[tuple[int, int, NodeId]] = []
        """A heap of (seq, ticket, origin): what must be looked at when it expires."""
        self._careless: set[MessageId] = set()
        """Pending messages that are in that heap themselves."""
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
        return self.settle([message], horizon_us)

    def settle(self, ready: list[Message], horizon_us: int) -> list[Message]:
        """Deliver what is ready, and all that this makes ready in turn."""
        delivered, settled = self.delivered, []
        while ready:
            message = ready.pop()
            origin, seq = message.id
            if delivered.get(origin, LONG_AGO) >= seq:
                # A later message of this origin went first. Only a clock outside the agreed skew
                # brings that about; the order is kept by never delivering this one.
                self.late.append(message)
                continue
            delivered[origin] = seq
            settled.append(message)
            if origin in self._waiters:
                self._wake(origin, seq, horizon_us, ready)
        return settled

    def expire(self, now_us: int) -> tuple[list[Message], list[Message]]:
        """(pending messages whose deadline has passed, what can be delivered without the expired).

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
            "deadlines": len(self._deadlines),
        }

    def next_deadline_us(self) -> int | None:
        """When `expire` must be called next, if nothing else happens."""
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
        """Everybody who waited for `origin` up to `seq` looks for its next missing predecessor."""
        waiters = self._waiters[origin]
        woken = waiters.pop(seq, [])
        if waiters and min(waiters) < seq:
            # Rare: a peer outside the rules left something out. What was passed over never comes.
            passed = sorted(earlier for earlier in waiters if earlier < seq)
            woken = [entry for earlier in passed for entry in waiters.pop(earlier)] + woken
        if not waiters:
            del self._waiters[origin]
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
        return True

    def _park(self, entry: Pending, origin: NodeId, seq: int) -> None:
        waiters = self._waiters.setdefault(origin, {})
        if seq in waiters:
            waiters[seq].append(entry)
        else:
            waiters[seq] = [entry]
            if self._expires:
                self._watch(seq, origin)
        id = entry.message.id
        if self._expires and seq >= id[1] and id not in self._careless:
            # From a careless peer: it expires before what it waits for.
            self._careless.add(id)
            self._watch(id[1], id[0])

    def _unpark(self, entry: Pending) -> None:
        origin, seq = entry.message.past[entry.satisfied]
        self._waiters[origin][seq].remove(entry)
        if not self._expires:  # else an empty list stays while it is watched, and only once
            self._forget(origin, seq)

    def _forget(self, origin: NodeId, seq: int) -> None:
        """That nobody waits for this one any more."""
        waiters = self._waiters.get(origin, {})
        if seq in waiters and not waiters[seq]:
            del waiters[seq]
            if not waiters:
                del self._waiters[origin]

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
