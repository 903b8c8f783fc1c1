"""Received messages that wait for their predecessors, indexed so that no delivery scans them.

Codes 4 and 7 of OPP scan all pending messages at each delivery. Here a pending message is indexed
under *one* missing predecessor: the first entry of its `past` that is not satisfied. When that
predecessor is delivered or expires, the search continues after that entry, because a satisfied
entry stays satisfied. So the cost of a delivery is proportional to what it unblocks, and each entry
of a `past` is examined once.

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
"""The least size of the heap of deadlines at which it is swept. A sweep also requires that most
entries are obsolete."""
SEQS_MIN = 16
"""The same for an origin's heap of awaited seqs."""
NO_DEFERRAL = 1 << 63
"""A distance from the horizon that no stamp exceeds: no message is deferred."""


class Pending(msgspec.Struct, eq=False):
    """A received message that waits, and how many entries of its `past` are satisfied."""

    message: Message
    since_us: int
    """When the node received the message."""
    satisfied: int
    """The index of the first entry of `past` that is not satisfied; the length of `past` if the
    message is deferred."""

    @property
    def is_deferred(self) -> bool:
        return self.satisfied == len(self.message.past)


class Waiting:
    """The co-delivered and the pending registry of one node (OPP Code 1).

    `horizon_us` is the instant up to which deadlines have passed: no message waits for a
    predecessor whose seq is not beyond it. Without lifetimes it is LONG_AGO.
    """

    def __init__(self, *, expires: bool, ahead_us: int = NO_DEFERRAL) -> None:
        """Make empty registries.

        expires: whether `seq` is a deadline.
        ahead_us: a message is deferred while its stamp exceeds the horizon by more than this.
        """
        self.delivered: dict[NodeId, int] = {}
        """The seq of the last delivered message of each origin."""
        self.pending: dict[MessageId, Pending] = {}
        self.late: list[Message] = []
        """Messages that wait for nothing, but that a later message of their origin overtook. The
        caller empties the list."""
        self._expires = expires
        self._ahead_us = ahead_us
        self._waiters: dict[NodeId, dict[int, dict[Pending, None]]] = {}
        """The messages that wait for a predecessor, by the predecessor's origin and seq. The inner
        dict is used as a set: removing an entry has constant cost."""
        self._seqs: dict[NodeId, list[int]] = {}
        """For each origin in `_waiters`, a heap of its awaited seqs: a delivery finds the smaller
        ones without a scan. A seq for which no message waits any more may remain for a while."""
        self._deadlines: list[tuple[int, int, NodeId]] = []
        """A heap of (seq, ticket, origin): messages to examine when they expire."""
        self._careless: set[MessageId] = set()
        """Pending messages that are in that heap themselves."""
        self._deferred: list[tuple[int, int, Pending]] = []
        """A heap of (instant, ticket, entry): entries to examine when the horizon gets there. An
        entry that is not pending any more may remain for a while."""
        self._lapsed: list[Message] = []
        """Pending messages that expired and that `expire` has not returned yet."""
        self._ticket = 0  # breaks ties in the heaps, so that origins are never compared

    def admit(self, now_us: int, message: Message, horizon_us: int) -> list[Message]:
        """Take a received message. Return what can be delivered now, in this order; nothing if the
        message has to wait.

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
        """Mark the ready messages, and all that they unblock in turn, as delivered. Return them in
        the order of delivery."""
        delivered, settled = self.delivered, []
        while ready:
            message = ready.pop()
            origin, seq = message.id
            if delivered.get(origin, LONG_AGO) >= seq:
                # A later message of this origin was delivered first. Only a faulty peer, or an
                # origin that lost its store, causes that. Never deliver this one: it is too late.
                self.late.append(message)
                continue
            delivered[origin] = seq
            settled.append(message)
            if origin in self._waiters:
                self._wake(origin, seq, horizon_us, ready)
        return settled

    def expire(self, now_us: int) -> tuple[list[Message], list[Message]]:
        """Return (pending messages that expired, messages that can be delivered now).

        A message can be delivered because the rest of its predecessors expired, or because it is
        not deferred any longer. All expired messages are removed before any message is delivered.
        So a message is not delivered at the instant of its own deadline, even if its last missing
        predecessor expires then too.
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
        """Remove a message from the pending ones. Return whether it was pending."""
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
        """Return the horizon at which `expire` must be called next, if no other input comes."""
        deadline_us = self._next_expiry_us() if self._deadlines else None
        if self._deferred:
            deferred_us = self._next_deferred_us()
            if deadline_us is None or (deferred_us is not None and deferred_us < deadline_us):
                return deferred_us
        return deadline_us

    def deferred_until_us(self, entry: Pending) -> int | None:
        """Return the horizon at which a message can be delivered; None if it is not deferred."""
        return entry.message.stamp - self._ahead_us if entry.is_deferred else None

    def _next_expiry_us(self) -> int | None:
        if len(self._deadlines) > DEADLINES_MIN + 4 * len(self.pending):
            self._sweep()
        while self._deadlines:
            seq, _, origin = self._deadlines[0]
            waiters = self._waiters.get(origin, {})
            if waiters.get(seq) or (origin, seq) in self.pending:
                return seq
            heappop(self._deadlines)  # delivered or dropped meanwhile: no message waits for it
            self._careless.discard((origin, seq))
            self._forget(origin, seq)
        return None

    def missing(self, entry: Pending, horizon_us: int) -> tuple[MessageId, ...]:
        """Return all predecessors for which a pending message still waits."""
        rest = entry.message.past[entry.satisfied :]
        return tuple(
            id for id in rest if self.delivered.get(id[0], LONG_AGO) < id[1] and id[1] > horizon_us
        )

    def _wake(self, origin: NodeId, seq: int, horizon_us: int, ready: list[Message]) -> None:
        """Re-examine all messages that waited for messages of `origin` up to `seq`. Append to
        `ready` those that wait for nothing any more."""
        waiters, seqs = self._waiters[origin], self._seqs[origin]
        woken: list[Pending] = []
        # Mostly only this seq is awaited. A faulty peer may have left out a smaller one, which is
        # never delivered any more.
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
        """Return whether the message can be delivered. If not, index it under its next missing
        predecessor, or defer it."""
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
        """Defer a message until the horizon reaches `stamp - ahead`, or its deadline if that is
        earlier."""
        self._ticket += 1
        stamp, deadline = entry.message.stamp, entry.message.id[1]
        due_us = min(stamp - self._ahead_us, deadline)
        heappush(self._deferred, (due_us, self._ticket, entry))

    def _is_waiting(self, entry: Pending) -> bool:
        """Return whether this very entry is pending. A message that was dropped and received again
        has another entry."""
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
            # A careless sender gave it a deadline that is not after that of its cause. So it
            # expires no later than the cause for which it waits.
            self._careless.add(id)
            self._watch(id[1], id[0])

    def _unpark(self, entry: Pending) -> None:
        if entry.is_deferred:
            return  # it stays in the heap; `_is_waiting` skips it when its instant comes
        origin, seq = entry.message.past[entry.satisfied]
        del self._waiters[origin][seq][entry]
        if not self._expires:  # else it stays: `_park` then adds its seq to `_deadlines` only once
            self._forget(origin, seq)

    def _forget(self, origin: NodeId, seq: int) -> None:
        """Remove a seq from `_waiters` if no message waits for it any more."""
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
        """Keep only the deadlines of pending and awaited messages, each once.

        At most two per pending message remain. So a sweep removes more than half of the heap, and
        the cost per message stays constant.
        """
        watched: dict[MessageId, tuple[int, int, NodeId]] = {}
        for deadline in sorted(self._deadlines):
            seq, _, origin = deadline
            if self._waiters.get(origin, {}).get(seq) or (origin, seq) in self.pending:
                watched.setdefault((origin, seq), deadline)
            else:
                self._forget(origin, seq)
        self._deadlines = list(watched.values())  # sorted, so it is a heap
        self._careless = {id for id in watched if id in self.pending}
