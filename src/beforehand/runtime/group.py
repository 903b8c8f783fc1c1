"""`beforehand.Group`: causal broadcast among those who hold a key, without a server.

async with beforehand.Group("harbour", name="ann", store="ann.db", key="harbour.key",
                            lifetime="20m") as group:
    await group.broadcast(b"fog at pier 4")
    async for message in group:
        ...
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from beforehand.core.barrier import Barrier
from beforehand.core.base import Counters, Fate, Message, MessageId
from beforehand.core.epidemic import Epidemic, Options
from beforehand.core.frames import Frame
from beforehand.core.order import Lifetimes
from beforehand.core.proof import Proofs
from beforehand.core.tables import Store, Table
from beforehand.core.wire import OPPORTUNISTIC
from beforehand.errors import InputError, LocalError
from beforehand.runtime.address import Address
from beforehand.runtime.commits import Commits
from beforehand.runtime.keys import GroupKey, MemberKey, flaw_of_name, new_member
from beforehand.runtime.lanes import PacedLane
from beforehand.runtime.limits import Limits
from beforehand.runtime.mesh import Mesh, PeerInfo
from beforehand.runtime.node import Node, NodeCounters, Recorder
from beforehand.runtime.reading import GroupMessage, Reading
from beforehand.runtime.refusals import LinkCounters
from beforehand.runtime.store import DiskStore, Durability
from beforehand.runtime.trust import Trust, TrustCounters
from beforehand.units import parse_duration

PAYLOAD_BYTES_MAX = 64 << 10
LONGEST_US = 30 * 86_400_000_000
"""Of all groups, so that members may choose lifetimes of their own."""
SKEW_US = 60_000_000
"""By which the clocks of two members may differ."""
ANNOUNCE_US = 2_000
"""News of one such period goes out together."""
QUEUE_BYTES_MAX = 4 << 20
"""That wait on one link. Half of it is made use of, and a frame may come on top of that."""
CAPACITY = 200_000
CAPACITY_BYTES = 256 << 20

MakeRecorder = Callable[[Store, int], Recorder]
"""Given the node's store, and how often the node was started."""
BINDINGS = Table("binding", str, bytes)
"""Whose key is whose."""
MEMBER = "member"


@dataclass(frozen=True)
class _Parts:
    """What an open group is made of."""

    trust: Trust
    commits: Commits
    node: Node[Frame]
    mesh: Mesh
    reading: Reading
    recorder: Recorder | None


class Pending(msgspec.Struct, frozen=True):
    """A message that was received and cannot be delivered yet."""

    id: MessageId
    missing: tuple[MessageId, ...]
    """What it waits for."""
    since_us: int


class GroupCounters(msgspec.Struct, frozen=True):
    """What happened since the start."""

    messages: Counters
    links: LinkCounters
    trust: TrustCounters
    node: NodeCounters
    transactions: int


class Group:
    """One member of a group. See docs/group.md for what it promises."""

    make_mesh: Callable[..., Mesh] = Mesh
    """The network; a test may have one of its own."""

    def __init__(
        self,
        group: str,
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        lifetime: str,
        listen: str | Sequence[str] = ":0",
        peers: Sequence[str] = (),
        discover: bool = True,
        durable: Durability = "disk",
        inbox: bool = False,
        capacity: int = CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        limits: Limits | None = None,
        clock_us: Callable[[], int] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        """name: of this member, for as long as its store lives. store: a file, made if there is
        none. key: the group's. lifetime: of messages, unless they say otherwise. listen, peers:
        `host:port`. discover: find neighbours by multicast DNS. durable, inbox, capacity: see
        docs/group.md. make_recorder: of who is told every event."""
        for what, word in (("group", group), ("member", name)):
            if flaw := flaw_of_name(word):
                raise InputError(f"no name for a {what}: {flaw}", hint="choose another name")
        if durable not in ("disk", "os"):
            raise InputError(f"no such durability: `{durable}`", hint="choose `disk` or `os`")
        if capacity < 1 or capacity_bytes < PAYLOAD_BYTES_MAX:
            hint = f"hold one at least, which may have {PAYLOAD_BYTES_MAX:,} bytes"
            raise InputError("no room for messages", hint=hint)
        self.group, self.name = group, name
        self._store_path, self._key_path = Path(store), Path(key)
        self._lifetime_us = read_lifetime(lifetime)
        listens = [listen] if isinstance(listen, str) else listen
        self._listen = [Address.parse(text) for text in listens]
        self._peers = [Address.parse(text) for text in peers]
        self._discover = discover
        self._durable: Durability = durable
        self._inbox = inbox
        self._capacity, self._capacity_bytes = capacity, capacity_bytes
        self._limits = limits or Limits(queue_bytes_max=QUEUE_BYTES_MAX)
        self._clock_us = clock_us or wall_clock_us
        self._make_recorder = make_recorder
        self._error: Exception | None = None
        self._state = "new"
        self._parts: _Parts | None = None
        self._closing: asyncio.Task[None] | None = None

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
            raise LocalError(f"the group is {self._state} already", hint="make another one")
        self._state = "opening"
        key = GroupKey.read(self._key_path)
        if key.name != self.group:
            hint = "give the key of this group, or the name of that one"
            problem = f"the key of the group `{key.name}`, not of `{self.group}`"
            raise InputError(problem, where=str(self._key_path), hint=hint)
        disk = await asyncio.to_thread(
            DiskStore, self._store_path, group=self.group, name=self.name, durable=self._durable
        )
        commits = Commits(disk, durable=self._durable, on_failure=self._fail)
        try:
            parts = self._parts = self._join(key, disk, commits)
            parts.node.start(parts.mesh, is_new=disk.is_new)
            await parts.mesh.start()
        except BaseException:
            if self._parts is None:
                await commits.close()
            await self.close()
            raise
        self._state = "open"

    async def close(self) -> None:
        """Leave the network and close the store. Whoever iterates comes to the end; what was not
        read is handed over at the next start."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._state = "closed"
        parts = self._parts
        if parts is None:
            return
        parts.node.stop()
        try:
            await parts.mesh.close()
            if self._error is None:
                await parts.commits.settled()
                left = parts.reading.end()
                if not self._inbox:
                    parts.node.keep_unread(left)
                if parts.recorder is not None:
                    parts.recorder.close()
        finally:
            await parts.commits.close()

    def _join(self, key: GroupKey, disk: DiskStore, commits: Commits) -> _Parts:
        member = _member_of(disk)
        bound = disk.load((BINDINGS,))[BINDINGS.name]
        trust = Trust(
            self.name, member, bound, lambda who, public: commits.save([("binding", who, public)])
        )
        make_recorder = self._make_recorder
        recorder = None if make_recorder is None else make_recorder(commits, disk.starts)
        node = self._make_node(trust, commits, recorder)
        mesh = self.make_mesh(
            self.name,
            member,
            key,
            trust,
            listen=self._listen,
            peers=self._peers,
            discover=self._discover,
            limits=self._limits,
            on_link=node.on_link,
            on_frame=node.on_frame,
            on_room=node.on_room,
        )
        reading = Reading(inbox=self._inbox, on_open=node.open)
        return _Parts(trust, commits, node, mesh, reading, recorder)

    def _make_node(self, trust: Trust, commits: Commits, recorder: Recorder | None) -> Node[Frame]:
        proofs = Proofs(self.group, trust.sign, trust.check)
        lifetimes = Lifetimes(self._lifetime_us, LONGEST_US, SKEW_US)
        options = Options(
            announce_us=ANNOUNCE_US,
            capacity=self._capacity,
            capacity_bytes=self._capacity_bytes,
            transfer="oldest",
        )

        def make_core() -> Epidemic:
            order = Barrier(self.name, lifetimes)
            rng = random.Random()
            return Epidemic(self.name, order, rng, options, durable=True, proofs=proofs)

        return Node(
            make_core,
            OPPORTUNISTIC,
            commits,
            make_lane=PacedLane,
            queue_bytes_max=self._limits.queue_bytes_max,
            clock_us=self._clock_us,
            on_deliver=self._put,
            on_failure=self._fail,
            inbox=self._inbox,
            recorder=recorder,
        )

    # ---- messages -------------------------------------------------------------------------------

    async def broadcast(
        self, payload: bytes | bytearray | memoryview, *, lifetime: str | None = None
    ) -> MessageId:
        """The id, when the message is on the disk: from then on it is said, whatever happens. Who
        is cancelled while waiting has most likely said it."""
        parts = self._opened()
        content = _checked(payload)
        lifetime_us = None if lifetime is None else read_lifetime(lifetime)
        message = parts.node.broadcast(content, lifetime_us)
        await parts.commits.settled()
        return message

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
        self._acknowledge(messages)
        await self._opened().commits.settled()

    # ---- questions ------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> Fate:
        """What became of a message here, and what it waits for."""
        return self._opened().node.driver.core.explain(message)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What was received and waits, the longest waiting first."""
        core = self._core()
        fates = [(id, core.explain(id)) for id in core.pending()]
        return tuple(Pending(id, fate.missing, fate.since_us or 0) for id, fate in fates)

    @property
    def peers(self) -> list[PeerInfo]:
        """Who is there."""
        return self._opened().mesh.peers()

    @property
    def held(self) -> int:
        """How many messages it holds for others."""
        return len(self._core().holds(self._clock_us()))

    @property
    def addresses(self) -> list[Address]:
        """Where this member listens."""
        return self._opened().mesh.addresses()

    @property
    def counters(self) -> GroupCounters:
        """What happened since the start; also after the end."""
        parts = self._parts or self._opened()
        return GroupCounters(
            messages=parts.node.driver.core.counters,
            links=parts.mesh.counters,
            trust=parts.trust.counters,
            node=parts.node.counters,
            transactions=parts.commits.transactions,
        )

    # ---- steps ----------------------------------------------------------------------------------

    def _opened(self) -> _Parts:
        if self._error is not None:
            raise self._error
        if self._state != "open" or self._parts is None:
            hint = "use it inside of `async with`"
            raise LocalError(f"the group is not open, but {self._state}", hint=hint)
        return self._parts

    def _core(self) -> Epidemic:
        core = self._opened().node.driver.core
        assert isinstance(core, Epidemic), "can't happen: that is what was made"
        return core

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


def _checked(payload: object) -> bytes:
    if not isinstance(payload, bytes | bytearray | memoryview):
        problem = f"a payload is bytes, and not {type(payload).__name__}"
        raise LocalError(problem, hint="encode it: `text.encode()`")
    content = bytes(payload)
    if len(content) > PAYLOAD_BYTES_MAX:
        problem = f"a payload of {len(content):,} bytes; {PAYLOAD_BYTES_MAX:,} are allowed"
        raise LocalError(problem, hint="divide it, or broadcast where it can be had")
    return content


def read_lifetime(text: str) -> int:
    lifetime_us = parse_duration(text, positive=True, where="lifetime")
    if lifetime_us > LONGEST_US:
        raise InputError(f"too long a lifetime: `{text}`", hint="a message lives 30 days at most")
    return lifetime_us


def wall_clock_us() -> int:
    return time.time_ns() // 1000


def _member_of(disk: DiskStore) -> MemberKey:
    """The key of this member: made once, with its store."""
    seed = disk.note(MEMBER)
    if seed is not None:
        return MemberKey(seed)
    member = new_member()
    disk.keep(MEMBER, member.seed)
    return member
