"""Places of nodes as a page has them: points in steps of 0.1 m or more, and of 0.1 s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.contacts import Segments
from beforehand.play.pack import Pack
from beforehand.play.run import Ints, Movement, PageClock

STEPS_MAX = 60_000
"""The longer side of the plane has at most so many steps of 0.1 m or more."""
POINT_MS = 100
"""The times of places are stored in steps of 0.1 s: a bus moves 2 m in it."""


@dataclass(frozen=True)
class Places:
    """Points by node and time; a node goes straight from each to its next.

    A point whose `gap` is 1 starts a new stay. x and y are in steps of `plane["unit"]` metres from
    the south-west corner, t in steps of POINT_MS.
    """

    node: Ints
    t: Ints
    x: Ints
    y: Ints
    gap: Ints
    plane: dict[str, float]

    def add(self, pack: Pack, nodes: int, lines: Sequence[NDArray[np.float64]]) -> None:
        """Add the points, and the lines of a map below them."""
        pack.add("node.points", np.bincount(self.node, minlength=nodes))
        pack.add("point.t", self.t, delta=True)
        pack.add("point.x", self.x, delta=True)
        pack.add("point.y", self.y, delta=True)
        pack.add("point.gap", self.gap)
        if lines:
            self._add_map(pack, lines)

    def _add_map(self, pack: Pack, lines: Sequence[NDArray[np.float64]]) -> None:
        """Add the lines of a map, in the steps of the plane."""
        points, plane = np.concatenate(lines), self.plane
        pack.add("map.points", [len(line) for line in lines])
        for axis, start, column in (("x", plane["west"], 0), ("y", plane["south"], 1)):
            steps = np.round((points[:, column] - start) / plane["unit"])
            pack.add(f"map.{axis}", steps, delta=True)

    def ways(self, start_us: int) -> Segments:
        """Return the ways between the points, as the page draws them."""
        end = np.flatnonzero((self.gap == 0) & (np.diff(self.t, prepend=0) > 0))
        start, unit = end - 1, self.plane["unit"]
        t_us = start_us + self.t * POINT_MS * 1000
        x, y = (np.asarray(steps * unit, np.float64) for steps in (self.x, self.y))
        return Segments(self.node[end], t_us[start], x[start], y[start], t_us[end], x[end], y[end])


def round_places(movement: Movement, clock: PageClock) -> Places:
    turn = np.lexsort((movement.t0_us, movement.node))
    n, t0, x0, y0, t1, x1, y1 = (column[turn] for column in vars(movement).values())
    jump = np.hypot(x0[1:] - x1[:-1], y0[1:] - y1[:-1]) > 0.5
    first = np.append(True, (n[1:] != n[:-1]) | (t0[1:] != t1[:-1]) | jump)[: len(n)]
    at = np.arange(len(n)) + np.cumsum(first) - 1  # of the start of each way
    size = len(n) + int(first.sum())
    node, t = np.zeros(size, np.int64), np.zeros(size, np.int64)
    x, y, gap = np.zeros(size), np.zeros(size), np.zeros(size, np.int64)
    for place, ends in ((at + 1, (t1, x1, y1)), (at, (t0, x0, y0))):
        node[place], t[place], x[place], y[place] = n, *ends
    gap[at[first]] = 1
    west, south = (float(axis.min()) if size else 0.0 for axis in (x, y))
    width, height = float(x.max(initial=west) - west), float(y.max(initial=south) - south)
    unit = max(0.1, max(width, height, 1.0) / STEPS_MAX)
    steps = [np.round(axis).astype(np.int64) for axis in ((x - west) / unit, (y - south) / unit)]
    plane = {"unit": unit, "west": west, "south": south, "width": width, "height": height}
    return Places(node, clock.ms(t) // POINT_MS, steps[0], steps[1], gap, plane)
