"""The state of the observers of a partition, and its transitions on new rows. No Spark here.

Rows are Arrow tables from end to end, so that a column of any type keeps its type. All observers of
a partition share arrays and tables, and go through the kernel in one call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beforehand.kernels.observer.reorder import (
    FOREVER,
    LEAST,
    Flags,
    Ints,
    Stamps,
    believe,
    key_width,
    queue_rows,
    queue_width,
)
from beforehand.kernels.observer.reorder_many import (
    CLOCKS,
    FURTHEST,
    TICK,
    TICKETS,
    ManyDelivered,
    arrival_ticks,
    reorder_many,
)
from beforehand.observe.incarnations import Incarnations, group_rows
from beforehand.observe.rows import join
from beforehand.observe.stamps import (
    ARRIVED_US,
    ENDS,
    KEY,
    ON_THE_WAY,
    TIE,
    Reordering,
    arrived_us_of,
    integers,
    is_believable,
    stamps_of,
)

Names = Any  # an Arrow array of strings

ARRIVAL = "_arrival"
"""The observer's clock when a row arrived, stored with the row while it waits."""
LATE, RESET = "late", "reset"

OUTPUTS = {
    LATE: "boolean",
    RESET: "boolean",
    "delivered_seq": "long",
    "delivered_us": "long",
    "waited_us": "long",
    "moved": "boolean",
    "suspect": "boolean",
}
"""The columns that are appended to those of the input."""


class State(NamedTuple):
    """The state of the observers of a partition between two micro-batches."""

    keys: Names
    """The names of the observers; one may be null."""
    front: Ints
    """For each observer the largest timestamp delivered so far."""
    clock: Ints
    """For each observer the columns of `kernels.observer.reorder_many`."""
    seen_us: Ints
    """For each observer the time of its last row."""
    owner: Ints
    """The observer of each row that waits: its index in `keys`."""
    queue: Ints
    """The rows that wait, as the kernel has them: by observer, and for each observer a heap."""
    waiting: pa.Table | None
    """The same rows, as they are carried."""
    unsettled: pa.Table | None
    """Rows with the latest arrival time: the next micro-batch may bring others of that time."""
    since_us: int = 0
    """Silence before this time does not count, because the stream was not running."""
    acts: bool = True
    """Whether observers that are silent deliver what they hold. In a bounded run they do not: its
    duration must not change its output."""

    @property
    def held(self) -> int:
        """Return the number of rows that are still to be delivered."""
        return len(self.owner) + (0 if self.unsettled is None else len(self.unsettled))


class BatchMoment(NamedTuple):
    """The facts of a batch besides its rows."""

    now_us: int = 0
    """The wall clock of the batch: the same if the batch is repeated."""
    idle_us: int | None = None
    """An observer without a row for this long delivers all it holds; None for never."""
    is_last: bool = False
    """Whether no row will follow, as in a table: all observers deliver all they hold."""


def new_state(order: Reordering) -> State:
    front = np.empty((0, key_width(order.rule)), np.int64)
    queue = np.empty((0, queue_width(order.rule)), np.int64)
    none = np.empty(0, np.int64)
    clock = np.empty((0, CLOCKS), np.int64)
    return State(pa.array([], pa.string()), front, clock, none, none, queue, None, None)


def take(
    state: State, rows: pa.Table, order: Reordering, moment: BatchMoment
) -> tuple[State, pa.Table]:
    """Return the state after these rows, and the rows to deliver: of each observer in order.

    An observer that ends is removed; a later row of that name begins a new one. With the clock
    `arrival`, an end that has an arrival time ends what arrived up to then, however the rows are
    divided into batches. Any other end is that of the whole batch.
    """
    fresh = len(rows)
    if state.unsettled is not None:
        rows = join([rows, state.unsettled])
    state, owner = _with_observers(state, rows[KEY], order)
    state.seen_us[owner[:fresh]] = moment.now_us
    groups = group_rows(rows, owner, len(state.keys), order)
    groups.ends[groups.last] |= _runs_out(state, order, moment)
    is_end = rows[ENDS].to_numpy(zero_copy_only=False)
    rows, of_row = rows.filter(pa.array(~is_end)), groups.of_row[~is_end]
    unsettled = None
    if order.clock == "arrival":
        later = _is_last(rows, of_row, groups, order) & ~groups.ends[of_row]
        unsettled = rows.filter(pa.array(later)) if later.any() else None
        rows, of_row = rows.filter(pa.array(~later)), of_row[~later]
    state, out = _admit(state._replace(unsettled=unsettled), rows, of_row, groups, order, moment)
    return _without_ended(state, groups), out


def _with_observers(state: State, keys: Any, order: Reordering) -> tuple[State, Ints]:
    """Return a copy of the state that has these observers, and the index of each key."""
    keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    found = pc.index_in(keys, value_set=state.keys)
    fresh = pc.unique(keys.filter(pc.is_null(found)))
    if len(fresh):
        state = state._replace(keys=pa.concat_arrays([state.keys, fresh]))
        found = pc.index_in(keys, value_set=state.keys)
    front = np.zeros((len(fresh), key_width(order.rule)), np.int64)
    front[:, 0] = LEAST
    state = state._replace(
        front=np.concatenate([state.front, front]),
        clock=np.concatenate([state.clock, _new_clocks(len(fresh))]),
        seen_us=np.concatenate([state.seen_us, np.zeros(len(fresh), np.int64)]),
    )
    return state, found.to_numpy(zero_copy_only=False).astype(np.int64)


def _new_clocks(count: int) -> Ints:
    clock = np.zeros((count, CLOCKS), np.int64)
    clock[:, TICK], clock[:, FURTHEST] = LEAST, -1
    return clock


def _runs_out(state: State, order: Reordering, moment: BatchMoment) -> Flags:
    """Return which observers deliver all they hold though none of their rows says so."""
    if moment.is_last:
        return np.ones(len(state.keys), np.bool_)
    if order.clock == "wall" or moment.idle_us is None or not state.acts:
        return np.zeros(len(state.keys), np.bool_)
    silent: Flags = np.maximum(state.seen_us, state.since_us) + moment.idle_us <= moment.now_us
    return silent


def _is_last(rows: pa.Table, of_row: Ints, groups: Incarnations, order: Reordering) -> Flags:
    """Return which rows have the latest arrival time of their group or a later stamp.

    Only arrival times that were given can be trusted, so rows without one do not decide which is
    the latest, if others do.
    """
    is_known = is_believable(integers(rows[ARRIVED_US]))
    arrived_us = arrived_us_of(rows, order)
    is_some = is_believable(arrived_us)
    last = np.full(groups.total, LEAST)
    np.maximum.at(last, of_row[is_known], arrived_us[is_known])
    decides = is_some & (last[of_row] == LEAST)
    np.maximum.at(last, of_row[decides], arrived_us[decides])
    is_last: Flags = is_some & (arrived_us >= last[of_row])
    return is_last


def _admit(
    state: State,
    rows: pa.Table,
    of_row: Ints,
    groups: Incarnations,
    order: Reordering,
    moment: BatchMoment,
) -> tuple[State, pa.Table]:
    """Put the rows into the queues, and split all rows into those delivered and those that wait."""
    owner = groups.owner
    is_first = np.append(True, owner[1:] != owner[:-1])[: groups.total]
    clock = np.where(is_first[:, None], state.clock[owner], _new_clocks(1))
    front = state.front[owner]
    front[~is_first] = 0
    front[~is_first, 0] = LEAST
    at, arrival, stamps = _arrivals(rows, of_row, clock[:, TICK], order, moment)
    of_row = of_row[at]
    begins = np.searchsorted(of_row, np.arange(groups.total + 1))
    believed, doubts = believe(stamps, arrival, order.rule)
    tickets = np.arange(len(at)) - begins[of_row] + clock[of_row, TICKETS]
    clock[:, TICKETS] += np.diff(begins)
    added = queue_rows(tickets, tickets, believed, order.rule)
    rows = rows.drop_columns([name for name in ON_THE_WAY if name in rows.column_names]).take(at)
    marks = (arrival, doubts.is_late, doubts.is_ahead | doubts.is_impossible)
    for name, mark in zip((ARRIVAL, LATE, RESET), marks, strict=True):
        rows = rows.append_column(name, pa.array(mark))
    rows = rows if state.waiting is None else join([state.waiting, rows])
    held = groups.first[state.owner]
    both = np.concatenate([held, of_row])
    place = np.argsort(both, kind="stable")
    delivered = reorder_many(
        np.concatenate([state.queue, added])[place],
        np.searchsorted(both[place], np.arange(groups.total + 1)),
        np.bincount(held, minlength=groups.total),
        np.concatenate([np.zeros(len(held), np.int64), arrival])[place],
        _until(groups, order, moment),
        front,
        clock,
    )
    kept = place[delivered.kept]
    state = state._replace(
        front=front[groups.last],
        clock=clock[groups.last],
        owner=owner[both[kept]],
        queue=np.concatenate([state.queue, added])[kept],
        waiting=rows.take(kept),
    )
    return state, _let_out(rows.take(place[delivered.row]), delivered, order)


def _until(groups: Incarnations, order: Reordering, moment: BatchMoment) -> Ints:
    """Return the tick to which the clock of each group is advanced after its arrivals."""
    wall = moment.now_us // order.tick_us if order.clock == "wall" else LEAST
    return np.where(groups.ends, FOREVER, wall)


def _let_out(out: pa.Table, delivered: ManyDelivered, order: Reordering) -> pa.Table:
    """Return the delivered rows with their output columns."""
    columns = {
        "delivered_seq": delivered.seq,
        "delivered_us": delivered.tick * order.tick_us,
        "waited_us": (delivered.tick - out[ARRIVAL].to_numpy()) * order.tick_us,
        "moved": delivered.is_moved,
        "suspect": delivered.is_overtaken,
    }
    out = out.drop_columns([ARRIVAL])
    for name, column in columns.items():
        out = out.append_column(name, pa.array(column))
    return out


def _arrivals(
    rows: pa.Table, of_row: Ints, clock: Ints, order: Reordering, moment: BatchMoment
) -> tuple[Ints, Ints, Stamps]:
    """Return the rows in order of arrival, by group, the observer's clock at each, and the stamps.

    Spark gives the rows of a micro-batch in any order. Rows that arrived at one time are taken in
    the order of their stamps, and a hash of the row breaks ties. So a restart and a batch job take
    them in the same order.
    """
    stamps, is_sound = stamps_of(rows, order)
    high = stamps.r + stamps.c
    keys = [rows[TIE].to_numpy(), stamps.process, *stamps.kn.T[::-1], high]
    shown = high
    if order.clock == "arrival":
        arrived_us = arrived_us_of(rows, order)
        is_sound = is_believable(arrived_us)
        keys.append(np.where(is_sound, arrived_us, LEAST))
        shown = arrived_us // order.tick_us
    elif order.clock == "wall":
        is_sound = np.ones(len(rows), np.bool_)
        shown = np.full(len(rows), moment.now_us // order.tick_us)
    # The clock `event` shows the largest stamp so far. Some process has read each of these values
    # on its own clock, so all clocks are now past that value minus ε. The proof of OBS 3.2 asks no
    # more of an observer's clock. It may lag behind, and then delivers later.
    at = np.lexsort([*keys, of_row])
    begins = np.searchsorted(of_row[at], np.arange(len(clock) + 1))
    arrival = arrival_ticks(begins, shown[at], is_sound[at], clock)
    return at, arrival, Stamps(*(column[at] for column in stamps))


def _without_ended(state: State, groups: Incarnations) -> State:
    """Remove the observers whose last group has ended."""
    stays = ~groups.leaves[groups.last]
    if stays.all():
        return state
    return state._replace(
        keys=state.keys.filter(pa.array(stays)),
        front=state.front[stays],
        clock=state.clock[stays],
        seen_us=state.seen_us[stays],
        owner=(np.cumsum(stays) - 1)[state.owner],
    )
