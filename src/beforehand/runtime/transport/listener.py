"""The TCP servers of a node, one per listening address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from beforehand.errors import InputError
from beforehand.runtime.transport.address import Address

ACCEPT_TURNS = 4
"""Event-loop iterations from asyncio's accept until the protocol has refused the connection."""


class Listener:
    """Creates a protocol object for each accepted connection."""

    def __init__(self, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._make = make
        self._servers: list[asyncio.Server] = []

    async def start(self, addresses: Sequence[Address]) -> None:
        """Listen on all addresses; raise `InputError` if one cannot be used."""
        for address in addresses:
            if address.host:
                self._servers.append(await self._serve(address))
                continue
            first = await self._serve(Address("0.0.0.0", address.port))
            self._servers.append(first)
            with suppress(InputError):  # the machine may have no IPv6
                port = first.sockets[0].getsockname()[1]
                self._servers.append(await self._serve(Address("::", port)))

    def addresses(self) -> list[Address]:
        """Return the addresses in use, with the actual ports."""
        names = [s.getsockname() for server in self._servers for s in server.sockets]
        return [Address(name[0], name[1]) for name in names]

    async def close(self) -> None:
        """Stop accepting connections.

        A server that is closed while asyncio accepts a connection leaks that connection. So first
        stop accepting, then wait until the pending ones have their protocol, and only then close.
        """
        loop = asyncio.get_running_loop()
        for server in self._servers:
            for listening in server.sockets:
                with suppress(NotImplementedError):  # on Windows: the connection may leak there
                    loop.remove_reader(listening.fileno())
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()

    async def closed(self) -> None:
        """Wait until all servers are closed."""
        for server in self._servers:
            await server.wait_closed()

    async def _serve(self, address: Address) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        try:
            return await loop.create_server(self._make, address.host, address.port)
        except (OSError, UnicodeError) as error:
            hint = "another program may use the port: choose another one, or 0 for any free port"
            problem = f"cannot listen: {error}"
            raise InputError(problem, where=str(address), hint=hint) from error
