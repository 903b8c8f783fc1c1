"""`beforehand.Host`: a mobile host, which communicates by radio with the station of its cell.

async with beforehand.Host("port", name="ann", store="ann.db", key="port.key",
                           cell="239.77.0.1:7700", interface="10.1.0.7") as host:
    await host.broadcast(b"berth 4 is free")
    async for message in host:
        ...

A host is in the cell of the station whose beacons it hears. When it hears another station instead,
or the application tells it of another network segment (`move`), it hands off. The messages that it
missed meanwhile are delivered in the new cell, each once and in causal order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Unpack

import msgspec

from beforehand.protocols.contract.base import Counters, MessageId
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.mobile.was.frames import Frame
from beforehand.protocols.mobile.was.host import Host as HostCore
from beforehand.runtime.config import MemberConfig, MemberOptions
from beforehand.runtime.crypto.identity import identity
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.crypto.trust import Trust, TrustCounters
from beforehand.runtime.member import Member, Parts
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
from beforehand.runtime.radio.datagrams import AirCounters, Datagram, DatagramOpener, DatagramSealer
from beforehand.runtime.radio.freshness import Challenges
from beforehand.runtime.radio.multicast import Multicast, Segment
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore


class CellHeldFrames(HeldFrames[Frame]):
    """Received frames are dropped while the application does not read; the station retransmits
    them."""

    def must_wait(self, *, is_open: bool) -> bool:
        return not is_open

    def hold(self, data: bytes, now: float) -> None:
        """Drop the frame."""


class CellCodec(Codec[Frame]):
    """Shortens a frame so that it fits into a datagram."""

    def encode(self, frame: Frame) -> bytes:
        (fitting,) = fit(frame)
        return super().encode(fitting)


class CellNetwork:
    """The network of a host, which has a link to one station at a time."""

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
        """The station in whose cell the host is; None while it hears none."""
        self._segment = segment
        self._sealer = DatagramSealer(key, name)
        self._challenges = Challenges()
        self._opener = DatagramOpener(key, self._sealer, self.counters, self._is_fresh)
        self._on_link, self._on_frame = on_link, on_frame
        self.on_host: Callable[[str], None] = lambda _: None
        """Called with the name of another host whenever a datagram of it is received."""
        self._air: Multicast | None = None
        self._beacons: dict[str, tuple[float, int]] = {}
        """For each station heard: the time of its last beacon, and its tick."""
        self._incarnations: dict[str, int] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def start(self) -> None:
        """Join the cell's multicast group."""
        self._air = await self._tune(self._segment)
        self._look()

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._leave()
        if self._air is not None:
            self._air.close()
            self._air = None
            await asyncio.sleep(0)  # asyncio closes the socket in its next iteration

    async def move(self, segment: Segment) -> None:
        """Move to another segment; on `InputError` the host stays where it was."""
        air = await self._tune(segment)
        self._leave()
        if self._air is not None:
            self._air.close()
        self._beacons.clear()
        self._incarnations.clear()
        self._challenges.clear()
        self._air, self._segment = air, segment

    def send(self, peer: str, frames: Sequence[bytes]) -> None:
        if self._air is not None and peer in self._beacons:
            for frame in frames:
                self._air.send("up", self._beacons[peer][1], frame)

    def room(self, peer: str) -> int:
        """Return a very large number: the radio drops what exceeds its capacity, and the core
        retransmits."""
        return 1 << 40

    def underway(self, peer: str) -> int:
        """Return 0: a datagram arrives completely or not at all."""
        return 0

    def pause(self, peer: str) -> None:
        """Do nothing: a radio has no back-pressure."""

    def resume(self, peer: str) -> None: ...

    def cut(self, peer: str, problem: str) -> None:
        """Do nothing: a radio has no link to cut."""

    async def _tune(self, segment: Segment) -> Multicast:
        air: Multicast

        def on_datagram(datagram: Datagram) -> None:
            if air is self._air:
                self._on_datagram(datagram)

        air = Multicast(segment, self._sealer, self._opener, self.counters, on_datagram)
        await air.start()
        return air

    def _is_fresh(self, datagram: Datagram) -> bool:
        """Return whether a datagram is no recording; challenge a station that may be one."""
        if datagram.kind == "up" or self._challenges.is_fresh(datagram):
            return True
        if datagram.kind == "beacon" and self._air is not None:
            self._air.send("probe", datagram.tick, self._challenges.probe(datagram.sender))
        return False

    def _on_datagram(self, datagram: Datagram) -> None:
        is_here = datagram.sender == self.station
        is_same = datagram.incarnation == self._incarnations.get(datagram.sender)
        if datagram.kind == "beacon":
            if is_here and not is_same:
                # A restarted station numbers its messages anew. Old numbers are void at both ends,
                # so reconnect.
                self.counters.restarted += 1
                self._leave()
            self._incarnations[datagram.sender] = datagram.incarnation
            self._beacons[datagram.sender] = (self._loop.time(), datagram.tick)
            if self.station is None:
                self._enter(datagram.sender)
        elif datagram.kind == "down" and is_here and is_same:
            self._on_frame(datagram.sender, datagram.frame)
        elif datagram.kind == "up":
            self.on_host(datagram.sender)

    def _look(self) -> None:
        """Leave the cell if its beacons have stopped, and enter another one that is heard."""
        now = self._loop.time()
        for station, (at, _) in list(self._beacons.items()):
            if now - at > LOST_SECONDS:
                if station == self.station:
                    self._leave()
                del self._beacons[station], self._incarnations[station]
                self._challenges.forget(station)
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
    """Counters of a host since its start."""

    messages: Counters
    air: AirCounters
    trust: TrustCounters
    node: NodeCounters
    transactions: int
    """Committed transactions."""


class Host(Member[Frame, CellNetwork]):
    """A mobile host. See docs/sockets.md for its guarantees.

    Use it as an asynchronous context manager, and iterate over it to receive messages. Every host
    that is registered when a message is broadcast gets it, in causal order. Delivery is
    at-most-once, or at-least-once with `inbox=True`.

    The stations give up a host that stays silent for more than a minute while it owes
    acknowledgements. When it comes back, it skips the messages of that time. Its own messages that
    no station has acknowledged are dropped.
    """

    payload_bytes_max = PAYLOAD_BYTES_MAX

    def __init__(
        self,
        group: str,
        *,
        cell: str,
        interface: str = "",
        **options: Unpack[MemberOptions],
    ) -> None:
        """Check the options without opening anything; raise `InputError` if one is not valid.

        - `group`: the name of the group, as in its key file.
        - `cell`: the multicast address of the segment, such as `239.77.0.1:7700`.
        - `interface`: the host's own IP address on that segment; empty lets the system choose.
        - `options`: see `MemberOptions`; `name` has at most 48 bytes.
        """
        config = MemberConfig(group, **options)
        check_name(config.name)
        super().__init__(config)
        self._segment = Segment.parse(cell, interface)
        self._trust: Trust | None = None

    async def broadcast(self, payload: bytes | bytearray | memoryview) -> MessageId:
        """Broadcast a payload, and return the message's id once the message is durable.

        - `payload`: at most 1,000 bytes.

        The message is sent as soon as a station hears this host, if need be after a restart.
        Cancelling the call most likely does not withdraw it. Raise `LocalError` if the payload is
        not bytes or is too long, or if the host is not open.
        """
        return await self._broadcast(payload)

    async def move(self, cell: str, interface: str = "") -> None:
        """Hand off to another network segment.

        Raise `InputError` if the segment cannot be used; the host then stays where it was.
        """
        await self._opened().network.move(Segment.parse(cell, interface))

    @property
    def station(self) -> str | None:
        """The name of the station in whose cell the host is; None while it hears none."""
        return self._opened().network.station

    @property
    def is_connected(self) -> bool:
        """Whether that station has registered the host."""
        core = self._opened().node.driver.core
        assert isinstance(core, HostCore), "can't happen: that is what was made"
        return core.state == "connected"

    @property
    def unacked(self) -> int:
        """The number of own messages that no station has acknowledged yet."""
        return self._opened().node.driver.core.gauges(self._clock_us())["unacked"]

    @property
    def counters(self) -> HostCounters:
        """Counters since the start; also available after the end."""
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
    ) -> Parts[Frame, CellNetwork]:
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
        cell = CellNetwork(self._segment, key, self.name, node.on_link, node.on_frame)
        if recorder is not None:
            cell.on_host = recorder.met
        return Parts(
            group_commit, node, cell, Inbox(inbox=self._config.inbox, on_open=node.open), recorder
        )
