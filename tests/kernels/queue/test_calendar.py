"""The calendar gives events in the order of a heap, however far ahead they are."""

import heapq
import random

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels.queue.calendar import (
    DAY_BITS,
    DAYS,
    LEFT,
    PAGE,
    TODAY,
    insert,
    make_calendar,
    open_day,
    take,
)
from beforehand.kernels.queue.heap import due_us, event

TAKE = -1
A_DAY_US = 1 << DAY_BITS


@numba.njit
def play(calendar, steps):
    """Each step takes the next event, or inserts one that is due so long after the last taken."""
    taken = [0]
    for i in range(len(steps)):
        if steps[i] != TAKE:
            insert(calendar, event(due_us(taken[-1]) + steps[i], i))
        elif calendar.counts[LEFT]:
            if calendar.counts[TODAY] == 0:
                open_day(calendar)
            taken.append(take(calendar))
    return taken[1:]


def expected(steps):
    queue, taken = [], [0]
    for i, step in enumerate(steps):
        if step != TAKE:
            heapq.heappush(queue, event(due_us(taken[-1]) + step, i))
        elif queue:
            taken.append(heapq.heappop(queue))
    return taken[1:]


def check(steps):
    steps = [*steps, *[TAKE] * len(steps)]
    calendar = make_calendar(len(steps))
    assert play(calendar, np.array(steps, np.int64)) == expected(steps)
    assert calendar.counts[LEFT] == calendar.counts[TODAY] == calendar.size.sum() == 0


AHEAD_US = st.one_of(
    st.integers(0, 5),
    st.integers(0, 20 * A_DAY_US),
    st.integers(0, 3 * DAYS * A_DAY_US),
    st.sampled_from([A_DAY_US - 1, A_DAY_US, (DAYS - 1) * A_DAY_US, DAYS * A_DAY_US]),
)


@given(st.lists(st.one_of(st.just(TAKE), AHEAD_US), max_size=80))
def test_it_gives_what_a_heap_gives(steps):
    check(steps)


def test_long_lists_and_pages_that_are_used_again():
    rng = random.Random(1)
    steps = [rng.randrange(4 * A_DAY_US) for _ in range(20 * PAGE)]
    for _ in range(20_000):
        steps += [TAKE, rng.choice((rng.randrange(50 * A_DAY_US), 2 * A_DAY_US))]
    check(steps)


def test_events_far_ahead_are_postponed_day_by_day():
    check([10 * DAYS * A_DAY_US, 3, TAKE, 5 * DAYS * A_DAY_US, TAKE, 7, TAKE, TAKE])
