"""`beforehand.BlockingGroup`: a group for scripts, which have no event loop of their own.

with beforehand.BlockingGroup("harbour", name="ann", store="ann.db", key="harbour.key",
                              lifetime="20m") as group:
    group.broadcast(b"fog at pier 4")
    for message in group.messages(timeout=60):
        ...
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Required, Self, TypedDict, TypeVar, Unpack

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import MessageId, MessageStatus
from beforehand.runtime.group import Group
from beforehand.runtime.member import MakeRecorder, Pending
from beforehand.runtime.mesh_member import MemberCounters
from beforehand.runtime.queues.inbox import GroupMessage
from beforehand.runtime.storage.store import Durability
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.disconnects import Disconnect
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import PeerInfo

T = TypeVar("T")


class Options(TypedDict, total=False):
    """Those of `Group`."""

    name: Required[str]
    store: Required[str | os.PathLike[str]]
    key: Required[str | os.PathLike[str]]
    lifetime: Required[str]
    listen: str | Sequence[str]
    peers: str | Sequence[str]
    discover: bool
    durable: Durability
    inbox: bool
    capacity: int
    capacity_bytes: int
    limits: Limits | None
    clock_us: Callable[[], int] | None
    log: str | os.PathLike[str] | None
    make_recorder: MakeRecorder | None


class BlockingGroup:
    """A `Group` in a thread of its own. Any number of threads may use it."""

    def __init__(self, group: str, **options: Unpack[Options]) -> None:
        """The same options as `Group`."""
        self._group = Group(group, **options)
        self._thread: threading.Thread | None = None
        self._gate = threading.Lock()
        """Held while something is handed to the loop: nothing is once it is over."""
        self._is_over = False

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise LocalError("the group was opened before", hint="make another one")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"beforehand-{self._group.group}", daemon=True
        )
        self._thread.start()
        try:
            self._wait_for(self._group.open())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_running():
            return  # a process that was forked leaves the block: the group is not its own
        try:
            self._wait_for(self._group.__aexit__(kind, error, trace))
        finally:
            self._end()

    def broadcast(self, payload: bytes, *, lifetime: str | None = None) -> MessageId:
        """The id, when the message is on the disk."""
        return self._wait_for(self._group.broadcast(payload, lifetime=lifetime))

    def receive(self, timeout: float | None = None) -> GroupMessage | None:
        """The next message of others; None if there is none within so many seconds."""
        return self._wait_for(self._receive(timeout))

    def messages(self, timeout: float | None = None) -> Iterator[GroupMessage]:
        """Messages of others, until none comes for so many seconds. None: for ever."""
        while (message := self.receive(timeout)) is not None:
            yield message

    def acknowledge(self, messages: Iterable[MessageId]) -> None:
        """These need not come again, and that is on the disk when it returns."""
        self._wait_for(self._group.acknowledge(messages))

    def explain(self, message: MessageId) -> MessageStatus:
        """What became of a message here, and what it waits for."""
        return self._ask(lambda: self._group.explain(message))

    @property
    def pending(self) -> tuple[Pending, ...]:
        return self._ask(lambda: self._group.pending)

    @property
    def peers(self) -> list[PeerInfo]:
        return self._ask(lambda: self._group.peers)

    @property
    def addresses(self) -> list[Address]:
        """Where this member listens."""
        return self._ask(lambda: self._group.addresses)

    @property
    def held(self) -> int:
        """How many messages it holds for others."""
        return self._ask(lambda: self._group.held)

    @property
    def endings(self) -> list[Disconnect]:
        """The last connections that were refused or broke, newest last: why somebody is away."""
        return self._ask(lambda: self._group.endings)

    @property
    def clock_behind_us(self) -> int:
        """By how much the clock is behind what it was before."""
        return self._ask(lambda: self._group.clock_behind_us)

    @property
    def counters(self) -> MemberCounters:
        return self._group.counters if self._is_over else self._ask(lambda: self._group.counters)

    async def _receive(self, timeout: float | None) -> GroupMessage | None:
        try:
            async with asyncio.timeout(timeout):
                return (await anext(self._group)).acked_in(self._ask)
        except (TimeoutError, StopAsyncIteration):
            return None

    def _ask(self, question: Callable[[], T]) -> T:
        async def answer() -> T:
            return question()

        return self._wait_for(answer())

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        with self._gate:
            if not self._is_running():
                work.close()
                raise LocalError("the group is not open", hint="use it inside of `with`")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C came while waiting: nobody waits for the answer any more
            raise

    async def _let_go(self) -> None:
        """Whoever still waits in another thread is told, and waits no more."""
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _is_running(self) -> bool:
        """Not in a process that was forked: threads stay behind."""
        return self._thread is not None and self._thread.is_alive() and not self._is_over

    def _end(self) -> None:
        with self._gate:
            if not self._is_running():
                return
            self._is_over = True
            letting_go = asyncio.run_coroutine_threadsafe(self._let_go(), self._loop)
        letting_go.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None, "can't happen: it is running"
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
