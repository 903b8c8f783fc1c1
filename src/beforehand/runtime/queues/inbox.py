"""Delivered messages on their way to the application: in order, each to one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from beforehand.protocols.contract.base import Message, MessageId

UNREAD_MAX = 1024
"""Messages that the application has not read, or with `inbox=True` not acknowledged. At this number
the node requests no more messages from its peers until half of them are done. Messages that it
requested before still arrive."""


class GroupMessage:
    """A message of another member, delivered in causal order."""

    __slots__ = ("_acknowledge", "at_us", "id", "payload", "sent_us")

    def __init__(
        self, message: Message, at_us: int, acknowledge: Callable[[MessageId], None]
    ) -> None:
        self.id: MessageId = message.id
        """(origin, sequence number); `explain` takes it."""
        self.payload: bytes = message.payload
        """The bytes that the origin broadcast."""
        self.at_us = at_us
        """Delivery time in microseconds, on this node's clock."""
        self.sent_us: int | None = message.stamp or None
        """Send time in microseconds: the latest time that the origin's clock had shown. The origin
        signs it. None where messages have no stamp (`Overlay`, `Host`)."""
        self._acknowledge = acknowledge

    @property
    def origin(self) -> str:
        """The name of the member that broadcast the message."""
        return str(self.id[0])

    @property
    def at(self) -> datetime:
        """Delivery time in UTC, on this node's clock."""
        return datetime.fromtimestamp(self.at_us / 1e6, UTC)

    @property
    def sent_at(self) -> datetime | None:
        """Send time in UTC, on the origin's clock; None where messages have no stamp."""
        return None if self.sent_us is None else datetime.fromtimestamp(self.sent_us / 1e6, UTC)

    def ack(self) -> None:
        """Tell the group that the application has processed this message.

        The acknowledgement is saved with the next transaction, and this call does not wait for it.
        If the process crashes before, the message is handed over again after the restart
        (at-least-once). Without `inbox=True` the call has no effect.
        """
        self._acknowledge(self.id)

    def acked_in(self, carry_out: Callable[[Callable[[], None]], None]) -> GroupMessage:
        """Let another thread call `ack`: `carry_out` runs it on the event loop's thread."""
        acknowledge = self._acknowledge
        self._acknowledge = lambda id: carry_out(lambda: acknowledge(id))
        return self

    def __repr__(self) -> str:
        return f"GroupMessage(id={self.id!r}, payload={self.payload[:60]!r})"


class Inbox:
    """The queue of delivered messages, for one or more readers."""

    def __init__(self, *, inbox: bool, on_open: Callable[[bool], None]) -> None:
        """inbox: whether messages count as unread until they are acknowledged.
        on_open: called with False when the queue is full, and with True when it has room again."""
        self._inbox = inbox
        self._on_open = on_open
        self._queue: deque[tuple[Message, int]] = deque()
        self._unacknowledged: set[MessageId] = set()
        self._is_open = True
        self._is_over = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    def put(self, messages: Sequence[Message], at_us: int) -> None:
        """Append delivered messages."""
        self._queue.extend((message, at_us) for message in messages)
        if self._inbox:
            self._unacknowledged.update(message.id for message in messages)
        self._changed.set()
        self._open_or_not()

    async def next(self) -> tuple[Message, int] | None:
        """Return the next message and its delivery time; None after `end`.

        A reader that is cancelled while waiting has taken no message. After `fail`, raise the error
        once the queue is empty.
        """
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return None
            self._changed.clear()
            await self._changed.wait()
        item = self._queue.popleft()
        self._open_or_not()
        return item

    def acknowledge(self, ids: Iterable[MessageId]) -> list[MessageId]:
        """Return those of the ids that were not acknowledged yet, and mark them as acknowledged."""
        known = [id for id in dict.fromkeys(ids) if id in self._unacknowledged]
        self._unacknowledged.difference_update(known)
        self._open_or_not()
        return known

    def end(self) -> list[Message]:
        """Close the queue, and return the messages that were not read."""
        left = [message for message, _ in self._queue]
        self._queue.clear()
        self._is_over = True
        self._changed.set()
        return left

    def fail(self, error: Exception) -> None:
        """Accept no more messages. Readers get those in the queue, and then the error."""
        self._error = error
        self._changed.set()

    def count(self) -> int:
        """Return how many messages are unread, or with `inbox=True` not acknowledged."""
        return len(self._unacknowledged) if self._inbox else len(self._queue)

    def _open_or_not(self) -> None:
        """Call `on_open` if the queue has become full, or has drained to half of its limit."""
        count = self.count()
        if self._is_open and count >= UNREAD_MAX:
            self._is_open = False
            self._on_open(False)
        elif not self._is_open and count <= UNREAD_MAX // 2:
            self._is_open = True
            self._on_open(True)
