"""The world of OBS section 5: processes with drifting clocks, watched by an observer.

At each step one of the n processes or the observer is picked, and its clock advances by one tick.
A tick that would leave another clock more than ε behind is skipped (G1). A process that ticks sends
with probability `rate`. A copy of a message takes at most δ, measured on the sender's clock, or is
lost (G2). The paper does not specify how many processes get a message: `fan_out` is a parameter.

`simulate` is the compiled run. `run_slowly` does the same with the protocol cores, as a readable
reference. One run serves every dial of the observer, since the observer sends nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError, InputErrors
from beforehand.kernels.observer import drift as kernel
from beforehand.kernels.observer.reorder import (
    FOREVER,
    Delivered,
    Rule,
    Stamps,
    empty_queue,
    reorder,
)
from beforehand.kernels.verify.violations import count_violations
from beforehand.protocols.contract.base import Message, NodeId, Timer
from beforehand.protocols.contract.driver import Driver
from beforehand.protocols.observer.observer import Dial, Observer, Stamped
from beforehand.protocols.observer.timestamp import Guarantees, LogicalClock, Stamp, StampCodec
from beforehand.sim.streams import stream_key

Ints = NDArray[np.int64]
Law = Literal["half", "quarter"]
DelayClock = Literal["sender", "steps", "ticks"]

LAWS: dict[Law, tuple[float, float]] = {"half": (1 / 2, 1 / 4), "quarter": (1 / 4, 1 / 8)}
"""Mean and standard deviation of the delay, as fractions of δ."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the parameters of the paper, and the choices that it leaves open."""

    processes: int = 10
    epsilon: int = 10
    delta: int = 10
    rate: float = 0.1
    law: Law = "half"
    fan_out: int | None = None
    """The number of processes to which a message goes; None: all others."""
    delay_clock: DelayClock = "sender"
    """The unit of delays: ticks of the sender's clock, as in G2, or steps of the simulation. Steps
    also satisfy G2, because a clock advances by at most one tick per step. With "ticks" they are
    steps, and a process receives a message only at its own next tick, after it has sent."""
    messages: int = 10_000
    seed: int = 1

    def check(self) -> None:
        """Refuse parameters that cannot be run, and report all of them at once."""
        others = self.processes - 1
        problems = [
            (self.processes < 2, f"{self.processes} processes", "at least 2"),
            (self.epsilon < 1, f"ε = {self.epsilon}", "at least 1, or no clock may ever move"),
            (self.delta < 1, f"δ = {self.delta}", "at least 1 tick"),
            (not 0 < self.rate <= 1, f"rate {self.rate}", "above 0, at most 1"),
            (self.law not in LAWS, f"law {self.law!r}", "half or quarter"),
            (not 1 <= self.targets <= others, f"fan-out {self.fan_out}", f"1 to {others}"),
            (self.messages < 1, f"{self.messages} messages", "at least 1"),
        ]
        errors = [
            InputError(f"drift: cannot run with {what}", hint=f"choose {hint}")
            for is_wrong, what, hint in problems
            if is_wrong
        ]
        if errors:
            raise InputErrors(errors)

    @property
    def targets(self) -> int:
        return self.processes - 1 if self.fan_out is None else self.fan_out

    @property
    def guarantees(self) -> Guarantees:
        # A safe bound for K: while one clock stands still, another takes at most 2ε + 1 values. So
        # it had δ + 2ε + 1 ticks to send what arrives meanwhile. Plus one own send, and the start.
        arrivals = (self.processes - 1) * (self.delta + 2 * self.epsilon + 1)
        return Guarantees(self.processes, self.epsilon, self.delta, arrivals + 2)

    def network(self) -> kernel.Network:
        mean, stdev = LAWS[self.law]
        return kernel.Network(
            epsilon=self.epsilon,
            delta=self.delta,
            rate=self.rate,
            mean=mean * self.delta,
            stdev=stdev * self.delta,
            fan_out=self.targets,
            counts_steps=self.delay_clock != "sender",
            waits_for_tick=self.delay_clock == "ticks",
        )

    def keys(self) -> NDArray[np.uint64]:
        return np.array([stream_key(self.seed, stream) for stream in kernel.STREAMS], np.uint64)


class Run(NamedTuple):
    """The result of one run: a row per message, in order of sending."""

    stamps: Stamps
    seq: Ints
    past: Ints
    """The vector clock of each sending. This ground truth is never shown to an observer."""
    arrival: Ints
    """The observer's clock on arrival; -1 for a message that it never received."""
    arrived: Ints
    """Message numbers in order of their arrival at the observer."""
    lost_copies: int
    """The number of lost copies between processes."""
    events_per_tick: int
    """The most events that one process had at one value of its clock."""


def simulate(spec: Drift) -> Run:
    """Return the result of the compiled run."""
    spec.check()
    state = kernel.new_state(spec.processes, spec.messages, spec.network())
    kernel.run(state, spec.keys(), spec.network())
    return Run(
        Stamps(state.origin, state.r, state.c, state.message_kn),
        state.seq,
        state.message_past,
        state.arrival,
        state.arrived[: state.tally[kernel.ARRIVED]],
        int(state.tally[kernel.LOST_COPIES]),
        int(state.tally[kernel.EVENTS_MAX]),
    )


def rule_of(dial: Dial, guarantees: Guarantees) -> Rule:
    """Return the dial in the form that the ordering kernel takes."""
    return Rule(
        wait_percent=dial.wait_percent,
        checks_queue=dial.checks_queue,
        elements=guarantees.elements_full if dial.elements is None else dial.elements,
        uses_c=dial.uses_c,
        epsilon=guarantees.epsilon,
        delta=guarantees.delta,
        kn_max=guarantees.kn_max,
    )


def deliver(run: Run, spec: Drift, dial: Dial) -> Delivered:
    """Return the messages that an observer with this dial delivers, with their times."""
    at, rule = run.arrived, rule_of(dial, spec.guarantees)
    stamps = Stamps(*(column[at] for column in run.stamps))
    _, delivered, _ = reorder(empty_queue(rule), run.arrival[at], at, stamps, rule, FOREVER)
    return delivered


def run_slowly(spec: Drift, dials: Sequence[Dial]) -> tuple[Run, list[list[tuple[int, int]]]]:
    """Run with the protocol cores. Also return (message number, tick) as each dial delivers."""
    spec.check()
    world = _SlowWorld(spec, dials)
    world.run()
    messages = world.messages
    stamps = Stamps(
        np.array([message.origin for message, _, _ in messages]),
        np.array([stamp.r for _, stamp, _ in messages]),
        np.array([stamp.c for _, stamp, _ in messages]),
        np.array([stamp.kn for _, stamp, _ in messages]),
    )
    run = Run(
        stamps,
        np.array([message.seq for message, _, _ in messages]),
        np.array([past for _, _, past in messages]),
        np.array([world.arrival.get(i, kernel.LOST) for i in range(len(messages))]),
        np.array(list(world.arrival), dtype=np.int64),
        world.lost_copies,
        world.events_per_tick,
    )
    return run, [eye.diary for eye in world.eyes]


class _Eye:
    """An observer with its alarm clock and a log of its deliveries."""

    def __init__(self, node: int, guarantees: Guarantees, dial: Dial) -> None:
        self.diary: list[tuple[int, int]] = []
        self._driver = Driver(lambda: Observer(node, guarantees, dial), self)
        self._now = 0
        self._alarm: tuple[int, Timer, int] | None = None

    def watch(self, now: int, frame: Stamped | None) -> None:
        self._now = now
        if frame is not None:
            self._driver.on_message(now, frame.process, frame)
        elif self._alarm is not None and self._alarm[0] <= now:
            self._driver.on_timer(now, *self._alarm[1:])

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        self.diary += [(int.from_bytes(m.payload, "big"), self._now) for m in messages]

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        self._alarm = (due_us, timer, ticket)  # an observer has one timer

    def _ignore(self, *_: Any, **__: Any) -> None: ...

    send = broadcasted = received = lost = _ignore


class _SlowWorld:
    def __init__(self, spec: Drift, dials: Sequence[Dial]) -> None:
        self.spec, self.network = spec, spec.network()
        self.steps, self.traffic, self.delays, self.targets = spec.keys()
        guarantees, n = spec.guarantees, spec.processes
        self.now = [0] * (n + 1)
        self.clocks = [LogicalClock(p, guarantees) for p in range(n)]
        self.past = [[0] * n for _ in range(n)]
        self.here = [1] * n
        self.eyes = [_Eye(n, guarantees, dial) for dial in dials]
        self.inbox: list[list[int]] = [[] for _ in range(n)]
        self.under_way: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.messages: list[tuple[Message, Stamp, list[int]]] = []
        self.arrival: dict[int, int] = {}
        self.lost_copies = self.events_per_tick = 0

    def run(self) -> None:
        spec, n = self.spec, self.spec.processes
        draw = step = 0
        while len(self.messages) < spec.messages or self.under_way or any(self.inbox):
            p = kernel.ticking_process(self.steps, draw, n)
            draw += 1
            if self.now[p] + 1 - min(self.now) > spec.epsilon:
                continue  # G1: another process is picked
            self.now[p] += 1
            step += 1
            if p == n:
                self._watch(None)
            else:
                self.here[p] = 0
            measure = (0, step) if self.network.counts_steps else (p, self.now[p])
            for message, target in self.under_way.pop(measure, ()):
                if self.network.waits_for_tick and target < n:
                    self.inbox[target].append(message)
                else:
                    self._receive(target, message)
            may_send = p < n and len(self.messages) < spec.messages
            if may_send and kernel.sends_now(self.traffic, p, self.now[p], spec.rate):
                self._send(p, measure)
            if p < n:
                waiting, self.inbox[p] = self.inbox[p], []
                for message in waiting:
                    self._receive(p, message)
        # The observer's clock goes on after the last event.
        for _ in range(2 * spec.guarantees.horizon):
            self.now[n] += 1
            self._watch(None)

    def _send(self, p: int, measure: tuple[int, int]) -> None:
        spec, n = self.spec, self.spec.processes
        self.past[p][p] += 1
        seq = self.past[p][p]
        stamp = self.clocks[p].send(self.now[p])
        self._count(p)
        number = len(self.messages)
        payload = number.to_bytes(4, "big")
        self.messages.append((Message((p, seq), (), payload), stamp, list(self.past[p])))
        for target in [*kernel.targets_of(self.targets, p, seq, n, spec.targets), n]:
            delay = kernel.delay_units(self.delays, p, seq, target, self.network)
            if delay != kernel.LOST:
                self.under_way[measure[0], measure[1] + delay].append((number, target))
            elif target < n:
                self.lost_copies += 1

    def _receive(self, target: int, number: int) -> None:
        message, stamp, past = self.messages[number]
        if target == self.spec.processes:
            self.arrival[number] = self.now[target]
            self._watch(Stamped(message, int(message.origin), stamp))
        else:
            self.clocks[target].receive(self.now[target], stamp)
            self.past[target] = [max(pair) for pair in zip(self.past[target], past, strict=True)]
            self._count(target)

    def _count(self, p: int) -> None:
        self.here[p] += 1
        self.events_per_tick = max(self.events_per_tick, self.here[p])

    def _watch(self, frame: Stamped | None) -> None:
        """Give all observers a message, or the next tick of their clock."""
        for eye in self.eyes:
            eye.watch(self.now[-1], frame)


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One observer on one run: a row of the tables behind figures 2 to 7."""

    processes: int
    epsilon: int
    delta: int
    rate: float
    law: Law
    fan_out: int
    delay_clock: DelayClock
    messages: int
    seed: int
    observer: str
    """dapw, cbd, dpc1 or dpc2; cbd-k uses the first k elements of kn."""
    wait_percent: int
    received: int
    lost: int
    """Messages that never reached the observer: their delay was above δ."""
    backward: int
    forward: int
    violations_percent: float
    """The measure of the paper: the mean percentage of messages in violation, either way."""
    pairs: int
    inverted: int
    pairs_percent: float
    overtaken: int
    """Messages delivered after one with a larger timestamp. An observer can count these itself."""
    wait_mean: float
    """The mean time from r to the delivery on the observer's clock, in ticks."""
    wait_share_max: float
    """The longest wait as a fraction of δ + 2ε, the bound of the perfect observer."""
    c_share_max: float
    """The largest c as a fraction of ε."""
    events_per_tick: int
    """K of this run: the most events that one process had at one value of its clock."""
    kn_share_max: float
    """The largest element of kn as a fraction of K n."""
    size_bytes: int
    """The size of a timestamp with the elements that this observer uses; K = 1 as in the paper."""


def measure(spec: Drift, dials: Iterable[tuple[str, Dial]]) -> Iterator[Measure]:
    """Simulate once, and observe the run with every dial."""
    run = simulate(spec)
    for name, dial in dials:
        yield _measure(run, spec, name, dial)


def _measure(run: Run, spec: Drift, name: str, dial: Dial) -> Measure:
    delivered = deliver(run, spec, dial)
    counts = count_violations(delivered.label, run.stamps.process, run.seq, run.past)
    waits = delivered.tick - run.stamps.r[delivered.label]
    published = Guarantees(spec.processes, spec.epsilon, spec.delta)
    return Measure(
        processes=spec.processes,
        epsilon=spec.epsilon,
        delta=spec.delta,
        rate=spec.rate,
        law=spec.law,
        fan_out=spec.targets,
        delay_clock=spec.delay_clock,
        messages=spec.messages,
        seed=spec.seed,
        observer=name,
        wait_percent=dial.wait_percent,
        received=len(run.arrived),
        lost=spec.messages - len(run.arrived),
        backward=counts.backward,
        forward=counts.forward,
        violations_percent=counts.messages_percent,
        pairs=counts.pairs,
        inverted=counts.inverted,
        pairs_percent=counts.pairs_percent,
        overtaken=int(delivered.is_overtaken.sum()),
        wait_mean=float(waits.mean()) if len(waits) else 0.0,
        wait_share_max=float(waits.max(initial=0)) / spec.guarantees.horizon,
        c_share_max=float(run.stamps.c.max()) / spec.epsilon,
        events_per_tick=run.events_per_tick,
        kn_share_max=float(run.stamps.kn.max()) / (run.events_per_tick * spec.processes),
        size_bytes=StampCodec(published, elements=dial.elements).size_bytes,
    )
