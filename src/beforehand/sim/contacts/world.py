"""The world of contacts: a deterministic, event-driven opportunistic network.

It models what a network provides: presence of nodes, contacts between them, delays, clock skew, and
frame loss. The protocol is entirely in the cores.

The cost is proportional to contacts, frames and timers, not to nodes x time. At one instant the
topology changes first (contacts end, nodes leave, nodes join, contacts begin). Then applications
broadcast. Then frames arrive and timers fire.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

from beforehand.events import BROADCAST, CRASH, DELIVER, JOIN, LEAVE, LOSSES, RECEIVE, RECOVER
from beforehand.mobility.trace import Trace
from beforehand.protocols.contract.base import (
    Broadcaster,
    Counters,
    Message,
    MessageId,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.protocols.contract.needs import Needs, refuse_unmet
from beforehand.protocols.contract.outbox import LossKind, Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.sim.clock import TRUE_CLOCK, Clock
from beforehand.sim.contacts.links import Channel, LinkModel
from beforehand.sim.contacts.workload import Broadcast
from beforehand.sim.log import NO_MESSAGE, Log
from beforehand.sim.streams import mix, stream_key

_DOWN, _LEAVE, _JOIN, _UP, _BROADCAST = range(5)  # the order of events at one instant

GAUGES = ("cache", "barrier", "delivered", "pending")
"""The gauges that OPP shows over time (figures 6 and 11)."""

PROGRESS_REPORTS = 500
"""How often, approximately, a run reports its progress."""

Wake = tuple[Timer, int]
OnDone = Callable[[int, int], object]
"""Called with (done, total): the numbers of planned events (contacts, stays, broadcasts)."""
MakeCore = Callable[[int], Broadcaster[Any]]


class ContactWorld:
    """Runs one core per node over a trace of contacts and records the events."""

    def __init__(
        self,
        trace: Trace,
        make_core: MakeCore,
        workload: Sequence[Broadcast],
        *,
        seed: int,
        links: LinkModel | None = None,
        clocks: Mapping[int, Clock] | None = None,
        crashes: frozenset[tuple[int, int]] = frozenset(),
        gauge_us: int | None = None,
        gauge_nodes: frozenset[int] | None = None,
    ) -> None:
        """Prepare a run.

        - crashes: (node, down_us) of the presences that end in a crash. The node comes back with
          its saved state, and nothing else.
        - gauge_us: sample registry sizes at most once per period and node.
        - gauge_nodes: the nodes to sample; None: all."""
        self.log = Log()
        self.gauges: list[tuple[int, int, str, int]] = []  # t_us, node, gauge, value
        self.senders = array("i")
        """The node that forwarded the message, for each `receive` row of the log."""
        self.pasts = array("q")
        """Origin and seq of the message, then of the cause, for each cause that a message names."""
        self.frames_sent = self.frames_lost = self.bytes_sent = 0
        self.frames_aborted = 0
        """Those of the lost frames that were under way when their contact ended."""
        self.drivers: dict[int, BroadcasterDriver[Any]] = {}
        self._trace = trace
        self._make_core = make_core
        self._links = links or LinkModel()
        self._clocks = dict(clocks or {})
        self._crashes = crashes
        self._gauge_us, self._gauge_nodes = gauge_us, gauge_nodes
        self._gauge_due: dict[int, int] = {}
        self._key = stream_key(seed, "frames")
        self._plan = _plan(trace, workload)
        self._workload = workload
        self._queue: list[tuple[int, int, int, Any, Any]] = []
        self._ticket = 0
        self._out: Outbox[Any] = Outbox()
        self._source = -1  # of the frame that is being handled
        self._channels: dict[tuple[int, int], Channel] = {}
        self._asleep: dict[int, list[Wake]] = {}  # node that is off -> timers that came due
        self._present: set[int] = set()
        self._departed = Counters()
        self._last_down = {node: down_us for node, _, down_us in trace.presence.tolist()}
        self.now_us = trace.start_us
        self._given = Needs({"contact": self._links.given}, self._skew_us())

    # ---- running --------------------------------------------------------------------------------

    def run(self, events_max: int = 1 << 40, *, on_done: OnDone | None = None) -> None:
        """Run until no event is left. A world that exceeds `events_max` events is an error."""
        plan, queue = self._plan, self._queue
        position = 0
        pace = max(1, len(plan) // PROGRESS_REPORTS)
        for _ in range(events_max):
            if position < len(plan) and (not queue or plan[position][0] <= queue[0][0]):
                self.now_us, kind, a, b, index = plan[position]
                position += 1
                self._change(kind, a, b, index)
                if on_done is not None and position % pace == 0:
                    on_done(position, len(plan))
            elif queue:
                self.now_us, _, target, source, item = heappop(queue)
                if type(source) is tuple:
                    self._fire(target, source, item)
                else:
                    self._source = source
                    local_us = self.local_us(target) if self._clocks else self.now_us
                    self.drivers[target].on_message(local_us, source, item)
                    if self._gauge_us is not None:
                        self._sample(target)
            else:
                return
        raise RuntimeError(f"not quiet after {events_max} events, {len(queue)} queued")

    def counters(self) -> Counters:
        """Return the sum of the counters of all nodes, including those that have left for good."""
        total = Counters()
        for part in [self._departed, *(d.core.counters for d in self.drivers.values())]:
            _add_counters(total, part)
        return total

    def local_us(self, node: int) -> int:
        """Return the reading of the node's own clock."""
        return self._clocks[node].read(self.now_us) if node in self._clocks else self.now_us

    # ---- planned events -------------------------------------------------------------------------

    def _change(self, kind: int, a: int, b: int, index: int) -> None:
        if kind == _BROADCAST:
            self._on_broadcast(self._workload[index])
        elif kind == _UP:
            down_us = int(self._trace.contacts[index, 3])
            key = mix(self._key, index)
            self._channels[a, b] = Channel(mix(key, 0), down_us)
            self._channels[b, a] = Channel(mix(key, 1), down_us)
            self._link(a, b, up=True)
        elif kind == _DOWN:
            del self._channels[a, b], self._channels[b, a]
            self._link(a, b, up=False)
        elif kind == _JOIN:
            self._join(a)
        else:
            self._leave(a)

    def _on_broadcast(self, broadcast: Broadcast) -> None:
        node = broadcast.node
        if node in self._present:
            payload = bytes(broadcast.payload_bytes)
            driver = self.drivers[node]
            driver.on_broadcast(self.local_us(node), payload, broadcast.lifetime_us)
            self._sample(node)

    def _link(self, a: int, b: int, *, up: bool) -> None:
        for node, peer in ((a, b), (b, a)):
            self.drivers[node].on_link(self.local_us(node), peer, up)
            self._sample(node)

    def _join(self, node: int) -> None:
        self._present.add(node)
        driver = self.drivers.get(node)
        if driver is not None and driver.is_up:
            self.log.add(self.now_us, node, JOIN, NO_MESSAGE)
            for timer, ticket in self._asleep.pop(node, []):
                self._queue_timer(node, timer, ticket, self.now_us)
        elif driver is not None:
            self.log.add(self.now_us, node, RECOVER, NO_MESSAGE)
            driver.restart(self.local_us(node))
            self._sample(node)
        else:
            self.drivers[node] = self._make_driver(node)
            self.log.add(self.now_us, node, JOIN, NO_MESSAGE)

    def _make_driver(self, node: int) -> BroadcasterDriver[Any]:
        make_core = partial(self._make_core, node)
        driver = BroadcasterDriver(make_core, self, store=Store(), out=self._out)
        refuse_unmet(driver.core.needs, self._given)
        return driver

    def _leave(self, node: int) -> None:
        self._present.discard(node)
        has_crashed = (node, self.now_us) in self._crashes
        self.log.add(self.now_us, node, CRASH if has_crashed else LEAVE, NO_MESSAGE)
        is_last = self.now_us >= self._last_down[node]
        if has_crashed or is_last:
            driver = self.drivers[node]
            _add_counters(self._departed, driver.core.counters)
            driver.crash()
            self._asleep.pop(node, None)
        if is_last:
            del self.drivers[node]

    # ---- effects: the world is the port of every node -------------------------------------------

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, Any]]) -> None:
        model, queue = self._links, self._queue
        for peer, frame in sends:
            channel = self._channels.get((node, peer))  # type: ignore[arg-type]
            size_bytes = frame.size_bytes
            self.frames_sent += 1
            self.bytes_sent += size_bytes
            arrivals = channel.arrivals(model, self.now_us, size_bytes) if channel else ()
            if not arrivals:
                self.frames_lost += 1
                self.frames_aborted += channel is None or channel.was_cut
            for arrive_us in arrivals:
                self._ticket += 1
                heappush(queue, (arrive_us, self._ticket, peer, node, frame))  # type: ignore[misc]

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        self.log.add(self.now_us, node, DELIVER, messages)  # type: ignore[arg-type]

    def broadcasted(self, node: NodeId, message: MessageId, deliveries: list[Message]) -> None:
        own = next(at for at, delivered in enumerate(deliveries) if delivered.id == message)
        # An expiry in this same step may make messages deliverable. They come before the broadcast.
        self.deliver(node, deliveries[:own])
        del deliveries[:own]
        broadcast = deliveries[0]
        causes = len(broadcast.past)
        for cause in broadcast.past:
            self.pasts.extend((*broadcast.id, *cause))  # type: ignore[arg-type]
        self.log.add(self.now_us, node, BROADCAST, (broadcast,), causes)  # type: ignore[arg-type]

    def received(self, node: NodeId, messages: Sequence[Message]) -> None:
        self.senders.extend([self._source] * len(messages))
        self.log.add(self.now_us, node, RECEIVE, messages)  # type: ignore[arg-type]

    def lost(self, node: NodeId, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        for kind, message in losses:
            lost = (Message(message, (), b""),)
            self.log.add(self.now_us, node, LOSSES[kind], lost)  # type: ignore[arg-type]

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        assert isinstance(node, int)
        due_us = self._clocks.get(node, TRUE_CLOCK).when(due_us)
        self._queue_timer(node, timer, ticket, max(self.now_us, due_us))

    def _queue_timer(self, node: int, timer: Timer, ticket: int, due_us: int) -> None:
        self._ticket += 1
        heappush(self._queue, (due_us, self._ticket, node, timer, ticket))

    def _fire(self, node: int, timer: Timer, ticket: int) -> None:
        driver = self.drivers.get(node)
        if driver is None or not driver.is_awaited(timer, ticket):
            return
        if node in self._present:
            driver.on_timer(self.local_us(node), timer, ticket)
            self._sample(node)
        else:
            self._asleep.setdefault(node, []).append((timer, ticket))

    def _sample(self, node: int) -> None:
        """Sample the sizes of the registries after a step of the node, if a sample is due."""
        if self._gauge_us is None or not self.drivers[node].is_up:
            return
        if self._gauge_nodes is not None and node not in self._gauge_nodes:
            return
        if self.now_us >= self._gauge_due.get(node, 0):
            self._gauge_due[node] = self.now_us + self._gauge_us
            gauges = self.drivers[node].core.gauges(self.local_us(node))
            sampled = [(gauge, gauges[gauge]) for gauge in GAUGES if gauge in gauges]
            self.gauges += [(self.now_us, node, *sample) for sample in sampled]

    def _skew_us(self) -> int:
        """Return the largest difference between two clocks, at either end of the trace."""
        clocks = [TRUE_CLOCK, *self._clocks.values()]
        apart_us = 0
        for t_us in (self._trace.start_us, self._trace.end_us):
            readings = [clock.read(t_us) for clock in clocks]
            apart_us = max(apart_us, max(readings) - min(readings))
        return apart_us


def _plan(trace: Trace, workload: Sequence[Broadcast]) -> list[tuple[int, int, int, int, int]]:
    """Return all events known in advance as (t_us, kind, a, b, index), in order."""
    rows: list[tuple[int, int, int, int, int]] = []
    for index, (a, b, up_us, down_us) in enumerate(trace.contacts.tolist()):
        rows += [(up_us, _UP, a, b, index), (down_us, _DOWN, a, b, index)]
    for index, (node, up_us, down_us) in enumerate(trace.presence.tolist()):
        rows += [(up_us, _JOIN, node, -1, index), (down_us, _LEAVE, node, -1, index)]
    rows += [(b.t_us, _BROADCAST, b.node, -1, index) for index, b in enumerate(workload)]
    rows.sort()
    return rows


def _add_counters(total: Counters, part: Counters) -> None:
    for name in Counters.__struct_fields__:
        setattr(total, name, getattr(total, name) + getattr(part, name))
