"""A calendar queue of events: a list per day, sorted when its day comes.

A heap of 100,000 events touches memory all over at every step, so it does not stay in a cache. Here
an event is appended to a list and touched again only on its day, as in `kernels.queue.calendar`. As
there, an event is one integer: its time, and a ticket that identifies it (`kernels.queue.heap`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import neg

from beforehand.kernels.queue.calendar import DAY_BITS
from beforehand.kernels.queue.heap import TICKET_BITS, TICKETS_MAX

TICKET_MASK = TICKETS_MAX - 1


class CalendarQueue:
    def __init__(self) -> None:
        self._days: dict[int, list[int]] = {}
        self._ahead: list[int] = []  # a heap of the days that have a list
        self._today = -1
        self._left: list[int] = []  # events of today, the next one last

    def add(self, due_us: int, ticket: int) -> None:
        """Add an event. It must not be due before the event that was returned last."""
        day, event = due_us >> DAY_BITS, due_us << TICKET_BITS | ticket
        listed = self._days.get(day)
        if listed is not None:
            listed.append(event)
        elif day > self._today:
            self._days[day] = [event]
            heappush(self._ahead, day)
        else:
            insort(self._left, event, key=neg)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield (due_us, ticket) in order, including events that are added during the iteration."""
        while self._ahead:
            self._today = heappop(self._ahead)
            left = self._left = self._days.pop(self._today)
            left.sort(reverse=True)
            while left:
                event = left.pop()
                yield event >> TICKET_BITS, event & TICKET_MASK
