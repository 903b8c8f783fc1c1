"""No order: a node delivers messages as it receives them. The baseline for causality's cost."""

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
    OWN,
    PURGE_AT_MIN,
    Lifetimes,
    Order,
)


class Unordered(Order):
    """Delivers each message once, in the order of arrival."""

    tables = (OWN, Table("delivered", MessageId, bool))

    def __init__(self, node: NodeId, lifetimes: Lifetimes | None = None) -> None:
        super().__init__(node, lifetimes)
        self._delivered: dict[MessageId, None] = {}
        self._purge_at = PURGE_AT_MIN

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Any]
    ) -> list[Message]:
        lifetimes_us, seq = self._chosen_us(broadcasts), self._last_seq
        if self.expires:
            self._expire(now_us, out)
        messages = []
        for (payload, _), lifetime_us in zip(broadcasts, lifetimes_us, strict=True):
            seq = max(self._horizon_us + lifetime_us, seq + 1) if self.expires else seq + 1
            messages.append(Message((self.node, seq), (), payload, stamp=self._stamp(seq)))
        messages = self._proven(messages)
        self._last_seq = seq
        if self.durable:
            out.saves.append(("own", "seq", seq))
        for message in messages:
            self._deliver(message, out)
        return messages

    def on_receive(self, now_us: int, messages: Sequence[Message], out: Outbox[Any]) -> None:
        if self.expires:
            self._expire(now_us, out)
        for message in messages:
            if message.seq <= self._horizon_us:
                self.counters.stale += 1
            elif message.id in self._delivered:
                self.counters.duplicate += 1
            else:
                self._deliver(message, out)

    def on_evict(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
        """Do nothing: no message is pending."""

    def on_timer(self, now_us: int, out: Outbox[Any]) -> None:
        """Do nothing: this order sets no timer."""

    def has_delivered(self, message: MessageId) -> bool:
        return message in self._delivered

    def restore(self, rows: Rows) -> None:
        last_seq = self._restore_own(rows)
        self._last_seq = self._last_seq if last_seq is None else last_seq
        self._delivered = dict.fromkeys(rows.get("delivered", {}))

    def explain(self, message: MessageId) -> MessageStatus:
        if message in self._delivered:
            return MessageStatus("delivered")
        return MessageStatus("expired" if message[1] <= self._horizon_us else "unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {"delivered": len(self._delivered)}

    def _deliver(self, message: Message, out: Outbox[Any]) -> None:
        self._delivered[message.id] = None
        out.deliveries.append(message)
        self.counters.delivered += 1
        if self.durable:
            out.saves.append(("delivered", message.id, True))
            self._save_horizon(out)

    def _expire(self, now_us: int, out: Outbox[Any]) -> None:
        self._horizon_us = max(self._horizon_us, now_us)
        if len(self._delivered) >= self._purge_at:
            self._purge(out)

    def _purge(self, out: Outbox[Any]) -> None:
        for id in [id for id in self._delivered if id[1] <= self._horizon_us]:
            del self._delivered[id]
            if self.durable:
                out.saves.append(("delivered", id, None))
        self._save_horizon(out)
        self._purge_at = max(PURGE_AT_MIN, 2 * len(self._delivered))
