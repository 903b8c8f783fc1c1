"""Received messages of the stamped order that wait for causes, indexed by the first missing one.

A cause is *satisfied* when one of these holds. Each of them stays true once it is:

- it is settled: this node delivered it, or a later message of its writer, and knows no other digest
  for its id;
- its deadline is at or before the horizon;
- its stamp is at or below the floor.

A pending message waits for its first cause that is not satisfied, which has the smallest stamp of
them. It is examined again when that cause is settled or expires, or when the floor rises. So the
cost of a delivery is proportional to what it unblocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import msgspec

from beforehand.protocols.contract.base import MessageId, NodeId
from beforehand.protocols.orders.order import LONG_AGO
from beforehand.protocols.orders.pending import DEADLINES_MIN, SEQS_MIN
from beforehand.protocols.orders.stamped_message import Known, StampedMessage, digest_of


class Held(msgspec.Struct, eq=False):
    """A received message that waits, and how many of its causes are satisfied."""

    message: StampedMessage
    since_us: int
    satisfied: int = 0
    """The index of the first cause that is not satisfied; the number of causes if the message is
    deferred."""
    due_us: int = 0
    """The horizon at which it has to be examined again."""

    @property
    def is_deferred(self) -> bool:
        return self.satisfied == len(self.message.past)


class StampedWaiting:
    """The settled and the pending registry of one node."""

    def __init__(self, skew_us: int) -> None:
        self.settled: dict[NodeId, int] = {}
        """By writer, the stamp of its last delivered message."""
        self.digests: dict[MessageId, tuple[bytes, int]] = {}
        """Digest and deadline of delivered messages that are alive."""
        self.floor = LONG_AGO
        """The stamp floor: the node waits for no cause and delivers no message with a stamp up to
        it."""
        self.pending: dict[MessageId, Held] = {}
        self.late: list[StampedMessage] = []
        """Messages that a later message of their writer overtook. The caller empties the list."""
        self._skew_us = skew_us
        self._waiters: dict[NodeId, dict[int, dict[Held, None]]] = {}
        """The messages that wait for a cause, by its writer and stamp."""
        self._stamps: dict[NodeId, list[int]] = {}
        """By writer, a heap of the stamps in `_waiters`, and of some that were there."""
        self._dues: list[tuple[int, int, Held]] = []
        """A heap of (horizon, ticket, entry). An entry that is not pending any more, or that is due
        at another horizon, may remain for a while."""
        self._ticket = 0

    def is_settled(self, id: MessageId) -> bool:
        """Return whether the node delivers no message with this id any more."""
        return self.settled.get(id[0], LONG_AGO) >= id[1] or id[1] <= self.floor

    def is_satisfied(self, id: MessageId, known: Known, horizon_us: int) -> bool:
        deadline_us, digest = known
        if id[1] <= self.floor or deadline_us <= horizon_us:
            return True
        if self.settled.get(id[0], LONG_AGO) < id[1]:
            return False
        found = self.digests.get(id)
        return found is None or found[0] == digest

    def admit(
        self, now_us: int, message: StampedMessage, horizon_us: int
    ) -> Iterator[StampedMessage]:
        """Take a received message. Yield it if nothing is missing; else it becomes pending."""
        entry = Held(message, now_us)
        self.pending[message.id] = entry
        if self._advance(entry, horizon_us):
            del self.pending[message.id]
            yield message

    def settle(self, ready: list[StampedMessage], horizon_us: int) -> list[StampedMessage]:
        """Mark the ready messages, and all that they unblock in turn, as settled. Return them in
        the order of delivery."""
        settled = []
        while ready:
            message = ready.pop()
            if not self._mark(message):
                continue
            settled.append(message)
            if message.id[0] in self._waiters:
                ready += self._woken(*message.id, horizon_us)
        return settled

    def expire(self, horizon_us: int) -> tuple[list[Held], list[StampedMessage]]:
        """Return (pending messages that expired, messages that are ready now).

        All expired messages are removed before any message is ready. So a message is not delivered
        at the instant of its own deadline, even if its last missing cause expires then too.
        """
        lapsed, woken = [], []
        while self._dues and self._dues[0][0] <= horizon_us:
            due_us, _, entry = heappop(self._dues)
            if not self._is_current(due_us, entry):
                continue
            self._unpark(entry)
            entry.due_us = LONG_AGO  # the heap may have the same instant twice
            if entry.message.deadline <= horizon_us:
                del self.pending[entry.message.id]
                lapsed.append(entry)
            else:
                woken.append(entry)
        return lapsed, self._ready(woken, horizon_us)

    def raise_floor(
        self, cause: MessageId, horizon_us: int
    ) -> tuple[list[StampedMessage], list[StampedMessage], list[MessageId]]:
        """Raise the floor to a cause that a message misses. Return (the pending messages up to it
        in the order of their stamps, others that are ready now, the causes that are skipped).

        A message up to the floor has to be delivered before any other, although causes of it are
        missing: all of those lie below it, so below the floor.
        """
        stamp = cause[1]
        skipped = {
            id
            for entry in self.pending.values()
            for id in self.missing(entry, horizon_us)
            if id[1] <= stamp and id not in self.pending
        }
        if cause not in skipped:
            return [], [], []
        below = [entry for id, entry in self.pending.items() if id[1] <= stamp]
        below.sort(key=lambda entry: (entry.message.id[1], str(entry.message.id[0])))
        for entry in below:
            self.drop(entry.message.id)
        delivered = [entry.message for entry in below if self._mark(entry.message)]
        self.floor = max(self.floor, stamp)
        others = list(self.pending.values())
        for entry in others:
            self._unpark(entry)
        order = sorted(skipped, key=lambda id: (id[1], str(id[0])))
        return delivered, self._ready(others, horizon_us), order

    def drop(self, id: MessageId) -> bool:
        """Remove a message from the pending ones. Return whether it was pending."""
        entry = self.pending.pop(id, None)
        if entry is None:
            return False
        self._unpark(entry)
        return True

    def missing(self, entry: Held, horizon_us: int) -> tuple[MessageId, ...]:
        """Return all causes for which a pending message still waits."""
        return self.missing_of(entry.message, horizon_us, entry.satisfied)

    def missing_of(
        self, message: StampedMessage, horizon_us: int, since: int = 0
    ) -> tuple[MessageId, ...]:
        """Return the causes of a message that are not satisfied, from the `since`th on."""
        causes = list(message.entries())[since:]
        return tuple(id for id, known in causes if not self.is_satisfied(id, known, horizon_us))

    def is_blocked(self) -> bool:
        """Return whether any message waits for a cause."""
        return bool(self._waiters)

    def blocked(self) -> list[MessageId]:
        """Return the causes for which pending messages wait and that were not received."""
        return [
            (writer, stamp)
            for writer, waiters in self._waiters.items()
            for stamp, entries in waiters.items()
            if entries and (writer, stamp) not in self.pending
            if self.settled.get(writer, LONG_AGO) < stamp
        ]

    def deferred_until_us(self, entry: Held) -> int | None:
        """Return the horizon at which a message can be delivered; None if it is not deferred."""
        return entry.message.id[1] - self._skew_us if entry.is_deferred else None

    def next_due_us(self) -> int | None:
        """Return the horizon at which `expire` must be called next, if no other input comes."""
        if len(self._dues) > DEADLINES_MIN + 2 * len(self.pending):
            self._dues = [item for item in self._dues if self._is_current(item[0], item[2])]
            heapify(self._dues)
        while self._dues and not self._is_current(self._dues[0][0], self._dues[0][2]):
            heappop(self._dues)
        return self._dues[0][0] if self._dues else None

    def gauges(self) -> dict[str, int]:
        parked = sum(
            len(entries) for waiters in self._waiters.values() for entries in waiters.values()
        )
        return {"pending": len(self.pending), "parked": parked, "deadlines": len(self._dues)}

    def _mark(self, message: StampedMessage) -> bool:
        """Mark a message as settled. Return False if a later one of its writer was settled first:
        only a faulty writer causes that, and this one is never delivered."""
        writer, stamp = message.id
        if self.settled.get(writer, LONG_AGO) >= stamp:
            self.late.append(message)
            return False
        self.settled[writer] = stamp
        self.digests[message.id] = (digest_of(message), message.deadline)
        return True

    def _ready(self, entries: list[Held], horizon_us: int) -> list[StampedMessage]:
        """Return those of the entries that wait for nothing any more, and park the others."""
        ready = []
        for entry in entries:
            if self._advance(entry, horizon_us):
                del self.pending[entry.message.id]
                ready.append(entry.message)
        return ready

    def _woken(self, writer: NodeId, stamp: int, horizon_us: int) -> list[StampedMessage]:
        """Re-examine all messages that waited for messages of `writer` up to `stamp`."""
        waiters, stamps = self._waiters[writer], self._stamps[writer]
        woken: list[Held] = []
        while stamps and stamps[0] <= stamp:
            woken += waiters.pop(heappop(stamps), ())
        if not waiters:
            del self._waiters[writer], self._stamps[writer]
        return self._ready(woken, horizon_us)

    def _advance(self, entry: Held, horizon_us: int) -> bool:
        """Return whether the message can be delivered. If not, index it under its next missing
        cause, or defer it."""
        message = entry.message
        for at in range(entry.satisfied, len(message.past)):
            id, known = message.past[at], message.causes[at]
            if not self.is_satisfied(id, known, horizon_us):
                entry.satisfied = at
                self._park(entry, id)
                self._watch(entry, min(known[0], message.deadline))
                return False
        entry.satisfied = len(message.past)
        if message.id[1] > horizon_us + self._skew_us:
            self._watch(entry, min(message.id[1] - self._skew_us, message.deadline))
            return False
        return True

    def _is_current(self, due_us: int, entry: Held) -> bool:
        return entry.due_us == due_us and self.pending.get(entry.message.id) is entry

    def _watch(self, entry: Held, due_us: int) -> None:
        entry.due_us = due_us
        self._ticket += 1
        heappush(self._dues, (due_us, self._ticket, entry))

    def _park(self, entry: Held, id: MessageId) -> None:
        writer, stamp = id
        waiters = self._waiters.setdefault(writer, {})
        if stamp in waiters:
            waiters[stamp][entry] = None
            return
        waiters[stamp] = {entry: None}
        stamps = self._stamps.setdefault(writer, [])
        if len(stamps) > SEQS_MIN + 2 * len(waiters):
            stamps[:] = waiters
            heapify(stamps)
        else:
            heappush(stamps, stamp)

    def _unpark(self, entry: Held) -> None:
        if entry.is_deferred:
            return  # it stays in the heap; `_is_current` skips it
        writer, stamp = entry.message.past[entry.satisfied]
        waiters = self._waiters[writer]
        del waiters[stamp][entry]
        if not waiters[stamp]:
            del waiters[stamp]
            if not waiters:
                del self._waiters[writer], self._stamps[writer]
