"""`beforehand.Host`: a mobile host. It speaks by radio to the station in whose cell it is.

async with beforehand.Host("port", name="ann", store="ann.db", key="port.key",
                           cell="239.77.0.1:7700", interface="10.1.0.7") as host:
    await host.broadcast(b"berth 4 is free")
    async for message in host:
        ...

It is in the cell whose beacons it hears. When it hears another station instead, or is told of
another network segment (`move`), it hands off: what came meanwhile comes there, once and in order.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

import msgspec

from beforehand.protocols.contract.base import Counters, MessageId
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.mobile.was.frames import Frame
from beforehand.protocols.mobile.was.host import Host as HostCore
from beforehand.runtime.crypto.identity import identity
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.crypto.trust import Trust, TrustCounters
from beforehand.runtime.member import MakeRecorder, Member, Parts
from beforehand.runtime.node import NodeCounters
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.inbox import Inbox
from beforehand.runtime.radio.cell_settings import (
    BEACON_SECONDS,
    FRAME_BYTES_MAX,
    LOST_SECONDS,
    MESSAGE_BYTES_MAX,
    PACE,
    PAYLOAD_BYTES_MAX,
    check_name,
    fit,
)
from beforehand.runtime.radio.datagrams import AirCounters, Datagram, Ear, Voice
from beforehand.runtime.radio.multicast import Multicast, Segment
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore, Durability


class CellHeldFrames(HeldFrames[Frame]):
    """What comes while the program does not read is not heard: its station says it again."""

    def must_wait(self, *, is_open: bool) -> bool:
        return not is_open

    def hold(self, news: bytes, now: float) -> None:
        """Not even that."""


class CellCodec(Codec[Frame]):
    """What a host says must fit into a datagram."""

    def encode(self, frame: Frame) -> bytes:
        (fitting,) = fit(frame)
        return super().encode(fitting)


class Cell:
    """The network of a host: one station at a time."""

    def __init__(
        self,
        segment: Segment,
        key: GroupKey,
        name: str,
        on_link: Callable[[str, bool], None],
        on_frame: Callable[[str, bytes], None],
    ) -> None:
        self.counters = AirCounters()
        self.station: str | None = None
        self._segment = segment
        self._voice = Voice(key, name)
        self._ear = Ear(key, self._voice, self.counters)
        self._on_link, self._on_frame = on_link, on_frame
        self.on_host: Callable[[str], None] = lambda _: None
        """Called with the name of another host whenever that host is heard."""
        self._air: Multicast | None = None
        self._beacons: dict[str, tuple[float, int]] = {}
        """Of each station: when it was heard last, and its tick."""
        self._incarnations: dict[str, int] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def start(self) -> None:
        self._air = await self._tune(self._segment)
        self._look()

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._leave()
        if self._air is not None:
            self._air.close()
            self._air = None
            await asyncio.sleep(0)  # asyncio closes the socket in its next turn

    async def move(self, segment: Segment) -> None:
        """To another segment; if there is none, it stays where it was."""
        air = await self._tune(segment)
        self._leave()
        if self._air is not None:
            self._air.close()
        self._beacons.clear()
        self._incarnations.clear()
        self._air, self._segment = air, segment

    def send(self, peer: str, frames: Sequence[bytes]) -> None:
        if self._air is not None and peer in self._beacons:
            for frame in frames:
                self._air.say("up", self._beacons[peer][1], frame)

    def room(self, peer: str) -> int:
        """What is too much for a radio is lost, and said again."""
        return 1 << 40

    def underway(self, peer: str) -> int:
        """A datagram comes whole, or not at all."""
        return 0

    def pause(self, peer: str) -> None:
        """Nobody waits for a radio."""

    def resume(self, peer: str) -> None: ...

    def cut(self, peer: str, problem: str) -> None:
        """A radio has no links to cut."""

    async def _tune(self, segment: Segment) -> Multicast:
        air: Multicast

        def hear(said: Datagram) -> None:
            if air is self._air:
                self._on_heard(said)

        air = Multicast(segment, self._voice, self._ear, self.counters, hear)
        await air.start()
        return air

    def _on_heard(self, said: Datagram) -> None:
        is_here = said.sender == self.station
        is_same = said.incarnation == self._incarnations.get(said.sender)
        if said.kind == "beacon":
            if is_here and not is_same:
                # Its numbers begin anew, so that ours mean nothing to it, nor its to us.
                self.counters.restarted += 1
                self._leave()
            self._incarnations[said.sender] = said.incarnation
            self._beacons[said.sender] = (self._loop.time(), said.tick)
            if self.station is None:
                self._enter(said.sender)
        elif said.kind == "down" and is_here and is_same:
            self._on_frame(said.sender, said.frame)
        elif said.kind == "up":
            self.on_host(said.sender)

    def _look(self) -> None:
        """Is the station still there? If not, is another?"""
        now = self._loop.time()
        for station, (at, _) in list(self._beacons.items()):
            if now - at > LOST_SECONDS:
                if station == self.station:
                    self._leave()
                del self._beacons[station], self._incarnations[station]
        if self.station is None and self._beacons:
            self._enter(max(self._beacons, key=self._beacons.__getitem__))
        self._looking = self._loop.call_later(BEACON_SECONDS, self._look)

    def _enter(self, station: str) -> None:
        self.station = station
        self._on_link(station, True)

    def _leave(self) -> None:
        if self.station is not None:
            left, self.station = self.station, None
            self._on_link(left, False)


class HostCounters(msgspec.Struct, frozen=True):
    """What happened since the start."""

    messages: Counters
    air: AirCounters
    trust: TrustCounters
    node: NodeCounters
    transactions: int


class Host(Member[Frame, Cell]):
    """One host. See docs/sockets.md for what it promises."""

    payload_bytes_max = PAYLOAD_BYTES_MAX

    def __init__(
        self,
        group: str,
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        cell: str,
        interface: str = "",
        durable: Durability = "disk",
        inbox: bool = False,
        clock_us: Callable[[], int] | None = None,
        log: str | os.PathLike[str] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        """cell: the multicast address of the segment where it is. interface: its own address there.
        The rest is as for a group."""
        check_name(name)
        super().__init__(
            group,
            name=name,
            store=store,
            key=key,
            durable=durable,
            inbox=inbox,
            clock_us=clock_us,
            log=log,
            make_recorder=make_recorder,
        )
        self._segment = Segment.parse(cell, interface)
        self._trust: Trust | None = None

    async def broadcast(self, payload: bytes | bytearray | memoryview) -> MessageId:
        """The id, when the message is on the disk: it is said as soon as a station hears it."""
        return await self._broadcast(payload)

    async def move(self, cell: str, interface: str = "") -> None:
        """It is on another network segment now. InputError if there is none: then it stays."""
        await self._opened().network.move(Segment.parse(cell, interface))

    @property
    def station(self) -> str | None:
        """In whose cell it is."""
        return self._opened().network.station

    @property
    def is_connected(self) -> bool:
        """Whether that station has registered it."""
        core = self._opened().node.driver.core
        assert isinstance(core, HostCore), "can't happen: that is what was made"
        return core.state == "connected"

    @property
    def unheard(self) -> int:
        """Messages that it said, and that no station has confirmed yet."""
        return self._opened().node.driver.core.gauges(self._clock_us())["said"]

    @property
    def counters(self) -> HostCounters:
        parts = self._parts or self._opened()
        assert self._trust is not None, "can't happen: it is made with the other parts"
        return HostCounters(
            messages=parts.node.driver.core.counters,
            air=parts.network.counters,
            trust=self._trust.counters,
            node=parts.node.counters,
            transactions=parts.group_commit.transactions,
        )

    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[Frame, Cell]:
        recorder = self._record(disk, group_commit)
        _, trust = identity(self.name, disk, group_commit)
        self._trust = trust
        proofs = Proofs(self.group, trust.sign, trust.check)

        def make_core() -> HostCore:
            return HostCore(
                self.name,
                PACE,
                durable=True,
                proofs=proofs,
                message_bytes_max=MESSAGE_BYTES_MAX,
            )

        codec = CellCodec("mobile", Frame, bytes_max=FRAME_BYTES_MAX)
        node = self._make_node(make_core, codec, CellHeldFrames, group_commit, recorder)
        cell = Cell(self._segment, key, self.name, node.on_link, node.on_frame)
        if recorder is not None:
            cell.on_host = recorder.met
        return Parts(
            group_commit, node, cell, Inbox(inbox=self._inbox, on_open=node.open), recorder
        )
