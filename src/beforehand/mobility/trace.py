"""The simulator's view of a mobility trace: presence of nodes and contacts of pairs over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from beforehand.mobility.detected_format import DetectedFormat

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """Nodes 0..n-1, their presence and their contacts, sorted and repaired.

    presence: (rows, 3) of node, up_us, down_us; the intervals of one node do not overlap.
    contacts: (rows, 4) of a, b, up_us, down_us with a < b and up_us < down_us. The contacts of one
    pair do not overlap, and both nodes are present throughout. Intervals are half-open: at
    `down_us` the contact is over.
    """

    names: tuple[str, ...]
    presence: Ints
    contacts: Ints
    changes: Mapping[str, int] = field(default_factory=dict)
    """The number of repairs of the raw input by kind."""
    detected_format: DetectedFormat | None = None
    """The detected format of the file; None if the trace is not from a file."""

    @property
    def nodes_count(self) -> int:
        return len(self.names)

    @property
    def start_us(self) -> int:
        return int(self.presence[:, 1].min()) if len(self.presence) else 0

    @property
    def end_us(self) -> int:
        return int(self.presence[:, 2].max()) if len(self.presence) else 0


def make_trace(
    names: Sequence[str],
    contacts: Ints,
    presence: Ints | None = None,
    changes: Mapping[str, int] | None = None,
) -> Trace:
    """Build a clean trace from raw rows: sort, merge overlaps, cut contacts to the presence.

    Without `presence` every node is present from the first to the last instant of the contacts.
    Every repair is counted in `changes`.
    """
    counts = dict(changes or {})
    rows = np.asarray(contacts, dtype=np.int64).reshape(-1, 4)
    there = _whole_time(len(names), rows) if presence is None else _sorted_presence(presence)
    rows = _drop(rows, rows[:, 0] == rows[:, 1], "self_contact", counts)
    rows = _drop(rows, rows[:, 2] == rows[:, 3], "zero_length", counts)
    low, high = np.minimum(rows[:, 0], rows[:, 1]), np.maximum(rows[:, 0], rows[:, 1])
    rows = np.column_stack([low, high, rows[:, 2], rows[:, 3]])
    rows = _merge_overlaps(rows, counts)
    if presence is not None:
        rows = _clip(rows, there, counts)
    order = np.lexsort((rows[:, 1], rows[:, 0], rows[:, 3], rows[:, 2]))
    return Trace(tuple(names), there, rows[order], counts)


def _whole_time(nodes_count: int, contacts: Ints) -> Ints:
    start, end = (contacts[:, 2].min(), contacts[:, 3].max()) if len(contacts) else (0, 0)
    nodes = np.arange(nodes_count, dtype=np.int64)
    return np.column_stack([nodes, np.full(nodes_count, start), np.full(nodes_count, end)])


def _sorted_presence(presence: Ints) -> Ints:
    rows = np.asarray(presence, dtype=np.int64).reshape(-1, 3)
    return rows[np.lexsort((rows[:, 0], rows[:, 1]))]


def _drop(rows: Ints, bad: NDArray[np.bool_], kind: str, counts: dict[str, int]) -> Ints:
    if bad.any():
        counts[kind] = counts.get(kind, 0) + int(bad.sum())
    return rows[~bad]


def _merge_overlaps(rows: Ints, counts: dict[str, int]) -> Ints:
    """Merge contacts of one pair that overlap or touch."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0]))]
    size = len(rows)
    is_new_pair = np.ones(size, bool)
    is_new_pair[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    # The latest end so far within the pair, as a rank: pairs and times together overflow 64 bits.
    by_end = np.argsort(rows[:, 3], kind="stable")
    rank = np.empty(size, np.int64)
    rank[by_end] = np.arange(size)
    latest = np.maximum.accumulate(np.cumsum(is_new_pair) * size + rank) % size
    end_us = rows[by_end, 3][latest]
    is_first = is_new_pair.copy()
    is_first[1:] |= rows[1:, 2] > end_us[:-1]
    first = np.flatnonzero(is_first)
    if len(first) < size:
        counts["merged"] = counts.get("merged", 0) + size - len(first)
    merged = rows[first]
    merged[:, 3] = end_us[np.append(first[1:], size) - 1]
    return merged


def _clip(rows: Ints, presence: Ints, counts: dict[str, int]) -> Ints:
    """Cut every contact to the time in which both nodes are present."""
    nodes = int(max(rows[:, :2].max(initial=0), presence[:, 0].max(initial=0))) + 1
    stays = np.bincount(presence[:, 0], minlength=nodes)
    is_simple = (stays[rows[:, 0]] == 1) & (stays[rows[:, 1]] == 1)
    span = np.zeros((nodes, 2), np.int64)
    span[presence[:, 0]] = presence[:, 1:]
    simple = rows[is_simple].copy()
    a, b = simple[:, 0], simple[:, 1]
    up_us = np.maximum(simple[:, 2], np.maximum(span[a, 0], span[b, 0]))
    down_us = np.minimum(simple[:, 3], np.minimum(span[a, 1], span[b, 1]))
    is_inside = up_us < down_us
    is_cut = is_inside & ((up_us != simple[:, 2]) | (down_us != simple[:, 3]))
    for kind, found in (("outside_presence", ~is_inside), ("clipped_to_presence", is_cut)):
        if found.any():
            counts[kind] = counts.get(kind, 0) + int(found.sum())
    simple[:, 2], simple[:, 3] = up_us, down_us
    return np.concatenate([simple[is_inside], _clip_each(rows[~is_simple], presence, counts)])


def _clip_each(rows: Ints, presence: Ints, counts: dict[str, int]) -> Ints:
    """Cut contacts of nodes that are present several times."""
    stays = presence[np.lexsort((presence[:, 1], presence[:, 0]))]
    pieces, source = _pieces(rows, 0, stays)
    pieces, within = _pieces(pieces, 1, stays)
    source = source[within]
    left = np.bincount(source, minlength=len(rows))
    is_whole = np.zeros(len(rows), bool)
    is_whole[source[(pieces == rows[source]).all(axis=1)]] = True
    for kind, found in (
        ("outside_presence", left == 0),
        ("clipped_to_presence", (left > 0) & ~is_whole),
    ):
        if found.any():
            counts[kind] = counts.get(kind, 0) + int(found.sum())
    return pieces


def _pieces(rows: Ints, end: int, stays: Ints) -> tuple[Ints, Ints]:
    """Return (the parts of contacts in which one end is present, the row of each).

    end: 0 for the first node, 1 for the second. stays: of all nodes, sorted by node and time."""
    # Node and rank of the time in one number: the stays that overlap a contact are a slice.
    times = np.unique(stays[:, 1:])
    size, node = len(times) + 1, rows[:, end]
    ended = stays[:, 0] * size + np.searchsorted(times, stays[:, 2], "right")
    begun = stays[:, 0] * size + np.searchsorted(times, stays[:, 1], "right")
    up, down = np.searchsorted(times, rows[:, 2], "right"), np.searchsorted(times, rows[:, 3])
    first = np.searchsorted(ended, node * size + up, "right")
    count = np.maximum(np.searchsorted(begun, node * size + down, "right") - first, 0)
    source = np.repeat(np.arange(len(rows)), count)
    stay = np.arange(len(source)) + np.repeat(first - np.cumsum(count) + count, count)
    pieces = rows[source]
    pieces[:, 2] = np.maximum(pieces[:, 2], stays[stay, 1])
    pieces[:, 3] = np.minimum(pieces[:, 3], stays[stay, 2])
    return pieces, source
