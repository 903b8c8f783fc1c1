"""The queue of `protocols.observer.observer` on arrays: it takes arrivals, returns deliveries, and
keeps the rest.

A `Queue` is three int64 arrays and nothing else, so a streaming operator can store it as bytes
between two batches. The division of arrivals into batches changes neither order nor times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEAST = int(np.iinfo(np.int64).min)
FOREVER = int(np.iinfo(np.int64).max)

# A row of the queue has the columns of its sort key, then these. The ticket is the last column that
# is compared, so equal timestamps are in order of arrival.
TICKET, DUE, LABEL = -3, -2, -1


class Rule(NamedTuple):
    """A dial and the guarantees, as plain numbers: see `protocols.observer.observer.Dial`."""

    wait_percent: int
    checks_queue: bool
    elements: int
    uses_c: bool
    epsilon: int
    delta: int
    kn_max: int


class Stamps(NamedTuple):
    """The timestamps of messages, one row each."""

    process: Ints
    r: Ints
    c: Ints
    kn: Ints
    """Shape (messages, at least the elements of the rule)."""


class Queue(NamedTuple):
    """The state of an observer between two batches."""

    rows: Ints
    """The waiting messages, as a binary heap."""
    front: Ints
    """The largest timestamp delivered so far; it begins with `LEAST` before the first delivery."""
    clock: Ints
    """The last tick seen, and the number of tickets issued."""


class Delivered(NamedTuple):
    """The deliveries of one batch, in order."""

    label: Ints
    """The label that the caller gave the message on arrival."""
    tick: Ints
    is_overtaken: Flags
    """Whether it was delivered after a message with a larger timestamp: see
    `Disorder.overtaken`."""


class Doubts(NamedTuple):
    """The arrivals of a batch that broke the guarantees: see `Disorder`."""

    is_late: Flags
    is_ahead: Flags
    is_impossible: Flags


def empty_queue(rule: Rule) -> Queue:
    front = np.zeros(key_width(rule), np.int64)
    front[0] = LEAST
    rows = np.empty((0, queue_width(rule)), np.int64)
    return Queue(rows, front, np.array([LEAST, 0], np.int64))


def key_width(rule: Rule) -> int:
    """Return the number of columns of a timestamp: r + c, the elements, the process."""
    return 2 + rule.elements


def queue_width(rule: Rule) -> int:
    return key_width(rule) + (0 if rule.checks_queue else 1) - TICKET


def reorder(
    queue: Queue,
    arrival: Ints,
    label: Ints,
    stamps: Stamps,
    rule: Rule,
    until: int | None = None,
) -> tuple[Queue, Delivered, Doubts]:
    """Put one batch through the queue, then advance the observer's clock to `until`.

    arrival: the observer's time at each arrival, which never decreases, also between batches. If
        the clock was set back, it is the highest value that the clock has shown (see
        `protocols.observer.observer`).
    label: the caller's label of each message, which `Delivered` returns.
    until: the last tick whose deliveries are made; None: that of the last arrival.
    """
    ticks = np.concatenate([queue.clock[:1], arrival])
    if until is not None:
        ticks = np.append(ticks, until)
    assert np.all(ticks[1:] >= ticks[:-1]), "the observer's clock runs backwards"
    believed, doubts = believe(stamps, arrival, rule)
    tickets = np.arange(len(arrival)) + queue.clock[1]
    rows = queue_rows(tickets, label, believed, rule)
    table = np.concatenate([queue.rows, rows])
    front = queue.front.copy()
    heap, picked, tick, is_overtaken = run_queue(table, len(queue.rows), ticks, len(rows), front)
    clock = np.array([ticks[-1], queue.clock[1] + len(rows)], np.int64)
    delivered = Delivered(table[picked, LABEL], tick, is_overtaken)
    return Queue(table[heap], front, clock), delivered, doubts


def believe(stamps: Stamps, arrival: Ints, rule: Rule) -> tuple[Stamps, Doubts]:
    """Return the stamps, with impossible ones replaced by the time of their receipt."""
    process, r, c, kn = stamps
    is_ahead = r + c > arrival + rule.epsilon
    is_odd = (c < 0) | (c > rule.epsilon) | ((kn < 0) | (kn > rule.kn_max)).any(axis=1)
    is_reset = is_ahead | is_odd
    is_late = (r < arrival - rule.delta - rule.epsilon) & ~is_reset
    if is_reset.any():
        r = np.where(is_reset, arrival, r)
        c = np.where(is_reset, 0, c)
        kn = np.where(is_reset[:, None], 0, kn)
    return Stamps(process, r, c, kn), Doubts(is_late, is_ahead, is_odd & ~is_ahead)


def queue_rows(tickets: Ints, label: Ints, stamps: Stamps, rule: Rule) -> Ints:
    """Return the rows of a queue for messages that arrived with these tickets."""
    process, r, c, kn = stamps
    c = c if rule.uses_c else np.zeros_like(c)
    due = r - (-rule.wait_percent * (c + rule.delta + rule.epsilon) // 100)
    rows = np.empty((len(r), queue_width(rule)), np.int64)
    start = 0 if rule.checks_queue else 1
    if not rule.checks_queue:
        rows[:, 0] = due
    rows[:, start] = r + c
    rows[:, start + 1 : start + 1 + rule.elements] = kn[:, : rule.elements]
    rows[:, start + 1 + rule.elements] = process
    rows[:, TICKET] = tickets
    rows[:, DUE] = due
    rows[:, LABEL] = label
    return rows


@compiled
def run_queue(
    table: Ints, held: int, ticks: Ints, arrivals: int, front: Ints
) -> tuple[Ints, Ints, Ints, Flags]:
    """Return the remaining heap, the delivered rows, their ticks, and whether they were overtaken.

    ticks: the clock before the batch, at each arrival, and perhaps at the end.
    """
    heap = np.empty(table.shape[0], np.int64)
    for i in range(held):
        heap[i] = i  # the rows were kept as a heap
    size = held
    picked = np.empty(table.shape[0], np.int64)
    tick = np.empty(table.shape[0], np.int64)
    is_overtaken = np.zeros(table.shape[0], np.bool_)
    done = 0
    now = ticks[0]
    # One round more than there are ticks, for messages that the last arrival made ready.
    for i in range(1, ticks.shape[0] + 1):
        limit = ticks[min(i, ticks.shape[0] - 1)]
        while size > 0 and table[heap[0], DUE] <= limit:
            row = heap[0]
            size = _pop(table, heap, size)
            now = max(now, table[row, DUE])
            picked[done] = row
            tick[done] = now
            is_overtaken[done] = not _advances(table[row], front)
            done += 1
        now = limit
        if i <= arrivals:
            size = _push(table, heap, size, held + i - 1)
    return heap[:size], picked[:done], tick[:done], is_overtaken[:done]


@compiled
def _advances(row: Ints, front: Ints) -> bool:
    """Return whether the row's timestamp is not below `front`, and if so, replace `front` by it."""
    key = row.shape[0] + TICKET - front.shape[0]
    for i in range(front.shape[0]):
        if row[key + i] != front[i]:
            if row[key + i] < front[i]:
                return False
            break
    front[:] = row[key : key + front.shape[0]]
    return True


@compiled
def _before(table: Ints, a: int, b: int) -> bool:
    for i in range(table.shape[1] + TICKET + 1):
        if table[a, i] != table[b, i]:
            return bool(table[a, i] < table[b, i])
    return False


@compiled
def _push(table: Ints, heap: Ints, size: int, row: int) -> int:
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(table, row, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = row
    return size + 1


@compiled
def _pop(table: Ints, heap: Ints, size: int) -> int:
    size -= 1
    row = heap[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(table, heap[child + 1], heap[child]):
            child += 1
        if not _before(table, heap[child], row):
            break
        heap[at] = heap[child]
        at = child
    if size > 0:
        heap[at] = row
    return size
