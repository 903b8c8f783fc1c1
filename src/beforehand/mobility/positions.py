"""Positions of nodes: piecewise linear movement, from which contacts are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beforehand.errors import InputError
from beforehand.kernels.contacts import Segments, find_contacts
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.trace import Ints, Trace, make_trace

Floats = NDArray[np.float64]

SPEED_REPORTED = 150.0
"""Metres per second. A faster node is reported: no bus, train or car is as fast."""
SMALL_M = 5.0
"""Metres. A smaller area is reported as probably degrees: in degrees a city spans less than 1."""
WAYS_MAX, WAY_MAX = 100_000_000, 10_000_000
"""Limits on the total and the longest straight path, in units of the radio range.

The total bounds the time that finding contacts takes (some minutes); the longest path bounds the
memory.
"""


@dataclass(frozen=True)
class Positions:
    """Nodes 0..n-1 and their movement, one row per straight segment, in metres and microseconds.

    A node moves from (x0, y0) at t0_us to (x1, y1) at t1_us; at rest both places are the same. The
    segments of one node do not overlap in time, and t0_us < t1_us. A node is present exactly while
    it has a segment. presence, (rows, 3) of node, up_us, down_us, is the union of the segments.
    """

    names: tuple[str, ...]
    node: Ints
    t0_us: Ints
    x0: Floats
    y0: Floats
    t1_us: Ints
    x1: Floats
    y1: Floats
    presence: Ints
    changes: Mapping[str, int] = field(default_factory=dict)
    """The number of repairs of the raw input by kind."""
    detected_format: DetectedFormat | None = None
    """The detected format of the file; None if the positions are not from a file."""

    @property
    def segments(self) -> Segments:
        return Segments(self.node, self.t0_us, self.x0, self.y0, self.t1_us, self.x1, self.y1)

    def doubts(self) -> list[str]:
        """Return implausibly fast segments in words: most likely a place or a time is wrong."""
        ways_m = np.hypot(self.x1 - self.x0, self.y1 - self.y0)
        speeds = ways_m / np.maximum((self.t1_us - self.t0_us) / 1e6, 1e-6)
        fast = int((speeds > SPEED_REPORTED).sum())
        if not fast:
            return self._doubt_of_unit()
        worst = int(np.argmax(speeds))
        return [
            f"all places are right, though {fast:,} ways are faster than {SPEED_REPORTED:g} m/s: "
            f"`{self.names[self.node[worst]]}` goes {ways_m[worst] / 1000:,.1f} km "
            f"at {speeds[worst]:,.0f} m/s"
        ]

    def _doubt_of_unit(self) -> list[str]:
        """Return a warning if x and y look like degrees: all nodes would be in contact for ever."""
        if self.detected_format is None or "x" not in self.detected_format.columns:
            return []
        spans = [float(np.ptp(np.concatenate(ends))) for ends in self._axes()]
        if not 0 < max(spans, default=0.0) < SMALL_M:
            return []
        return [
            f"x and y are in metres, though all places lie within {max(spans):.2g} m "
            "(degrees? name the columns `lon` and `lat`)"
        ]

    def _axes(self) -> list[tuple[Floats, Floats]]:
        return [(self.x0, self.x1), (self.y0, self.y1)] if len(self.x0) else []

    def contacts_within(self, range_m: float) -> Trace:
        """Return the trace of presence and of contacts within `range_m` metres."""
        ways_m = np.maximum(np.abs(self.x1 - self.x0), np.abs(self.y1 - self.y0))
        check_ways(float(ways_m.sum()), float(ways_m.max(initial=0.0)), range_m)
        found = find_contacts(self.segments, range_m)
        trace = make_trace(self.names, found, self.presence, self.changes)
        return replace(trace, detected_format=self.detected_format)


def check_ways(total_m: float, longest_m: float, range_m: float) -> None:
    """Raise InputError if the paths are too long to compute contacts for this range."""
    least_m = max(total_m / WAYS_MAX, longest_m / WAY_MAX)
    if range_m < least_m:
        raise InputError(
            f"ways of {total_m / 1000:,.0f} km, of which {longest_m / 1000:,.0f} km in one go, "
            f"are too long for a range of {range_m:g} m",
            where="--range",
            hint=f"pass a range of more than {least_m:.3g} m; check that all places are in metres",
        )


def make_positions(
    names: Sequence[str], segments: Segments, changes: Mapping[str, int] | None = None
) -> Positions:
    """Build positions from the segments of all nodes, in any order, without overlap per node.

    Segments without duration are dropped, and so are nodes without segments. The dropped nodes are
    counted.
    """
    counts = dict(changes or {})
    lasting = np.flatnonzero(segments.t0_us < segments.t1_us)
    kept = segments.take(lasting[np.lexsort((segments.node[lasting], segments.t0_us[lasting]))])
    present, node = np.unique(kept.node, return_inverse=True)
    if len(present) < len(names):
        counts["never_present"] = len(names) - len(present)
    kept = kept._replace(node=node.astype(np.int64))
    shown = tuple(names[i] for i in present.tolist())
    return Positions(shown, *kept, _presence(kept), counts)


def positions_of_points(
    names: Sequence[str],
    node: ArrayLike,
    t_us: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    *,
    gap_us: int | None = None,
    changes: Mapping[str, int] | None = None,
) -> Positions:
    """Build positions from samples of nodes at points, in any order, joined by straight segments.

    A node without a sample for longer than `gap_us` is absent in between. Of two samples of one
    node at one time the later row counts; the other is counted as `duplicate_position`.
    """
    counts = dict(changes or {})
    rows = len(np.asarray(node))
    segments, points = join_points(node, t_us, x, y)
    if points < rows:
        counts["duplicate_position"] = rows - points
    if gap_us is not None:
        segments = segments.take(np.flatnonzero(segments.t1_us - segments.t0_us <= gap_us))
    return make_positions(names, segments, counts)


def join_points(
    node: ArrayLike, t_us: ArrayLike, x: ArrayLike, y: ArrayLike
) -> tuple[Segments, int]:
    """Return segments from each point of a node to its next, and the number of points joined.

    Of several points of one node at one time the last row counts.
    """
    nodes, times = np.asarray(node, np.int64), np.asarray(t_us, np.int64)
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    order = np.lexsort((times, nodes))
    nodes, times = nodes[order], times[order]
    kept = np.append((nodes[1:] != nodes[:-1]) | (times[1:] != times[:-1]), True)[: len(nodes)]
    nodes, times, xs, ys = nodes[kept], times[kept], xs[order][kept], ys[order][kept]
    start = np.flatnonzero(nodes[1:] == nodes[:-1])
    end = start + 1
    columns = (nodes[start], times[start], xs[start], ys[start], times[end], xs[end], ys[end])
    return Segments(*columns), len(nodes)


def _presence(segments: Segments) -> Ints:
    """Return the union of each node's segments: rows of node, up_us, down_us in order of time."""
    order = np.lexsort((segments.t0_us, segments.node))
    node, up_us, down_us = segments.node[order], segments.t0_us[order], segments.t1_us[order]
    # Segments of one node do not overlap, so a stay ends where the next segment starts later.
    starts = np.append(True, (node[1:] != node[:-1]) | (up_us[1:] > down_us[:-1]))[: len(node)]
    first = np.flatnonzero(starts)
    last = np.append(first[1:] - 1, len(node) - 1)[: len(first)]
    rows = np.column_stack([node[first], up_us[first], down_us[last]])
    return rows[np.lexsort((rows[:, 0], rows[:, 1]))]
