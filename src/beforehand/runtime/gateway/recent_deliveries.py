"""The messages that a gateway has delivered or broadcast, for clients that missed some."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from beforehand.protocols.contract.base import MessageId

KEPT_MAX = 1000
KEPT_BYTES_MAX = 16 << 20


class Entry(msgspec.Struct, frozen=True):
    """One delivered message, in the form in which clients get it."""

    number: int
    """The place in the order of delivery at this gateway, from 1."""
    origin: str
    seq: int
    at_us: int
    payload: bytes
    """In JSON: base64."""
    text: str | None
    """The payload as text, if it is UTF-8."""


class RecentDeliveries:
    """The most recent deliveries, in their order."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._last = 0
        self._changed = asyncio.Event()
        self._listeners: set[Callable[[Entry], None]] = set()

    @property
    def last(self) -> int:
        """The number of the latest delivery."""
        return self._last

    @property
    def first(self) -> int:
        """The number of the oldest delivery that is kept; `last` + 1 if there is none."""
        return self._entries[0].number if self._entries else self._last + 1

    def add(self, id_: MessageId, payload: bytes, at_us: int) -> None:
        """Keep a message that was delivered or broadcast, and hand it to the listeners."""
        self._last += 1
        origin, seq = id_
        entry = Entry(
            number=self._last,
            origin=str(origin),
            seq=seq,
            at_us=at_us,
            payload=payload,
            text=_text(payload),
        )
        self._entries.append(entry)
        self._bytes += len(entry.payload)
        while len(self._entries) > KEPT_MAX or self._bytes > KEPT_BYTES_MAX:
            self._bytes -= len(self._entries.popleft().payload)
        for listener in list(self._listeners):
            listener(entry)
        self._changed.set()
        self._changed = asyncio.Event()

    def after(self, number: int) -> list[Entry]:
        """Return the kept deliveries after this number."""
        return [entry for entry in self._entries if entry.number > number]

    async def wait_after(self, number: int, seconds: float) -> list[Entry]:
        """Return the deliveries after this number; wait for one if there is none."""
        if number >= self._last and seconds > 0:
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), seconds)
            except TimeoutError:
                return []
        return self.after(number)

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Call `listener` for each delivery from now on; return the function that ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)


def _text(payload: bytes) -> str | None:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None
