"""Timestamps and observers in runs that go to the limits of the guarantees, and beyond them.

A run picks its moves at random and takes every one that the guarantees allow: clocks ε apart,
messages that take no time at all or all of δ, K events at one tick, and on request clocks that are
set back by as much as ε. The truth is kept beside it: for every event the set of the events that
happened before, as the bits of an int.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.observer.observer import (
    PERFECT,
    TIMER,
    Dial,
    Observer,
    Stamped,
    cbd,
    dapw,
    dpc1,
    dpc2,
)
from beforehand.protocols.observer.timestamp import (
    Guarantees,
    LogicalClock,
    Stamp,
    StampCodec,
    less,
)

SEEDS = st.integers(0, 2**32)
SYSTEMS = st.builds(
    Guarantees,
    processes=st.integers(2, 4),
    epsilon=st.integers(1, 4),
    delta=st.integers(1, 4),
    events_per_tick=st.integers(1, 3),
)
DIALS = st.one_of(
    st.just(PERFECT),
    st.builds(dapw, st.integers(0, 100)),
    st.builds(cbd, st.integers(0, 100), st.integers(0, 2)),
    st.builds(dpc1, st.integers(0, 100)),
    st.builds(dpc2, st.integers(0, 100)),
)


class Figure1:
    """The program as the paper prints it: kn[t] for -ε <= t < ε around r, 0 elsewhere."""

    def __init__(self, process: int, guarantees: Guarantees) -> None:
        self.epsilon = guarantees.epsilon
        self.r = self.c = 0
        self.kn = {0: 1}

    def send(self, rt: int) -> Stamp:
        self.c = max(0, self.r + self.c - rt)
        self.kn = {t: self.kn.get(t + rt - self.r, 0) for t in range(-self.epsilon, self.epsilon)}
        return self.count(rt)

    def receive(self, rt: int, m: Stamp) -> Stamp:
        # Off the wire: the compared elements are all that a later comparison can depend on.
        kn_m = {m.c - i: count for i, count in enumerate(m.kn)}
        self.c = max(0, self.r + self.c - rt, m.r + m.c - rt)
        self.kn = {
            t: max(self.kn.get(t + rt - self.r, 0), kn_m.get(t + rt - m.r, 0))
            for t in range(-self.epsilon, self.epsilon)
        }
        return self.count(rt)

    def count(self, rt: int) -> Stamp:
        self.kn[0] += 1
        self.r = rt
        compared = range(self.c, self.c - self.epsilon, -1)
        return Stamp(self.r, self.c, tuple(self.kn.get(t, 0) for t in compared))


class Event(NamedTuple):
    process: int
    stamp: Stamp
    past: int
    """Bit i: event i happened before this one."""


class Copy(NamedTuple):
    event: int
    process: int
    target: int
    sent: int
    stamp: Stamp


class LegalRun:
    def __init__(
        self,
        guarantees: Guarantees,
        seed: int,
        dial: Dial = PERFECT,
        *,
        ticks_min: int = 0,
        falls: bool = False,
    ) -> None:
        self.guarantees, self.rng, self.ticks_min = guarantees, random.Random(seed), ticks_min
        n = guarantees.processes
        self.now = [0] * (n + 1)
        self.change_pace()
        self.patience = self.rng.random()  # how likely the observer's copy waits till the last
        self.clocks = [LogicalClock(p, guarantees) for p in range(n)]
        self.past = [0] * n
        self.here = Counter((p, 0) for p in range(n))  # events of a process at a clock value
        self.highest = 0  # what any clock has shown
        self.falls = falls
        self.fallen: list[tuple[int, int]] = []  # which clock, by how much
        self.events: list[Event] = []
        self.receipts: list[tuple[Stamp, int]] = []
        self.under_way: list[Copy] = []
        self.observer = Observer("eye", guarantees, dial)
        self.received: list[int] = []
        self.delivered: list[int] = []
        self.sent_later: list[int] = []  # the sender's clock at each delivery

    def play(self, moves: int) -> None:
        for _ in range(moves):
            self.rng.choices((self.tick, self.send, self.take), (5, 2, 4))[0]()
            if self.falls and self.rng.random() < 0.1:
                self.fall()

    def finish(self) -> None:
        """Hand over what the observer should still get, then let all clocks go on."""
        for copy in [copy for copy in self.under_way if copy.target == len(self.clocks)]:
            self.hand_over(copy)
        last = max(self.now) + 2 * self.guarantees.horizon + 2
        while min(self.now) < last:
            self.move_clock(self.now.index(min(self.now)))

    def change_pace(self) -> None:
        """Some clocks run far faster than others, until the next change."""
        self.pace = [self.rng.random() ** 4 + 0.01 for _ in self.now]

    def tick(self) -> None:
        if self.rng.random() < 0.1:
            self.change_pace()
        p = self.rng.choices(range(len(self.now)), self.pace)[0]
        if self.now[p] < min(self.now) + self.guarantees.epsilon:
            self.move_clock(p)

    def fall(self) -> None:
        """Set a clock back, to no more than ε behind what any clock has shown."""
        p = self.rng.randrange(len(self.now))
        lowest = max(0, self.highest - self.guarantees.epsilon)
        if lowest < self.now[p]:
            value = self.rng.choice((lowest, self.rng.randrange(lowest, self.now[p])))
            self.fallen.append((p, self.now[p] - value))
            self.now[p] = value
            if p == len(self.clocks) and self.rng.random() < 0.5:
                self.watch(None)

    def move_clock(self, p: int) -> None:
        self.now[p] += 1
        self.highest = max(self.highest, self.now[p])
        if p == len(self.clocks):
            self.watch(None)
            return
        # G2: what takes δ is there the moment the sender's clock shows it.
        for copy in [copy for copy in self.under_way if copy.process == p]:
            if self.age(copy) == self.guarantees.delta:
                self.hand_over(copy)

    def send(self) -> None:
        p = self.rng.randrange(len(self.clocks))
        if self.has_room(p):
            stamp = self.clocks[p].send(self.now[p])
            number = self.record(p, stamp, self.past[p])
            targets = [q for q in range(len(self.now)) if q != p and self.rng.random() < 0.8]
            self.under_way += [Copy(number, p, q, self.now[p], stamp) for q in targets]

    def take(self) -> None:
        ready = [c for c in self.under_way if self.is_old_enough(c)]
        if ready:
            copy = self.rng.choice(ready)
            if copy.target == len(self.clocks):
                is_ready = self.rng.random() > self.patience
            else:
                is_ready = self.has_room(copy.target)
            if is_ready:
                self.hand_over(copy)

    def age(self, copy: Copy) -> int:
        return self.now[copy.process] - copy.sent

    def is_old_enough(self, copy: Copy) -> bool:
        return not self.ticks_min or self.age(copy) >= self.ticks_min

    def has_room(self, p: int) -> bool:
        return self.here[p, self.now[p]] < self.guarantees.events_per_tick

    def hand_over(self, copy: Copy) -> None:
        """Receive, or lose the message where the receiver cannot take it: both are allowed."""
        self.under_way.remove(copy)
        now = self.now[copy.target]
        if copy.target == len(self.clocks):
            self.received.append(copy.event)
            message = Message((copy.process, copy.event), (), b"")
            self.watch(Stamped(message, copy.process, copy.stamp))
        elif self.has_room(copy.target) and self.is_old_enough(copy):
            self.receipts.append((copy.stamp, now))
            stamp = self.clocks[copy.target].receive(now, copy.stamp)
            past = self.events[copy.event].past | 1 << copy.event
            self.record(copy.target, stamp, past | self.past[copy.target])

    def record(self, p: int, stamp: Stamp, past: int) -> int:
        number = len(self.events)
        self.events.append(Event(p, stamp, past))
        self.past[p] = past | 1 << number
        self.here[p, self.now[p]] += 1
        return number

    def watch(self, frame: Stamped | None) -> None:
        out: Outbox[Any] = Outbox()
        if frame is None:
            self.observer.on_timer(self.now[-1], TIMER, out)
        else:
            self.observer.on_message(self.now[-1], frame.process, frame, out)
        for message in out.deliveries:
            self.delivered.append(message.seq)
            self.sent_later.append(self.now[self.events[message.seq].process])

    def pairs(self, *, after: int = -1) -> Iterator[tuple[Event, Event]]:
        """All (cause, effect) among the events at clock values above `after`."""
        for f in self.events:
            for i, e in enumerate(self.events):
                if f.past >> i & 1 and min(e.stamp.r, f.stamp.r) > after:
                    yield e, f

    def corrupt(self) -> None:
        """Put junk, small or huge, wherever a process, a message or the observer keeps a number."""

        def junk(about: int) -> int:
            far = self.rng.choice((0, 1, self.guarantees.kn_max, 10**9))
            return about + self.rng.randint(-far, far)

        for p, clock in enumerate(self.clocks):
            clock._high = junk(self.now[p])
            clock._kn = [junk(0) for _ in clock._kn]
            clock.check(self.now[p])
        self.under_way = [
            copy._replace(stamp=Stamp(junk(copy.sent), junk(0), tuple(map(junk, copy.stamp.kn))))
            for copy in self.under_way
        ]
        eye, now = self.observer, self.now[-1]
        eye._front, eye._audit_at, eye._now = (junk(now),), junk(now), junk(now)
        eye._queue = [
            entry._replace(order=tuple(map(junk, entry.order)), due=junk(now), received=junk(now))
            for entry in eye._queue
        ]


def run(guarantees: Guarantees, seed: int, moves: int = 120, **options: Any) -> LegalRun:
    world = LegalRun(guarantees, seed, **options)
    world.play(moves)
    return world


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_happened_before_implies_a_smaller_stamp(guarantees, seed):
    for e, f in run(guarantees, seed).pairs():
        assert less(e.stamp, e.process, f.stamp, f.process)


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_every_part_of_a_stamp_stays_in_its_domain(guarantees, seed):
    world = run(guarantees, seed)
    for _, stamp, _ in world.events:
        assert 0 <= stamp.c <= guarantees.epsilon
        assert all(0 <= count <= guarantees.kn_max for count in stamp.kn)
    assert [(c.resets, c.refused, c.saturated) for c in world.clocks] == [(0, 0, 0)] * len(
        world.clocks
    )


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_c_is_below_epsilon_where_every_message_takes_a_tick(guarantees, seed):
    world = run(guarantees, seed, ticks_min=1)
    assert all(event.stamp.c < guarantees.epsilon for event in world.events)


@given(guarantees=SYSTEMS, seed=SEEDS, elements=st.integers(0, 3))
def test_a_cut_stamp_is_the_start_of_the_full_one(guarantees, seed, elements):
    elements = min(elements, guarantees.elements_full)
    full, cut = run(guarantees, seed), LegalRun(guarantees, seed, dpc2(100))
    cut.clocks = [
        LogicalClock(p, guarantees, elements=elements) for p in range(guarantees.processes)
    ]
    cut.play(120)
    for e, f in zip(full.events, cut.events, strict=True):
        assert f.stamp == Stamp(e.stamp.r, e.stamp.c, e.stamp.kn[:elements])


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_stamps_are_those_of_the_printed_program(guarantees, seed):
    """Where each message takes a tick, so that c < ε: the ε elements that the paper compares."""
    ours, printed = (LegalRun(guarantees, seed, dpc2(100), ticks_min=1) for _ in range(2))
    printed.clocks = [Figure1(p, guarantees) for p in range(guarantees.processes)]
    ours.play(120)
    printed.play(120)
    for e, f in zip(ours.events, printed.events, strict=True):
        assert Stamp(e.stamp.r, e.stamp.c, e.stamp.kn[: guarantees.epsilon]) == f.stamp


@given(guarantees=SYSTEMS, seed=SEEDS, falls=st.booleans())
def test_perfect_delivery_is_causal_complete_and_in_time(guarantees, seed, falls):
    check_perfect(run(guarantees, seed, falls=falls))


def check_perfect(world: LegalRun) -> None:
    guarantees = world.guarantees
    world.finish()
    place = {number: i for i, number in enumerate(world.delivered)}
    assert sorted(world.delivered) == sorted(world.received)
    for f in world.delivered:
        for e in world.delivered:
            if world.events[f].past >> e & 1:
                assert place[e] < place[f], f"{e} is a cause of {f}"
    bound = guarantees.delta + 3 * guarantees.epsilon
    for number, clock in zip(world.delivered, world.sent_later, strict=True):
        assert clock <= world.events[number].stamp.r + bound
    assert not world.observer.faults


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_clocks_set_back_within_epsilon_change_neither_order_nor_completeness(guarantees, seed):
    """Neither those of the processes nor the observer's: nothing is late, ahead or starved."""
    world = run(guarantees, seed, moves=200, falls=True)
    check_perfect(world)
    assert [(c.resets, c.refused, c.saturated) for c in world.clocks] == [(0, 0, 0)] * len(
        world.clocks
    )
    for e, f in world.pairs():
        assert less(e.stamp, e.process, f.stamp, f.process)


@given(guarantees=SYSTEMS, seed=SEEDS, falls=st.booleans())
def test_a_stamp_survives_its_encoding_wherever_it_is_received(guarantees, seed, falls):
    codec = StampCodec(guarantees)
    for stamp, now in run(guarantees, seed, falls=falls).receipts:
        assert codec.decode(codec.encode(stamp), now) == stamp


@given(guarantees=SYSTEMS, seed=SEEDS, dial=DIALS, falls=st.booleans())
def test_no_dial_loses_or_repeats_a_message(guarantees, seed, dial, falls):
    world = run(guarantees, seed, dial=dial, falls=falls)
    world.finish()
    assert sorted(world.delivered) == sorted(world.received)
    assert world.observer.counters.delivered == len(world.received)
    assert world.observer.disorder.starved == 0


@given(guarantees=SYSTEMS, seed=SEEDS, wait=st.integers(0, 100))
def test_an_observer_counts_deliveries_after_a_larger_timestamp(guarantees, seed, wait):
    """Every message delivered after one of its effects is among the overtaken ones."""
    world = run(guarantees, seed, dial=dapw(wait))
    world.finish()
    behind = set()
    for i, f in enumerate(world.delivered):
        behind |= {e for e in world.delivered[i:] if world.events[f].past >> e & 1}
    named = {fault.message[1] for fault in world.observer.faults if fault.kind == "overtaken"}
    assert behind <= named


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_clocks_recover_from_any_state(guarantees, seed):
    """The domains hold at once; events above t + δ + 3ε are in order."""
    world = run(guarantees, seed, moves=60)
    before, t = len(world.events), max(world.now)
    world.corrupt()
    world.play(250)
    for _, stamp, _ in world.events[before:]:
        assert 0 <= stamp.c <= guarantees.epsilon
        assert all(0 <= count <= guarantees.kn_max for count in stamp.kn)
    for e, f in world.pairs(after=t + guarantees.delta + 3 * guarantees.epsilon):
        assert less(e.stamp, e.process, f.stamp, f.process)


@given(guarantees=SYSTEMS, seed=SEEDS)
def test_an_observer_recovers_from_any_state(guarantees, seed):
    """Messages held by the observer are delivered after 3 (δ + 2ε) ticks. Messages sent after
    t + δ + 3ε and received from then on are in causal order."""
    world = run(guarantees, seed, moves=60)
    t, held = max(world.now), list(world.received)
    world.corrupt()
    recovered = world.now[-1] + 3 * guarantees.horizon
    while world.now[-1] <= recovered:
        world.play(1)
    assert set(held) <= set(world.delivered)
    old = len(world.received)
    world.play(150)
    world.finish()
    assert sorted(world.delivered) == sorted(world.received)
    sound = t + guarantees.delta + 3 * guarantees.epsilon
    new = {m for m in world.received[old:] if world.events[m].stamp.r > sound}
    order = [m for m in world.delivered if m in new]
    for i, f in enumerate(order):
        assert not any(world.events[f].past >> e & 1 for e in order[i + 1 :])


def test_the_runs_reach_every_limit():
    """Else the tests above would prove less than they say."""
    guarantees = Guarantees(processes=3, epsilon=2, delta=2, events_per_tick=2)
    worlds = [run(guarantees, seed, moves=200) for seed in range(150)]
    for world in worlds:
        world.finish()
    stamps = [event.stamp for world in worlds for event in world.events]
    assert max(stamp.c for stamp in stamps) == guarantees.epsilon
    assert max(max(stamp.kn) for stamp in stamps) >= guarantees.kn_max - 1
    waits = [
        clock - world.events[number].stamp.r
        for world in worlds
        for number, clock in zip(world.delivered, world.sent_later, strict=True)
    ]
    assert max(waits) >= guarantees.delta + 3 * guarantees.epsilon - 1
    assert any(pair for world in worlds for pair in world.pairs(after=10))


def test_the_runs_set_clocks_back_as_far_as_they_may():
    guarantees = Guarantees(processes=3, epsilon=2, delta=2, events_per_tick=2)
    worlds = [run(guarantees, seed, moves=200, falls=True) for seed in range(30)]
    fallen = {fall for world in worlds for fall in world.fallen}
    assert fallen == {(p, by) for p in range(4) for by in (1, 2)}
    held_back = [
        world
        for world in worlds
        if any(now < stamp.high for stamp, now in world.receipts)
        and max(event.stamp.c for event in world.events) == guarantees.epsilon
    ]
    assert held_back
