from __future__ import annotations

from typing import Any

import pytest

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Core, Message, MessageStatus
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.observer.observer import (
    FAULTS_KEPT,
    PERFECT,
    TIMER,
    Dial,
    Fault,
    Observer,
    Stamped,
    cbd,
    dapw,
    dpc1,
    dpc2,
)
from beforehand.protocols.observer.timestamp import Guarantees, Stamp

SYSTEM = Guarantees(processes=4, epsilon=4, delta=6)  # the full wait is c + 10
NO_KN = (0, 0, 0, 0, 0)


def stamped(process: int, seq: int, r: int, c: int = 0, kn: tuple[int, ...] = NO_KN) -> Stamped:
    return Stamped(Message((process, seq), (), b""), process, Stamp(r, c, kn))


class Eye:
    """An observer that records (process, seq, tick) of every delivery."""

    def __init__(self, dial: Dial = PERFECT) -> None:
        self.core = Observer("eye", SYSTEM, dial)
        self.diary: list[tuple[Any, int, int]] = []

    def see(self, now: int, frame: Stamped) -> Eye:
        out: Outbox[Any] = Outbox()
        self.core.on_message(now, frame.process, frame, out)
        self.diary += [(*message.id, now) for message in out.deliveries]
        return self

    def run(self, start: int, end: int) -> list[tuple[Any, int, int]]:
        for now in range(start, end + 1):
            out: Outbox[Any] = Outbox()
            self.core.on_timer(now, TIMER, out)
            self.diary += [(*message.id, now) for message in out.deliveries]
        return self.diary


@pytest.mark.parametrize(
    ("dial", "due"),
    [
        (PERFECT, 20 + 3 + 10),
        (dapw(100), 20 + 3 + 10),
        (dapw(50), 20 + 7),  # half of 13, rounded up to a whole tick
        (cbd(50), 20 + 7),
        (dapw(0), 20),
        (dpc1(100), 20 + 10),
        (dpc2(100), 20 + 3 + 10),
        (dpc1(20), 20 + 2),
    ],
    ids=str,
)
def test_a_message_is_delivered_when_its_share_of_the_wait_is_over(dial, due):
    assert Eye(dial).see(19, stamped(1, 1, r=20, c=3)).run(19, 40) == [(1, 1, due)]


def test_a_message_that_comes_after_its_time_is_delivered_on_receipt():
    assert Eye(dapw(10)).see(25, stamped(1, 1, r=20)).diary == [(1, 1, 25)]


def test_the_smaller_timestamp_goes_first_among_those_due_together():
    eye = Eye()
    eye.see(20, stamped(1, 1, r=20, kn=(2, 0, 0, 0, 0)))
    eye.see(20, stamped(3, 1, r=18, c=2, kn=(1, 0, 1, 0, 0)))
    eye.see(20, stamped(0, 1, r=20, kn=(2, 0, 0, 0, 0)))
    assert eye.run(20, 40) == [(3, 1, 30), (0, 1, 30), (1, 1, 30)]


def smaller_but_due_later(dial: Dial) -> list[tuple[Any, int, int]]:
    """m2 < m1, as m1 knows of a higher clock; but r of m1 is lower, so m1 is due before m2."""
    eye = Eye(dial)
    eye.see(20, stamped(1, 1, r=18, c=4))
    eye.see(20, stamped(2, 2, r=21, c=0))
    return eye.run(20, 40)


def test_partial_wait_delivers_each_message_at_its_own_time():
    assert smaller_but_due_later(dapw(50)) == [(1, 1, 25), (2, 2, 26)]


def test_checking_the_queue_gives_a_message_the_time_of_the_smaller_one():
    assert smaller_but_due_later(cbd(50)) == [(2, 2, 26), (1, 1, 26)]


def test_physical_clocks_alone_put_the_effect_first():
    assert smaller_but_due_later(dpc1(50)) == [(1, 1, 23), (2, 2, 26)]
    assert smaller_but_due_later(dpc2(50)) == [(2, 2, 26), (1, 1, 26)]


@pytest.mark.parametrize(("elements", "first"), [(1, 0), (2, 3), (None, 3)])
def test_a_cut_timestamp_sees_only_its_first_elements(elements, first):
    eye = Eye(cbd(100, elements))
    eye.see(20, stamped(0, 1, r=20, kn=(1, 2, 0, 0, 0)))
    eye.see(20, stamped(3, 1, r=20, kn=(1, 1, 0, 0, 0)))
    assert eye.run(20, 40)[0][0] == first


def test_equal_timestamps_go_in_order_of_arrival():
    eye = Eye(dpc2(100))
    for seq in (7, 5, 6):
        eye.see(20, stamped(1, seq, r=20))
    assert [seq for _, seq, _ in eye.run(20, 40)] == [7, 5, 6]


def test_a_lost_message_delays_nothing():
    assert Eye().see(21, stamped(1, 2, r=21)).run(21, 40) == [(1, 2, 31)]


def test_a_duplicate_is_counted_and_not_delivered_again():
    eye = Eye().see(20, stamped(1, 1, r=20)).see(21, stamped(1, 1, r=20))
    eye.run(21, 31)
    eye.see(31, stamped(1, 1, r=20))
    assert eye.run(31, 60) == [(1, 1, 30)]
    assert (eye.core.counters.received, eye.core.counters.duplicate) == (1, 2)


def test_a_message_beyond_delta_is_delivered_counted_and_named():
    eye = Eye().see(20, stamped(1, 1, r=20))
    eye.run(20, 31)
    eye.see(31, stamped(2, 9, r=20))
    assert eye.diary == [(1, 1, 30), (2, 9, 31)]
    assert eye.core.disorder.late == 1
    assert eye.core.disorder.overtaken == 0  # of two concurrent messages process 2 goes second
    eye.see(32, stamped(0, 4, r=20))
    assert eye.core.disorder.overtaken == 1
    assert list(eye.core.faults) == [
        Fault("late", (2, 9), 31),
        Fault("late", (0, 4), 32),
        Fault("overtaken", (0, 4), 32),
    ]


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (stamped(1, 1, r=10**9), "ahead"),
        (stamped(1, 1, r=25), "ahead"),
        (stamped(1, 1, r=22, c=3), "ahead"),
        (stamped(1, 1, r=15, c=5), "impossible"),
        (stamped(1, 1, r=10**9, c=-(10**9)), "impossible"),
        (stamped(1, 1, r=20, kn=(5, 0, 0, 0, 0)), "impossible"),
        (stamped(1, 1, r=20, kn=(0, 0, -1, 0, 0)), "impossible"),
    ],
)
@pytest.mark.parametrize("dial", [PERFECT, dapw(50)], ids=str)
def test_an_impossible_stamp_is_replaced_by_the_time_of_receipt(frame, kind, dial):
    eye = Eye(dial).see(20, frame)
    assert eye.run(20, 60) == [(1, 1, 20 + dial.wait_percent // 10)]
    assert [fault.kind for fault in eye.core.faults] == [kind]


def test_a_message_with_a_clock_far_ahead_does_not_hold_up_the_others():
    eye = Eye().see(20, stamped(1, 1, r=10**9)).see(21, stamped(2, 1, r=21))
    assert eye.run(21, 40) == [(1, 1, 30), (2, 1, 31)]


def test_held_messages_leave_after_the_clock_of_the_observer_fell():
    eye = Eye().see(10**6, stamped(1, 1, r=10**6))
    assert eye.run(20, 60) == [(1, 1, 20)]
    assert eye.core.disorder.starved == 1


def test_messages_released_by_a_fallen_clock_leave_in_order():
    eye = Eye()
    for seq in (3, 1, 2, 5, 4):
        eye.see(10**6, stamped(1, seq, r=10**6 - 6 + seq))
    assert [seq for _, seq, _ in eye.run(20, 60)] == [1, 2, 3, 4, 5]
    assert eye.core.disorder.starved == 5


def test_messages_due_at_a_tick_leave_before_arrivals_of_that_tick():
    eye = Eye().see(20, stamped(1, 1, r=20))
    eye.see(30, stamped(2, 1, r=14))
    assert [process for process, _, _ in eye.diary] == [1, 2]
    assert eye.core.disorder.late == 1


def test_a_clock_that_was_wrong_once_does_not_spoil_the_count_for_ever():
    eye = Eye()
    eye.see(10**6, stamped(1, 1, r=10**6))
    eye.run(10**6, 10**6 + 20)
    eye.see(20, stamped(1, 2, r=20))
    eye.run(20, 40)
    assert eye.core.disorder.overtaken == 0


def test_the_queue_is_in_order_again_after_a_corrupted_entry_left():
    """Without its root, a heap is not always a heap."""
    eye = Eye()
    for seq, r in enumerate((11, 15, 12, 16, 17, 13, 14)):
        eye.see(15, stamped(1, seq, r=r))
    queue = eye.core._queue
    queue[0] = queue[0]._replace(due=10**9, received=-1)
    eye.core._audit_at = 16
    assert [seq for _, seq, _ in eye.run(16, 40)] == [0, 2, 5, 6, 1, 3, 4]


def test_an_entry_that_sorts_after_everything_is_not_starved_for_ever():
    eye = Eye()
    eye.see(0, stamped(1, 0, r=0))
    entry = eye.core._queue[0]
    eye.core._queue = [entry._replace(order=(10**9, *entry.order[1:]))]
    for now in range(1, 60):
        eye.run(now, now)
        eye.see(now, stamped(2, now, r=now))
    (left,) = [now for process, _, now in eye.diary if process == 1]
    assert left <= 3 * SYSTEM.horizon


def test_the_timer_is_never_set_beyond_what_any_message_waits():
    eye = Eye().see(20, stamped(1, 1, r=20))
    eye.core._queue = [eye.core._queue[0]._replace(due=10**9)]
    out: Outbox[Any] = Outbox()
    eye.core.on_message(21, 1, stamped(1, 1, r=20), out)  # a duplicate: the timer is kept up
    assert out.timers == [(TIMER, 21 + SYSTEM.horizon)]


def test_explain_returns_the_state_of_a_message():
    eye = Observer("eye", SYSTEM, tick_us=1000)
    out: Outbox[Any] = Outbox()
    eye.on_message(20_000, 1, stamped(1, 1, r=20), out)
    assert [message.id for message in out.receives] == [(1, 1)]
    assert out.timers == [(TIMER, 30_000)]
    assert eye.explain((1, 1)) == MessageStatus("waiting", since_us=20_000)
    assert eye.explain((1, 2)) == MessageStatus("unknown")
    eye.on_timer(30_000, TIMER, out)
    assert eye.explain((1, 1)) == MessageStatus("delivered")


def test_an_observer_needs_a_feed_and_synchronised_clocks():
    core: Core[Stamped] = Observer("eye", SYSTEM, tick_us=1000)
    assert core.needs == Needs({"feed": Link()}, clocks_within_us=4000)
    assert not hasattr(core, "on_link")
    assert not hasattr(core, "on_broadcast")


def test_a_timer_that_the_observer_never_set_has_no_effect():
    eye = Eye().see(20, stamped(1, 1, r=20))
    before = contents(eye.core)
    out: Outbox[Any] = Outbox()
    for timer in (("retry", None), ("deliver", 3)):
        eye.core.on_timer(100, timer, out)
    assert (contents(eye.core), out) == (before, Outbox())


def test_every_registry_is_bounded_by_the_latest_messages():
    """A message every 5 ticks, half of them impossible."""
    eye = Eye()
    for now in range(0, 10_000, 5):
        eye.run(now, now + 4)
        eye.see(now + 4, stamped(1, now, r=now + 4, c=now % 2 * 9))
        gauges = eye.core.gauges(now)
        assert gauges["queue"] == gauges["pending"] <= SYSTEM.horizon // 5 + 1
        assert gauges["remembered"] <= 2 * SYSTEM.horizon // 5 + 1
    assert eye.core.gauges(10_000)["faults"] == 1000 <= FAULTS_KEPT
    for now in range(10_000, 10_100):
        eye.see(now, stamped(2, now, r=now, c=9))
    assert eye.core.gauges(10_100)["faults"] == FAULTS_KEPT


def test_an_idle_observer_wakes_to_forget_what_it_delivered():
    eye = Eye()
    out: Outbox[Any] = Outbox()
    eye.core.on_message(20, 1, stamped(1, 1, r=20), out)
    while out.timers:
        timer, due = out.timers[-1]
        out.clear()
        eye.core.on_timer(due, timer, out)
    assert eye.core.gauges(due) == {"queue": 0, "pending": 0, "remembered": 0, "faults": 0}
    assert due <= 30 + 2 * SYSTEM.horizon


def test_the_latest_possible_duplicate_is_recognised():
    """Received by a clock ε behind, and as its counts cannot be true, delivered at once. A copy
    takes δ, and comes when that clock is ε ahead: at δ + 2ε, which is also the next audit."""
    frame = stamped(1, 1, r=20, kn=(5, 0, 0, 0, 0))
    eye = Eye(dapw(0)).see(20 - SYSTEM.epsilon, frame)
    eye.see(20 + SYSTEM.delta + SYSTEM.epsilon, frame)
    assert eye.diary == [(1, 1, 16)]
    assert eye.core.counters.duplicate == 1


def test_a_message_registered_as_held_but_absent_is_accepted_again():
    eye = Eye().see(20, stamped(1, 1, r=20))
    eye.core._queue.clear()
    eye.run(21, 20 + SYSTEM.horizon)
    eye.see(40, stamped(1, 1, r=40))
    assert eye.run(40, 60) == [(1, 1, 50)]


# ---- its own clock is set back ------------------------------------------------------------------


def test_a_clock_set_back_by_one_tick_gave_wrong_order_and_starved_held_messages():
    cause, effect = stamped(2, 1, r=18, kn=(1, 0, 0, 0, 0)), stamped(1, 1, r=19, c=1)
    eye = Eye().see(20, effect).see(19, cause)
    assert eye.run(19, 40) == [(2, 1, 28), (1, 1, 30)]
    assert not eye.core.faults


@pytest.mark.parametrize("fall", range(1, SYSTEM.epsilon + 1))
def test_a_clock_set_back_within_epsilon_changes_no_decision(fall):
    eye = Eye().see(20, stamped(1, 1, r=20))
    eye.run(20, 30)
    eye.see(30 - fall, stamped(1, 1, r=20))
    assert eye.core.explain((1, 1)) == MessageStatus("delivered")
    # At 30 what is due by 30 goes on receipt, whatever the clock shows since.
    eye.see(30 - fall, stamped(2, 1, r=20))
    assert eye.run(30 - fall, 40) == [(1, 1, 30), (2, 1, 30 - fall)]
    assert eye.core.counters.duplicate == 1
    assert not eye.core.faults


def test_a_clock_set_back_by_more_than_epsilon_is_followed():
    eye = Eye().see(30, stamped(1, 1, r=30))
    eye.run(30, 40)
    eye.see(40 - 5, stamped(2, 1, r=35, kn=(5, 0, 0, 0, 0)))  # taken as sent on receipt
    assert eye.run(35, 60) == [(1, 1, 40), (2, 1, 45)]


@pytest.mark.parametrize("fall", [5, 6, 10, 13, 14, 15, 28, 29, 60, 10**6])
def test_messages_held_before_a_clock_fell_leave_in_time(fall):
    eye = Eye()
    for seq, now in enumerate(range(10**6, 10**6 + 20)):
        eye.run(now, now)
        eye.see(now, stamped(1, seq, r=now))
    fallen = 10**6 + 19 - fall
    eye.run(fallen, fallen + 3 * SYSTEM.horizon)
    assert sorted(seq for _, seq, _ in eye.diary) == list(range(20))
    eye.diary.clear()
    now = fallen + 3 * SYSTEM.horizon
    eye.see(now, stamped(2, 2, r=now)).see(now + 1, stamped(3, 1, r=now - 1))
    assert eye.run(now + 1, now + 20) == [(3, 1, now + 9), (2, 2, now + 10)]


def test_a_duplicate_is_recognised_after_a_clock_far_ahead_was_corrected():
    eye = Eye().see(10**6, stamped(1, 1, r=10**6))
    eye.run(10**6, 10**6 + 10)
    eye.see(20, stamped(1, 1, r=10**6))
    eye.see(20 + SYSTEM.horizon, stamped(1, 1, r=10**6))
    assert eye.core.counters.duplicate == 2
    eye.run(20, 20 + 3 * SYSTEM.horizon)
    assert eye.core.gauges(0)["remembered"] == 0


# ---- what is refused ----------------------------------------------------------------------------


def contents(eye: Observer) -> str:
    return repr(vars(eye))


@pytest.mark.parametrize(("dial", "asked"), [(cbd(100, 2), 2), (PERFECT, 5)], ids=str)
def test_a_stamp_that_is_too_short_is_refused_and_changes_nothing(dial, asked):
    eye = Eye(dial).see(0, stamped(1, 1, r=0))
    before, out = contents(eye.core), Outbox[Any]()
    with pytest.raises(RemoteError, match=f"1 kn elements, the dial asks for {asked}"):
        eye.core.on_message(100, 1, stamped(1, 2, r=100, kn=(1,)), out)
    assert (contents(eye.core), out) == (before, Outbox())


def test_a_dial_that_does_not_exist_is_refused():
    for dial in ({"wait_percent": 101}, {"wait_percent": -1}, {"elements": -1}):
        with pytest.raises(LocalError):
            Dial(**dial)
