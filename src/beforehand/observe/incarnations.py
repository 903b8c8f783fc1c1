"""Divide the rows of a batch into groups: observers, or their incarnations if they end midway."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from beforehand.kernels.observer.reorder import LEAST, Flags, Ints
from beforehand.observe.stamps import (
    ARRIVED_US,
    ENDS,
    LEAVES,
    MISSING,
    Reordering,
    arrived_us_of,
    integers,
    is_believable,
)


class Incarnations(NamedTuple):
    """The groups of a batch. Each observer has one, and another after each of its ends."""

    of_row: Ints
    """The group of each row."""
    owner: Ints
    """The observer of each group; it rises."""
    first: Ints
    """The first group of each observer, which goes on from the batch before."""
    last: Ints
    """The last group of each observer."""
    ends: Flags
    """Whether the group delivers all it holds."""
    leaves: Flags
    """Whether the observer of the group ends with it."""

    @property
    def total(self) -> int:
        return len(self.owner)


def group_rows(rows: pa.Table, owner: Ints, observers: int, order: Reordering) -> Incarnations:
    """Return the groups of the rows.

    owner: the observer of each row.
    """
    ends = rows[ENDS].to_numpy(zero_copy_only=False)
    leaves = np.zeros(len(rows), np.bool_)
    if LEAVES in rows.column_names:
        leaves = rows[LEAVES].to_numpy(zero_copy_only=False)
    incarnation = np.zeros(len(rows), np.int64)
    if order.clock == "arrival" and leaves.any():
        incarnation = _incarnations(rows, owner, ends, leaves, order)
    incarnations = np.ones(observers, np.int64)
    np.maximum.at(incarnations, owner, incarnation + 1)
    last = np.cumsum(incarnations) - 1
    first = last - incarnations + 1
    of_row = first[owner] + incarnation
    count = int(incarnations.sum())
    ends_group, leaves_group = (
        np.bincount(of_row[is_so], minlength=count) > 0 for is_so in (ends, leaves)
    )
    return Incarnations(
        of_row, np.repeat(np.arange(observers), incarnations), first, last, ends_group, leaves_group
    )


def _incarnations(
    rows: pa.Table, owner: Ints, ends: Flags, leaves: Flags, order: Reordering
) -> Ints:
    """Return the incarnation of its observer to which each row belongs, counted from 0."""
    known_us = integers(rows[ARRIVED_US])
    ends_us = np.where(is_believable(known_us), known_us, MISSING)
    arrived_us = arrived_us_of(rows, order)
    at_us = np.where(ends, ends_us, np.where(is_believable(arrived_us), arrived_us, LEAST))
    incarnation = np.zeros(len(rows), np.int64)
    by_owner = np.argsort(owner, kind="stable")
    for observer in np.unique(owner[leaves]):
        low, high = np.searchsorted(owner[by_owner], [observer, observer + 1])
        at = by_owner[low:high]
        incarnation[at] = np.searchsorted(np.unique(ends_us[at][leaves[at]]), at_us[at])
    return incarnation
