"""Causal broadcast with vector clocks (Birman, Schiper, Stephenson 1991): the reference protocol.

A message carries the number of messages of each origin that its sender had delivered. The vector is
a map, so the nodes need not be known in advance, but it grows with every new origin. There are no
lifetimes: a message that is lost for good blocks all messages that causally follow it.
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
from beforehand.protocols.orders.order import LONG_AGO, Order
from beforehand.protocols.orders.pending import Waiting


class Vector(Order):
    """Delivers a message when this node has delivered everything that the sender had delivered."""

    tables = (Table("delivered", NodeId, int),)

    def __init__(self, node: NodeId) -> None:
        super().__init__(node)
        self._waiting = Waiting(expires=False)

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        self._chosen_us(broadcasts)
        clock = dict(self._waiting.delivered)
        messages = []
        for payload, _ in broadcasts:
            past = tuple(clock.items())
            clock[self.node] = seq = clock.get(self.node, 0) + 1
            messages.append(Message((self.node, seq), past, payload))
        messages = self._proven(messages)
        self._last_seq = messages[-1].seq
        settled = [m for own in messages for m in self._waiting.settle([own], LONG_AGO)]
        if len(settled) > len(messages):
            # A pending message named an own message before this node broadcast it. The messages
            # that this released are delivered after the whole batch.
            settled.sort(key=lambda message: message.id[0] != self.node)
        self._deliver(settled, out)
        return messages

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        waiting = self._waiting
        for message in messages:
            origin, seq = message.id
            if waiting.delivered.get(origin, 0) >= seq or message.id in waiting.pending:
                self.counters.duplicate += 1
            else:
                self._deliver(waiting.admit(now_us, message, LONG_AGO), out)

    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        for id in ids:
            if self._waiting.drop(id):
                self.counters.dropped += 1
                out.losses.append(("drop", id))

    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        """Do nothing: this order sets no timer."""

    def has_delivered(self, message: MessageId) -> bool:
        return self._waiting.delivered.get(message[0], 0) >= message[1]

    def entry_of(self, origin: NodeId) -> int:
        return self._waiting.delivered.get(origin, LONG_AGO)

    def restore(self, rows: Rows) -> None:
        self._waiting.delivered = dict(rows.get("delivered", {}))
        self._last_seq = self._waiting.delivered.get(self.node, 0)

    def explain(self, message: MessageId) -> MessageStatus:
        entry = self._waiting.pending.get(message)
        if entry is not None:
            return MessageStatus("waiting", self._waiting.missing(entry, LONG_AGO), entry.since_us)
        return MessageStatus("delivered" if self.has_delivered(message) else "unknown")

    def pending(self) -> tuple[MessageId, ...]:
        return tuple(self._waiting.pending)

    def gauges(self, now_us: int) -> dict[str, int]:
        return {"delivered": len(self._waiting.delivered), **self._waiting.gauges()}

    def _deliver(self, messages: list[Message], out: Outbox[Any]) -> None:
        out.deliveries += messages
        self.counters.delivered += len(messages)
        if self._waiting.late:
            self._give_up_late(self._waiting.late, out)
        if self.durable:
            out.saves += [("delivered", *message.id) for message in messages]
