"""A station, which serves the mobile hosts of one cell on real networks.

A station has reliable channels to other stations over TCP, and its cell by multicast on a network
segment. It delivers no messages to an application and saves nothing: the protocol assumes that
stations do not fail.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Counters, Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.driver import Driver
from beforehand.protocols.contract.needs import refuse_unmet
from beforehand.protocols.contract.outbox import LossKind
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.mobile.was.frames import Frame, Uplink
from beforehand.protocols.mobile.was.station import Station as StationCore
from beforehand.runtime.config import NodeConfig
from beforehand.runtime.crypto.handshake import derive
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import MemberKey
from beforehand.runtime.crypto.trust import Trust, TrustCounters
from beforehand.runtime.radio.cell_settings import (
    BEACON_SECONDS,
    GIVEN,
    MESSAGE_BYTES_MAX,
    PACE,
    RADIO,
    TICKS_MAX,
    WIRES,
    fit,
    is_short,
    read_stations,
)
from beforehand.runtime.radio.datagrams import (
    AirCounters,
    Datagram,
    DatagramOpener,
    DatagramSealer,
    new_number,
)
from beforehand.runtime.radio.freshness import Echoes
from beforehand.runtime.radio.multicast import Multicast
from beforehand.runtime.radio.reliable_channel import ReliableChannel
from beforehand.runtime.transport.connection.records import FRAME_OVERHEAD
from beforehand.runtime.transport.disconnects import LinkCounters
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import Mesh

ACK_SECONDS = 0.1
"""Longest delay of an acknowledgement on a reliable channel."""


class StationCounters(msgspec.Struct, frozen=True):
    """Counters of a station since its start."""

    messages: Counters
    links: LinkCounters
    air: AirCounters
    trust: TrustCounters
    malformed: int
    """Invalid frames of stations or hosts. A station that sends one loses its link."""
    gauges: dict[str, int]
    """Current values: registered hosts, messages kept, handoffs in progress, bytes kept for
    stations."""


class Station:
    """One station of mobile hosts. It is the `Port` of its core's driver.

    Use it as an asynchronous context manager: entering starts it, leaving stops it. `failed` waits
    for a failure. A station that was stopped or has failed cannot come back alone: its peers
    in the tree refuse it, because its state is lost. Restart all stations then.
    """

    def __init__(
        self,
        stations: str | os.PathLike[str],
        *,
        name: str,
        key: str | os.PathLike[str],
        limits: Limits | None = None,
    ) -> None:
        """Read the files; raise `InputError` if one is not valid or the key is of another group.

        - `stations`: the path of the file that lists all stations.
        - `name`: the name of this station in that file.
        - `key`: the path of the group's key file.
        - `limits`: limits of the links to other stations.
        """
        self.name = name
        self._stations = read_stations(Path(stations))
        self._stations.check(name)
        self._limits = limits or Limits()
        config = NodeConfig(self._stations.group, name=name, key=key, limits=self._limits)
        # The key pairs of stations are derived from the newest secret, so it is the only one.
        self._key = msgspec.structs.replace(config.read_key(), older=())
        self._malformed = 0
        self._air_counters = AirCounters()
        self._ticks: deque[int] = deque([new_number()], maxlen=TICKS_MAX)
        self._echoes = Echoes(name)

    # ---- life cycle -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start the station; raise `InputError` if an address cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._beacon: asyncio.TimerHandle | None = None
        self._acking: asyncio.TimerHandle | None = None
        wires, incarnation = self._stations.wires, new_number() or 1
        # A station saves nothing. So the key pairs of all stations are derived from the group
        # secret.
        secret, names = self._key.secret, self._stations.addresses
        keys = {n: MemberKey(derive(secret, b"station", n.encode())) for n in names}
        bound = {name: key.public for name, key in keys.items()}
        self._member = keys[self.name]
        self._trust = Trust(self.name, self._member, bound, lambda *_: None)
        proofs = Proofs(self._key.name, self._trust.sign, self._trust.check)
        self._driver: Driver[Frame] = Driver(
            lambda: StationCore(
                self.name, wires, PACE, proofs=proofs, message_bytes_max=MESSAGE_BYTES_MAX
            ),
            self,
        )
        refuse_unmet(self._driver.core.needs, GIVEN)
        peers = self._stations.peers_of(self.name)
        self._wires = {n: ReliableChannel(n, incarnation, self._frame_handler(n)) for n in peers}
        self._air = self._make_air()
        self._mesh = self._make_mesh()
        await self._air.start()
        try:
            await self._mesh.start()
        except BaseException:
            self._air.close()
            raise
        self._beat()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the station; raise its failure, unless another error is being raised."""
        for handle in (*self._timers.values(), self._beacon, self._acking):
            if handle is not None:
                handle.cancel()
        self._air.close()
        await self._mesh.close()
        if not self._failure.cancel() and (failure := self._failure.exception()) and error is None:
            raise failure

    async def failed(self) -> None:
        """Wait until the station fails, and raise its failure."""
        await asyncio.shield(self._failure)

    @property
    def linked(self) -> list[str]:
        """The names of the stations that there is a link to now."""
        return [peer.name for peer in self._mesh.peers()]

    @property
    def counters(self) -> StationCounters:
        """Counters since the start."""
        core = self._driver.core
        gauges = core.gauges(_now_us())
        gauges["wire bytes"] = sum(wire.kept_bytes for wire in self._wires.values())
        gauges["wires dropped"] = sum(wire.is_dropped for wire in self._wires.values())
        return StationCounters(
            messages=core.counters,
            links=self._mesh.counters,
            air=self._air_counters,
            trust=self._trust.counters,
            malformed=self._malformed,
            gauges=gauges,
        )

    def _make_air(self) -> Multicast:
        counters = self._air_counters
        sealer = DatagramSealer(self._key, self.name)
        segment = self._stations.segments[self.name]
        return Multicast(
            segment,
            sealer,
            DatagramOpener(self._key, sealer, counters, self._is_fresh),
            counters,
            self._on_datagram,
        )

    def _make_mesh(self) -> Mesh:
        addresses = self._stations.addresses
        return Mesh(
            self.name,
            self._member,
            KeyRing(self._key, _now_us),
            self._trust,
            listen=[addresses[self.name]],
            peers=[addresses[name] for name in self._wires],
            discover=False,
            limits=self._limits,
            on_link=self._on_link,
            on_frame=self._on_frame,
            on_room=self._pump,
        )

    # ---- the port of the driver -----------------------------------------------------------------

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, Frame]]) -> None:
        touched = set()
        for peer, frame in sends:
            if peer is None:
                for part in fit(frame):
                    self._transmit(part)
            else:
                self._wires[str(peer)].add(WIRES.encode(frame))
                touched.add(str(peer))
        for peer in touched:
            self._pump(peer)

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        raise AssertionError("can't happen: a station has no application")

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        if timer in self._timers:
            self._timers[timer].cancel()
        delay = max(0, due_us - _now_us()) / 1e6
        self._timers[timer] = self._loop.call_later(delay, self._on_timer, timer, ticket)

    def broadcasted(self, node: NodeId, message: MessageId, deliveries: list[Message]) -> None: ...
    def received(self, node: NodeId, messages: Sequence[Message]) -> None: ...
    def lost(self, node: NodeId, losses: Sequence[tuple[LossKind, MessageId]]) -> None: ...

    # ---- radio ----------------------------------------------------------------------------------

    def _transmit(self, frame: Frame) -> None:
        try:
            data = RADIO.encode(frame)
        except LocalError:
            self._air_counters.too_large += 1
            return
        self._air.send("down", self._ticks[-1], data)

    def _beat(self) -> None:
        self._ticks.append(new_number())
        self._air.send("beacon", self._ticks[-1], self._echoes.take())
        self._beacon = self._loop.call_later(BEACON_SECONDS, self._beat)

    def _is_fresh(self, datagram: Datagram) -> bool:
        return datagram.tick in self._ticks

    def _on_datagram(self, datagram: Datagram) -> None:
        if datagram.kind == "probe":
            self._echoes.add(datagram.frame)
        if datagram.kind != "up":
            return
        if not is_short(datagram.sender):
            self._malformed += 1
            return
        try:
            frame = RADIO.decode(datagram.frame)
        except RemoteError:
            self._malformed += 1
            return
        if isinstance(frame, Uplink):
            self._input(lambda: self._driver.on_message(_now_us(), datagram.sender, frame))

    # ---- reliable channels ----------------------------------------------------------------------

    def _on_link(self, peer: str, is_up: bool) -> None:
        wire = self._wires.get(peer)
        if wire is None:
            self._mesh.cut(peer, "no wired station in the tree")
        elif (hello := wire.on_link(is_up)) is not None:
            self._mesh.send(peer, [hello])

    def _on_frame(self, peer: str, data: bytes) -> None:
        wire = self._wires.get(peer)
        if wire is None:
            return
        try:
            wire.on_data(data)
        except RemoteError as error:
            self._malformed += 1
            self._mesh.cut(peer, error.problem)
            return
        except Exception as error:
            self._fail(error)
            return
        if wire.must_ack():
            self._mesh.send(peer, [wire.ack()])
        elif self._acking is None:
            self._acking = self._loop.call_later(ACK_SECONDS, self._acknowledge)
        self._pump(peer)

    def _frame_handler(self, peer: str) -> Callable[[bytes], None]:
        def on_frame(data: bytes) -> None:
            frame = WIRES.decode(data)
            self._driver.on_message(_now_us(), peer, frame)

        return on_frame

    def _acknowledge(self) -> None:
        self._acking = None
        for peer, wire in self._wires.items():
            if wire.owes_ack():
                self._mesh.send(peer, [wire.ack()])

    def _pump(self, peer: str) -> None:
        """Send as many parts as the link has room for; `on_room` calls again when there is more."""
        room = self._mesh.room(peer) - self._limits.queue_bytes_max // 2
        parts = []
        if room > 0:
            for part in self._wires[peer].next_parts():
                parts.append(part)
                room -= len(part) + FRAME_OVERHEAD
                if room <= 0:
                    break
        if parts:
            self._mesh.send(peer, parts)

    # ---- steps ----------------------------------------------------------------------------------

    def _on_timer(self, timer: Timer, ticket: int) -> None:
        self._input(lambda: self._driver.on_timer(_now_us(), timer, ticket))

    def _input(self, step: Callable[[], None]) -> None:
        try:
            step()
        except RemoteError:
            self._malformed += 1
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)


def _now_us() -> int:
    return time.monotonic_ns() // 1000
