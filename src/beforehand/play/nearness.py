"""Decide whether the contacts of a run follow from the places on its page.

If they do, the page derives them: 2,000 walkers have 11,000 points and 280,000 contacts. A contact
follows if it lasts while the places are within range, give or take PRECISION_M and PRECISION_US,
which is what the rounding of places and times can amount to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.contacts import Segments, find_contacts, merge_contacts

Ints = NDArray[np.int64]

PRECISION_M = 0.5
PRECISION_US = 200_000


def follow_from_places(
    contacts: Ints, ways: Segments, range_m: float | None, begin_us: int, end_us: int
) -> bool:
    """Return whether all contacts from begin to end are those of nodes within range, and no others.

    Cost: contacts are found twice, so it is tried only where they outnumber the ways.
    """
    if range_m is None or range_m <= 2 * PRECISION_M or len(contacts) <= len(ways.node):
        return False
    most = _widened(_within(ways, range_m + PRECISION_M, begin_us, end_us))
    if not _lie_in(contacts, most):
        return False
    least = _within(ways, range_m - PRECISION_M, begin_us, end_us)
    return _lie_in(least, _widened(contacts))


def _within(ways: Segments, range_m: float, begin_us: int, end_us: int) -> Ints:
    found = find_contacts(ways, range_m)
    found[:, 2:] = np.clip(found[:, 2:], begin_us, end_us)
    return found[found[:, 2] < found[:, 3]]


def _widened(contacts: Ints) -> Ints:
    return merge_contacts(contacts + np.array([0, 0, -PRECISION_US, PRECISION_US]))


def _lie_in(inner: Ints, outer: Ints) -> bool:
    """Return whether each inner contact lies within an outer one of its pair.

    outer: by pair and time, without overlap.
    """
    if not len(inner) or not len(outer):
        return not len(inner)
    nodes = int(max(inner[:, :2].max(), outer[:, :2].max())) + 1
    pairs = [np.sort(rows[:, :2], axis=1) @ np.array([nodes, 1]) for rows in (inner, outer)]
    known, place = np.unique(np.concatenate(pairs), return_inverse=True)
    first_us = min(int(inner[:, 2].min()), int(outer[:, 2].min()))
    span_us = max(int(inner[:, 3].max()), int(outer[:, 3].max())) - first_us + 1
    if len(known) * span_us >= 2**63:
        return False
    key, of_outer = place[: len(inner)] * span_us, place[len(inner) :] * span_us
    starts = of_outer + outer[:, 2] - first_us
    at = np.searchsorted(starts, key + inner[:, 2] - first_us, side="right") - 1
    same = (at >= 0) & (of_outer[at] == key)
    return bool((same & (inner[:, 3] <= outer[at, 3])).all())
