"""Read the columns of rows as arrays: stamps, and times of arrival. No Spark here."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beforehand.kernels.observer.reorder import Flags, Ints, Rule, Stamps

ClockSource = Literal["event", "arrival", "wall"]

# Internal columns that `observe` adds to incoming rows; they are not in the output.
KEY, PROCESS, TIME_US, ARRIVED_US = "_observer", "_process", "_time_us", "_arrived_us"
TIE, ENDS, LEAVES = "_tie", "_ends", "_leaves"
ON_THE_WAY = (KEY, PROCESS, TIME_US, ARRIVED_US, TIE, ENDS, LEAVES)
# Columns that only a stream has: the partition, the time of the batch, and of the start of a run.
PARTITION, NOW_US, RUN_US, ACTS = "_partition", "_now_us", "_run_us", "_acts"
OF_BATCH = (PARTITION, NOW_US, RUN_US, ACTS)

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


def stamps_of(rows: pa.Table, order: Reordering) -> tuple[Stamps, Flags]:
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
    is_readable = is_believable(r) & is_believable(c)
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


def arrived_us_of(rows: pa.Table, order: Reordering) -> Ints:
    """Return the time of arrival. A row without one counts as arrived at its stamp.

    Some process has read that value on its clock, as for the clock `event`.
    """
    arrived_us = integers(rows[ARRIVED_US])
    is_missing = ~is_believable(arrived_us)
    if is_missing.any():
        stamps, is_sound = stamps_of(rows, order)
        high = stamps.r + stamps.c
        is_sound &= is_missing & (np.abs(high) <= BELIEVABLE_MAX // order.tick_us)
        arrived_us = np.where(is_sound, np.where(is_sound, high, 0) * order.tick_us, arrived_us)
    return arrived_us


def is_believable(values: Ints) -> Flags:
    is_within: Flags = (values >= -BELIEVABLE_MAX) & (values <= BELIEVABLE_MAX)
    return is_within


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
