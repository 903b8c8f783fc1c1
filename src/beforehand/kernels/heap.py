"""A binary heap for compiled worlds: what happens next, ties broken by a ticket.

An event is one int64: the time in the high 36 bits (19 hours in microseconds), the ticket in the
low 27 (134 million). The ticket says what the event is; comparing two events is comparing two
integers. The caller owns the array and the count: `size = push(heap, size, event(due_us, ticket))`,
then `next_event = heap[0]; size = pop(heap, size)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.draws import compiled

TICKET_BITS = 27
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
    """The new size. The array must have room."""
    hole = size
    while hole > 0:
        above = (hole - 1) >> 1
        if heap[above] <= event:
            break
        heap[hole] = heap[above]
        hole = above
    heap[hole] = event
    return size + 1


@compiled
def pop(heap: Heap, size: int) -> int:
    """Remove heap[0], the smallest; the new size."""
    size -= 1
    last = heap[size]
    hole = 0
    below = 1
    while below < size:
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= last:
            break
        heap[hole] = heap[below]
        hole = below
        below = 2 * hole + 1
    heap[hole] = last
    return size
