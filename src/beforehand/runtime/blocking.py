"""`beforehand.BlockingGroup`: a group for scripts without an event loop.

with beforehand.BlockingGroup("harbour", name="ann", store="ann.db", key="harbour.key",
                              lifetime="20m") as group:
    group.broadcast(b"fog at pier 4")
    for message in group.messages(timeout=60):
        ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import MessageId, MessageStatus
from beforehand.runtime.config import GroupOptions, Lifetime
from beforehand.runtime.group import Group
from beforehand.runtime.member import Pending
from beforehand.runtime.mesh_member import MemberCounters
from beforehand.runtime.queues.inbox import GroupMessage
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.disconnects import Disconnect
from beforehand.runtime.transport.peer_info import PeerInfo
from beforehand.runtime.transport.rotation import SecretInfo

T = TypeVar("T")


class BlockingGroup:
    """A `Group` with blocking methods. Its event loop runs in a thread of its own.

    Use it as a context manager. Any number of threads may call it. All methods and properties raise
    `LocalError` unless it is open, and the group's failure if it has failed. A process that is
    forked while the group is open cannot use it, and does not disturb it.
    """

    def __init__(self, group: str, **options: Unpack[GroupOptions]) -> None:
        """Check the options without opening anything; raise `InputError` if one is not valid.

        - `group`: the name of the group, as in its key file.
        - `options`: see `GroupOptions` and `MemberOptions`.
        """
        self._group = Group(group, **options)
        self._thread: threading.Thread | None = None
        self._gate = threading.Lock()
        """Held while work is handed to the event loop. None is handed over after the end."""
        self._is_over = False

    def __enter__(self) -> Self:
        """Open the group.

        Raise `InputError` if key, store or address cannot be used, and `LocalError` if it was
        opened before.
        """
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
        """Close the group; raise its failure, unless another error is being raised."""
        if not self._is_running():
            # In a forked process: the group belongs to the parent.
            return
        try:
            self._wait_for(self._group.__aexit__(kind, error, trace))
        finally:
            self._end()

    def broadcast(self, payload: bytes, *, lifetime: Lifetime | None = None) -> MessageId:
        """Broadcast a payload, and return the message's id once it is durable.

        See `Group.broadcast` for the guarantees and the errors.
        """
        return self._wait_for(self._group.broadcast(payload, lifetime=lifetime))

    def receive(self, timeout: float | None = None) -> GroupMessage | None:
        """Return the next message of another member.

        Return None if none arrives within `timeout` seconds. Without a timeout, wait until a
        message arrives or the group is closed.
        """
        return self._wait_for(self._receive(timeout))

    def messages(self, timeout: float | None = None) -> Iterator[GroupMessage]:
        """Yield messages of other members until none arrives for `timeout` seconds.

        Without a timeout, continue until the group is closed.
        """
        while (message := self.receive(timeout)) is not None:
            yield message

    def acknowledge(self, messages: Iterable[MessageId]) -> None:
        """Acknowledge messages, and return once that is durable; they are not handed over again."""
        self._wait_for(self._group.acknowledge(messages))

    def explain(self, message: MessageId) -> MessageStatus:
        """Return the status of a message at this member, and which causes it waits for."""
        return self._ask(lambda: self._group.explain(message))

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The messages that were received and wait for delivery, the longest waiting first."""
        return self._ask(lambda: self._group.pending)

    @property
    def peers(self) -> list[PeerInfo]:
        """The links that are up."""
        return self._ask(lambda: self._group.peers)

    @property
    def addresses(self) -> list[Address]:
        """The addresses on which this member listens."""
        return self._ask(lambda: self._group.addresses)

    @property
    def key(self) -> str:
        """This member's public key, in hexadecimal."""
        return self._ask(lambda: self._group.key)

    def key_of(self, name: str) -> str | None:
        """Return the public key that a name is bound to, in hexadecimal; None for a new name."""
        return self._ask(lambda: self._group.key_of(name))

    @property
    def blocked(self) -> list[str]:
        """The public keys of which this member accepts nothing, in hexadecimal, sorted."""
        return self._ask(lambda: self._group.blocked)

    def block(self, key: str) -> None:
        """Accept no link and no message of a public key any more; see `Group.block`."""
        self._wait_for(self._group.block(key))

    def unblock(self, key: str) -> None:
        """Accept links and messages of a public key again; return once that is durable."""
        self._wait_for(self._group.unblock(key))

    @property
    def secrets(self) -> tuple[SecretInfo, ...]:
        """The group's secrets that this member knows, the newest first, and when they end."""
        return self._ask(lambda: self._group.secrets)

    @property
    def held(self) -> int:
        """The number of messages that this member stores for others."""
        return self._ask(lambda: self._group.held)

    @property
    def disconnects(self) -> list[Disconnect]:
        """The most recent connections that were refused or broke, newest last, with the reason."""
        return self._ask(lambda: self._group.disconnects)

    @property
    def clock_behind_us(self) -> int:
        """By how many microseconds the clock is behind the latest time that it has shown."""
        return self._ask(lambda: self._group.clock_behind_us)

    @property
    def counters(self) -> MemberCounters:
        """Counters since the start; also available after the end."""
        return self._group.counters if self._is_over else self._ask(lambda: self._group.counters)

    async def _receive(self, timeout: float | None) -> GroupMessage | None:
        try:
            async with asyncio.timeout(timeout):
                return (await anext(self._group)).acked_in(self._ask)
        except (TimeoutError, StopAsyncIteration):
            return None

    def _ask(self, question: Callable[[], T]) -> T:
        """Return the result of `question`, which is called on the event loop's thread."""

        async def answer() -> T:
            return question()

        return self._wait_for(answer())

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop, and return its result."""
        with self._gate:
            if not self._is_running():
                work.close()
                raise LocalError("the group is not open", hint="use it inside of `with`")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Interrupted, for instance by Ctrl-C: no caller waits for the result any more.
            future.cancel()
            raise

    async def _let_go(self) -> None:
        """Cancel the calls of other threads, which then raise `CancelledError`."""
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _is_running(self) -> bool:
        """Return whether the event loop runs. In a forked process it does not: threads are not
        copied."""
        return self._thread is not None and self._thread.is_alive() and not self._is_over

    def _end(self) -> None:
        """Stop the event loop and its thread."""
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
