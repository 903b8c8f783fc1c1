"""One member on any network: the life cycle of a node, and its interface to the application.

A subclass chooses the core, the codec and the network (`_join`). This module has the rest: opening
the store, reading and acknowledging messages, failing and closing.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import (
    Broadcaster,
    FrameT,
    Message,
    MessageId,
    MessageStatus,
)
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.tables import RowStore, Table
from beforehand.runtime.config import MemberConfig
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.node import Links, Node, Recorder
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.inbox import GroupMessage, Inbox
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore

STARTS = Table("starts", str, int)
"""How often the node was started with this store."""


class Network(Links, Protocol):
    """Links that can be opened and closed."""

    async def start(self) -> None: ...
    async def close(self) -> None: ...


NetworkT = TypeVar("NetworkT", bound=Network)


@dataclass(frozen=True)
class Parts(Generic[FrameT, NetworkT]):
    """The parts of an open member."""

    group_commit: GroupCommit
    node: Node[FrameT]
    network: NetworkT
    reading: Inbox
    recorder: Recorder | None


class Pending(msgspec.Struct, frozen=True):
    """A message that was received and cannot be delivered yet."""

    id: MessageId
    missing: tuple[MessageId, ...]
    """The causes that it waits for."""
    since_us: int
    """Time of receipt in microseconds, on this node's clock."""


class Member(ABC, Generic[FrameT, NetworkT]):
    """A member that broadcasts messages and receives those of others."""

    payload_bytes_max = 64 << 10
    """Upper limit of a payload in bytes."""
    node_type: type[Node[Any]] = Node
    batched: Table | None = None
    """The table whose rows the store writes in batches (`DiskStore`)."""

    def __init__(self, config: MemberConfig) -> None:
        self.group, self.name = config.group, config.name
        self._config = config
        self._clock_us = config.clock_us
        self._error: Exception | None = None
        self._state = "new"
        self._parts: Parts[FrameT, NetworkT] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._opening = asyncio.Event()
        """Set when opening has finished, successfully or not."""

    # ---- life cycle -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the member; see `open`."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the member; raise its failure, unless another error is being raised."""
        await self.close()
        if self._error is not None and error is None:
            raise self._error  # the application may not have noticed the failure

    async def open(self) -> None:
        """Restore the state from the store, and connect to the network.

        Raise `InputError` if the key, the store or an address cannot be used. Raise `LocalError` if
        it was opened before, or is closed meanwhile.
        """
        if self._state != "new":
            raise LocalError(f"it is {self._state} already", hint="make another one")
        self._state = "opening"
        try:
            await self._open()
        except BaseException:
            self._opening.set()
            await self.close()
            raise
        self._opening.set()
        if self._closing is not None:
            await asyncio.shield(self._closing)
            hint = "wait for the end of `open`, and close it then"
            raise LocalError("it was closed while it was opening", hint=hint)
        self._state = "open"

    async def _open(self) -> None:
        config = self._config
        key = config.read_key()
        disk = await asyncio.to_thread(
            DiskStore,
            config.store,
            group=self.group,
            name=self.name,
            durable=config.durable,
            batched=self.batched,
        )
        group_commit = GroupCommit(disk, durable=config.durable, on_failure=self._fail)
        try:
            parts = self._parts = self._join(key, disk, group_commit)
            parts.node.start(parts.network, is_new=disk.is_new)
            self._on_started(parts)
            await parts.network.start()
        except BaseException:
            if self._parts is None:
                await group_commit.close()
            raise

    async def close(self) -> None:
        """Disconnect from the network and close the store.

        Iteration ends. Messages that were not read are handed over after the next start.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._state == "opening":  # a member must be completely open before it is closed
            await self._opening.wait()
        self._state = "closed"
        parts = self._parts
        if parts is None:
            return
        parts.node.stop()
        try:
            await parts.network.close()
            if self._error is None:
                await parts.group_commit.settled()
                left = parts.reading.end()
                if not self._config.inbox:
                    parts.node.keep_unread(left)
                if parts.recorder is not None:
                    parts.recorder.close()
        finally:
            await parts.group_commit.close()

    @abstractmethod
    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[FrameT, NetworkT]:
        """Return all parts, none of them started."""

    def _on_started(self, parts: Parts[FrameT, NetworkT]) -> None:
        """Give the core its inputs that must precede the first link."""

    def _record(self, disk: DiskStore, group_commit: GroupCommit) -> Recorder | None:
        """Count this start, and return the recorder of events, if there is one.

        The count is saved with the first writes of this incarnation. So a start that was killed
        before it did anything does not count.
        """
        starts = 1 + disk.load((STARTS,))[STARTS.name].get("", 0)
        group_commit.save([(STARTS.name, "", starts)])
        make_recorder = self._config.make_recorder
        if make_recorder is not None:
            return make_recorder(group_commit, starts)
        log = self._config.log
        return None if log is None else self._make_log(log, group_commit, starts)

    def _make_log(self, folder: Path, store: RowStore, starts: int) -> Recorder:
        from beforehand.runtime.storage.event_log import EventLog

        return EventLog(
            folder,
            self.name,
            run=self.group,
            store=store,
            incarnation=starts,
            members=self._all_members(),
            now_us=self._clock_us,
        )

    def _all_members(self) -> Sequence[str] | None:
        """Return the names of all members; None if they are not known from the start."""
        return None

    def _make_node(
        self,
        make_core: Callable[[], Broadcaster[FrameT]],
        codec: Codec[FrameT],
        make_held_frames: Callable[[], HeldFrames[FrameT]],
        group_commit: GroupCommit,
        recorder: Recorder | None,
    ) -> Node[FrameT]:
        return self.node_type(
            make_core,
            codec,
            group_commit,
            make_held_frames=make_held_frames,
            queue_bytes_max=self._config.limits.queue_bytes_max,
            clock_us=self._clock_us,
            on_deliver=self._put,
            on_failure=self._fail,
            inbox=self._config.inbox,
            recorder=recorder,
        )

    # ---- messages -------------------------------------------------------------------------------

    def _broadcast(
        self, payload: object, lifetime_us: int | None = None
    ) -> asyncio.Future[MessageId]:
        """Check the payload and queue the broadcast."""
        parts = self._opened()
        content = checked_payload(payload, self.payload_bytes_max)
        return parts.node.broadcast(content, lifetime_us)

    def __aiter__(self) -> AsyncIterator[GroupMessage]:
        return self

    async def __anext__(self) -> GroupMessage:
        """Return the next message of another member.

        Several readers share the messages: each message goes to one of them. Raise the failure if
        the member has failed.
        """
        if self._parts is None:
            self._opened()
            raise StopAsyncIteration
        item = await self._parts.reading.next()
        if item is None:
            raise StopAsyncIteration
        return GroupMessage(*item, self._acknowledge_soon)

    async def acknowledge(self, messages: Iterable[MessageId]) -> None:
        """Acknowledge messages, and return once that is durable; they are not handed over again.

        Raise `LocalError` for anything that is not a message id, or if the member is not open.
        """
        self._acknowledge(
            [checked_id(message, "give several: `[message.id]`") for message in messages]
        )
        await self._opened().group_commit.settled()

    def explain(self, message: MessageId) -> MessageStatus:
        """Return the status of a message at this member, and which causes it waits for.

        Raise `LocalError` if `message` is not a message id, or if the member is not open.
        """
        core = self._opened().node.driver.core
        return core.explain(checked_id(message, "it is what `broadcast` returns, and `message.id`"))

    def _explained(self, waiting: Iterable[MessageId]) -> tuple[Pending, ...]:
        statuses = [(id, self.explain(id)) for id in waiting]
        return tuple(Pending(id, status.missing, status.since_us or 0) for id, status in statuses)

    # ---- steps ----------------------------------------------------------------------------------

    def _opened(self) -> Parts[FrameT, NetworkT]:
        """Return the parts; raise the failure, or `LocalError` if the member is not open."""
        if self._error is not None:
            raise self._error
        if self._state != "open" or self._parts is None:
            hint = "use it inside of `async with`"
            raise LocalError(f"it is not open, but {self._state}", hint=hint)
        return self._parts

    def _put(self, messages: Sequence[Message]) -> None:
        assert self._parts is not None, "can't happen: the node starts with all other parts"
        self._parts.reading.put(messages, self._clock_us())

    def _acknowledge_soon(self, message: MessageId) -> None:
        self._acknowledge([message])

    def _acknowledge(self, messages: Iterable[MessageId]) -> None:
        parts = self._opened()
        if done := parts.reading.acknowledge(messages):
            parts.node.driver.acknowledge(done)

    def _fail(self, error: Exception) -> None:
        """Stop after a failure of the disk or of this program, and report it to the application."""
        if self._error is not None:
            return
        self._error = error
        if self._parts is not None:
            self._parts.node.fail(error)
            self._parts.reading.fail(error)
        if self._state == "open" and self._closing is None:
            self._closing = asyncio.ensure_future(self._close())


def checked_payload(payload: object, bytes_max: int) -> bytes:
    """Return the payload as bytes; raise `LocalError` if it is not bytes, or is too long."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        problem = f"a payload is bytes, and not {type(payload).__name__}"
        raise LocalError(problem, hint="encode it: `text.encode()`")
    content = bytes(payload)
    if len(content) > bytes_max:
        problem = f"a payload of {len(content):,} bytes; {bytes_max:,} are allowed"
        raise LocalError(problem, hint="divide it, or broadcast where it can be had")
    return content


def checked_id(message: object, hint: str) -> MessageId:
    """Return the id; raise `LocalError` if it is none, which would otherwise go unnoticed."""
    if isinstance(message, tuple) and len(message) == 2:
        origin, seq = message
        if isinstance(origin, str) and isinstance(seq, int):
            return origin, seq
    raise LocalError(f"not the id of a message: `{message!r}`", hint=hint)
