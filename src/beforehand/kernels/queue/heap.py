"""A 4-ary heap of events for compiled worlds: the earliest first, with ties broken by a ticket.

An event is one int64: the time in the high 34 bits (4.7 hours in microseconds), the ticket in the
low 29 (537 million). The ticket identifies the event. Comparing two events is comparing two
integers. The caller owns the array and the count: `size = push(heap, size, event(due_us, ticket))`,
then `next_event = heap[0]; size = pop(heap, size)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

TICKET_BITS = 29
TICKETS_MAX = 1 << TICKET_BITS
DUE_US_MAX = 1 << (63 - TICKET_BITS)

Heap = NDArray[np.int64]


@compiled
def event(due_us: int, ticket: int) -> int:
    return (due_us << TICKET_BITS) | ticket


@compiled
def due_us(event: int) -> int:
    return event >> TICKET_BITS


@compiled
def ticket(event: int) -> int:
    return event & (TICKETS_MAX - 1)


@compiled
def push(heap: Heap, size: int, event: int) -> int:
    """Add an event and return the new size. The array must have room."""
    hole = size
    while hole > 0:
        above = (hole - 1) >> 2
        if heap[above] <= event:
            break
        heap[hole] = heap[above]
        hole = above
    heap[hole] = event
    return size + 1


@compiled
def pop(heap: Heap, size: int) -> int:
    """Remove heap[0], the smallest, and return the new size."""
    size -= 1
    last = heap[size]
    hole = 0
    below = 1
    # The hole sinks to the bottom along the smallest children. Then the last event rises from
    # there, mostly not far. The smallest of four is chosen without a branch: the outcome is as good
    # as random, and a mispredicted branch costs more than the comparison.
    while below + 4 <= size:
        best, smallest = below, heap[below]
        for i in range(below + 1, below + 4):
            is_smaller = heap[i] < smallest
            best = i if is_smaller else best
            smallest = heap[i] if is_smaller else smallest
        heap[hole] = smallest
        hole = best
        below = 4 * hole + 1
    if below < size:
        best = below
        for i in range(below + 1, size):
            if heap[i] < heap[best]:
                best = i
        heap[hole] = heap[best]
        hole = best
    push(heap, hole, last)
    return size
