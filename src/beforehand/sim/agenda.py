"""What happens next, for worlds with many events ahead: a list per day, sorted when its day comes.

A heap of a hundred thousand events is read all over at every step, and no cache keeps it. Here an
event is put at the end of a list, and touched again on its day (`kernels.calendar` does the same).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

DAY_BITS = 10
"""A day is 1,024 µs. How long it is changes the speed, never the order."""

Item = TypeVar("Item")
Event = tuple[int, int, int, Item]
"""When, in µs; a number that no other event has, to order those due at once; where; what."""


class Agenda(Generic[Item]):
    def __init__(self) -> None:
        self._days: dict[int, list[Event[Item]]] = {}
        self._ahead: list[int] = []  # a heap of the days that have a list
        self._today = -1
        self._left: list[Event[Item]] = []  # of today, the next one last

    def add(self, event: Event[Item]) -> None:
        """It may not be due before the event that was last handed out."""
        day = event[0] >> DAY_BITS
        if day in self._days:
            self._days[day].append(event)
        elif day > self._today:
            self._days[day] = [event]
            heappush(self._ahead, day)
        else:
            insort(self._left, event, key=_backwards)

    def __iter__(self) -> Iterator[Event[Item]]:
        """In order; also those that are added meanwhile."""
        while self._ahead:
            self._today = heappop(self._ahead)
            left = self._left = self._days.pop(self._today)
            left.sort(reverse=True)
            while left:
                yield left.pop()


def _backwards(event: Event[Item]) -> tuple[int, int]:
    return -event[0], -event[1]
