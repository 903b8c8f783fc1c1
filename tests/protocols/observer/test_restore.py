"""A durable observer, crashed anywhere: nothing twice, nothing lost, and the order kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.observer.test_world import SEEDS, SYSTEMS, LegalRun, run

from beforehand.protocols.contract.base import Message, NodeId, Timer
from beforehand.protocols.contract.driver import Driver
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.observer.observer import (
    DELIVERED,
    FRONT,
    HELD,
    PERFECT,
    Dial,
    Held,
    Observer,
    Stamped,
    cbd,
    dapw,
)
from beforehand.protocols.observer.timestamp import Guarantees, Stamp

SYSTEM = Guarantees(processes=4, epsilon=4, delta=6)  # the full wait is c + 10
NO_KN = (0, 0, 0, 0, 0)


def stamped(process: int, seq: int, r: int, c: int = 0, kn: tuple[int, ...] = NO_KN) -> Stamped:
    return Stamped(Message((f"p{process}", seq), (), b"as sent"), process, Stamp(r, c, kn))


class Eye:
    """A durable observer on a store: (seq, tick) of every delivery, and the alarm that it set."""

    def __init__(
        self,
        dial: Dial = PERFECT,
        *,
        guarantees: Guarantees = SYSTEM,
        durable: bool = True,
        inbox: bool = False,
    ) -> None:
        self.store = Store()
        self.diary: list[tuple[int, int]] = []
        self.now = 0
        self.driver = Driver(
            lambda: Observer("eye", guarantees, dial, durable=durable),
            self,
            store=self.store,
            inbox=inbox,
        )
        self.alarm: tuple[int, Timer, int] | None = None

    @property
    def core(self) -> Observer:
        assert isinstance(self.driver.core, Observer)
        return self.driver.core

    def see(self, now: int, frame: Stamped) -> Eye:
        self.now = now
        self.driver.on_message(now, frame.process, frame)
        return self

    def run(self, start: int, end: int) -> Eye:
        for self.now in range(start, end + 1):
            if self.alarm is not None and self.alarm[0] <= self.now:
                _, timer, ticket = self.alarm
                self.driver.on_timer(self.now, timer, ticket)
        return self

    def restart(self, now: int) -> Eye:
        self.now = now
        self.driver.crash()
        self.driver.restart(now)
        return self

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        self.diary += [(message.seq, self.now) for message in messages]

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        self.alarm = (due_us, timer, ticket)

    def send(self, node: NodeId, sends: Any) -> None:
        raise AssertionError("an observer sends nothing")

    def broadcasted(self, node: NodeId, message: Any, deliveries: Any) -> None:
        raise AssertionError("an observer broadcasts nothing")

    def received(self, node: NodeId, messages: Sequence[Message]) -> None: ...

    def lost(self, node: NodeId, losses: Sequence[Any]) -> None: ...


def test_rows_survive_an_encoder_that_knows_no_types():
    eye = Eye().see(20, stamped(1, 1, r=20)).run(20, 30).see(30, stamped(2, 2, r=29, c=1))
    rows = eye.store.load(eye.core.tables)
    held = Held(2, 30, stamped(2, 2, r=29, c=1))
    assert rows == {
        HELD.name: {("p2", 2): held},
        DELIVERED.name: {("p1", 1): 30},
        FRONT.name: {"largest": (20, *NO_KN, 1)},
    }


def test_held_messages_are_delivered_after_a_restart_when_due():
    eye = Eye().see(20, stamped(1, 1, r=20)).see(22, stamped(2, 2, r=21))
    assert eye.restart(24).run(24, 40).diary == [(1, 30), (2, 31)]
    assert not eye.core.faults


def test_messages_due_while_the_observer_was_down_are_delivered_at_once_in_order():
    eye = Eye().see(20, stamped(1, 1, r=20)).see(20, stamped(2, 2, r=18)).see(22, stamped(0, 3, 22))
    assert eye.restart(10**6).diary == [(2, 10**6), (1, 10**6), (3, 10**6)]
    assert not eye.core.faults


@pytest.mark.parametrize("dial", [PERFECT, dapw(50)], ids=str)
def test_a_copy_of_a_message_delivered_before_a_restart_is_a_duplicate(dial):
    eye = Eye(dial).see(20, stamped(1, 1, r=20)).run(20, 30)
    eye.restart(30).see(30, stamped(1, 1, r=20))
    assert len(eye.run(30, 60).diary) == 1
    assert eye.core.counters.duplicate == 1


def test_deliveries_after_a_larger_timestamp_are_counted_across_a_restart():
    eye = Eye(dapw(0)).see(20, stamped(1, 1, r=20)).restart(21).see(21, stamped(1, 2, r=19))
    assert eye.diary == [(1, 20), (2, 21)]
    assert eye.core.disorder.overtaken == 1


def test_a_message_delivered_before_it_was_due_is_not_delivered_again_after_a_restart():
    """An observer whose clock is set back delivers at once the messages that it would hold too
    long."""
    eye = Eye().see(1000, stamped(1, 1, r=1000)).see(500, stamped(2, 2, r=500))
    assert eye.diary == [(1, 500)], "ten ticks before it was due by the old clock"
    assert eye.store.load((HELD,))[HELD.name].keys() == {("p2", 2)}
    assert eye.restart(501).run(501, 1100).diary == [(1, 500), (2, 510)]


def test_equal_timestamps_go_in_order_of_arrival_across_a_restart():
    eye = Eye()
    for seq in (7, 5):
        eye.see(20, stamped(1, seq, r=20))
    eye.restart(20).see(20, stamped(1, 6, r=20))
    assert [seq for seq, _ in eye.restart(21).run(21, 40).diary] == [7, 5, 6]


def test_a_rejected_stamp_stays_rejected():
    """At 26 the clock value 30 would be possible; the observer took it for 20 when it came."""
    eye = Eye().see(20, stamped(1, 1, r=30))
    assert eye.restart(26).run(26, 60).diary == [(1, 30)]
    assert [fault.kind for fault in eye.core.faults] == []  # counted in the life before


@pytest.mark.parametrize("fall", range(1, SYSTEM.epsilon + 1))
def test_a_restart_with_a_clock_set_back_within_epsilon_starves_nothing(fall):
    eye = Eye().see(26, stamped(1, 1, r=20)).restart(26 - fall).see(26 - fall, stamped(2, 2, r=19))
    assert eye.run(26 - fall, 40).diary == [(2, 29), (1, 30)]
    assert not eye.core.faults


def test_a_restart_with_a_clock_set_far_back_delivers_held_messages_at_once():
    eye = Eye().see(10**6, stamped(1, 1, r=10**6)).restart(20)
    assert eye.diary == [(1, 20)]
    assert eye.core.disorder.starved == 1


def test_there_is_one_row_per_live_message():
    """A message every 5 ticks; at the end, when all is out and forgotten, one row is left."""
    eye = Eye()
    for now in range(0, 3000, 5):
        eye.see(now, stamped(1, now, r=now)).run(now, now + 4)
        gauges = eye.core.gauges(now)
        assert eye.store.count() == gauges["pending"] + gauges["remembered"] + (now > 5)
        if now % 200 == 0:
            eye.restart(now + 4)
    assert eye.store.count() <= 3 * SYSTEM.horizon // 5 + 3
    eye.run(3000, 3000 + 3 * SYSTEM.horizon)
    assert eye.store.load(eye.core.tables) == {
        HELD.name: {},
        DELIVERED.name: {},
        FRONT.name: {"largest": (2995, *NO_KN, 1)},
    }


def test_an_observer_that_is_not_durable_saves_nothing():
    eye = Eye(durable=False).see(20, stamped(1, 1, r=20)).run(20, 60)
    assert eye.core.tables == ()
    assert eye.store.count() == 0
    out: Outbox[Stamped] = Outbox()
    Observer("eye", SYSTEM).restore(20, {}, out)
    assert out == Outbox()


@pytest.mark.parametrize("crash_after", range(4))
@pytest.mark.parametrize("inbox", [False, True])
def test_a_crash_in_the_middle_of_a_step_keeps_the_guarantee_of_the_driver(crash_after, inbox):
    """Three are due together. At most once without an inbox, at least once with one."""
    eye = Eye(inbox=inbox)
    for seq in range(3):
        eye.see(20, stamped(1, seq, r=20, kn=(seq, 0, 0, 0, 0)))
    eye.driver.crash_after = crash_after
    eye.run(21, 30).driver.restart(31)
    first, again = max(0, crash_after - 1), 3 if inbox or not crash_after else 0
    assert [seq for seq, _ in eye.run(31, 50).diary] == [*range(first), *range(again)]


class CrashingRun(LegalRun):
    """The legal run, whose observer crashes between steps and in the middle of them."""

    def __init__(self, guarantees: Guarantees, seed: int, dial: Dial = PERFECT, **options: Any):
        super().__init__(guarantees, seed, dial, **options)
        self.crashes = random.Random(seed)
        self.eye = Eye(dial, guarantees=guarantees)
        self.repeated = 0

    def watch(self, frame: Stamped | None) -> None:
        """Each input may be cut off; then it comes again, to the next incarnation."""
        now, eye = self.now[-1], self.eye
        eye.now, before = now, len(eye.diary)
        for is_again in (False, True):
            if not is_again and self.crashes.random() < 0.3:
                eye.driver.crash_after = self.crashes.choice(
                    (0, 10**6)
                )  # nothing of the step, or all
            if frame is not None:
                eye.driver.on_message(now, frame.process, frame)
                self.repeated += is_again
            else:
                eye.run(now, now)
            if eye.driver.is_up:
                eye.driver.crash_after = None
                break
            eye.restart(now)
        self.observer = eye.core
        for seq, _ in eye.diary[before:]:
            self.delivered.append(seq)
            self.sent_later.append(self.now[self.events[seq].process])


@given(guarantees=SYSTEMS, seed=SEEDS, falls=st.booleans())
def test_restarts_change_neither_the_order_nor_completeness(guarantees, seed, falls):
    world = CrashingRun(guarantees, seed, falls=falls)
    world.play(150)
    world.finish()
    assert sorted(world.delivered) == sorted(world.received)
    for i, f in enumerate(world.delivered):
        assert not any(world.events[f].past >> e & 1 for e in world.delivered[i + 1 :])


@given(guarantees=SYSTEMS, seed=SEEDS, wait=st.integers(0, 100))
def test_restarts_change_no_delivery_with_any_settings(guarantees, seed, wait):
    """One that crashes and one that never does, side by side."""
    dial = cbd(wait) if seed % 2 else dapw(wait)
    steady, crashing = run(guarantees, seed, 150, dial=dial), CrashingRun(guarantees, seed, dial)
    steady.finish()
    crashing.play(150)
    crashing.finish()
    assert crashing.delivered == steady.delivered
    assert crashing.sent_later == steady.sent_later


def test_the_runs_crash_before_and_after_a_step_is_saved():
    worlds = [CrashingRun(SYSTEM, seed, falls=True) for seed in range(30)]
    for world in worlds:
        world.play(150)
    assert sum(world.repeated for world in worlds) > 10
    assert sum(world.eye.driver.incarnation for world in worlds) > 50
