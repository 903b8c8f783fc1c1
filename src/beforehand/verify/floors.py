"""Find deliveries at or below the floor of their node.

A node of the stamped order skips a cause that no peer holds any more. Its log then has an event of
the kind `skip`, whose `seq` is the new floor: the node promises to deliver no message with a stamp
up to it. In this order `seq` is the stamp of a message. So a delivery with a `seq` up to an earlier
floor of its node is a violation. Its cause may have been given up, and be delivered after its
effect elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[Any]
Bools = NDArray[np.bool_]
COLUMNS = ("step", "t_us", "node", "origin", "seq")

SHOWN_MAX = 1000
"""How many violations are kept with their proofs; the others are counted."""
NO_FLOOR = np.iinfo(np.int64).min


class Skip(NamedTuple):
    """An event that raised the floor of a node."""

    floor: int
    step: int
    t_us: int


class BelowFloor(NamedTuple):
    """A delivery at or below the floor of its node."""

    node: int
    origin: int
    seq: int
    step: int
    t_us: int
    skip: Skip
    """The first event that raised the floor to the stamp or beyond."""


class FloorBreaches(msgspec.Struct, frozen=True):
    """The deliveries of one run at or below the floors of their nodes."""

    count: int = 0
    shown: tuple[BelowFloor, ...] = ()
    """The first ones, with their proofs."""


class Floors:
    """The floors of the nodes of one run, whose rows come in order, in one part or several."""

    def __init__(self) -> None:
        self._skips: dict[int, list[Skip]] = {}
        self._count = 0
        self._shown: list[BelowFloor] = []

    @property
    def is_any(self) -> bool:
        """Return whether any node has a floor."""
        return bool(self._skips)

    def add_table(self, table: pa.Table) -> None:
        """Judge the next rows of the log of a simulation."""
        kind = table["kind"].cast(pa.string())
        named = [pa.scalar(name) for name in ("skip", "deliver")]
        is_skip, is_delivery = (np.asarray(pc.equal(kind, name)) for name in named)
        rows = np.flatnonzero(is_skip | is_delivery)
        self.add(is_skip[rows], {name: table[name].to_numpy()[rows] for name in COLUMNS})

    def add(self, is_skip: Bools, columns: Mapping[str, Ints]) -> None:
        """Judge the next skips and deliveries.

        is_skip: whether a row is a skip. columns: by name, those of `COLUMNS`.
        """
        node = columns["node"]
        nodes = np.union1d(node[is_skip], np.array([*self._skips], np.int64))
        rows = np.flatnonzero(np.isin(node, nodes))
        rows = rows[np.argsort(node[rows], kind="stable")]
        bounds = np.flatnonzero(np.diff(node[rows])) + 1
        for here in np.split(rows, bounds) if len(rows) else ():
            self._judge(int(node[here[0]]), is_skip[here], {n: v[here] for n, v in columns.items()})

    def breaches(self) -> FloorBreaches:
        return FloorBreaches(self._count, tuple(self._shown))

    def _judge(self, node: int, is_skip: Bools, columns: Mapping[str, Ints]) -> None:
        """Judge the skips and deliveries of one node."""
        skips = self._skips.setdefault(node, [])
        before = skips[-1].floor if skips else NO_FLOOR
        step, t_us, origin, seq = (columns[name] for name in COLUMNS if name != "node")
        floors = np.maximum.accumulate(np.where(is_skip, seq, NO_FLOOR))
        floors = np.maximum(floors, before)
        earlier = np.concatenate([[before], floors[:-1]])
        raises = np.flatnonzero(floors > earlier)
        columns_of = zip(seq[raises], step[raises], t_us[raises], strict=True)
        skips += [Skip(*map(int, each)) for each in columns_of]
        below = np.flatnonzero(~is_skip & (seq <= floors))
        self._count += len(below)
        for at in below[: SHOWN_MAX - len(self._shown)].tolist():
            stamp = int(seq[at])
            skip = skips[bisect_left(skips, stamp, key=lambda skip: skip.floor)]
            self._shown.append(
                BelowFloor(node, int(origin[at]), stamp, int(step[at]), int(t_us[at]), skip)
            )
