"""The world of contacts: a deterministic, event-driven opportunistic network.

It gives what a network gives: who is there, who is in contact with whom, time on the way, clocks
that are off, frames that get lost. What a protocol does with it is the cores' own business.

The cost follows contacts, frames and timers, never nodes x time. At one instant the topology
changes first (contacts end, nodes leave, nodes come, contacts begin), then applications broadcast,
then frames arrive and timers fire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from beforehand.core.base import Counters
from beforehand.core.epidemic import Epidemic
from beforehand.core.outbox import Outbox
from beforehand.mobility.trace import Trace
from beforehand.sim.clock import TRUE_CLOCK, Clock
from beforehand.sim.links import Channel, LinkModel
from beforehand.sim.log import (
    BROADCAST,
    CRASH,
    DELIVER,
    DROP,
    EXPIRE,
    JOIN,
    LEAVE,
    NO_MESSAGE,
    RECEIVE,
    RECOVER,
    Log,
)
from beforehand.sim.streams import mix, stream_key
from beforehand.sim.workload import Broadcast

_DOWN, _LEAVE, _JOIN, _UP, _SPEAK = range(5)  # the order of what happens at one instant
_LOSS_KINDS = {"expire": EXPIRE, "drop": DROP}

MakeCore = Callable[[int], Epidemic]


class ContactWorld:
    """Runs one core per node over a trace of contacts and records what happens."""

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
        """`crashes` holds (node, down_us) of the presences that end in a crash: the node comes back
        with what it had saved, and nothing else. `gauge_us` samples registry sizes, at most once
        per period and node, of `gauge_nodes` or all."""
        self.log = Log()
        self.gauges: list[tuple[int, int, str, int]] = []  # t_us, node, gauge, value
        self.frames_sent = self.frames_lost = self.bytes_sent = 0
        self.cores: dict[int, Epidemic] = {}
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
        self._channels: dict[tuple[int, int], Channel] = {}
        self._timers: dict[tuple[int, str], int] = {}  # -> ticket of the one that counts
        self._asleep: dict[int, list[str]] = {}  # node that is off -> timers that came due
        self._present: set[int] = set()
        self._saved: dict[int, dict[str, dict[Any, Any]]] = {}
        self._departed = Counters()
        self._last_down = {node: down_us for node, _, down_us in trace.presence.tolist()}
        self._out: Outbox[Any] = Outbox()
        self.now_us = trace.start_us

    # ---- running --------------------------------------------------------------------------------

    def run(self, events_max: int = 1 << 40) -> None:
        """Until nothing is left to happen. A world that does not come to rest is an error."""
        plan, queue = self._plan, self._queue
        position = 0
        for _ in range(events_max):
            if position < len(plan) and (not queue or plan[position][0] <= queue[0][0]):
                self.now_us, kind, a, b, index = plan[position]
                position += 1
                self._change(kind, a, b, index)
            elif queue:
                self.now_us, ticket, target, source, item = heappop(queue)
                if type(source) is str:
                    self._fire(target, source, ticket)
                else:
                    self._arrive(target, source, item)
            else:
                return
        raise RuntimeError(f"not quiet after {events_max} events, {len(queue)} queued")

    def counters(self) -> Counters:
        """The sum over all nodes, those that have left for good included."""
        total = Counters()
        for part in [self._departed, *(core.counters for core in self.cores.values())]:
            _add_counters(total, part)
        return total

    def core_at(self, node: int) -> Epidemic:
        """The core of a node that is still part of the world, for questions after a run."""
        return self.cores[node]

    def local_us(self, node: int) -> int:
        """What the node's own clock shows."""
        return self._clocks[node].read(self.now_us) if node in self._clocks else self.now_us

    # ---- what the plan brings -------------------------------------------------------------------

    def _change(self, kind: int, a: int, b: int, index: int) -> None:
        if kind == _SPEAK:
            self._speak(self._workload[index])
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

    def _speak(self, broadcast: Broadcast) -> None:
        node = broadcast.node
        if node not in self._present:
            return
        core, out = self.cores[node], self._out
        payload = bytes(broadcast.payload_bytes)
        core.on_broadcast(self.local_us(node), payload, out, broadcast.lifetime_us)
        own = next(i for i, m in enumerate(out.deliveries) if m.origin == node)
        # What an expiry made deliverable in this same step comes before the broadcast.
        self.log.add(self.now_us, node, DELIVER, out.deliveries[:own])
        del out.deliveries[:own]
        message = out.deliveries[0]
        self.log.add(self.now_us, node, BROADCAST, (message,), len(message.past))
        self._drain(node)

    def _link(self, a: int, b: int, *, up: bool) -> None:
        for node, peer in ((a, b), (b, a)):
            self.cores[node].on_link(self.local_us(node), peer, up, self._out)
            self._drain(node)

    def _join(self, node: int) -> None:
        self._present.add(node)
        if node in self.cores:
            self.log.add(self.now_us, node, JOIN, NO_MESSAGE)
            for name in self._asleep.pop(node, []):
                self._set_timer(node, name, self.now_us)
            return
        core = self.cores[node] = self._make_core(node)
        self._links.refuse_unless(core.needs, self._skew_us())
        saved = self._saved.get(node)
        self.log.add(self.now_us, node, JOIN if saved is None else RECOVER, NO_MESSAGE)
        if saved is not None:
            core.restore(self.local_us(node), saved, self._out)
            self._drain(node)

    def _leave(self, node: int) -> None:
        self._present.discard(node)
        has_crashed = (node, self.now_us) in self._crashes
        self.log.add(self.now_us, node, CRASH if has_crashed else LEAVE, NO_MESSAGE)
        if has_crashed or self.now_us >= self._last_down[node]:
            self._saved.setdefault(node, {})
            _add_counters(self._departed, self.cores.pop(node).counters)
            self._asleep.pop(node, None)
            for name in ("order", "announce", "retry"):
                self._timers.pop((node, name), None)

    # ---- what the queue brings ------------------------------------------------------------------

    def _arrive(self, target: int, source: int, frame: Any) -> None:
        self.cores[target].on_message(self.local_us(target), source, frame, self._out)
        self._drain(target)

    def _fire(self, node: int, name: str, ticket: int) -> None:
        if self._timers.get((node, name)) != ticket:
            return  # it was replaced or cancelled
        del self._timers[node, name]
        if node in self._present:
            self.cores[node].on_timer(self.local_us(node), name, self._out)
            self._drain(node)
        else:
            self._asleep.setdefault(node, []).append(name)

    # ---- effects --------------------------------------------------------------------------------

    def _drain(self, node: int) -> None:
        """Carry out the effects of one step, in the order that the outbox prescribes."""
        out, log, now_us = self._out, self.log, self.now_us
        if out.saves:
            self._save(node)
        if out.sends:
            self._send(node)
        if out.receives:
            log.add(now_us, node, RECEIVE, out.receives)
            out.receives.clear()
        if out.losses:
            for kind, message in out.losses:
                log.add(now_us, node, _LOSS_KINDS[kind], (message,))
            out.losses.clear()
        if out.deliveries:
            log.add(now_us, node, DELIVER, out.deliveries)
            out.deliveries.clear()
        if out.timers:
            for name, due_us in out.timers:
                if due_us < 0:
                    self._timers.pop((node, name), None)
                else:
                    due_us = self._clocks.get(node, TRUE_CLOCK).when(due_us)
                    self._set_timer(node, name, max(now_us, due_us))
            out.timers.clear()
        if self._gauge_us is not None:
            self._sample(node)

    def _save(self, node: int) -> None:
        tables = self._saved.setdefault(node, {})
        for table, key, value in self._out.saves:
            if value is None:
                tables.get(table, {}).pop(key, None)
            else:
                tables.setdefault(table, {})[key] = value
        self._out.saves.clear()

    def _send(self, node: int) -> None:
        model, queue = self._links, self._queue
        for peer, frame in self._out.sends:
            channel = self._channels.get((node, peer))  # type: ignore[arg-type]
            size_bytes = frame.size_bytes
            self.frames_sent += 1
            self.bytes_sent += size_bytes
            arrivals = channel.arrivals(model, self.now_us, size_bytes) if channel else ()
            if not arrivals:
                self.frames_lost += 1
            for arrive_us in arrivals:
                self._ticket += 1
                heappush(queue, (arrive_us, self._ticket, peer, node, frame))  # type: ignore[misc]
        self._out.sends.clear()

    def _set_timer(self, node: int, name: str, due_us: int) -> None:
        self._ticket += 1
        self._timers[node, name] = self._ticket
        heappush(self._queue, (due_us, self._ticket, node, name, None))

    def _sample(self, node: int) -> None:
        if self._gauge_nodes is not None and node not in self._gauge_nodes:
            return
        assert self._gauge_us is not None
        if node in self.cores and self.now_us >= self._gauge_due.get(node, 0):
            self._gauge_due[node] = self.now_us + self._gauge_us
            for gauge, value in self.cores[node].gauges(self.local_us(node)).items():
                self.gauges.append((self.now_us, node, gauge, value))

    def _skew_us(self) -> int:
        """How far apart any two clocks are, at either end of the trace."""
        clocks = [TRUE_CLOCK, *self._clocks.values()]
        apart_us = 0
        for t_us in (self._trace.start_us, self._trace.end_us):
            readings = [clock.read(t_us) for clock in clocks]
            apart_us = max(apart_us, max(readings) - min(readings))
        return apart_us


def _plan(trace: Trace, workload: Sequence[Broadcast]) -> list[tuple[int, int, int, int, int]]:
    """Everything known beforehand, as (t_us, kind, a, b, index), in order."""
    rows: list[tuple[int, int, int, int, int]] = []
    for index, (a, b, up_us, down_us) in enumerate(trace.contacts.tolist()):
        rows += [(up_us, _UP, a, b, index), (down_us, _DOWN, a, b, index)]
    for index, (node, up_us, down_us) in enumerate(trace.presence.tolist()):
        rows += [(up_us, _JOIN, node, -1, index), (down_us, _LEAVE, node, -1, index)]
    rows += [(b.t_us, _SPEAK, b.node, -1, index) for index, b in enumerate(workload)]
    rows.sort()
    return rows


def _add_counters(total: Counters, part: Counters) -> None:
    for name in Counters.__struct_fields__:
        setattr(total, name, getattr(total, name) + getattr(part, name))
