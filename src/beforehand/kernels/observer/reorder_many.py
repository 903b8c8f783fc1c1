"""The queues of many observers in one call: see `kernels.observer.reorder`, which has the rules.

Rows lie in one table, group by group. A group is an observer, or one of its incarnations if it
ended and began anew within the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beforehand.kernels.compiling import compiled
from beforehand.kernels.observer.reorder import (
    DUE,
    FOREVER,
    LABEL,
    LEAST,
    Flags,
    Ints,
    run_queue,
)

# The columns of the clocks, one row for each observer.
TICK, TICKETS, DELIVERED, FURTHEST, CLOCKS = 0, 1, 2, 3, 4
"""The last tick seen, the tickets issued, the rows delivered, and the highest ticket delivered."""


class ManyDelivered(NamedTuple):
    """The deliveries of all groups, each in order, one group after the other."""

    row: Ints
    """The row of the table."""
    tick: Ints
    seq: Ints
    is_overtaken: Flags
    is_moved: Flags
    """Whether a later arrival was delivered before it: reordered in the sense of RFC 4737."""
    kept: Ints
    """The rows of the table that still wait: for each group in turn, as a heap."""


@compiled
def arrival_ticks(bounds: Ints, shown: Ints, is_sound: Flags, clock: Ints) -> Ints:
    """Return the observer's clock at each arrival. It never decreases.

    bounds: the rows of group g, in order of arrival, are from bounds[g] to bounds[g + 1].
    shown: what the clock shows at the arrival, if `is_sound`.
    clock: the last tick of each group; `LEAST` if it has none.
    """
    arrival = np.empty(shown.shape[0], np.int64)
    for group in range(bounds.shape[0] - 1):
        now = clock[group]
        if now == LEAST:
            now = FOREVER
            for row in range(bounds[group], bounds[group + 1]):
                if is_sound[row]:
                    now = min(now, shown[row])
            if now == FOREVER:
                now = 0
        for row in range(bounds[group], bounds[group + 1]):
            if is_sound[row]:
                now = max(now, shown[row])
            arrival[row] = now
    return arrival


def reorder_many(
    table: Ints, bounds: Ints, held: Ints, arrival: Ints, until: Ints, front: Ints, clock: Ints
) -> ManyDelivered:
    """Put one batch through the queues of all groups; `front` and `clock` change in place.

    table: rows as `queue_rows` makes them. In each group, those that waited come first, as a heap,
    and then the arrivals in order.
    held: the number of rows of each group that waited.
    arrival: the observer's clock at each arrival; not used for rows that waited.
    until: to which tick the clock of each group is advanced at the end; `LEAST` for no further,
    `FOREVER` until nothing waits.
    """
    return ManyDelivered(*_run_all(table, bounds, held, arrival, until, front, clock))


@compiled
def _run_all(
    table: Ints, bounds: Ints, held: Ints, arrival: Ints, until: Ints, front: Ints, clock: Ints
) -> tuple[Ints, Ints, Ints, Flags, Flags, Ints]:
    picked, tick = np.empty(table.shape[0], np.int64), np.empty(table.shape[0], np.int64)
    seq, kept = np.empty(table.shape[0], np.int64), np.empty(table.shape[0], np.int64)
    is_overtaken = np.empty(table.shape[0], np.bool_)
    is_moved = np.empty(table.shape[0], np.bool_)
    done = left = 0
    for group in range(bounds.shape[0] - 1):
        low, high = bounds[group], bounds[group + 1]
        first = low + held[group]
        ticks = np.empty(high - first + 2, np.int64)
        ticks[0] = clock[group, TICK]
        ticks[1:-1] = arrival[first:high]
        ticks[-1] = _last_tick(ticks[-2], until[group], table[low:high])
        clock[group, TICK] = ticks[-1]
        if low == high:
            continue
        heap, rows, at, overtaken = run_queue(
            table[low:high], held[group], ticks, high - first, front[group]
        )
        for i in range(rows.shape[0]):
            row, now = low + rows[i], done + i
            picked[now], tick[now], is_overtaken[now] = row, at[i], overtaken[i]
            seq[now] = clock[group, DELIVERED] + i
            is_moved[now] = table[row, LABEL] < clock[group, FURTHEST]
            clock[group, FURTHEST] = max(clock[group, FURTHEST], table[row, LABEL])
        done += rows.shape[0]
        clock[group, DELIVERED] += rows.shape[0]
        kept[left : left + heap.shape[0]] = low + heap
        left += heap.shape[0]
    return picked[:done], tick[:done], seq[:done], is_overtaken[:done], is_moved[:done], kept[:left]


@compiled
def _last_tick(now: int, until: int, rows: Ints) -> int:
    """Return the tick to which a clock is advanced."""
    if until != FOREVER:
        return max(now, until)
    for row in range(rows.shape[0]):
        now = max(now, rows[row, DUE])
    return now
