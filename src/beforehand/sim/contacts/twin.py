"""The compiled twin of the contact world: the same event log, some thirty times as fast.

The twin covers what `refusal` does not name, and refuses everything else before the run. Some
things show only during a run, as more live messages than planned. Then it raises `Uncovered`, and
the cores have to play the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.events import COLUMNS, RECEIVE
from beforehand.kernels.compiling import is_compiled
from beforehand.kernels.epidemic.order import rehash
from beforehand.kernels.epidemic.queue import INDEX_MAX, TICKETS_MAX
from beforehand.kernels.epidemic.run import play
from beforehand.kernels.epidemic.state import (
    ABORTED,
    AHEAD,
    ARRIVED,
    BYTES,
    DELIVERIES,
    DONE,
    DROPPED,
    DUPLICATE,
    EVICTED,
    EVICTION_ROWS,
    EVICTIONS,
    EXPIRED,
    FRAMES,
    LOST,
    MANY_EVICTED,
    MANY_KNOWN,
    NEED,
    NONE,
    OFFERED_AGAIN,
    POSITION,
    RECEIVED,
    RING_FULL,
    ROW_TYPES,
    ROWS,
    SAMPLES,
    SHORT_ENTRIES,
    SHORT_EVICTIONS,
    SHORT_HEAP,
    SHORT_LINKS,
    SHORT_PAST,
    SHORT_POOL,
    SHORT_RECORDS,
    SHORT_ROWS,
    SHORT_SAMPLES,
    SHORT_SLOTS,
    SHORT_WAITS,
    STALE,
    TICKET,
    Fixed,
    State,
    make_state,
)
from beforehand.mobility.trace import Trace, make_trace
from beforehand.protocols.contract.base import Counters
from beforehand.sim.contacts.columns import Growing
from beforehand.sim.contacts.fixed import make_fixed
from beforehand.sim.contacts.plan import live_at_once
from beforehand.sim.contacts.run import Result, Spec, Totals
from beforehand.sim.contacts.running import LogPage
from beforehand.sim.contacts.traffic import Planned, plan_traffic
from beforehand.sim.contacts.world import GAUGES, PROGRESS_REPORTS, OnDone

OnPage = Callable[[LogPage], object]
"""Called with the next part of the log."""

ROWS_PER_PAGE = 1 << 17
SETS_BYTES_MAX = 8 << 30
"""The most memory that the sets of messages may take."""
MESSAGES_MAX = 1 << 26
"""See `kernels.epidemic.sets.INVERSE_BITS`."""
GROWING: dict[int, tuple[str, ...]] = {
    SHORT_ROWS: tuple(ROW_TYPES),
    SHORT_POOL: ("pool",),
    SHORT_HEAP: ("heap",),
    SHORT_RECORDS: ("record",),
    SHORT_WAITS: ("wait",),
    SHORT_ENTRIES: ("entry",),
    SHORT_PAST: ("past",),
    SHORT_LINKS: ("link", "link_sets"),
    SHORT_SLOTS: ("sets", "slot_next", "filled"),
    SHORT_SAMPLES: ("sample",),
    SHORT_EVICTIONS: ("eviction",),
}
"""The arrays that grow together, for each reason why compiled code returns."""
REASONS = {
    RING_FULL: "chains of causes keep more messages alive than the lifetime says",
    MANY_EVICTED: "a node evicts more than 1,024 messages between two link-ups",
    MANY_KNOWN: "a peer is known to have more messages than a node notes",
}


class Uncovered(Exception):
    """The twin cannot go on with this run; the cores can."""


def refusal(trace: Trace, spec: Spec) -> str | None:
    """Return why the twin does not cover a run, or None if it does."""
    layer = spec.layer
    named = {
        f"the protocol `{spec.protocol}`": spec.protocol
        not in ("causal", "delta", "vector", "none"),
        "push": layer.push,
        "version vectors": layer.digest_after is not None,
        "flow control": layer.flow is not None,
        "literal deadlines": spec.literal_deadlines,
        f"more than {INDEX_MAX:,} nodes": trace.nodes_count >= INDEX_MAX,
    }
    refused = [name for name, is_so in named.items() if is_so]
    if refused:
        return f"it does not have {', '.join(refused)}"
    times = (trace.start_us, trace.end_us, 2 * (spec.life_us or 0), layer.announce_us)
    if sum(map(abs, times)) + spec.links.jitter_us + (layer.retry_us or 0) >= AHEAD // 4:
        return "times are too large"
    return None


@dataclass
class Twin:
    """One run of the twin."""

    trace: Trace
    spec: Spec
    rows_per_page: int = ROWS_PER_PAGE
    room: int = 1 << 10
    """A power of two: the size of arrays that grow."""
    spare: float = 0.5
    """How much an array that is too short grows beyond the need, as a share of its length."""
    on_done: OnDone | None = None
    note: Callable[[str], object] = print
    """Takes a sentence about the compilation, which happens once."""
    traffic: Planned = field(init=False)

    def __post_init__(self) -> None:
        self.traffic = plan_traffic(self.trace, self.spec.traffic, self.spec.seed)

    @property
    def live(self) -> int:
        """Return how many messages are alive at once at most."""
        return live_at_once(self.traffic.t_us, self.spec.life_us)

    def run(self) -> Result:
        """Play the run and keep its log. Raise Uncovered if it turns out that the twin does not
        cover it."""
        log, senders = Growing(COLUMNS), Growing({"sender": "int32"})

        def keep(page: LogPage) -> None:
            log.append(page.columns)
            senders.append({"sender": page.senders})

        totals = self.stream(keep)
        return Result(columns=log.taken(), senders=senders.taken()["sender"], **vars(totals))

    def stream(self, on_page: OnPage) -> Totals:
        """Play the run, and hand its log on page by page. Raise Uncovered as `run` does."""
        traffic = self.traffic
        fixed = make_fixed(self.trace, self.spec, traffic)
        nodes, messages = self.trace.nodes_count, len(traffic.t_us)
        slots, links = _most_slots(self.trace), _most_links(self.trace)
        _refuse_size(fixed, messages, slots, links)
        state = make_state(
            fixed,
            nodes=nodes,
            messages=messages,
            rows=self.rows_per_page,
            slots=slots,
            links=links,
            room=self.room,
        )
        compile_world(self.note)
        state = self._play(fixed, state, on_page)
        self._flush(state, on_page)
        return self._totals(state, messages)

    def _play(self, fixed: Fixed, state: State, on_page: OnPage) -> State:
        size, counts, on_done = len(fixed.plan_t), state.counts, self.on_done
        pace = max(1, size // PROGRESS_REPORTS) if on_done is not None else size
        until = min(pace, size)
        while True:
            short = play(fixed, state, until)
            if short == DONE and until >= size:
                return state
            if short == DONE:
                assert on_done is not None
                on_done(int(counts[POSITION]), size)
                until = min(until + pace, size)
            elif short in REASONS:
                raise Uncovered(REASONS[short])
            elif short == SHORT_ROWS and counts[ROWS]:
                self._flush(state, on_page)
            else:
                state = _grown(state, short, self.spare)
            longest = max(len(state.link), len(state.record) if fixed.is_noisy else 0)
            if counts[TICKET] >= TICKETS_MAX // 2 or longest > INDEX_MAX:
                raise Uncovered("too many frames or contacts at once")

    def _flush(self, state: State, on_page: OnPage) -> None:
        """Hand on the rows of the state, as columns of the log."""
        size = int(state.counts[ROWS])
        state.counts[ROWS] = 0
        t_us, node, kind, message, value = (getattr(state, name)[:size] for name in ROW_TYPES)
        has_message, is_receive = message != NONE, kind == RECEIVE
        made = {
            "t_us": t_us.copy(),
            "node": node.copy(),
            "kind": kind.copy(),
            "origin": np.where(has_message, state.origin[message], np.int32(NONE)),
            "seq": np.where(has_message, state.seq[message], NONE),
            "value": np.where(is_receive, 0, value).astype(np.int64),
        }
        on_page(LogPage(made, message.copy(), value[is_receive]))

    def _totals(self, state: State, messages: int) -> Totals:
        counts = state.counts
        counters = Counters(
            broadcast=messages,
            received=int(counts[RECEIVED]),
            delivered=int(counts[DELIVERIES]),
            duplicate=int(counts[DUPLICATE]),
            stale=int(counts[STALE]),
            expired=int(counts[EXPIRED]),
            evicted=int(counts[EVICTIONS]),
            dropped=int(counts[DROPPED]),
        )
        lost = aborted = int(counts[FRAMES] - counts[ARRIVED])
        if self.spec.links.is_noisy:
            lost, aborted = int(counts[LOST]), int(counts[ABORTED])
        return Totals(
            gauges=_gauges(state, self.spec.protocol),
            counters=counters,
            frames_sent=int(counts[FRAMES]),
            frames_lost=lost,
            frames_aborted=aborted,  # without noise a frame is lost only when its contact ends
            bytes_sent=int(counts[BYTES]),
            pasts=_pasts(state, messages),
            evictions=_evictions(state),
        )


def _evictions(state: State) -> NDArray[np.int64]:
    """Return time, node, origin and seq of each eviction."""
    t_us, node, message = state.eviction[: state.counts[EVICTION_ROWS]].T
    return np.stack([t_us, node, state.origin[message], state.seq[message]], axis=1)


def _pasts(state: State, messages: int) -> NDArray[np.int64]:
    """Return origin and seq of each message and of each of its causes."""
    size = state.past_size[:messages].astype(np.int64)
    effect = np.repeat(np.arange(messages), size)
    first = np.repeat(state.past_start[:messages] - np.cumsum(size) + size, size)
    cause = state.past[first + np.arange(len(effect))]
    ids = (state.origin[effect], state.seq[effect], state.origin[cause], state.seq[cause])
    return np.stack(ids, axis=1).astype(np.int64)


def compile_world(note: Callable[[str], object]) -> None:
    """Compile the twin, if that has not been done, and say so."""
    if is_compiled(play) and is_compiled(rehash):
        return
    note("compiling the contact world, once for this installation: a minute or two")
    started_s = time.perf_counter()
    trace = make_trace(["a", "b"], np.array([(0, 1, 0, 1)]))
    spec = Spec("causal")
    fixed = make_fixed(trace, spec, plan_traffic(trace, spec.traffic, spec.seed))
    state = make_state(fixed, nodes=2, messages=0, rows=1, slots=2, links=2, room=2)
    play(fixed, state, 0)
    rehash(state, state.bucket)
    note(f"compiled in {time.perf_counter() - started_s:.0f} s")


def _grown(state: State, short: int, spare: float) -> State:
    """Return the state with longer arrays where they were too short."""
    need = int(state.counts[NEED])
    changed: dict[str, NDArray[Any]] = {}
    for name in GROWING[short]:
        old = getattr(state, name)
        length = max(need, len(old) + int(spare * len(old)))
        changed[name] = np.zeros((length + length % 2, *old.shape[1:]), old.dtype)
        changed[name][: len(old)] = old
    grown = state._replace(**changed)
    buckets = len(state.bucket)
    if short == SHORT_WAITS and len(grown.wait) > buckets:
        size = 1 << (len(grown.wait) - 1).bit_length()
        grown = grown._replace(bucket=np.full(size, NONE, np.int32))
        rehash(grown, state.bucket)
    return grown


def _gauges(state: State, protocol: str) -> list[tuple[int, int, str, int]]:
    if protocol == "none":
        return [
            (t_us, node, gauge, value)
            for t_us, node, cached, _, taken, _ in state.sample[: state.counts[SAMPLES]].tolist()
            for gauge, value in (("cache", cached), ("delivered", taken))
        ]
    return [
        (t_us, node, gauge, value)
        for t_us, node, *values in state.sample[: state.counts[SAMPLES]].tolist()
        for gauge, value in zip(GAUGES, values, strict=True)
        if gauge != "barrier" or protocol != "vector"
    ]


def _refuse_size(fixed: Fixed, messages: int, slots: int, links: int) -> None:
    """Refuse a run that is too large."""
    if messages > MESSAGES_MAX:
        raise Uncovered(f"more than {MESSAGES_MAX:,} broadcasts")
    sets = slots * (EVICTED + fixed.is_bounded) + links * (OFFERED_AGAIN + fixed.repeats)
    if 8 * fixed.words * sets > SETS_BYTES_MAX:
        raise Uncovered(f"the sets of messages would take {8 * fixed.words * sets / 1e9:.1f} GB")


def _most_slots(trace: Trace) -> int:
    """Return how many nodes have state at once: from their first coming to their last going."""
    first, last = np.full(trace.nodes_count, AHEAD), np.full(trace.nodes_count, -AHEAD)
    np.minimum.at(first, trace.presence[:, 0], trace.presence[:, 1])
    np.maximum.at(last, trace.presence[:, 0], trace.presence[:, 2])
    return max(1, _most_at_once(first[first < AHEAD], last[first < AHEAD]))


def _most_links(trace: Trace) -> int:
    """Return how many ends of contacts are up at once at most."""
    return max(2, 2 * _most_at_once(trace.contacts[:, 2], trace.contacts[:, 3]))


def _most_at_once(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return how many of these spans overlap at most; one that ends gives its place to another."""
    starts = np.sort(begins)
    over = np.searchsorted(np.sort(ends), starts, "right")
    return int((np.arange(1, len(starts) + 1) - over).max(initial=0))
