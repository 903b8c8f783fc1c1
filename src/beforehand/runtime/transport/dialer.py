"""Who keeps trying: one task for each address that is known."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.link import Link

LOOK_AGAIN = 10
"""Times the longest backoff: who was at an address may be linked from elsewhere by now, and
somebody else be there."""


class Dialer:
    """Dials what it knows, again and again, as long as nobody from there is linked."""

    def __init__(
        self,
        own_name: str,
        limits: Limits,
        connect: Callable[[Address], Awaitable[Link | None]],
        links: Mapping[str, Link],
    ) -> None:
        """connect: gives a connection that has begun, or None. links: those that are up."""
        self._own_name, self._limits = own_name, limits
        self._connect, self._links = connect, links
        self._tasks: dict[Address, asyncio.Task[None]] = {}

    def add(self, address: Address) -> None:
        """Begin to dial it; beyond `connections_max` addresses it is left out."""
        if address not in self._tasks and len(self._tasks) < self._limits.connections_max:
            self._tasks[address] = asyncio.create_task(self._keep_dialing(address))

    def remove(self, address: Address) -> None:
        """Dial it no more; a link to it stays as long as it lasts."""
        if task := self._tasks.pop(address, None):
            task.cancel()

    async def close(self) -> None:
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
                    return  # its place stays taken, so that it is not found again
                # Of two, one takes it for up before the other has had a look at its name.
                if (link.was_up and not link.was_turned_away) or name in self._links:
                    wait = shortest
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, longest)
