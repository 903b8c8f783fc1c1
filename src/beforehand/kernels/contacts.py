"""Compute exact contacts from straight movement: which nodes are within range, from when to when.

Two nodes on straight segments are within range between the roots of a quadratic, so nothing is
sampled. Candidates come from a grid in time (slabs) and space (cells), never from all pairs. A slab
is a pure function on arrays, fit for one Spark task. `merge_contacts` joins the results of slabs.

The roots of two segments are always computed over the whole time that they share. Only then are
they cut to a slab, in integers. So the result does not depend on the division into slabs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOLERANCE_M = 1e-9
"""Nodes exactly `range_m` apart are in contact. Coordinates of 100 km have rounding errors of 1e-11
m, which this tolerance absorbs. It moves a contact's bound by 0.001 µs at walking speed."""

SLAB_US_MIN = 60_000_000
SLABS_MAX = 2_000
CELLS_MAX = 2.0**30  # per axis, so that the number of a cell fits in 64 bits


class Segments(NamedTuple):
    """Straight movement, one row per segment.

    `node` moves from (x0, y0) at t0_us to (x1, y1) at t1_us, in metres. t0_us < t1_us, and the
    segments of one node do not overlap in time."""

    node: Ints
    t0_us: Ints
    x0: Floats
    y0: Floats
    t1_us: Ints
    x1: Floats
    y1: Floats

    def take(self, rows: Ints) -> Segments:
        node, t0_us, x0, y0, t1_us, x1, y1 = self
        ways = (x0[rows], y0[rows], t1_us[rows], x1[rows], y1[rows])
        return Segments(node[rows], t0_us[rows], *ways)


def find_contacts(segments: Segments, range_m: float) -> Ints:
    """Return all contacts, shape (rows, 4) of a, b, up_us, down_us with a < b, by pair and time.

    Nodes are in contact while they are at most `range_m` apart. Times are rounded to the
    microsecond. A contact that is empty after rounding (a touch) is left out. Contacts are
    half-open: at `down_us` a contact is over.
    """
    found = [
        contacts_of_slab(segments.take(rows), range_m, start_us, end_us)
        for start_us, end_us, rows in slabs(segments)
    ]
    return merge_contacts(np.concatenate(found)) if found else np.empty((0, 4), np.int64)


def slabs(segments: Segments, slab_us: int | None = None) -> Iterator[tuple[int, int, Ints]]:
    """Yield (start_us, end_us, rows of its segments) of every slab that has a segment."""
    if not len(segments.node):
        return
    origin_us, end_us = int(segments.t0_us.min()), int(segments.t1_us.max())
    length_us = slab_us or max(SLAB_US_MIN, (end_us - origin_us) // SLABS_MAX)
    first = (segments.t0_us - origin_us) // length_us
    counts = (segments.t1_us - 1 - origin_us) // length_us - first + 1
    rows = np.repeat(np.arange(len(first)), counts)
    slab = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    order = np.argsort(slab, kind="stable")
    rows, slab = rows[order], slab[order]
    starts = np.flatnonzero(np.diff(slab, prepend=-1))
    for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        start_us = origin_us + int(slab[low]) * length_us
        yield start_us, start_us + length_us, rows[low:high]


def contacts_of_slab(segments: Segments, range_m: float, start_us: int, end_us: int) -> Ints:
    """Return the contacts within [start_us, end_us), in pieces that `merge_contacts` joins.

    `segments` are those that touch the slab; others do no harm. Memory is proportional to the path
    lengths in units of `range_m`, work to the pairs that share a cell.
    """
    if not (math.isfinite(range_m) and range_m > 0):
        raise ValueError(f"a range in metres must be positive: {range_m}")
    if not len(segments.node):
        return np.empty((0, 4), np.int64)
    left, right = _bounds(segments.x0, segments.x1)
    bottom, top = _bounds(segments.y0, segments.y1)
    cell_m = max(range_m, (right - left) / CELLS_MAX, (top - bottom) / CELLS_MAX)
    boxes = _boxes(segments, range_m, cell_m, left, bottom, start_us, end_us)
    cell, box = _cells(boxes)
    order = np.lexsort((boxes[box, T0], cell))
    return _sweep(segments, boxes, cell[order], box[order], range_m + TOLERANCE_M)


@compiled
def merge_contacts(pieces: Ints) -> Ints:
    """Join the pieces of a pair that overlap or touch; return contacts in order of pair and time.

    pieces: shape (rows, 4) of a, b, up_us, down_us with a < b, in any order.
    """
    order = np.argsort(pieces[:, 2], kind="mergesort")
    order = order[np.argsort(pieces[order, 1], kind="mergesort")]
    order = order[np.argsort(pieces[order, 0], kind="mergesort")]
    merged = np.empty_like(pieces)
    size = 0
    for row in order:
        a, b, up_us, down_us = pieces[row]
        same = size > 0 and merged[size - 1, 0] == a and merged[size - 1, 1] == b
        if same and up_us <= merged[size - 1, 3]:
            merged[size - 1, 3] = max(merged[size - 1, 3], down_us)
        else:
            merged[size] = pieces[row]
            size += 1
    return merged[:size].copy()


def _bounds(one: Floats, other: Floats) -> tuple[float, float]:
    low = min(float(one.min()), float(other.min()))
    return low, max(float(one.max()), float(other.max()))


# A box is one row: a segment, a part of its time, and the cells that it may touch in that time.
SEGMENT, T0, T1, X_LOW, X_HIGH, Y_LOW, Y_HIGH = range(7)


@compiled
def _boxes(
    segments: Segments,
    range_m: float,
    cell_m: float,
    left: float,
    bottom: float,
    start_us: int,
    end_us: int,
) -> Ints:
    """Return the boxes of all segments in the slab, cut in time so that no part is longer than a
    cell.

    A box is widened by half the range on each side, so two nodes within range share a cell.
    """
    count = 0
    for row in range(len(segments.node)):
        count += _parts_count(segments, row, cell_m, start_us, end_us)
    boxes = np.empty((count, 7), np.int64)
    reach = 0.5 * range_m * (1 + 1e-9) + 1e-6  # rounding must not lose a touch
    at = 0
    for row in range(len(segments.node)):
        low_us = max(segments.t0_us[row], start_us)
        high_us = min(segments.t1_us[row], end_us)
        parts = _parts_count(segments, row, cell_m, start_us, end_us)
        for part in range(parts):
            t0_us = low_us + (high_us - low_us) * part // parts
            t1_us = low_us + (high_us - low_us) * (part + 1) // parts
            x0, y0 = _place(segments, row, t0_us)
            x1, y1 = _place(segments, row, t1_us)
            boxes[at, SEGMENT], boxes[at, T0], boxes[at, T1] = row, t0_us, t1_us
            boxes[at, X_LOW] = math.floor((min(x0, x1) - reach - left) / cell_m)
            boxes[at, X_HIGH] = math.floor((max(x0, x1) + reach - left) / cell_m)
            boxes[at, Y_LOW] = math.floor((min(y0, y1) - reach - bottom) / cell_m)
            boxes[at, Y_HIGH] = math.floor((max(y0, y1) + reach - bottom) / cell_m)
            at += 1
    return boxes


@compiled
def _parts_count(segments: Segments, row: int, cell_m: float, start_us: int, end_us: int) -> int:
    low_us, high_us = max(segments.t0_us[row], start_us), min(segments.t1_us[row], end_us)
    if low_us >= high_us:
        return 0
    share = (high_us - low_us) / (segments.t1_us[row] - segments.t0_us[row])
    way_m = share * max(
        abs(segments.x1[row] - segments.x0[row]), abs(segments.y1[row] - segments.y0[row])
    )
    parts: int = min(1 + int(way_m / cell_m), high_us - low_us)
    return parts


@compiled
def _place(segments: Segments, row: int, time_us: int) -> tuple[float, float]:
    share = (time_us - segments.t0_us[row]) / (segments.t1_us[row] - segments.t0_us[row])
    x = segments.x0[row] + (segments.x1[row] - segments.x0[row]) * share
    y = segments.y0[row] + (segments.y1[row] - segments.y0[row]) * share
    return x, y


@compiled
def _cells(boxes: Ints) -> tuple[Ints, Ints]:
    """Return (number of the cell, box), one entry for every cell that a box touches."""
    count = 0
    for box in boxes:
        count += (box[X_HIGH] - box[X_LOW] + 1) * (box[Y_HIGH] - box[Y_LOW] + 1)
    cells, owners = np.empty(count, np.int64), np.empty(count, np.int64)
    at = 0
    for owner in range(len(boxes)):
        box = boxes[owner]
        for x in range(box[X_LOW], box[X_HIGH] + 1):
            for y in range(box[Y_LOW], box[Y_HIGH] + 1):
                cells[at], owners[at] = _cell(x, y), owner
                at += 1
    return cells, owners


@compiled
def _cell(x: int, y: int) -> int:
    return x * 2**31 + y


@compiled
def _sweep(segments: Segments, boxes: Ints, cell: Ints, box: Ints, range_m: float) -> Ints:
    """Return the contacts of all pairs that share a cell at a time. `cell` and `box` are sorted by
    cell, then by time."""
    found = np.empty((64, 4), np.int64)
    size = 0
    for i in range(len(cell)):
        one = boxes[box[i]]
        for j in range(i + 1, len(cell)):
            other = boxes[box[j]]
            if cell[j] != cell[i] or other[T0] >= one[T1]:
                break
            # A pair shares a rectangle of cells. Only its lowest corner counts, so the pair counts
            # once.
            x, y = max(one[X_LOW], other[X_LOW]), max(one[Y_LOW], other[Y_LOW])
            a, b = segments.node[one[SEGMENT]], segments.node[other[SEGMENT]]
            if a == b or cell[i] != _cell(x, y):
                continue
            up_us, down_us = _meeting(segments, one[SEGMENT], other[SEGMENT], range_m)
            up_us = max(up_us, one[T0], other[T0])
            down_us = min(down_us, one[T1], other[T1])
            if up_us < down_us:
                if size == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[size] = min(a, b), max(a, b), up_us, down_us
                size += 1
    return found[:size].copy()


@compiled
def _meeting(segments: Segments, one: int, other: int, range_m: float) -> tuple[int, int]:
    """Return [up_us, down_us) in which two segments are within range, or (0, 0).

    With d the distance and v the relative speed as vectors at the start of the shared time, these
    are the roots of v.v t^2 + 2 d.v t + (d.d - r^2). The discriminant is computed from the cross
    product, and the smaller root from the constant term. Both avoid subtracting nearly equal
    numbers.
    """
    start_us = max(segments.t0_us[one], segments.t0_us[other])
    shared_us = min(segments.t1_us[one], segments.t1_us[other]) - start_us
    x, y = _place(segments, one, start_us)
    other_x, other_y = _place(segments, other, start_us)
    vx, vy = _speed(segments, one)
    other_vx, other_vy = _speed(segments, other)
    dx, dy, vx, vy = other_x - x, other_y - y, other_vx - vx, other_vy - vy
    distance_m = math.hypot(dx, dy)
    speed = math.hypot(vx, vy)
    if speed * shared_us < TOLERANCE_M:
        return (start_us, start_us + shared_us) if distance_m <= range_m else (0, 0)
    across, along = (dx * vy - dy * vx) / speed, (dx * vx + dy * vy) / speed
    if abs(across) > range_m:
        return 0, 0
    half = math.sqrt((range_m - across) * (range_m + across))
    gap = (distance_m - range_m) * (distance_m + range_m)
    if along > 0:
        far = -(along + half)
        low, high = far / speed, gap / far / speed
    elif along < half:
        far = half - along
        low, high = gap / far / speed, far / speed
    else:
        low, high = 0.0, 0.0  # both roots are the start itself: a touch
    up_us = start_us + math.floor(min(max(low, 0.0), float(shared_us)) + 0.5)
    down_us = start_us + math.floor(min(max(high, 0.0), float(shared_us)) + 0.5)
    return up_us, down_us


@compiled
def _speed(segments: Segments, row: int) -> tuple[float, float]:
    """Return the velocity of a segment in metres per microsecond."""
    lasts_us = segments.t1_us[row] - segments.t0_us[row]
    return (
        (segments.x1[row] - segments.x0[row]) / lasts_us,
        (segments.y1[row] - segments.y0[row]) / lasts_us,
    )
