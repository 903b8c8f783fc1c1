"""The world of VCU section 5: a packet-switched overlay, with delay tpc + tq + tt + tpp per hop.

A packet is processed (tpc), waits in the single sending queue of its node (tq), is transmitted on
the link (tt) and propagates (tpp). Each destination gets its own copy. The propagation delay is
drawn for a message and a link. A packet has the delay of its last message, the one that made it
leave. So two systems that are compared on one seed see the same network.

`run` drives the cores. `twin.run_compiled` gives the same result faster; a test compares the two.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import BROADCAST, DELIVER, RECEIVE, SEND
from beforehand.kernels.queue.heap import DUE_US_MAX
from beforehand.kernels.random.laws import draw_us, travel_us
from beforehand.protocols.contract.base import Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.protocols.contract.needs import Link, Needs, refuse_unmet
from beforehand.protocols.contract.outbox import LossKind, Outbox
from beforehand.protocols.vcube.frames import (
    ENTRY_BYTES,
    HEADER_BYTES,
    MTU_BYTES,
    Entry,
    Packet,
    VCubeFrame,
    VCubeMessage,
    VCubeOutbox,
)
from beforehand.protocols.vcube.node import VCube
from beforehand.sim.calendar_queue import CalendarQueue
from beforehand.sim.collector import no_collection
from beforehand.sim.log import Log
from beforehand.sim.streams import mix, stream_key

Columns = dict[str, NDArray[np.int64]]
System = Literal["aggregated", "plain", "single"]
SYSTEMS: tuple[System, ...] = ("aggregated", "plain", "single")

UNIT_US = 1000
"""One time unit of the paper."""

PACKET_COLUMNS = ("source", "target", "messages", "bytes", "wait_us")

Shape = Literal["uniform", "triangular", "normal", "exponential"]
SHAPES: tuple[Shape, ...] = ("uniform", "triangular", "normal", "exponential")


@dataclass(frozen=True)
class Law:
    """A probability distribution, in microseconds.

    - uniform: between `a` and `b`
    - triangular: between `a` and `b`, densest in the middle
    - normal: mean `a`, standard deviation `b`, truncated at 0
    - exponential: mean `a`"""

    shape: Shape
    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InputError(f"unknown law: `{self.shape}`", hint=f"one of {', '.join(SHAPES)}")

    def numbers(self) -> tuple[int, float, float]:
        return SHAPES.index(self.shape), self.a, self.b


@dataclass(frozen=True)
class OverlaySpec:
    """One experiment. The laws come from our fit (docs/vcube.md), the rest from VCU section 5."""

    nodes: int
    system: System = "aggregated"
    messages: int = 1
    """The number of broadcasts of each node."""
    starts: Law = Law("triangular", 0.0, 580.0 * UNIT_US)
    propagation: Law = Law("normal", 100.0 * UNIT_US, 35.355 * UNIT_US)
    process_us: int = UNIT_US
    transmit_us: int = UNIT_US
    payload_bytes: int = 50
    mtu_bytes: int = MTU_BYTES

    def __post_init__(self) -> None:
        if self.system not in SYSTEMS:
            raise InputError(f"unknown system: `{self.system}`", hint=f"one of {SYSTEMS}")
        if self.nodes < 2 or self.messages < 1:
            problem = f"{self.nodes} nodes with {self.messages} messages each"
            raise InputError(problem, hint="at least 2 nodes and 1 message")

    @property
    def root(self) -> int | None:
        return 0 if self.system == "single" else None

    @property
    def aggregates(self) -> bool:
        return self.system != "plain"


@dataclass(frozen=True)
class Past:
    """The causes that each message carries.

    Message (origin, seq) has the index `origin * messages + seq - 1`. Its causes are the rows
    start[index]..start[index + 1]."""

    start: NDArray[np.int64]
    origin: NDArray[np.int32]
    seq: NDArray[np.int32]

    def of(self, index: int) -> tuple[Entry, ...]:
        rows = slice(int(self.start[index]), int(self.start[index + 1]))
        return tuple(zip(self.origin[rows].tolist(), self.seq[rows].tolist(), strict=True))


@dataclass(frozen=True)
class OverlayRun:
    """The result of a run.

    In a broadcast row, `value` is the number of causes; in send and receive rows it is the row of
    `packets`. `packets` has source, target, messages, bytes, wait_us (tq)."""

    events: Columns
    packets: Columns
    past: Past


def run(spec: OverlaySpec, seed: int, past: Past | None = None) -> OverlayRun:
    """Run once through the cores. With `past`, every message carries the causes given there."""
    world = _World(spec, seed, past)
    with no_collection():
        world.run()
    world.drivers.clear()  # drivers and world form a cycle, and collection was off
    return world.result()


def start_times(spec: OverlaySpec, seed: int) -> NDArray[np.int64]:
    """Return when each message is broadcast, by index; the times of each origin are sorted."""
    key, law = stream_key(seed, "starts"), spec.starts.numbers()
    times = [
        sorted(draw_us(np.uint64(mix(mix(key, node), k)), *law) for k in range(spec.messages))
        for node in range(spec.nodes)
    ]
    starts_us = np.array(times, np.int64).ravel()
    if starts_us.max() > DUE_US_MAX // 2:  # the other half is for the events that follow
        raise InputError(
            f"a broadcast after {starts_us.max() / 3.6e9:.1f} hours",
            hint=f"a run may start broadcasts in its first {DUE_US_MAX / 2 / 3.6e9:.1f} hours",
        )
    return starts_us


class _Scripted(VCube):
    """A node whose messages carry the causes of another run."""

    script: list[tuple[Entry, ...]]

    def _past(self) -> tuple[Entry, ...]:
        past = self.script[self._clock[self._self]]
        assert all(self._clock[origin] >= seq for origin, seq in past), "a cause is yet to come"
        return past


class _World:
    def __init__(self, spec: OverlaySpec, seed: int, past: Past | None) -> None:
        self._spec = spec
        self._key = np.uint64(stream_key(seed, "propagation"))
        out: VCubeOutbox = Outbox()
        self.drivers = [
            BroadcasterDriver(partial(self._core, node, past), self, out=out)
            for node in range(spec.nodes)
        ]
        # This network neither loses nor duplicates packets, and reports no node down.
        given = Needs({"detector": Link(reliable=True)})
        refuse_unmet(self.drivers[0].core.needs, given)
        self._payload = bytes(spec.payload_bytes)
        self._law = spec.propagation.numbers()
        self._free_us = [0] * spec.nodes
        self._past: dict[Entry, tuple[Entry, ...]] = {}
        self._sources, self._targets = array("i"), array("i")  # by packet
        self._waits_us = array("q")
        self._packets: list[Packet | None] = []  # packets in transit
        self._log = Log()
        self._broadcasts = spec.nodes * spec.messages
        self._now_us = self._row = 0
        # A ticket below `_broadcasts` is the index of a message to broadcast. Any other ticket is
        # that number plus the row of an arriving packet.
        self._calendar = CalendarQueue()
        for index, t_us in enumerate(start_times(spec, seed).tolist()):
            self._calendar.add(t_us, index)

    def _core(self, node: int, past: Past | None) -> VCube:
        spec = self._spec
        make = VCube if past is None else _Scripted
        core = make(
            node,
            spec.nodes,
            aggregates=spec.aggregates,
            root=spec.root,
            mtu_bytes=spec.mtu_bytes,
        )
        if isinstance(core, _Scripted) and past is not None:
            first = node * spec.messages
            core.script = [past.of(first + k) for k in range(spec.messages)]
        return core

    def run(self) -> None:
        drivers, payload, messages = self.drivers, self._payload, self._spec.messages
        sources, targets, packets = self._sources, self._targets, self._packets
        broadcasts = self._broadcasts
        for now_us, ticket in self._calendar:
            self._now_us = now_us
            if ticket < broadcasts:
                drivers[ticket // messages].on_broadcast(now_us, payload)
            else:
                row = self._row = ticket - broadcasts
                packet = packets[row]
                assert packet is not None, "a packet arrives once"
                packets[row] = None
                drivers[targets[row]].on_message(now_us, sources[row], packet)

    # ---- effects: the world is the port of every node -------------------------------------------

    def broadcasted(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        own_broadcast = cast("VCubeMessage", deliveries[0])
        self._past[own_broadcast.id] = own_broadcast.past
        self._log.add(self._now_us, node, BROADCAST, (own_broadcast,), len(own_broadcast.past))

    def received(self, node: Any, messages: Sequence[Message]) -> None:
        self._log.add(self._now_us, node, RECEIVE, messages, self._row)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        self._log.add(self._now_us, node, DELIVER, messages)

    def lost(self, node: Any, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        raise AssertionError("can't happen: no node is away, so nothing is skipped")

    def wake(self, node: Any, timer: Timer, due_us: int, ticket: int) -> None:
        raise AssertionError("can't happen: what keeps nothing sets no timer")

    def send(self, node: Any, sends: Sequence[tuple[NodeId | None, VCubeFrame]]) -> None:
        """Put every packet into the node's single queue, and schedule its arrival at the target."""
        spec, key, (law, a, b) = self._spec, self._key, self._law
        now_us, broadcasts, row = self._now_us, self._broadcasts, len(self._targets)
        first_link, transmit_us = node * spec.nodes, spec.transmit_us
        write, schedule = self._log.add, self._calendar.add
        ready_us = now_us + spec.process_us
        free_us = max(ready_us, self._free_us[node])
        for target, packet in cast("list[tuple[int, Packet]]", sends):
            messages = packet.messages
            write(now_us, node, SEND, messages, row)
            self._sources.append(node)
            self._targets.append(target)
            self._waits_us.append(free_us - ready_us)
            free_us += transmit_us
            origin, seq = messages[-1].id
            travels_us = travel_us(key, origin, seq, first_link + target, law, a, b)
            self._packets.append(packet)
            schedule(free_us + travels_us, broadcasts + row)
            row += 1
        self._free_us[node] = free_us

    def result(self) -> OverlayRun:
        spec, events = self._spec, self._log.columns()
        ids = [(node, k + 1) for node in range(spec.nodes) for k in range(spec.messages)]
        causes = [self._past[id] for id in ids]
        start = np.cumsum([0] + [len(entries) for entries in causes])
        flat = np.array([entry for entries in causes for entry in entries]).reshape(-1, 2)
        past = Past(start, flat[:, 0].astype(np.int32), flat[:, 1].astype(np.int32))
        return OverlayRun(events, self._packet_rows(events, past), past)

    def _packet_rows(self, events: Columns, past: Past) -> Columns:
        """Return one row per packet, from the rows of the messages sent in it."""
        sent = events["kind"] == SEND
        packet, count = events["value"][sent], len(self._targets)
        message = events["origin"][sent] * self._spec.messages + events["seq"][sent] - 1
        bytes_each = self._spec.payload_bytes + ENTRY_BYTES * (1 + np.diff(past.start))
        source = np.empty(count, np.int32)
        source[packet] = events["node"][sent]
        size = HEADER_BYTES + np.bincount(packet, bytes_each[message], count)
        return {
            "source": source,
            "target": np.array(self._targets, np.int32),
            "messages": np.bincount(packet, minlength=count).astype(np.int32),
            "bytes": size.astype(np.int32),
            "wait_us": np.array(self._waits_us),
        }
