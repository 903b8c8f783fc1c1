"""The state of one observer of a stream, and its transitions on new rows. No Spark here.

Rows are Arrow tables from end to end, so that a column of any type keeps its type. The state of one
observer is one blob: the queue of `kernels.observer.reorder` and the rows that wait.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beforehand.errors import LocalError
from beforehand.kernels.observer.reorder import (
    DUE,
    LABEL,
    LEAST,
    Delivered,
    Flags,
    Ints,
    Queue,
    Rule,
    Stamps,
    empty_queue,
    reorder,
)
from beforehand.observe.packets import join, read_rows, write_rows

ClockSource = Literal["event", "arrival", "wall"]

# Internal columns that `observe` adds to incoming rows; they are not in the output.
PROCESS, TIME_US, ARRIVED_US, TIE, ENDS = "_process", "_time_us", "_arrived_us", "_tie", "_ends"
LEAVES = "_leaves"
ON_THE_WAY = (PROCESS, TIME_US, ARRIVED_US, TIE, ENDS, LEAVES)
ARRIVAL = "_arrival"
"""The observer's clock when a row arrived, stored with the row while it waits."""

OUTPUTS = {
    "late": "boolean",
    "reset": "boolean",
    "delivered_seq": "long",
    "delivered_us": "long",
    "waited_us": "long",
    "moved": "boolean",
    "suspect": "boolean",
}
"""The columns that are appended to those of the input."""

BELIEVABLE_MAX = 2**60
"""No clock exceeds this in any unit; above it the sum of two values would overflow."""
MISSING = 2**62


class Reordering(NamedTuple):
    """The ordering rule of an observer, fixed for its lifetime."""

    rule: Rule
    tick_us: int
    clock: ClockSource
    elements_min: int = 0
    """A stamp with fewer `kn` elements is reset: padded, it would come before its causes."""


class State(NamedTuple):
    """The state of one observer between two micro-batches."""

    queue: Queue
    delivered: int
    """The number of messages delivered: the next `delivered_seq`."""
    furthest: int
    """The highest ticket delivered; tickets number the arrivals."""
    tickets: Ints
    """The tickets of the rows in `waiting`, rising."""
    waiting: pa.Table | None
    unsettled: pa.Table | None
    """Rows with the latest arrival time: the next micro-batch may bring others of that time."""

    @property
    def held(self) -> int:
        """Return the number of rows that are still to be delivered."""
        return len(self.tickets) + (0 if self.unsettled is None else len(self.unsettled))


class _Blob(msgspec.Struct, array_like=True):
    rule: tuple[int, ...]
    rows: bytes
    front: bytes
    clock: bytes
    delivered: int
    furthest: int
    tickets: bytes
    waiting: bytes
    unsettled: bytes


def new_state(order: Reordering) -> State:
    return State(empty_queue(order.rule), 0, -1, np.empty(0, np.int64), None, None)


def encode_state(state: State, order: Reordering) -> bytes:
    arrays = (state.queue.rows, state.queue.front, state.queue.clock, state.tickets)
    rows, front, clock, tickets = (array.tobytes() for array in arrays)
    tables = (state.waiting, state.unsettled)
    waiting, unsettled = (b"" if table is None else write_rows(table) for table in tables)
    rule = tuple(int(number) for number in order.rule)
    counts = (state.delivered, state.furthest)
    return msgspec.msgpack.encode(
        _Blob(rule, rows, front, clock, *counts, tickets, waiting, unsettled)
    )


def decode_state(data: bytes, order: Reordering) -> State:
    blob = msgspec.msgpack.decode(data, type=_Blob)
    if blob.rule != tuple(order.rule):
        raise LocalError(
            f"this observer was started with {blob.rule}, not with {tuple(order.rule)}",
            hint="a stream keeps its dial; another dial needs a checkpoint of its own",
        )
    arrays = (blob.rows, blob.front, blob.clock, blob.tickets)
    rows, front, clock, tickets = (np.frombuffer(array, np.int64) for array in arrays)
    rows = rows.reshape(-1, empty_queue(order.rule).rows.shape[1])
    tables = (read_rows(table) if table else None for table in (blob.waiting, blob.unsettled))
    return State(Queue(rows, front, clock), blob.delivered, blob.furthest, tickets, *tables)


def take_rows(
    state: State, rows: pa.Table, order: Reordering, now_us: int | None = None
) -> tuple[State, pa.Table]:
    """Return the state after these rows, and the rows to deliver, in order of delivery.

    now_us: the wall clock of the observer, used only by the clock `wall`.
    """
    has_ended = bool(pc.any(rows[ENDS]).as_py())
    rows = rows.filter(pc.invert(rows[ENDS]))
    if order.clock == "arrival":
        if state.unsettled is not None:
            rows = join([state.unsettled, rows])
        is_unsettled = pa.array(_is_last(integers(rows[ARRIVED_US]), _arrived_us(rows, order)))
        state = state._replace(unsettled=rows.filter(is_unsettled))
        rows = rows.filter(pc.invert(is_unsettled))
    state, out = _admit(state, rows, order, now_us)
    if has_ended:
        state, rest = run_out(state, order)
        out = join([out, rest])
    return state, out


def take_incarnations(
    state: State, rows: pa.Table, order: Reordering, now_us: int | None = None
) -> tuple[State, pa.Table, bool]:
    """Take rows as `take_rows` does, and start anew after each end of the observer.

    With the clock `arrival`, an end that has an arrival time ends what arrived up to then, however
    the rows are divided into batches. Any other end is that of the whole batch.

    Return also whether the observer has ended, and no row came after.
    """
    if not has_left(rows):
        return *take_rows(state, rows, order, now_us), False
    outs, is_over = [], False
    for part in _incarnations(rows, order):
        if is_over:
            state = new_state(order)
        state, out = take_rows(state, part, order, now_us)
        is_over = has_left(part)
        outs.append(out)
    return state, join(outs), is_over


def _incarnations(rows: pa.Table, order: Reordering) -> list[pa.Table]:
    """Split rows after each time at which the observer ends."""
    if order.clock != "arrival":
        return [rows]
    leaves, ends = (rows[name].to_numpy(zero_copy_only=False) for name in (LEAVES, ENDS))
    known_us = integers(rows[ARRIVED_US])
    ends_us = np.where(_is_believable(known_us), known_us, MISSING)
    arrived_us = _arrived_us(rows, order)
    at_us = np.where(ends, ends_us, np.where(_is_believable(arrived_us), arrived_us, LEAST))
    incarnation = np.searchsorted(np.unique(ends_us[leaves]), at_us)
    return [rows.filter(pa.array(incarnation == number)) for number in np.unique(incarnation)]


def has_left(rows: pa.Table) -> bool:
    """Return whether a row ends the observer."""
    return LEAVES in rows.column_names and bool(pc.any(rows[LEAVES]).as_py())


def run_out(state: State, order: Reordering) -> tuple[State, pa.Table]:
    """Advance the observer's clock until it holds nothing."""
    outs = []
    if state.unsettled is not None:
        state, out = _admit(state._replace(unsettled=None), state.unsettled, order, None)
        outs.append(out)
    last = int(state.queue.rows[:, DUE].max(initial=LEAST))
    state, out = run_until(state, last, order)
    return state, join([*outs, out])


def run_until(state: State, tick: int, order: Reordering) -> tuple[State, pa.Table]:
    """Advance the observer's clock to `tick`, without arrivals."""
    nothing = np.empty(0, np.int64)
    stamps = Stamps(nothing, nothing, nothing, np.empty((0, order.rule.elements), np.int64))
    until = max(tick, int(state.queue.clock[0]))
    queue, delivered, _ = reorder(state.queue, nothing, nothing, stamps, order.rule, until)
    return _let_out(state._replace(queue=queue), delivered, order)


def wake_us(state: State, order: Reordering, seen_us: int, idle_us: int | None) -> int | None:
    """Return the wall-clock time at which an observer must act without a row; None for never.

    seen_us: when it last received a row.
    """
    if not state.held:
        return None
    if order.clock == "wall":
        return int(state.queue.rows[0, DUE]) * order.tick_us
    return None if idle_us is None else seen_us + idle_us


def wake(state: State, order: Reordering, now_us: int) -> tuple[State, pa.Table]:
    """Advance the observer when its timer fires."""
    if order.clock == "wall":
        return run_until(state, now_us // order.tick_us, order)
    return run_out(state, order)


def _admit(
    state: State, rows: pa.Table, order: Reordering, now_us: int | None
) -> tuple[State, pa.Table]:
    """Put the rows into the queue."""
    rows, arrival, stamps = _arrivals(state.queue, rows, order, now_us)
    first = int(state.queue.clock[1])
    label = np.arange(first, first + len(rows))
    queue, delivered, doubts = reorder(state.queue, arrival, label, stamps, order.rule)
    rows = rows.drop_columns([name for name in ON_THE_WAY if name in rows.column_names])
    marks = (arrival, doubts.is_late, doubts.is_ahead | doubts.is_impossible)
    for name, mark in zip((ARRIVAL, "late", "reset"), marks, strict=True):
        rows = rows.append_column(name, pa.array(mark))
    if state.waiting is not None:
        rows = join([state.waiting, rows])
    tickets = np.append(state.tickets, label)
    return _let_out(state._replace(queue=queue, tickets=tickets, waiting=rows), delivered, order)


def _let_out(state: State, delivered: Delivered, order: Reordering) -> tuple[State, pa.Table]:
    """Split the rows into those delivered, with their output columns, and those that still wait."""
    assert state.waiting is not None, "an observer that never got a row has nothing to deliver"
    out = state.waiting.take(np.searchsorted(state.tickets, delivered.label))
    arrival = out[ARRIVAL].to_numpy()
    count = state.delivered + len(out)
    furthest = np.maximum.accumulate(np.append(state.furthest, delivered.label))
    columns = {
        "delivered_seq": np.arange(state.delivered, count),
        "delivered_us": delivered.tick * order.tick_us,
        "waited_us": (delivered.tick - arrival) * order.tick_us,
        # A later arrival was delivered before it: reordered in the sense of RFC 4737.
        "moved": delivered.label < furthest[:-1],
        "suspect": delivered.is_overtaken,
    }
    out = out.drop_columns([ARRIVAL])
    for name, column in columns.items():
        out = out.append_column(name, pa.array(column))
    tickets = np.sort(state.queue.rows[:, LABEL])
    waiting = state.waiting.take(np.searchsorted(state.tickets, tickets))
    state = state._replace(delivered=count, furthest=int(furthest[-1]))
    return state._replace(tickets=tickets, waiting=waiting), out


def _arrivals(
    queue: Queue, rows: pa.Table, order: Reordering, now_us: int | None
) -> tuple[pa.Table, Ints, Stamps]:
    """Return the rows in order of arrival, the observer's clock at each, and their stamps.

    Spark gives the rows of a micro-batch in any order. Rows that arrived at one time are taken in
    the order of their stamps, and a hash of the row breaks ties. So a restart and a batch job take
    them in the same order.
    """
    stamps, is_sound = _stamps(rows, order)
    high = stamps.r + stamps.c
    keys = [rows[TIE].to_numpy(), stamps.process, *stamps.kn.T[::-1], high]
    shown = high
    if order.clock == "arrival":
        arrived_us = _arrived_us(rows, order)
        is_sound = _is_believable(arrived_us)
        keys.append(np.where(is_sound, arrived_us, LEAST))
        shown = arrived_us // order.tick_us
    elif order.clock == "wall":
        assert now_us is not None, "the wall clock is that of the batch"
        is_sound = np.ones(len(rows), np.bool_)
        shown = np.full(len(rows), now_us // order.tick_us)
    # The clock `event` shows the largest stamp so far. Some process has read each of these values
    # on its own clock, so all clocks are now past that value minus ε. The proof of OBS 3.2 asks no
    # more of an observer's clock. It may lag behind, and then delivers later.
    at = np.lexsort(keys)
    clock = int(queue.clock[0])
    floor = clock if clock != LEAST else int(shown[is_sound].min()) if is_sound.any() else 0
    arrival = np.maximum.accumulate(np.where(is_sound, np.maximum(shown, floor), floor)[at])
    return rows.take(at), arrival, Stamps(*(column[at] for column in stamps))


def _stamps(rows: pa.Table, order: Reordering) -> tuple[Stamps, Flags]:
    """Return the stamps, and which of them are valid.

    A row without a stamp gets a `c` outside its domain. The kernel then treats it as sent on
    receipt.
    """
    process = integers(rows[PROCESS])
    if TIME_US in rows.column_names:
        r = integers(rows[TIME_US])
        c = np.zeros(len(rows), np.int64)
        kn = np.zeros((len(rows), order.rule.elements), np.int64)
        tick_us = order.tick_us
    else:
        stamp = rows["stamp"].combine_chunks()
        r = integers(pc.struct_field(stamp, "r"))
        c = integers(pc.struct_field(stamp, "c"))
        kn = first_elements(pc.struct_field(stamp, "kn"), order.rule.elements)
        tick_us = 1
        c = np.where(_lengths(pc.struct_field(stamp, "kn")) < order.elements_min, MISSING, c)
    is_readable = _is_believable(r) & _is_believable(c)
    r = np.where(is_readable, r // tick_us, 0)
    c = np.where(is_readable, c, -1)
    return Stamps(process, r, c, kn), (c >= 0) & (c <= order.rule.epsilon)


def _lengths(lists: Any) -> Ints:
    lengths: Ints = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return lengths


def integers(column: Any) -> Ints:
    filled = pc.fill_null(pc.cast(column, pa.int64()), MISSING)
    values: Ints = filled.to_numpy(zero_copy_only=False)
    return values


def _arrived_us(rows: pa.Table, order: Reordering) -> Ints:
    """Return the time of arrival. A row without one counts as arrived at its stamp.

    Some process has read that value on its clock, as for the clock `event`.
    """
    arrived_us = integers(rows[ARRIVED_US])
    is_missing = ~_is_believable(arrived_us)
    if is_missing.any():
        stamps, is_sound = _stamps(rows, order)
        high = stamps.r + stamps.c
        is_sound &= is_missing & (np.abs(high) <= BELIEVABLE_MAX // order.tick_us)
        arrived_us = np.where(is_sound, np.where(is_sound, high, 0) * order.tick_us, arrived_us)
    return arrived_us


def _is_last(known_us: Ints, arrived_us: Ints) -> Flags:
    """Return which rows have the latest arrival time or a later stamp. Rows without either come
    first.

    known_us: the arrival times before missing ones were replaced; only they can be trusted.
    """
    is_known = _is_believable(known_us)
    times = known_us[is_known] if is_known.any() else arrived_us[_is_believable(arrived_us)]
    last = times.max(initial=-BELIEVABLE_MAX)
    is_last: Flags = _is_believable(arrived_us) & (arrived_us >= last)
    return is_last


def _is_believable(values: Ints) -> Flags:
    is_believable: Flags = (values >= -BELIEVABLE_MAX) & (values <= BELIEVABLE_MAX)
    return is_believable


def first_elements(lists: Any, elements: int) -> Ints:
    """Return the first `elements` of each list, padded with zeros.

    If all processes send the same number and fewer than asked, the zeros compare as equal, as
    missing elements should. Otherwise see `Reordering.elements_min`.
    """
    matrix = np.zeros((len(lists), elements), np.int64)
    row = pc.list_parent_indices(lists).to_numpy()
    counts = np.bincount(row, minlength=len(lists))
    column = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    is_asked = column < elements
    matrix[row[is_asked], column[is_asked]] = integers(pc.list_flatten(lists))[is_asked]
    return matrix
