"""Meshes on loopback for tests: they record what they are told, and are closed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from beforehand.runtime.crypto.handshake import HELLO_BYTES
from beforehand.runtime.crypto.keys import GroupKey, MemberKey, new_group, new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import Mesh
from tests.waiting import SECONDS_MAX

LOCAL = Address("127.0.0.1", 0)
PATIENCE = SECONDS_MAX
"""Until something that must happen counts as missing; no test waits for so long and passes."""
KEY = new_group("harbour")
QUICK = Limits(backoff_min_seconds=0.02, backoff_max_seconds=0.1)


def run(test: Coroutine[Any, Any, None], *, seconds: float = 4 * SECONDS_MAX) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await test

    asyncio.run(bounded())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


class Recorder:
    """A mesh, and everything that it said in order."""

    def __init__(
        self,
        name: str,
        *peers: Address,
        key: GroupKey = KEY,
        member: MemberKey | None = None,
        limits: Limits = QUICK,
        listen: Address = LOCAL,
        **options: Any,
    ) -> None:
        self.name, self.member = name, member or new_member()
        self.events: list[tuple[str, object]] = []
        self.frames: list[tuple[str, bytes]] = []
        self.rooms: list[str] = []
        self.bound: dict[str, bytes] = {}
        self.trust = Trust(name, self.member, {}, self.bound.__setitem__)
        self.on_frame: Callable[[str, bytes], None] = lambda *_: None
        self.mesh = Mesh(
            name,
            self.member,
            key,
            self.trust,
            listen=[listen],
            peers=peers,
            limits=limits,
            on_link=lambda peer, is_up: self.events.append((peer, is_up)),
            on_frame=self._on_frame,
            on_room=self.rooms.append,
            **{"discover": False, **options},
        )

    def _on_frame(self, peer: str, frame: bytes) -> None:
        self.frames.append((peer, frame))
        self.on_frame(peer, frame)

    @property
    def address(self) -> Address:
        return self.mesh.addresses()[0]

    @property
    def counters(self) -> Any:
        return self.mesh.counters

    def linked(self) -> set[str]:
        return {peer.name for peer in self.mesh.peers()}

    def check_events(self) -> None:
        """Up and down take turns for each name, beginning with up."""
        for name in {peer for peer, _ in self.events}:
            turns = [is_up for peer, is_up in self.events if peer == name]
            assert turns == [index % 2 == 0 for index in range(len(turns))], (name, turns)


@asynccontextmanager
async def started(*recorders: Recorder) -> AsyncIterator[None]:
    try:
        for recorder in recorders:
            await recorder.mesh.start()
        yield
    finally:
        for recorder in recorders:
            await recorder.mesh.close()
    for recorder in recorders:
        recorder.check_events()
        assert recorder.linked() == set()


@asynccontextmanager
async def listening(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Address]:
    """A server of our own, with streams; what `handle` leaves open is closed."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield Address(host, port)
    finally:
        server.close()
        await asyncio.sleep(0.02)  # whom it let in last has a task that has not begun
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
        await server.wait_closed()


Change = Callable[[bool, int, bytes], list[bytes] | None]
"""(is it the dialer's, its number in that direction, the bytes): what to pass on instead; None
ends the connection. Number 0 is the hello, the others are records with their lengths."""


class Proxy:
    """An attacker on the path without a key: it forwards what it chooses, and records all."""

    def __init__(self, target: Address, change: Change) -> None:
        self.target, self.change = target, change
        self.is_deaf = False
        """From now on everything vanishes, in both directions, and no connection ends."""
        self.connections: list[dict[bool, bytes]] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.target.host, self.target.port)
        seen = {True: b"", False: b""}
        self.connections.append(seen)
        ways = [self._pass_on(reader, back, True, seen), self._pass_on(there, writer, False, seen)]
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.is_deaf:
                await asyncio.Event().wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            back.close()
            writer.close()
            try:
                await asyncio.sleep(0.01)  # what was written leaves before all is torn down
            finally:
                back.transport.abort()  # also if it is cancelled meanwhile

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_dialers: bool,
        seen: dict[bool, bytes],
    ) -> None:
        for number in range(10**9):
            if number == 0:
                unit = await reader.readexactly(HELLO_BYTES)
            else:
                length = await reader.readexactly(4)
                unit = length + await reader.readexactly(int.from_bytes(length, "little"))
            seen[is_dialers] += unit
            if self.is_deaf:
                continue
            changed = self.change(is_dialers, number, unit)
            if changed is None:
                return
            writer.write(b"".join(changed))


@asynccontextmanager
async def in_the_middle(
    target: Address, change: Change = lambda *seen: [seen[2]]
) -> AsyncIterator[tuple[Proxy, Address]]:
    proxy = Proxy(target, change)
    async with listening(proxy.handle) as address:
        yield proxy, address
