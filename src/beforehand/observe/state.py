"""What an observer of a stream remembers, and what it does with the next rows. No Spark here.

Rows are Arrow tables from end to end, so that a column of any type comes out as it went in. The
memory of one observer is one blob of bytes: the queue of `kernels.reorder` and the rows that wait.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beforehand.errors import LocalError
from beforehand.kernels.reorder import (
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

# What `observe` adds to the rows on their way in. Nobody sees these again.
PROCESS, TIME_US, ARRIVED_US, TIE, ENDS = "_process", "_time_us", "_arrived_us", "_tie", "_ends"
LEAVES = "_leaves"
ON_THE_WAY = (PROCESS, TIME_US, ARRIVED_US, TIE, ENDS, LEAVES)
ARRIVAL = "_arrival"
"""The observer's clock when a row arrived, kept with it while it waits."""

OUTPUTS = {
    "late": "boolean",
    "reset": "boolean",
    "delivered_seq": "long",
    "delivered_us": "long",
    "waited_us": "long",
    "moved": "boolean",
    "suspect": "boolean",
}
"""What comes out behind the columns that went in."""

BELIEVABLE_MAX = 2**60
"""No clock shows more, whatever its unit; beyond it the sum of two would overflow."""
MISSING = 2**62


class Reordering(NamedTuple):
    """How an observer orders: the same for all its life."""

    rule: Rule
    tick_us: int
    clock: ClockSource


class State(NamedTuple):
    """One observer between two batches."""

    queue: Queue
    delivered: int
    """How many messages so far: the next `delivered_seq`."""
    furthest: int
    """The highest ticket delivered; tickets number the arrivals."""
    tickets: Ints
    """Of the rows in `waiting`, rising."""
    waiting: pa.Table | None
    unsettled: pa.Table | None
    """Rows that arrived at the last known time: others of that time may be in the next batch."""

    @property
    def held(self) -> int:
        """How many rows are in here, and still to be delivered."""
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
    """The state after these rows, and what they let out, in order of delivery.

    now_us: the wall clock of the observer, which only the clock `wall` looks at.
    """
    has_ended = bool(pc.any(rows[ENDS]).as_py())
    rows = rows.filter(pc.invert(rows[ENDS]))
    if order.clock == "arrival":
        if state.unsettled is not None:
            rows = join([state.unsettled, rows])
        is_unsettled = pa.array(_is_last(integers(rows[ARRIVED_US])))
        state = state._replace(unsettled=rows.filter(is_unsettled))
        rows = rows.filter(pc.invert(is_unsettled))
    state, out = _admit(state, rows, order, now_us)
    if has_ended:
        state, rest = run_out(state, order)
        out = join([out, rest])
    return state, out


def has_left(rows: pa.Table) -> bool:
    """Whether one of the rows says that the observer has ended: nothing is to be remembered."""
    return LEAVES in rows.column_names and bool(pc.any(rows[LEAVES]).as_py())


def run_out(state: State, order: Reordering) -> tuple[State, pa.Table]:
    """Let the observer's clock go on until it holds nothing any more."""
    outs = []
    if state.unsettled is not None:
        state, out = _admit(state._replace(unsettled=None), state.unsettled, order, None)
        outs.append(out)
    last = int(state.queue.rows[:, DUE].max(initial=LEAST))
    state, out = run_until(state, last, order)
    return state, join([*outs, out])


def run_until(state: State, tick: int, order: Reordering) -> tuple[State, pa.Table]:
    """Let the observer's clock go on to `tick`, with no arrivals."""
    nothing = np.empty(0, np.int64)
    stamps = Stamps(nothing, nothing, nothing, np.empty((0, order.rule.elements), np.int64))
    until = max(tick, int(state.queue.clock[0]))
    queue, delivered, _ = reorder(state.queue, nothing, nothing, stamps, order.rule, until)
    return _let_out(state._replace(queue=queue), delivered, order)


def wake_us(state: State, order: Reordering, seen_us: int, idle_us: int | None) -> int | None:
    """When, by the wall clock, an observer must act if no row comes; None for never.

    seen_us: when it last got a row.
    """
    if not state.held:
        return None
    if order.clock == "wall":
        return int(state.queue.rows[0, DUE]) * order.tick_us
    return None if idle_us is None else seen_us + idle_us


def wake(state: State, order: Reordering, now_us: int) -> tuple[State, pa.Table]:
    """What an observer does when that time has come."""
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
    """Split the rows at hand into those that are delivered, with what is said of them, and those
    that wait on."""
    assert state.waiting is not None, "an observer that never got a row has nothing to deliver"
    out = state.waiting.take(np.searchsorted(state.tickets, delivered.label))
    arrival = out[ARRIVAL].to_numpy()
    count = state.delivered + len(out)
    furthest = np.maximum.accumulate(np.append(state.furthest, delivered.label))
    columns = {
        "delivered_seq": np.arange(state.delivered, count),
        "delivered_us": delivered.tick * order.tick_us,
        "waited_us": (delivered.tick - arrival) * order.tick_us,
        # One that arrived later was delivered before it: what RFC 4737 calls reordered.
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
    """The rows in order of arrival, the observer's clock at each, and their stamps.

    Spark hands over the rows of a batch in any order. Those that arrived at one time are taken in
    the order of their stamps, and the last word has a hash of the row: so a restart takes them in
    the same order again, and so does a batch job.
    """
    stamps, is_sound = _stamps(rows, order)
    high = stamps.r + stamps.c
    keys = [rows[TIE].to_numpy(), stamps.process, *stamps.kn.T[::-1], high]
    shown = high
    if order.clock == "arrival":
        arrived_us = integers(rows[ARRIVED_US])
        is_sound = _is_believable(arrived_us)
        keys.append(np.where(is_sound, arrived_us, LEAST))
        shown = arrived_us // order.tick_us
    elif order.clock == "wall":
        assert now_us is not None, "the wall clock is that of the batch"
        is_sound = np.ones(len(rows), np.bool_)
        shown = np.full(len(rows), now_us // order.tick_us)
    # The clock `event` shows what the stamps show. Some process has seen each of these values on
    # its own clock, so by now all clocks are past that minus ε, which is all that the proof of OBS
    # 3.2 asks of an observer's clock. It may lag behind, and then delivers later.
    at = np.lexsort(keys)
    clock = int(queue.clock[0])
    floor = clock if clock != LEAST else int(shown[is_sound].min()) if is_sound.any() else 0
    arrival = np.maximum.accumulate(np.where(is_sound, np.maximum(shown, floor), floor)[at])
    return rows.take(at), arrival, Stamps(*(column[at] for column in stamps))


def _stamps(rows: pa.Table, order: Reordering) -> tuple[Stamps, Flags]:
    """The stamps, and which of them can be true.

    A row without a stamp gets a `c` that is outside its domain: the kernel then takes it as if it
    had been sent on receipt.
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
    is_readable = _is_believable(r) & _is_believable(c)
    r = np.where(is_readable, r // tick_us, 0)
    c = np.where(is_readable, c, -1)
    return Stamps(process, r, c, kn), (c >= 0) & (c <= order.rule.epsilon)


def integers(column: Any) -> Ints:
    filled = pc.fill_null(pc.cast(column, pa.int64()), MISSING)
    values: Ints = filled.to_numpy(zero_copy_only=False)
    return values


def _is_last(arrived_us: Ints) -> Flags:
    """Which rows arrived when the last one did. A row that does not say when came before all."""
    is_known = _is_believable(arrived_us)
    last = arrived_us[is_known].max(initial=-BELIEVABLE_MAX)
    is_last: Flags = is_known & (arrived_us == last)
    return is_last


def _is_believable(values: Ints) -> Flags:
    is_believable: Flags = (values >= -BELIEVABLE_MAX) & (values <= BELIEVABLE_MAX)
    return is_believable


def first_elements(lists: Any, elements: int) -> Ints:
    """The first elements of each list, zeros for those it does not have.

    All processes send the same number of elements. Where they send fewer than are asked for, zeros
    compare as equal, as what is not there should.
    """
    matrix = np.zeros((len(lists), elements), np.int64)
    row = pc.list_parent_indices(lists).to_numpy()
    counts = np.bincount(row, minlength=len(lists))
    column = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    is_asked = column < elements
    matrix[row[is_asked], column[is_asked]] = integers(pc.list_flatten(lists))[is_asked]
    return matrix
