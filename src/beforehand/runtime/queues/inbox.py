"""What a program reads from its group: messages, one by one, each once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from beforehand.protocols.contract.base import Message, MessageId

UNREAD_MAX = 1024
"""Messages that a program has not read, or, with an inbox, not acknowledged. From here on nothing
more is asked of the neighbours until half of them are done; what was asked for still comes."""


class GroupMessage:
    """A message of somebody else, when its turn has come."""

    __slots__ = ("_acknowledge", "at_us", "id", "payload")

    def __init__(
        self, message: Message, at_us: int, acknowledge: Callable[[MessageId], None]
    ) -> None:
        self.id: MessageId = message.id
        """(origin, seq); what `explain` asks for."""
        self.payload: bytes = message.payload
        self.at_us = at_us
        """When it was delivered here, on this node's clock."""
        self._acknowledge = acknowledge

    @property
    def origin(self) -> str:
        """Who said it."""
        return str(self.id[0])

    @property
    def at(self) -> datetime:
        """When it was delivered here."""
        return datetime.fromtimestamp(self.at_us / 1e6, UTC)

    def ack(self) -> None:
        """The program is done with it. It is written down with what is saved next: if the process
        dies before that, the message comes again. Without an inbox it means nothing."""
        self._acknowledge(self.id)

    def acked_in(self, carry_out: Callable[[Callable[[], None]], None]) -> GroupMessage:
        """The same for another thread: its `ack` is carried out where the group lives."""
        acknowledge = self._acknowledge
        self._acknowledge = lambda id: carry_out(lambda: acknowledge(id))
        return self

    def __repr__(self) -> str:
        return f"GroupMessage(id={self.id!r}, payload={self.payload[:60]!r})"


class Inbox:
    """Delivered messages in their order, towards one or more readers."""

    def __init__(self, *, inbox: bool, on_open: Callable[[bool], None]) -> None:
        """on_open: whether more should come, told when that changes."""
        self._inbox = inbox
        self._on_open = on_open
        self._queue: deque[tuple[Message, int]] = deque()
        self._unacknowledged: set[MessageId] = set()
        self._is_open = True
        self._is_over = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    def put(self, messages: Sequence[Message], at_us: int) -> None:
        self._queue.extend((message, at_us) for message in messages)
        if self._inbox:
            self._unacknowledged.update(message.id for message in messages)
        self._changed.set()
        self._open_or_not()

    async def next(self) -> tuple[Message, int] | None:
        """None at the end. Who is cancelled while waiting has taken nothing."""
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
        """Those of them that had not been acknowledged."""
        known = [id for id in dict.fromkeys(ids) if id in self._unacknowledged]
        self._unacknowledged.difference_update(known)
        self._open_or_not()
        return known

    def end(self) -> list[Message]:
        """Nothing more comes, and nothing more is read: what was left."""
        left = [message for message, _ in self._queue]
        self._queue.clear()
        self._is_over = True
        self._changed.set()
        return left

    def fail(self, error: Exception) -> None:
        """Nothing more comes. What is here can still be read; after it, the error is raised."""
        self._error = error
        self._changed.set()

    def count(self) -> int:
        """How many the program is not done with."""
        return len(self._unacknowledged) if self._inbox else len(self._queue)

    def _open_or_not(self) -> None:
        count = self.count()
        if self._is_open and count >= UNREAD_MAX:
            self._is_open = False
            self._on_open(False)
        elif not self._is_open and count <= UNREAD_MAX // 2:
            self._is_open = True
            self._on_open(True)
