"""A calendar queue for compiled worlds: a heap of today's events, and a list per later day.

A single heap of 100,000 events does not fit in a cache, and every step touches it all over. Here
only the events of the present day, some hundred, are in a heap. Events of later days wait in
unsorted lists, one for each day of a ring of `DAYS`. They go into the heap when their day comes.
Time must not run backwards: no event may be due before one that was already taken.

A list is a chain of pages from one pool, so that no list needs a size in advance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import part
from beforehand.kernels.queue.heap import due_us, pop, push

DAY_BITS = 10
"""A day is 1,024 µs. Its length changes the speed, never the order."""
DAYS = 4096
"""The number of lists in the ring. An event that is due more than one turn ahead is in one of them
too. When that day comes, it is filed again, for the next turn."""
PAGE = 31
"""Events on one page. With the number of the next page of the list, a page has 256 bytes."""


class Calendar(NamedTuple):
    counts: NDArray[np.int64]  # LEFT, ...
    today: NDArray[np.int64]  # a 4-ary heap
    first: NDArray[np.int32]  # day: the first page of its list
    last: NDArray[np.int32]  # day: the last one
    size: NDArray[np.int32]  # day: the events in its list
    pages: NDArray[np.int64]  # page, (event, ..., next)


LEFT, TODAY, DAY, FREE = range(4)
"""Indices into `counts`: all events, events in the heap, the number of the present day, and the
first free page."""


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
    """Advance to the next day that has events. There must be one."""
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
        # Free pages are a linked list. The link holds (next - own number - 1). So in a newly
        # allocated pool, which is all zeros, every page is free and links to the one after it.
        page = counts[FREE]
        counts[FREE] = page + 1 + pages[page, PAGE]
        if calendar.size[day]:
            pages[calendar.last[day], PAGE] = page
        else:
            calendar.first[day] = page
        calendar.last[day] = page
    pages[calendar.last[day], at] = event
    calendar.size[day] += 1
