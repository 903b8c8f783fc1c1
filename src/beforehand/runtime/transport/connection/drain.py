"""Reading the socket of a stranger, without an answer, until a random time is over."""

from __future__ import annotations

import asyncio
import random

SINK_BYTES = 8 << 10
DRAIN_SECONDS = (1.0, 5.0)
"""Bounds of the random time after which the socket is closed."""
DRAIN_BYTES_MAX = 1 << 20
"""Bytes that are read until then; for more it is closed at once."""
sink = memoryview(bytearray(SINK_BYTES))
"""Where the bytes of connections that have ended are read to."""


class Drain:
    """The end of one connection whose hello did not open: nothing on the network shows it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._bytes = transport, 0
        self._timer = loop.call_later(random.uniform(*DRAIN_SECONDS), transport.abort)

    def read(self, count: int) -> None:
        """Count bytes that were read."""
        self._bytes += count
        if self._bytes > DRAIN_BYTES_MAX:
            self.stop()

    def stop(self) -> None:
        """Close the socket at once."""
        self._timer.cancel()
        self._transport.abort()
