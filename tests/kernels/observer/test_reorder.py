from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels.observer.reorder import LEAST, Queue, Stamps, empty_queue, reorder
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.observer.observer import (
    TIMER,
    Dial,
    Observer,
    Stamped,
    cbd,
    dapw,
    dpc1,
    dpc2,
)
from beforehand.protocols.observer.timestamp import Guarantees, Stamp
from beforehand.sim.drift import rule_of

SYSTEM = Guarantees(processes=4, epsilon=3, delta=4, events_per_tick=2)
ELEMENTS = SYSTEM.elements_full
DIALS = st.one_of(
    st.builds(dapw, st.integers(0, 100)),
    st.builds(cbd, st.integers(0, 100), st.one_of(st.none(), st.integers(0, ELEMENTS))),
    st.builds(dpc1, st.integers(0, 100)),
    st.builds(dpc2, st.integers(0, 100)),
)
# Around the observer's clock, and sometimes beyond every guarantee.
SHIFTS = st.one_of(st.integers(-7, 3), st.sampled_from([-1000, -9, 4, 5, 1000]))
CS = st.one_of(st.integers(0, 3), st.sampled_from([-1, 4, 1000]))
COUNTS = st.one_of(st.integers(0, 8), st.sampled_from([-1, 9]))
ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 3),  # ticks since the arrival before
        st.integers(0, 3),
        SHIFTS,
        CS,
        st.tuples(*[COUNTS] * ELEMENTS),
    ),
    max_size=25,
)


def columns(arrivals: list[tuple[Any, ...]]) -> tuple[np.ndarray, Stamps]:
    arrival = np.cumsum([row[0] for row in arrivals], dtype=np.int64)
    process, shift, c = (np.array([row[i] for row in arrivals], np.int64) for i in (1, 2, 3))
    kn = np.array([row[4] for row in arrivals], np.int64).reshape(len(arrivals), ELEMENTS)
    return arrival, Stamps(process, arrival + shift, c, kn)


def slice_of(stamps: Stamps, start: int, end: int) -> Stamps:
    return Stamps(*(column[start:end] for column in stamps))


def frame_of(i: int, stamps: Stamps) -> Stamped:
    stamp = Stamp(int(stamps.r[i]), int(stamps.c[i]), tuple(stamps.kn[i].tolist()))
    return Stamped(Message((0, i), (), b""), int(stamps.process[i]), stamp)


def watch(dial: Dial, arrival: np.ndarray, stamps: Stamps) -> tuple[list[Any], Observer]:
    """The same arrivals through the core, tick by tick: (label, tick) of each delivery."""
    eye = Observer("eye", SYSTEM, dial)
    diary = []
    last = int(arrival[-1]) + 2 * SYSTEM.horizon if len(arrival) else 0
    waiting = list(range(len(arrival)))
    for now in range(last + 1):
        out: Outbox[Any] = Outbox()
        eye.on_timer(now, TIMER, out)
        while waiting and arrival[waiting[0]] == now:
            i = waiting.pop(0)
            eye.on_message(now, 0, frame_of(i, stamps), out)
        diary += [(message.seq, now) for message in out.deliveries]
    return diary, eye


@given(dial=DIALS, arrivals=ARRIVALS)
def test_the_kernel_delivers_what_the_core_delivers(dial, arrivals):
    arrival, stamps = columns(arrivals)
    rule = rule_of(dial, SYSTEM)
    label = np.arange(len(arrival))
    end = int(arrival[-1]) + 2 * SYSTEM.horizon if len(arrival) else 0
    queue, delivered, doubts = reorder(empty_queue(rule), arrival, label, stamps, rule, end)
    diary, eye = watch(dial, arrival, stamps)
    assert list(zip(delivered.label.tolist(), delivered.tick.tolist(), strict=True)) == diary
    assert len(queue.rows) == 0
    disorder = eye.disorder
    assert delivered.is_overtaken.sum() == disorder.overtaken
    assert doubts.is_late.sum() == disorder.late
    assert doubts.is_ahead.sum() == disorder.ahead
    assert doubts.is_impossible.sum() == disorder.impossible


@given(
    dial=DIALS,
    arrivals=ARRIVALS,
    falls=st.lists(st.integers(0, SYSTEM.epsilon), min_size=25, max_size=25),
)
def test_a_clock_set_back_is_to_the_core_what_its_highest_value_is_to_the_kernel(
    dial, arrivals, falls
):
    arrival, stamps = columns(arrivals)
    rule = rule_of(dial, SYSTEM)
    label = np.arange(len(arrival))
    _, delivered, _ = reorder(empty_queue(rule), arrival, label, stamps, rule, 10**6)
    eye = Observer("eye", SYSTEM, dial)
    out: Outbox[Any] = Outbox()
    for i, now in enumerate(arrival.tolist()):
        eye.on_timer(now, TIMER, out)
        eye.on_message(now - falls[i], 0, frame_of(i, stamps), out)
    last = int(arrival[-1]) if len(arrival) else 0
    for now in range(last, last + 2 * SYSTEM.horizon):
        eye.on_timer(now, TIMER, out)
    assert [message.seq for message in out.deliveries] == delivered.label.tolist()


@given(dial=DIALS, arrivals=ARRIVALS, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_batches_change_neither_the_order_nor_the_times(dial, arrivals, cuts):
    arrival, stamps = columns(arrivals)
    rule, label = rule_of(dial, SYSTEM), np.arange(len(arrivals))
    whole = reorder(empty_queue(rule), arrival, label, stamps, rule, 10**6)[1]
    queue = empty_queue(rule)
    parts = []
    bounds = sorted({0, *(min(cut, len(arrival)) for cut in cuts), len(arrival)})
    for start, end in pairwise(bounds):
        queue = Queue(*(np.frombuffer(a.tobytes(), np.int64).reshape(a.shape) for a in queue))
        batch = slice_of(stamps, start, end)
        queue, part, _ = reorder(queue, arrival[start:end], label[start:end], batch, rule)
        parts.append(part)
    parts.append(reorder(queue, arrival[:0], label[:0], slice_of(stamps, 0, 0), rule, 10**6)[1])
    for i, column in enumerate(whole):
        assert np.array_equal(np.concatenate([part[i] for part in parts]), column)


def test_an_idle_observer_still_delivers_when_its_clock_goes_on():
    rule = rule_of(cbd(100), SYSTEM)
    arrival, stamps = columns([(5, 0, 0, 0, (0,) * ELEMENTS)])
    queue, delivered, _ = reorder(empty_queue(rule), arrival, arrival, stamps, rule)
    assert (len(queue.rows), len(delivered.label)) == (1, 0)
    nothing = slice_of(stamps, 0, 0)
    queue, delivered, _ = reorder(queue, arrival[:0], arrival[:0], nothing, rule, until=20)
    assert (delivered.label.tolist(), delivered.tick.tolist()) == ([5], [12])
    assert queue.clock.tolist() == [20, 1]


def test_messages_due_at_a_tick_leave_before_arrivals_of_that_tick():
    rule = rule_of(dapw(100), SYSTEM)
    zeros = (0,) * ELEMENTS
    arrival, stamps = columns([(5, 1, 0, 0, zeros), (7, 0, -7, 0, zeros)])
    assert stamps.r.tolist() == [5, 5]
    _, delivered, _ = reorder(empty_queue(rule), arrival, np.arange(2), stamps, rule)
    assert (delivered.label.tolist(), delivered.tick.tolist()) == ([0, 1], [12, 12])
    assert delivered.is_overtaken.tolist() == [False, True]


def test_equal_timestamps_of_two_batches_keep_their_order():
    rule = rule_of(dpc2(100), SYSTEM)
    arrival, stamps = columns([(5, 1, 0, 0, (0,) * ELEMENTS)] + [(0, 1, 0, 0, (1,) * ELEMENTS)] * 2)
    queue, label = empty_queue(rule), np.arange(3)
    for part in (slice(0, 2), slice(2, 3)):
        batch = slice_of(stamps, part.start, part.stop)
        queue, _, _ = reorder(queue, arrival[part], label[part], batch, rule)
    nothing = slice_of(stamps, 0, 0)
    _, delivered, _ = reorder(queue, arrival[:0], label[:0], nothing, rule, until=20)
    assert delivered.label.tolist() == [0, 1, 2]


def test_a_clock_that_runs_backwards_is_refused():
    rule = rule_of(dapw(50), SYSTEM)
    arrival, stamps = columns([(5, 0, 0, 0, (0,) * ELEMENTS)])
    queue, _, _ = reorder(empty_queue(rule), arrival, arrival, stamps, rule)
    assert empty_queue(rule).clock[0] == LEAST
    with pytest.raises(AssertionError, match="backwards"):
        reorder(queue, arrival - 1, arrival, stamps, rule)
    with pytest.raises(AssertionError, match="backwards"):
        reorder(queue, arrival, arrival, stamps, rule, until=4)
