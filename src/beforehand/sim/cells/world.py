"""The world of MOB section 5: hosts walk between cells and use radio; stations also use wires.

It runs any system of `protocols.mobile.systems`. Walks, broadcasts and failures are drawn by key,
so all systems see the same ones. At one instant, ends and starts of frames on the air come first,
then changes of positions and cells, then all other events. A frame that is requested at this
instant goes on the air after that. docs/cells.md describes the model.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, cast

import numpy as np

from beforehand.events import BROADCAST, CRASH, DELIVER, JOIN, LEAVE, LOSSES, RECEIVE, RECOVER
from beforehand.protocols.contract.base import Leaver, Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.driver import Driver, LeaverDriver
from beforehand.protocols.contract.needs import Link, Needs, refuse_unmet
from beforehand.protocols.contract.outbox import LossKind
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.mobile.systems import SYSTEMS, System
from beforehand.sim.cells.channel import NEVER_US, AirStep, open_channel
from beforehand.sim.cells.layout import StationGrid, lattice, tree
from beforehand.sim.cells.result import CellsRun, Outage, Sample
from beforehand.sim.cells.spec import CellsSpec
from beforehand.sim.cells.tally import RADIO, WIRE, Tally
from beforehand.sim.cells.traffic import broadcasts
from beforehand.sim.cells.walk import Walker
from beforehand.sim.cells.wires import Wires
from beforehand.sim.collector import no_collection
from beforehand.sim.log import NO_MESSAGE, Log
from beforehand.sim.streams import mix, stream_key, unit

GIVEN = Needs({"cell": Link(), "wire": Link(fifo=True, reliable=True)})
EVERYBODY = -1
NOWHERE = NO_NODE = -1
_LATER = 1 << 60
"""Added to the tickets of events that are no changes of topology, to place them after these."""


def run(spec: CellsSpec, seed: int, system: System | None = None) -> CellsRun:
    """Run the spec. The same spec and seed give the same run on any machine.

    system: replaces that of the spec, for fault injection."""
    spec.check()
    world = World(spec, seed, system or SYSTEMS[spec.system])
    with no_collection():
        world.run()
    return world.result()


class World:
    """One run. It is the port of every node."""

    def __init__(self, spec: CellsSpec, seed: int, system: System) -> None:
        self._spec, self._seed, self._system = spec, seed, system
        at = spec.stations_at or lattice(spec.stations, spec.range_m)
        self._stations = StationGrid(at, spec.range_m)
        self._edges = tree(spec.stations) if spec.edges is None else spec.edges
        self._wires = Wires(spec.wiring, self._edges)
        self._walker = Walker(spec, seed, self._stations)
        self._channel = open_channel(spec, seed)
        self._tally = Tally(spec.nodes)
        self._log = Log()
        self._senders = array("i")  # by row of kind `receive`
        self._source = NO_NODE  # of the frame that is being handled
        self._samples: list[Sample] = []
        self._handoffs = 0
        self._outages: list[Outage] = []
        self._entered: dict[int, int] = {}
        self._joined: set[int] = set()  # as far as known from hosts that left a cell
        self._away: dict[int, int] = {}
        self._now_us = NEVER_US
        self._frames: dict[int, tuple[int, Any]] = {}  # number -> source and frame
        self._drivers: list[Any] = [self._station(node) for node in range(spec.stations)]
        self._drivers += [None] * spec.hosts
        self._cells = [NOWHERE] * spec.nodes
        self._gone: set[int] = set()
        self._payload = bytes(spec.payload_bytes)
        self._jitter_key = stream_key(seed, "cells/jitter")
        self._loss_key = stream_key(seed, "cells/loss")
        self._timers = [0] * spec.nodes  # that were set so far
        self._has_answered: set[int] = set()
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._ticket = 0
        for node, place in enumerate(at):
            self._channel.move(node, place)
        self._plan()

    def _station(self, node: int) -> Driver[Any]:
        spec, system = self._spec, self._system
        options = spec.core_options()
        driver = Driver(lambda: system.make_station(node, self._edges, spec.pace, **options), self)
        refuse_unmet(driver.core.needs, GIVEN)
        return driver

    # ---- planned events -------------------------------------------------------------------------

    def _plan(self) -> None:
        spec, first = self._spec, self._spec.stations
        joins = dict(spec.joins)
        key = stream_key(self._seed, "cells/joins")
        for host in range(spec.hosts):
            early_us = int(unit(key, host) * (spec.warm_up_us // 2))
            self._at(joins.get(host, early_us), self._join, first + host, is_change=True)
            if spec.moves:
                step_us = int(unit(key, host, 1) * spec.walk.step_us)
                self._at(step_us, self._walk, first + host, is_change=True)
        for host, at_us in spec.leaves:
            self._at(at_us, self._leave, first + host, is_change=True)
        for index, failure in enumerate(spec.failures):
            self._at(failure.at_us, self._fail, index, is_change=True)
        for t_us, node in broadcasts(spec, self._seed):
            self._at(t_us, self._broadcast, node)
        self._at(spec.sample_us, self._sample)

    def _at(
        self, due_us: int, handler: Callable[..., None], *given: Any, is_change: bool = False
    ) -> None:
        self._ticket += 1
        ticket = self._ticket if is_change else self._ticket + _LATER
        heappush(self._heap, (due_us, ticket, handler, given))

    # ---- running --------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until the end of the duration, exclusive."""
        heap, channel, end_us = self._heap, self._channel, self._spec.duration_us
        while True:
            due_us = min(heap[0][0], end_us) if heap else end_us
            # All events of the world at this instant come before the channel advances.
            if due_us > self._now_us and (channel.is_asked or channel.due_us < due_us + 1):
                step = channel.advance(self._now_us, min(due_us, end_us - 1))
                is_quiet = step.t_us == NEVER_US
                if not is_quiet:
                    self._now_us = step.t_us
                self._hand_over(step)
                if is_quiet and channel.due_us <= due_us < end_us:
                    raise AssertionError("can't happen: the air has stopped before its time")
                if is_quiet and due_us == end_us:
                    break
            elif due_us == end_us:
                break
            else:
                self._now_us, _, handler, given = heappop(heap)
                handler(*given)
        self._now_us = end_us
        self._sample()

    def _hand_over(self, step: AirStep) -> None:
        frames, drivers, now_us, loss = self._frames, self._drivers, self._now_us, self._spec.loss
        for number, node in step.taken:
            if loss and unit(self._loss_key, number, node) < loss:
                continue
            source, frame = frames[number]
            self._source = source
            drivers[node].on_message(now_us, source, frame)
        self._source = NO_NODE
        for number in step.ended:
            del frames[number]

    def cores(self, count: int) -> list[Any]:
        """Return the cores of the first `count` nodes, for queries after a run: stations first."""
        return [driver.core for driver in self._drivers[:count]]

    def result(self) -> CellsRun:
        """Return the result. The world cannot be used afterwards."""
        self._drivers.clear()  # drivers and world form a cycle, and collection was off
        self._heap.clear()
        events, entered, away = self._log.columns(), dict(self._entered), dict(self._away)
        self._log = Log()
        thrown = self._channel.thrown
        senders = np.array(self._senders, np.int32)
        return CellsRun(
            events, senders, self._samples, self._handoffs, self._outages, entered, away, thrown
        )

    # ---- positions and cells --------------------------------------------------------------------

    def _join(self, node: int) -> None:
        spec, system = self._spec, self._system
        driver = LeaverDriver(
            # `CellsSpec.check` refuses leaves for systems whose hosts are no `Leaver`.
            lambda: cast(Leaver[Any], system.make_host(node, spec.pace, **spec.core_options())),
            self,
            store=Store() if spec.failures else None,
        )
        refuse_unmet(driver.core.needs, GIVEN)
        self._drivers[node] = driver
        self._note(node, JOIN)
        self._appear(node)

    def _appear(self, node: int) -> None:
        """Put a host that was nowhere into the cell of the nearest station."""
        at = self._walker.at[node - self._spec.stations]
        self._channel.move(node, at)
        self._look_around(node)

    def _walk(self, node: int) -> None:
        """Walk one step, and schedule the next one. A host that is down does not move."""
        self._at(self._now_us + self._spec.walk.step_us, self._walk, node, is_change=True)
        driver = self._drivers[node]
        if driver is not None and not driver.is_up:
            return
        at = self._walker.step(node - self._spec.stations)
        if driver is not None and node not in self._gone:
            self._channel.move(node, at)
            self._look_around(node)

    def _look_around(self, node: int) -> None:
        """Choose the cell of a host after it moved.

        With *stay*, a host keeps its cell until it is out of range. With *nearest*, it keeps it
        until another station is nearer. A host that needs a cell takes the nearest."""
        spec, at = self._spec, self._walker.at[node - self._spec.stations]
        cell = self._cells[node]
        stays = cell != NOWHERE and spec.choice == "stay"
        if stays and self._stations.is_in_range(cell, *at):
            return
        found = self._stations.nearest(*at)
        if found is None:
            self._away[node] = self._now_us
        self._enter(node, NOWHERE if found is None else found)

    def _enter(self, node: int, station: int) -> None:
        before = self._cells[node]
        if station == before:
            return
        driver = self._drivers[node]
        if driver.is_up and before != NOWHERE:
            self._depart(node)
        self._cells[node] = station
        self._channel.enter(node, station)
        if driver.is_up and before != NOWHERE:
            driver.on_link(self._now_us, before, False)
            self._handoffs += station != NOWHERE
        if driver.is_up and station != NOWHERE:
            self._entered.setdefault(node, self._now_us)
            driver.on_link(self._now_us, station, True)

    def _depart(self, node: int) -> None:
        """Update the record of when the host joined, before it leaves its cell or fails.

        A host that leaves before it learned of its registration has not joined: no station keeps
        messages for it."""
        if self._drivers[node].core.state == "connected":
            self._joined.add(node)
        elif node not in self._joined:
            self._entered.pop(node, None)

    def _leave(self, node: int) -> None:
        """Let a host leave permanently. It stays in its cell until its station has answered."""
        driver = self._drivers[node]
        if driver is not None and driver.is_up:
            self._gone.add(node)
            self._note(node, LEAVE)
            driver.on_leave(self._now_us)

    def _fail(self, index: int) -> None:
        failure = self._spec.failures[index]
        node = self._victim(index)
        if node is None:
            return
        back_us = self._now_us + failure.for_us
        self._outages.append(Outage(node, self._cells[node], self._now_us, back_us))
        self._depart(node)
        self._drivers[node].crash()
        self._note(node, CRASH)
        self._cells[node] = NOWHERE
        self._channel.enter(node, NOWHERE)
        self._channel.move(node, None)
        self._at(back_us, self._recover, node, is_change=True)

    def _victim(self, index: int) -> int | None:
        failure, spec = self._spec.failures[index], self._spec
        hosts = range(spec.stations, spec.nodes)
        up = [n for n in hosts if n not in self._gone and self._drivers[n] and self._is_up(n)]
        if failure.host is not None:
            return spec.stations + failure.host if spec.stations + failure.host in up else None
        if failure.station is not None:
            up = [node for node in up if self._cells[node] == failure.station]
        draw = unit(stream_key(self._seed, "cells/failures"), index)
        return up[int(draw * len(up))] if up else None

    def _is_up(self, node: int) -> bool:
        return bool(self._drivers[node].is_up)

    def _recover(self, node: int) -> None:
        self._note(node, RECOVER)
        self._drivers[node].restart(self._now_us)
        self._appear(node)

    # ---- steps of nodes -------------------------------------------------------------------------

    def _broadcast(self, node: int) -> None:
        driver = self._drivers[node]
        if driver is not None and driver.is_up and node not in self._gone:
            driver.on_broadcast(self._now_us, self._payload)

    def _arrive(self, node: int, source: int, frame: Any) -> None:
        self._source = source
        self._drivers[node].on_message(self._now_us, source, frame)
        self._source = NO_NODE

    def _fire(self, node: int, timer: Timer, ticket: int) -> None:
        self._drivers[node].on_timer(self._now_us, timer, ticket)

    def _sample(self) -> None:
        now_us, first = self._now_us, self._spec.stations
        stations = [driver.core.gauges(now_us) for driver in self._drivers[:first]]
        hosts = [d.core.gauges(now_us) for d in self._drivers[first:] if d is not None and d.is_up]
        outcomes, air_outcomes = self._channel.read()
        sample = Sample(
            now_us,
            [gauges.get("kept", 0) for gauges in stations],
            [gauges.get("early", 0) for gauges in hosts],
            [gauges.get("unacked", 0) for gauges in hosts],
            self._tally.read(),
            outcomes,
            air_outcomes,
        )
        self._samples.append(sample)
        self._at(now_us + self._spec.sample_us, self._sample)

    # ---- effects: the world is the port of every node -------------------------------------------

    def send(self, node: Any, sends: Sequence[tuple[NodeId | None, Any]]) -> None:
        spec, channel = self._spec, self._channel
        for peer, frame in sends:
            assert peer is None or isinstance(peer, int)
            if peer is not None and peer < spec.stations and node < spec.stations:
                _, size = self._tally.count(WIRE, node, peer, frame)
                size_bytes = size.total_bytes + spec.wiring.header_bytes
                due_us = self._wires.arrive_us(self._now_us, node, peer, size_bytes)
                self._at(due_us, self._arrive, peer, node, frame)
            else:
                kind, size = self._tally.count(RADIO, node, peer, frame)
                size_bytes = size.total_bytes + self._system.radio_header_bytes
                self._frames[channel.frames] = (node, frame)
                channel.ask((node, size_bytes, EVERYBODY if peer is None else peer, kind))

    def wake(self, node: Any, timer: Timer, due_us: int, ticket: int) -> None:
        """Schedule a timer with random jitter.

        Otherwise all nodes in range of a sender would answer at the same time, again and again.
        """
        spec, is_ack = self._spec, timer[0].endswith("ack")
        self._timers[node] += 1
        key = mix(mix(self._jitter_key, node), self._timers[node])
        jitter = spec.ack_jitter if is_ack else spec.timer_jitter
        late_us = int(unit(key, 0) * jitter * (due_us - self._now_us))
        if is_ack and node not in self._has_answered:
            self._has_answered.add(node)
            late_us += int(unit(key, 1) * spec.pace.ack_us)
        self._at(due_us + late_us, self._fire, node, timer, ticket)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        self._log.add(self._now_us, node, DELIVER, messages)

    def broadcasted(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        self._log.add(self._now_us, node, BROADCAST, (Message(message, (), b""),))

    def received(self, node: Any, messages: Sequence[Message]) -> None:
        self._senders.extend([self._source] * len(messages))
        self._log.add(self._now_us, node, RECEIVE, messages)

    def lost(self, node: Any, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        for kind, message in losses:
            self._log.add(self._now_us, node, LOSSES[kind], (Message(message, (), b""),))

    def _note(self, node: int, kind: int) -> None:
        self._log.add(self._now_us, node, kind, NO_MESSAGE)
