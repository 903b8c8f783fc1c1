"""One member of something, whatever its network: the life of a node, and what a program sees of it.

A subclass says which core, which codec and which network (`_join`). All else is here: the store,
reading and acknowledging, failing, stopping.
"""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec

from beforehand.errors import InputError, LocalError
from beforehand.protocols.contract.base import (
    Broadcaster,
    FrameT,
    Message,
    MessageId,
    MessageStatus,
)
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.tables import Store, Table
from beforehand.runtime.crypto.keys import GroupKey, flaw_of_name
from beforehand.runtime.node import Links, Node, Recorder
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.inbox import GroupMessage, Inbox
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore, Durability
from beforehand.runtime.transport.limits import Limits

QUEUE_BYTES_MAX = 4 << 20
"""That wait on one link. Half of it is made use of, and a frame may come on top of that."""

STARTS = Table("starts", str, int)
MakeRecorder = Callable[[Store, int], Recorder]
"""Given the node's store, and how often the node was started."""


class Network(Links, Protocol):
    """Links that can be opened and closed."""

    async def start(self) -> None: ...
    async def close(self) -> None: ...


NetworkT = TypeVar("NetworkT", bound=Network)


@dataclass(frozen=True)
class Parts(Generic[FrameT, NetworkT]):
    """What an open member is made of."""

    group_commit: GroupCommit
    node: Node[FrameT]
    network: NetworkT
    reading: Inbox
    recorder: Recorder | None


class Pending(msgspec.Struct, frozen=True):
    """A message that was received and cannot be delivered yet."""

    id: MessageId
    missing: tuple[MessageId, ...]
    """What it waits for."""
    since_us: int


class Member(ABC, Generic[FrameT, NetworkT]):
    """Broadcasts, and reads what others broadcast."""

    payload_bytes_max = 64 << 10
    node_type: type[Node[Any]] = Node

    def __init__(
        self,
        group: str,
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        durable: Durability = "disk",
        inbox: bool = False,
        limits: Limits | None = None,
        clock_us: Callable[[], int] | None = None,
        log: str | os.PathLike[str] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        for what, word in (("group", group), ("member", name)):
            if flaw := flaw_of_name(word):
                raise InputError(f"no name for a {what}: {flaw}", hint="choose another name")
        if durable not in ("disk", "os"):
            raise InputError(f"no such durability: `{durable}`", hint="choose `disk` or `os`")
        self.group, self.name = group, name
        self._store_path, self._key_path = Path(store), Path(key)
        self._durable: Durability = durable
        self._inbox = inbox
        self._limits = limits or Limits(queue_bytes_max=QUEUE_BYTES_MAX)
        self._clock_us = clock_us or wall_clock_us
        self._log_folder = None if log is None else Path(log)
        self._make_recorder = make_recorder or (None if log is None else self._make_log)
        self._error: Exception | None = None
        self._state = "new"
        self._parts: Parts[FrameT, NetworkT] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._opening = asyncio.Event()
        """Set when that has come to an end, well or not."""

    # ---- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
        if self._error is not None and error is None:
            raise self._error  # the program may not have noticed

    async def open(self) -> None:
        """Take up what is in the store, and go on the network."""
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
        key = GroupKey.read(self._key_path)
        if key.name != self.group:
            hint = "give the key of this group, or the name of that one"
            problem = f"the key of the group `{key.name}`, not of `{self.group}`"
            raise InputError(problem, where=str(self._key_path), hint=hint)
        disk = await asyncio.to_thread(
            DiskStore, self._store_path, group=self.group, name=self.name, durable=self._durable
        )
        group_commit = GroupCommit(disk, durable=self._durable, on_failure=self._fail)
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
        """Leave the network and close the store. Whoever iterates comes to the end; what was not
        read is handed over at the next start."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._state == "opening":  # what is half open cannot be closed
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
                if not self._inbox:
                    parts.node.keep_unread(left)
                if parts.recorder is not None:
                    parts.recorder.close()
        finally:
            await parts.group_commit.close()

    @abstractmethod
    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[FrameT, NetworkT]:
        """All parts, none of them started."""

    def _on_started(self, parts: Parts[FrameT, NetworkT]) -> None:
        """What the core must hear before the network opens."""

    def _record(self, disk: DiskStore, group_commit: GroupCommit) -> Recorder | None:
        """Who writes down what happens. A start is counted with what it does first: one that did
        nothing, because it was killed before, was none."""
        starts = 1 + disk.load((STARTS,))[STARTS.name].get("", 0)
        group_commit.save([(STARTS.name, "", starts)])
        make_recorder = self._make_recorder
        return None if make_recorder is None else make_recorder(group_commit, starts)

    def _make_log(self, store: Store, starts: int) -> Recorder:
        from beforehand.runtime.storage.event_log import EventLog

        assert self._log_folder is not None, "can't happen: else nobody asks for a log"
        return EventLog(
            self._log_folder,
            self.name,
            run=self.group,
            store=store,
            incarnation=starts,
            members=self._all_members(),
            now_us=self._clock_us,
        )

    def _all_members(self) -> Sequence[str] | None:
        """Return the names of all members; None where they are not known from the start."""
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
            queue_bytes_max=self._limits.queue_bytes_max,
            clock_us=self._clock_us,
            on_deliver=self._put,
            on_failure=self._fail,
            inbox=self._inbox,
            recorder=recorder,
        )

    # ---- messages -------------------------------------------------------------------------------

    def _broadcast(
        self, payload: object, lifetime_us: int | None = None
    ) -> asyncio.Future[MessageId]:
        parts = self._opened()
        content = checked_payload(payload, self.payload_bytes_max)
        return parts.node.broadcast(content, lifetime_us)

    def __aiter__(self) -> AsyncIterator[GroupMessage]:
        return self

    async def __anext__(self) -> GroupMessage:
        """The next message of others. Several readers share them: each goes to one."""
        if self._parts is None:
            self._opened()
            raise StopAsyncIteration
        item = await self._parts.reading.next()
        if item is None:
            raise StopAsyncIteration
        return GroupMessage(*item, self._acknowledge_soon)

    async def acknowledge(self, messages: Iterable[MessageId]) -> None:
        """These need not come again, and that is on the disk when it returns."""
        self._acknowledge(
            [checked_id(message, "give several: `[message.id]`") for message in messages]
        )
        await self._opened().group_commit.settled()

    def explain(self, message: MessageId) -> MessageStatus:
        """What became of a message here, and what it waits for."""
        core = self._opened().node.driver.core
        return core.explain(checked_id(message, "it is what `broadcast` returns, and `message.id`"))

    def _explained(self, waiting: Iterable[MessageId]) -> tuple[Pending, ...]:
        fates = [(id, self.explain(id)) for id in waiting]
        return tuple(Pending(id, fate.missing, fate.since_us or 0) for id, fate in fates)

    # ---- steps ----------------------------------------------------------------------------------

    def _opened(self) -> Parts[FrameT, NetworkT]:
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
        """The disk failed, or we did: the group ends, and who uses it is told."""
        if self._error is not None:
            return
        self._error = error
        if self._parts is not None:
            self._parts.node.fail(error)
            self._parts.reading.fail(error)
        if self._state == "open" and self._closing is None:
            self._closing = asyncio.ensure_future(self._close())


def checked_payload(payload: object, bytes_max: int) -> bytes:
    """As bytes; LocalError for what is none, or too much."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        problem = f"a payload is bytes, and not {type(payload).__name__}"
        raise LocalError(problem, hint="encode it: `text.encode()`")
    content = bytes(payload)
    if len(content) > bytes_max:
        problem = f"a payload of {len(content):,} bytes; {bytes_max:,} are allowed"
        raise LocalError(problem, hint="divide it, or broadcast where it can be had")
    return content


def checked_id(message: object, hint: str) -> MessageId:
    """LocalError for what names no message: nobody would notice."""
    if isinstance(message, tuple) and len(message) == 2:
        origin, seq = message
        if isinstance(origin, str) and isinstance(seq, int):
            return origin, seq
    raise LocalError(f"not the id of a message: `{message!r}`", hint=hint)


def wall_clock_us() -> int:
    return time.time_ns() // 1000
