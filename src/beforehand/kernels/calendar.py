"""What happens next, for compiled worlds with many events ahead: today's in a heap, a list per day.

A heap of a hundred thousand events is read all over at every step, and no cache keeps it. Here only
the heap of one day is, some hundred events; the others wait in lists, which are written and read
from front to back. Time must not run backwards: no event may be due before one already taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import part
from beforehand.kernels.heap import due_us, pop, push

DAY_BITS = 10
"""A day is 1,024 µs. How long it is changes the speed, never the order."""
DAYS = 4096
"""Lists. What is due later than that is in one of them too, and put off when its day comes."""
PAGE = 31
"""Events on one page of a list. The last word of a page leads to the next: 256 bytes."""


class Calendar(NamedTuple):
    counts: NDArray[np.int64]  # LEFT, ...
    today: NDArray[np.int64]  # a heap
    first: NDArray[np.int32]  # day: the first page of its list
    last: NDArray[np.int32]  # day: the last one
    size: NDArray[np.int32]  # day: the events in its list
    pages: NDArray[np.int64]  # page, (event, ..., next)


LEFT, TODAY, DAY, FREE = range(4)
"""Events in all; events in the heap of today; the number of today; the first free page."""


def make_calendar(events_max: int) -> Calendar:
    return Calendar(
        np.zeros(4, np.int64),
        np.empty(events_max, np.int64),
        np.zeros(DAYS, np.int32),
        np.zeros(DAYS, np.int32),
        np.zeros(DAYS, np.int32),
        # A list leaves at most one page unfilled.
        np.zeros((events_max // PAGE + DAYS + 1, PAGE + 1), np.int64),
    )


@part
def insert(calendar: Calendar, event: int) -> None:
    calendar.counts[LEFT] += 1
    _file(calendar, event)


@part
def take(calendar: Calendar) -> int:
    """Remove and return the next event. There must be one today: see `open_day`."""
    counts, event = calendar.counts, calendar.today[0]
    counts[TODAY] = pop(calendar.today, counts[TODAY])
    counts[LEFT] -= 1
    return int(event)


@part
def open_day(calendar: Calendar) -> None:
    """Go on to the next day that has events. There must be one."""
    counts, pages = calendar.counts, calendar.pages
    while counts[TODAY] == 0:
        counts[DAY] += 1
        day = counts[DAY] % DAYS
        page, size = calendar.first[day], calendar.size[day]
        calendar.size[day] = 0
        for i in range(size):
            _file(calendar, pages[page, i % PAGE])
            if i % PAGE == PAGE - 1 or i == size - 1:
                following = pages[page, PAGE]
                pages[page, PAGE] = counts[FREE] - page - 1
                counts[FREE] = page
                page = following


@part
def _file(calendar: Calendar, event: int) -> None:
    counts, pages = calendar.counts, calendar.pages
    due = due_us(event) >> DAY_BITS
    if due <= counts[DAY]:
        counts[TODAY] = push(calendar.today, counts[TODAY], event)
        return
    day = due % DAYS
    at = calendar.size[day] % PAGE
    if at == 0:
        # A free page has the way to the next free one, less one: so that of zeros every page is.
        page = counts[FREE]
        counts[FREE] = page + 1 + pages[page, PAGE]
        if calendar.size[day]:
            pages[calendar.last[day], PAGE] = page
        else:
            calendar.first[day] = page
        calendar.last[day] = page
    pages[calendar.last[day], at] = event
    calendar.size[day] += 1
