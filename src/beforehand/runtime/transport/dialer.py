"""Dialing: one task per known address, with exponential backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.link import Link
from beforehand.runtime.transport.limits import Limits

LOOK_AGAIN = 10
"""Multiples of the longest backoff after which an address is dialed again although its last peer is
linked. That peer may have moved, and another member may listen there now."""


class Dialer:
    """Dials every known address until the node there is linked, and again when that link ends."""

    def __init__(
        self,
        own_name: str,
        limits: Limits,
        connect: Callable[[Address], Awaitable[Link | None]],
        links: Mapping[str, Link],
    ) -> None:
        """connect: returns a connection whose handshake has begun, or None on failure.
        links: the links that are up, by peer name."""
        self._own_name, self._limits = own_name, limits
        self._connect, self._links = connect, links
        self._tasks: dict[Address, asyncio.Task[None]] = {}

    def add(self, address: Address) -> None:
        """Start to dial an address; ignore it beyond `connections_max` addresses."""
        if address not in self._tasks and len(self._tasks) < self._limits.connections_max:
            self._tasks[address] = asyncio.create_task(self._keep_dialing(address))

    def remove(self, address: Address) -> None:
        """Stop dialing an address; a link to it stays up."""
        if task := self._tasks.pop(address, None):
            task.cancel()

    async def close(self) -> None:
        """Cancel all dialing tasks."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_dialing(self, address: Address) -> None:
        shortest, longest = self._limits.backoff_min_seconds, self._limits.backoff_max_seconds
        name, wait = "", shortest
        while True:
            if there := self._links.get(name):
                await asyncio.wait([there.ended], timeout=LOOK_AGAIN * longest)
            link = await self._connect(address)
            if link:
                await asyncio.wait([link.ended])
                name = link.name
                if name == self._own_name:
                    return  # keep the entry, so that discovery does not add the address again
                # One end brings the link up before the other has checked its name. So a link that
                # was up resets the backoff only if the peer did not turn it away afterwards.
                if (link.was_up and not link.was_turned_away) or name in self._links:
                    wait = shortest
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, longest)
