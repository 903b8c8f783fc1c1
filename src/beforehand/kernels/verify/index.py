"""Number the messages and nodes of a run, so that an event is eight bytes: a node and a message."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.verify.causality import Bools, History, Ints, Small

SPAN_MAX = 1 << 62
"""Numbers below this fit into 64 bits."""
TABLE_MAX = 1 << 20
"""Up to this many possible keys are looked up in a table; more are searched."""


class RepeatedBroadcast(ValueError):
    """One (origin, seq) is broadcast in two rows, so that it does not identify a message."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"rows {first} and {second} broadcast the same message")
        self.first, self.second = first, second


class MessageNumbers:
    """The number of each message that was broadcast: 0, 1, ... in the order of the broadcasts."""

    def __init__(self, broadcast_rows: Ints, origin: NDArray[Any], seq: NDArray[Any]) -> None:
        """Index the broadcasts of a run.

        broadcast_rows: the row of each broadcast, ascending; needed to name rows in errors.
        origin, seq: of each broadcast, shape (messages,).
        """
        self._spans = _Span(origin), _Span(seq)
        keys = self._keys(origin, seq)
        self._order = np.argsort(keys, kind="stable").astype(np.int32)
        self._ordered = keys[self._order]
        again = np.flatnonzero(self._ordered[1:] == self._ordered[:-1])
        if len(again):
            first = again[np.argmin(broadcast_rows[self._order[again + 1]])]
            rows = broadcast_rows[self._order[first]], broadcast_rows[self._order[first + 1]]
            raise RepeatedBroadcast(int(rows[0]), int(rows[1]))
        self._table: Small | None = None
        size = self._spans[0].size * self._spans[1].size
        if len(keys) and size <= TABLE_MAX:
            self._table = np.full(size, -1, np.int32)
            self._table[keys] = np.arange(len(keys), dtype=np.int32)

    def numbers(self, origin: NDArray[Any], seq: NDArray[Any]) -> Small:
        """Return the number of each message; -1 if it was never broadcast."""
        found = np.full(len(origin), -1, np.int32)
        if not len(self._ordered):
            return found
        inside = self._spans[0].holds(origin) & self._spans[1].holds(seq)
        keys = self._keys(origin[inside], seq[inside])
        if self._table is not None:
            found[inside] = self._table[keys]
        else:
            at = np.minimum(np.searchsorted(self._ordered, keys), len(self._ordered) - 1)
            found[inside] = np.where(self._ordered[at] == keys, self._order[at], -1)
        return found

    def _keys(self, origin: NDArray[Any], seq: NDArray[Any]) -> Ints:
        """Return one number per (origin, seq), of values that the spans hold."""
        origins, seqs = self._spans
        if origins.size * seqs.size >= SPAN_MAX:
            origins.compress()
            seqs.compress()
        return origins.offsets(origin) * seqs.size + seqs.offsets(seq)


class _Span:
    """The values of one column of the broadcasts, as numbers from 0 to `size`."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values
        self._low = int(values.min()) if len(values) else 0
        self.size = int(values.max()) - self._low + 1 if len(values) else 1
        self._names: NDArray[Any] | None = None

    def compress(self) -> None:
        """Number only the values that occur, where their range is too wide for 64 bits."""
        if self._names is None:
            self._names = np.unique(self._values)
            self.size = len(self._names)

    def holds(self, values: NDArray[Any]) -> Bools:
        if self._names is None:
            return (values >= self._low) & (values <= self._low + self.size - 1)
        at = np.minimum(np.searchsorted(self._names, values), len(self._names) - 1)
        found: Bools = self._names[at] == values
        return found

    def offsets(self, values: NDArray[Any]) -> Ints:
        if self._names is None:
            return values.astype(np.int64) - self._low
        return np.searchsorted(self._names, values).astype(np.int64)


def index_log(
    node: NDArray[Any], is_broadcast: Bools, origin: NDArray[Any], seq: NDArray[Any]
) -> History:
    """Return the history of a run from its broadcast and delivery rows, in the order of the run.

    All arrays have the shape (rows,). Where `is_broadcast` is false, the row is a delivery.
    """
    broadcast_rows = np.flatnonzero(is_broadcast)
    index = MessageNumbers(broadcast_rows, origin[broadcast_rows], seq[broadcast_rows])
    nodes = NodeIndex()
    nodes.add(node)
    compact = nodes.numbers(node)
    message = index.numbers(origin, seq)
    return History(
        compact, message, broadcast_rows, ranks_of(compact[broadcast_rows]), nodes.names()
    )


class NodeIndex:
    """The number of each node: 0, 1, ... in the order of their numbers in the log."""

    def __init__(self) -> None:
        self._names: Ints = np.zeros(0, np.int64)
        self._flags = np.zeros(TABLE_MAX, np.bool_)

    def add(self, node: NDArray[Any]) -> None:
        """Add the nodes of some rows."""
        if not len(node):
            return
        if node.min() >= 0 and node.max() < TABLE_MAX:
            self._flags[node] = True
        else:
            self._names = np.union1d(self._names, np.unique(node)).astype(np.int64)

    def names(self) -> Ints:
        """Return the number that each node has in the log, ascending."""
        return np.union1d(self._names, np.flatnonzero(self._flags)).astype(np.int64)

    def numbers(self, node: NDArray[Any]) -> Small:
        """Return the number of each row's node, all of which were added."""
        names = self.names()
        if len(names) and names[0] >= 0 and names[-1] < TABLE_MAX:
            table = np.zeros(int(names[-1]) + 1, np.int32)
            table[names] = np.arange(len(names), dtype=np.int32)
            found: Small = table[node]
            return found
        return np.searchsorted(names, node).astype(np.int32)


def ranks_of(sender: Small) -> Small:
    """Return the rank of each message among those of its sender: 1, 2, ..."""
    order = np.argsort(sender, kind="stable")
    ordered = sender[order]
    place = np.arange(len(sender))
    starts = np.maximum.accumulate(np.where(np.diff(ordered, prepend=-1) != 0, place, 0))
    ranks = np.empty(len(sender), np.int32)
    ranks[order] = place - starts + 1
    return ranks
