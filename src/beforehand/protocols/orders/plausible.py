"""Causal broadcast with plausible clocks: R entries, however many nodes there are.

Torres-Rojas and Ahamad (1999) map the processes onto the R entries of a vector, so several
processes share an entry (R-entries vector). A message carries, for each entry, how many messages
counted in this entry its sender had delivered. A node delivers a message once its own counts are
no smaller. The causes of a message are among those counts, so every message is delivered after a
finite wait. But another message of the same entry can stand in for a cause. Then the message is
delivered too early, and the cause late: causal order holds with probability only. With R at least
the number of nodes, and nodes numbered from 0, the clock is a vector clock and the order is sure.

There are no lifetimes. A message has at most R entries. A delivery costs O(R) plus O(log pending)
for each message that it unblocks. The ids of delivered messages are kept, because a message may be
delivered before earlier ones of its origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any
from zlib import crc32

import msgspec

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
from beforehand.protocols.orders.order import Order


class Held(msgspec.Struct, eq=False):
    """A received message that waits, and how many entries of its `past` are satisfied."""

    message: Message
    since_us: int
    satisfied: int = 0


class Plausible(Order):
    """Delivers a message when this node has counted at least as much as the sender had.

    In a message, entry `i` of the clock is written as the node `-1 - i`, which no node can be.
    """

    tables = (Table("delivered", MessageId, bool),)

    def __init__(self, node: NodeId, entries: int = 8) -> None:
        super().__init__(node)
        if isinstance(node, int) and node < 0:
            problem = "plausible clocks number their entries below 0"
            raise LocalError(problem, where=f"node {node}", hint="number the nodes from 0")
        self._counts = [0] * entries
        self._delivered: dict[MessageId, None] = {}
        self._pending: dict[MessageId, Held] = {}
        self._waiters: list[list[tuple[int, int, Held]]] = [[] for _ in range(entries)]
        """For each entry, a heap of (the count to reach, ticket, message). A message that is not
        pending any more may remain for a while."""
        self._ticket = 0

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        self._chosen_us(broadcasts)
        counts, seq = self._counts.copy(), self._last_seq
        messages = []
        for payload, _ in broadcasts:
            past = tuple((-1 - entry, count) for entry, count in enumerate(counts) if count)
            seq += 1
            messages.append(Message((self.node, seq), past, payload))
            counts[self._entry_of(self.node)] += 1
        messages = self._proven(messages)
        self._last_seq = seq
        for message in messages:
            self._deliver(message, out)
        self._release(self._entry_of(self.node), out)
        return messages

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        for message in messages:
            if message.id in self._delivered or message.id in self._pending:
                self.counters.duplicate += 1
                continue
            held = Held(message, now_us)
            if self._is_ready(held):
                self._deliver(message, out)
                self._release(self._entry_of(message.origin), out)
            else:
                self._pending[message.id] = held

    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        for id in ids:
            if self._pending.pop(id, None) is not None:
                self.counters.dropped += 1
                out.losses.append(("drop", id))

    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        """Do nothing: this order sets no timer."""

    def screen(self, now_us: int, messages: Sequence[Message]) -> Sequence[Message]:
        accepted = super().screen(now_us, messages)
        fine = [message for message in accepted if self._is_clock(message.past)]
        self.counters.refused += len(accepted) - len(fine)
        return fine

    def has_delivered(self, message: MessageId) -> bool:
        return message in self._delivered

    def restore(self, rows: Rows) -> None:
        self._delivered = dict.fromkeys(rows.get("delivered", {}))
        for origin, seq in self._delivered:
            self._counts[self._entry_of(origin)] += 1
            if origin == self.node:
                self._last_seq = max(self._last_seq, seq)

    def explain(self, message: MessageId) -> MessageStatus:
        """Return the status of a message. It waits for counts and not for certain messages: in
        `missing`, the node `-1 - i` stands for entry `i`, with the count that it has to reach."""
        held = self._pending.get(message)
        if held is None:
            return MessageStatus("delivered" if message in self._delivered else "unknown")
        missing = [(at, count) for at, count in held.message.past if self._lacks(at, count)]
        return MessageStatus("waiting", tuple(missing), held.since_us)

    def pending(self) -> tuple[MessageId, ...]:
        return tuple(self._pending)

    def gauges(self, now_us: int) -> dict[str, int]:
        return {"delivered": len(self._delivered), "pending": len(self._pending)}

    def _entry_of(self, origin: NodeId) -> int:
        number = origin if isinstance(origin, int) else crc32(origin.encode())
        return number % len(self._counts)

    def _is_clock(self, past: Sequence[MessageId]) -> bool:
        """Return whether a correct node of this group can have sent this clock."""
        least = -len(self._counts)
        return all(isinstance(at, int) and least <= at < 0 < count for at, count in past)

    def _lacks(self, at: NodeId, count: int) -> bool:
        assert isinstance(at, int), "can't happen: `screen` refuses it"
        return self._counts[-1 - at] < count

    def _is_ready(self, held: Held) -> bool:
        """Return whether nothing is missing. Otherwise the message waits at the first entry that
        is too small; the entries before it never shrink, so they are not examined again."""
        past = held.message.past
        for index in range(held.satisfied, len(past)):
            at, count = past[index]
            if self._lacks(at, count):
                held.satisfied = index
                self._ticket += 1
                heappush(self._waiters[-1 - int(at)], (count, self._ticket, held))
                return False
        return True

    def _release(self, entry: int, out: Outbox[Any]) -> None:
        """Deliver the messages that waited for this entry, and all that they unblock in turn."""
        changed = [entry]
        while changed:
            entry = changed.pop()
            waiters = self._waiters[entry]
            while waiters and waiters[0][0] <= self._counts[entry]:
                held = heappop(waiters)[2]
                message = held.message
                if self._pending.get(message.id) is held and self._is_ready(held):
                    del self._pending[message.id]
                    self._deliver(message, out)
                    changed.append(self._entry_of(message.origin))

    def _deliver(self, message: Message, out: Outbox[Any]) -> None:
        self._counts[self._entry_of(message.origin)] += 1
        self._delivered[message.id] = None
        out.deliveries.append(message)
        self.counters.delivered += 1
        if self.durable:
            out.saves.append(("delivered", message.id, True))
