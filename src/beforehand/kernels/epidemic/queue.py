"""The event heap, blocks of memory and rows of the log.

A heap entry has two words: the time, and a ticket with the kind and the index of the event. With
one word of both (`kernels.queue.heap`) a run could last 4.7 hours. Entries of one instant come in
the order of their tickets, as in `sim.contacts.world`.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import part
from beforehand.kernels.epidemic.sets import signed
from beforehand.kernels.epidemic.state import (
    DATA,
    HEAP,
    NOW,
    POOL_TOP,
    R_BLOCK,
    R_KIND,
    R_NEXT,
    R_SIZE,
    RECORD_FREE,
    RECORDS_TOP,
    ROWS,
    TICKET,
    State,
)

INDEX_BITS, KIND_BITS = 24, 2
INDEX_MAX = 1 << INDEX_BITS
TICKETS_MAX = 1 << (62 - INDEX_BITS - KIND_BITS)


@part
def push(s: State, t_us: int, kind: int, index: int, ticket: int) -> None:
    """Add an event."""
    heap = s.heap
    low = (ticket << (INDEX_BITS + KIND_BITS)) | (kind << INDEX_BITS) | index
    hole = s.counts[HEAP]
    s.counts[HEAP] = hole + 1
    while hole > 0:
        above = (hole - 1) >> 2
        if heap[above, 0] < t_us or (heap[above, 0] == t_us and heap[above, 1] < low):
            break
        heap[hole, 0] = heap[above, 0]
        heap[hole, 1] = heap[above, 1]
        hole = above
    heap[hole, 0] = t_us
    heap[hole, 1] = low


@part
def pop(s: State) -> None:
    """Remove the earliest event, which is `heap[0]`."""
    heap = s.heap
    size = s.counts[HEAP] - 1
    s.counts[HEAP] = size
    t_us, low = heap[size, 0], heap[size, 1]
    hole = 0
    while True:
        below = 4 * hole + 1
        if below >= size:
            break
        best, best_t, best_low = below, heap[below, 0], heap[below, 1]
        for i in range(below + 1, min(below + 4, size)):
            if heap[i, 0] < best_t or (heap[i, 0] == best_t and heap[i, 1] < best_low):
                best, best_t, best_low = i, heap[i, 0], heap[i, 1]
        if t_us < best_t or (t_us == best_t and low < best_low):
            break
        heap[hole, 0] = best_t
        heap[hole, 1] = best_low
        hole = best
    heap[hole, 0] = t_us
    heap[hole, 1] = low


@part
def kind_of(low: int) -> int:
    return (low >> INDEX_BITS) & ((1 << KIND_BITS) - 1)


@part
def index_of(low: int) -> int:
    return low & (INDEX_MAX - 1)


@part
def ticket_of(low: int) -> int:
    return low >> (INDEX_BITS + KIND_BITS)


@part
def next_ticket(s: State) -> int:
    s.counts[TICKET] += 1
    return int(s.counts[TICKET])


@part
def size_class(words: int) -> int:
    """Return the class of the smallest block that has so many words: blocks have 2, 4, 8, ..."""
    size = 1
    while (1 << size) < words:
        size += 1
    return size


@part
def take_block(s: State, words: int) -> int:
    """Return where a block of the pool begins that has at least so many words, and fewer than
    twice as many (or 2)."""
    size = size_class(words)
    at = s.free[size]
    if at >= 0:
        s.free[size] = signed(s.pool[at]) - 1
        return int(at)
    at = s.counts[POOL_TOP]
    s.counts[POOL_TOP] = at + (1 << size)
    return int(at)


@part
def give_block(s: State, at: int, words: int) -> None:
    """Return a block that was taken for so many words."""
    size = size_class(words)
    # A free block holds the next one plus 1, because an unsigned word cannot hold -1.
    s.pool[at] = np.uint64(s.free[size] + 1)
    s.free[size] = at


@part
def take_record(s: State) -> int:
    """Return a free record."""
    r = s.counts[RECORD_FREE]
    if r < 0:
        r = s.counts[RECORDS_TOP]
        s.counts[RECORDS_TOP] = r + 1
    else:
        s.counts[RECORD_FREE] = s.record[r, R_NEXT]
    return int(r)


@part
def words_of(s: State, r: int) -> int:
    """Return how many words the block of a record has."""
    size = s.record[r, R_SIZE]
    return int(size if s.record[r, R_KIND] == DATA else 2 * size)


@part
def give_record(s: State, r: int) -> None:
    """Free a record and its block."""
    give_block(s, s.record[r, R_BLOCK], words_of(s, r))
    s.record[r, R_NEXT] = s.counts[RECORD_FREE]
    s.counts[RECORD_FREE] = r


@part
def add_row(s: State, node: int, kind: int, m: int, value: int) -> None:
    """Add a row to the log."""
    at = s.counts[ROWS]
    s.counts[ROWS] = at + 1
    s.row_t[at] = s.counts[NOW]
    s.row_node[at] = node
    s.row_kind[at] = kind
    s.row_message[at] = m
    s.row_value[at] = value
