"""Verify causal order exactly, from broadcasts and deliveries alone.

A node's knowledge of one sender is a number: how many of its broadcasts, in the order in which it
made them, lie in the causal past of the node's deliveries. A broadcast carries the knowledge of its
sender. A delivery adds the knowledge that the message carried. A message that its node already
knows is late. There are two ways to walk through a run, with the same result:

- *Dense*: senders are independent of each other, so the run is walked once for each block of
  senders, with the block as the inner dimension. A delivery then costs one maximum over a row of a
  cache-sized table.
- *Sparse*: each node is walked on its own, and follows direct predecessors (`predecessors.py`).

Sequence numbers are only names here. They need not grow, and `origin` need not be the broadcaster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled, unlocked
from beforehand.kernels.verify.predecessors import (
    Predecessors,
    mark_known,
    predecessors_of,
    rows_of_known,
)

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Bools = NDArray[np.bool_]
Flags = NDArray[np.int8]

LATE, TWICE, UNKNOWN = range(3)
KINDS = ("late", "twice", "unknown")

BLOCK_BYTES_MAX = 256
"""The knowledge of one node about one block: four cache lines, one after the other."""
TABLE_BYTES_MAX = 1 << 26
"""The tables of one block, of which each thread has one."""
DENSE_STEPS_MIN = 1 << 28
"""Runs of fewer deliveries times senders are walked densely, which takes less than a second."""
LOOK_STEPS = 50
"""The dense walk of this many senders takes as long as a look at one predecessor: measured by
`benchmarks/bench_verify_scale.py`."""
SMALL_RANK_MAX = (1 << 16) - 1
"""Up to this rank the tables have 16 bits per entry, else 32."""
ROWS_MAX = 1 << 31
"""The sparse walk numbers rows in 32 bits."""


class History(NamedTuple):
    """A run: one row per broadcast or delivery, in the order in which they happened."""

    node: Small
    """The node that broadcast or delivered, as an index into `nodes`."""
    message: Small
    """The message. They are numbered in the order of broadcasts; -1 if it was never broadcast."""
    broadcast_rows: Ints
    """The row of each message's broadcast, ascending."""
    rank: Small
    """The rank of each message among those of its sender: 1, 2, ..."""
    nodes: Ints
    """The number that each node has in the log."""

    @property
    def sender(self) -> Small:
        return self.node[self.broadcast_rows]


class Violations(NamedTuple):
    """Deliveries that violate the definition, in order of `row`."""

    row: Ints
    kind: NDArray[np.int8]
    """LATE: after a message that causally follows it. TWICE: delivered before at the same node.
    UNKNOWN: no node has broadcast it so far."""


OnSenders = Callable[[int, int], object]


def find_violations(
    history: History,
    low: int = 0,
    high: int | None = None,
    *,
    threads: int = 1,
    on_done: OnSenders = lambda _done, _all: None,
) -> Violations:
    """Return the violations among deliveries of messages from the senders `low` to `high`
    (excluded).

    Senders are indices into `history.nodes`; without bounds, all of them. A delivery of a message
    that no node had broadcast adds no knowledge; it is reported if `low` is 0.
    on_done: called with the number of senders checked so far, and their total.
    """
    high = len(history.nodes) if high is None else high
    marks = np.zeros(len(history.node), np.int8)
    is_sender = np.zeros(len(history.nodes), np.bool_)
    is_sender[history.sender] = True
    columns = np.cumsum(is_sender) - 1  # nodes that broadcast nothing need no column
    column = columns[history.sender].astype(np.int32)
    ends = int(is_sender[:low].sum()), int(is_sender[:high].sum())
    senders = ends[1] - ends[0]
    on_done(0, senders)
    is_all = low == 0 and high == len(history.nodes)
    known = sparse_plan(history, column) if is_all else None
    if known is not None:
        _walk_sparse(history, column, known, marks, threads)
        on_done(senders, senders)
    else:
        _walk_dense(history, column, ends, marks, threads, on_done)
    ours = (history.sender >= low) & (history.sender < high)
    _mark_unknown(history.message, history.broadcast_rows, marks)
    _mark_twice(history, ours, marks)
    if low > 0:
        marks[marks == UNKNOWN + 1] = 0
    found = np.flatnonzero(marks)
    return Violations(found, marks[found] - np.int8(1))


def sparse_plan(history: History, column: Small) -> Predecessors | None:
    """Return the direct predecessors if the sparse walk of the whole run is the faster one."""
    if not len(history.broadcast_rows) or len(history.node) >= ROWS_MAX:
        return None
    steps = len(history.node) * (int(column.max()) + 1)
    if steps < DENSE_STEPS_MIN:
        return None
    return predecessors_of(
        history.node, history.message, history.broadcast_rows, column,
        len(history.nodes), int(steps // LOOK_STEPS),
    )  # fmt: skip


def is_sparse(history: History) -> bool:
    """Return whether the sparse walk of the whole run is the faster one."""
    _, column = np.unique(history.sender, return_inverse=True)
    return sparse_plan(history, column.astype(np.int32)) is not None


def _walk_sparse(
    history: History, column: Small, known: Predecessors, marks: Flags, threads: int
) -> None:
    ends = np.linspace(0, len(history.nodes), threads + 1).astype(int).tolist()
    walk = partial(mark_known, column, history.rank, known)
    for _ in _on_threads(threads, lambda at: walk(ends[at], ends[at + 1]), range(threads)):
        pass
    rows_of_known(history.node, known, marks)


def _walk_dense(
    history: History,
    column: Small,
    ends: tuple[int, int],
    marks: Flags,
    threads: int,
    on_done: OnSenders,
) -> None:
    low, high = ends
    small = np.uint16 if history.rank.max(initial=0) <= SMALL_RANK_MAX else np.uint32
    rank = history.rank.astype(small)
    table_rows = len(history.nodes) + len(history.broadcast_rows)
    width = _block_width(table_rows, rank.itemsize)

    def walk(start: int) -> int:
        size = min(start + width, high) - start
        know = np.zeros((len(history.nodes), size), small)
        carried = np.zeros((len(history.broadcast_rows), size), small)
        shared = (history.node, history.message, history.broadcast_rows)
        _walk(*shared, column, rank, start, know, carried, marks)
        return start + size

    for done in _on_threads(threads, walk, range(low, high, width)):
        on_done(done - low, high - low)


def _on_threads(
    threads: int, function: Callable[[int], Any], numbers: Iterable[int]
) -> Iterator[Any]:
    """Yield the results in order; without a pool if there is one thread."""
    if threads == 1:
        yield from map(function, numbers)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, numbers)


class Spread(NamedTuple):
    """How the knowledge of one message spread in a run."""

    message: int
    learned: Ints
    """For each node: the first row that put the message into its causal past, -1 if none did."""
    follows: Bools
    """For each message: whether its broadcast happened after that of this one."""


def spread_of(history: History, message: int) -> Spread:
    """Return when each node came to know `message`. This takes one pass from its broadcast on."""
    learned = np.full(len(history.nodes), -1, np.int64)
    follows = np.zeros(len(history.broadcast_rows), np.bool_)
    _spread(history, message, learned, follows)
    return Spread(message, learned, follows)


def first_follower(history: History, spread: Spread, node: int, before: int) -> int:
    """Return the first row before row `before` in which `node` delivers a message that follows the
    one of `spread`; -1 if there is none. `node` is an index into `nodes`."""
    rows = np.flatnonzero((history.node[:before] == node) & (history.message[:before] >= 0))
    what = history.message[rows]
    found = rows[spread.follows[what] & (history.broadcast_rows[what] < rows)]
    return int(found[0]) if len(found) else -1


def first_delivery(history: History, row: int) -> list[int]:
    """Return the first row before `row` in which its node delivers its message, if there is one."""
    same = history.message[:row] == history.message[row]
    rows = np.flatnonzero(same & (history.node[:row] == history.node[row]))
    is_delivery = rows != history.broadcast_rows[history.message[row]]
    return [int(found) for found in rows[is_delivery][:1]]


def causal_chain(history: History, spread: Spread, follower: int) -> list[int]:
    """Return the rows that lead from the broadcast of the message of `spread` to that of
    `follower`.

    Broadcasts alternate with the deliveries by which the next sender came to know. Where a sender
    follows up on its own broadcast, there is no delivery in between.
    """
    chain = [int(history.broadcast_rows[follower])]
    while history.message[chain[-1]] != spread.message:
        # The sender knew before it broadcast, so this row is an earlier one: the walk terminates.
        learned = int(spread.learned[history.node[chain[-1]]])
        speech = int(history.broadcast_rows[history.message[learned]])
        chain += [speech] if speech == learned else [learned, speech]
    return chain[::-1]


def _block_width(table_rows: int, itemsize: int) -> int:
    widest = TABLE_BYTES_MAX // (itemsize * max(1, table_rows))
    return max(1, min(BLOCK_BYTES_MAX // itemsize, widest))


@unlocked
def _walk(
    node: Small,
    message: Small,
    broadcast_rows: Ints,
    column: Small,
    rank: NDArray[Any],
    low: int,
    know: NDArray[Any],
    carried: NDArray[Any],
    marks: Flags,
) -> None:
    """Mark the rows that deliver a message which their node already knows: late, or a duplicate."""
    width = know.shape[1]
    done = 0  # messages broadcast so far
    for row in range(len(node)):
        what = message[row]
        if what < 0 or what > done:
            continue
        mine, load = know[node[row]], carried[what]
        if what == done:
            if broadcast_rows[what] == row:
                # Its sender's earlier broadcasts are in its past as well; its own rank stands for
                # them.
                load[:] = mine
                done += 1
            continue
        own = column[what] - low
        if 0 <= own < width:
            if mine[own] >= rank[what]:
                marks[row] = 1
            mine[own] = max(mine[own], rank[what])
        for i in range(width):
            mine[i] = max(mine[i], load[i])


@unlocked
def _mark_unknown(message: Small, broadcast_rows: Ints, marks: Flags) -> None:
    """Mark the rows that deliver a message that no node has broadcast so far."""
    for row in range(len(message)):
        what = message[row]
        if what < 0 or broadcast_rows[what] > row:
            marks[row] = UNKNOWN + 1


def _mark_twice(history: History, ours: Bools, marks: Flags) -> None:
    """Mark the rows in which a node delivers a message again, if `ours` has the message.

    Only messages that are marked somewhere can be among them: a node knows what it has delivered.
    """
    suspects = np.flatnonzero(marks)
    what = history.message[suspects]
    suspects = suspects[what >= 0]
    suspects = suspects[ours[history.message[suspects]]]
    if not len(suspects):
        return
    messages = len(history.broadcast_rows)
    keys = np.unique(history.node[suspects].astype(np.int64) * messages + history.message[suspects])
    is_suspect = np.zeros(messages, np.bool_)
    is_suspect[history.message[suspects]] = True
    is_delivered = np.zeros(len(keys), np.bool_)
    _repeated(
        history.node, history.message, history.broadcast_rows, is_suspect, keys, is_delivered, marks
    )


@unlocked
def _repeated(
    node: Small,
    message: Small,
    broadcast_rows: Ints,
    is_suspect: Bools,
    keys: Ints,
    is_delivered: Bools,
    marks: Flags,
) -> None:
    for row in range(len(node)):
        what = message[row]
        if what < 0 or broadcast_rows[what] == row or not is_suspect[what]:
            continue
        key = np.int64(node[row]) * len(broadcast_rows) + what
        at = np.searchsorted(keys, key)
        if at == len(keys) or keys[at] != key:
            continue
        if is_delivered[at] and broadcast_rows[what] < row:
            marks[row] = TWICE + 1
        is_delivered[at] = True


@compiled
def _spread(history: History, message: int, learned: Ints, follows: Bools) -> None:
    for row in range(history.broadcast_rows[message], len(history.node)):
        node, what = history.node[row], history.message[row]
        if what < 0 or history.broadcast_rows[what] > row:
            continue
        if history.broadcast_rows[what] == row and what != message:
            follows[what] = learned[node] >= 0
        if learned[node] < 0 and (what == message or follows[what]):
            learned[node] = row
