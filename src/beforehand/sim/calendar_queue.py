"""What happens next, for worlds with many events ahead: a list per day, sorted when its day comes.

A heap of a hundred thousand events is read all over at every step, and no cache keeps it. Here an
event is put at the end of a list, and touched again on its day (`kernels.calendar` does the same).
As there, an event is one number: when, and a ticket that says what it is (`kernels.heap`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import neg

from beforehand.kernels.calendar import DAY_BITS
from beforehand.kernels.heap import TICKET_BITS, TICKETS_MAX

TICKET_MASK = TICKETS_MAX - 1


class CalendarQueue:
    def __init__(self) -> None:
        self._days: dict[int, list[int]] = {}
        self._ahead: list[int] = []  # a heap of the days that have a list
        self._today = -1
        self._left: list[int] = []  # of today, the next one last

    def add(self, due_us: int, ticket: int) -> None:
        """It may not be due before the event that was last handed out."""
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
        """(due_us, ticket), in order; also of those that are added meanwhile."""
        while self._ahead:
            self._today = heappop(self._ahead)
            left = self._left = self._days.pop(self._today)
            left.sort(reverse=True)
            while left:
                event = left.pop()
                yield event >> TICKET_BITS, event & TICKET_MASK
