"""Verify causal order exactly, from broadcasts and deliveries alone.

A node's knowledge of one sender is a number: how many of its broadcasts, in the order in which it
made them, lie in the causal past of the node's deliveries. A broadcast carries the knowledge of its
sender. A delivery adds the knowledge that the message carried. A message that its node already
knows is late. Senders are independent of each other, so a run is walked once for each block of
senders, with the block as the inner dimension. A delivery then costs one maximum over a row of a
cache-sized table.

Sequence numbers are only names here. They need not grow, and `origin` need not be the broadcaster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Bools = NDArray[np.bool_]

LATE, TWICE, UNKNOWN = range(3)
KINDS = ("late", "twice", "unknown")

BLOCK_MAX = 64
"""Senders per block: four cache lines of a node's knowledge, one after the other."""
TABLE_BYTES_MAX = 1 << 26


class History(NamedTuple):
    """A run: one row per broadcast or delivery, in the order in which they happened."""

    node: Small
    """The node that broadcast or delivered, as an index into `nodes`."""
    message: Small
    """The message. They are numbered in the order of broadcasts; -1 if it was never broadcast."""
    spoken: Ints
    """The row of each message's broadcast, ascending."""
    rank: Small
    """The rank of each message among those of its sender: 1, 2, ..."""
    nodes: Ints
    """The number that each node has in the log."""

    @property
    def sender(self) -> Small:
        return self.node[self.spoken]


class Violations(NamedTuple):
    """Deliveries that violate the definition, in order of `row`."""

    row: Ints
    kind: NDArray[np.int8]
    """LATE: after a message that causally follows it. TWICE: delivered before at the same node.
    UNKNOWN: no node has broadcast it so far."""


class RepeatedBroadcast(ValueError):
    """One (origin, seq) is broadcast in two rows, so that it does not identify a message."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"rows {first} and {second} broadcast the same message")
        self.first, self.second = first, second


def index_log(
    node: NDArray[Any], is_broadcast: Bools, origin: NDArray[Any], seq: NDArray[Any]
) -> History:
    """Return the history of a run from its broadcast and delivery rows, in the order of the run.

    All arrays have the shape (rows,). Where `is_broadcast` is false, the row is a delivery.
    """
    spoken = np.flatnonzero(is_broadcast)
    origins, seqs = np.unique(origin[spoken]), np.unique(seq[spoken])
    # One number per (origin, seq), which is small even if seqs are deadlines in microseconds.
    spoken_key, _ = _keys(origins, seqs, origin[spoken], seq[spoken])
    order = np.argsort(spoken_key, kind="stable")
    ordered = spoken_key[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        first = again[np.argmin(spoken[order[again + 1]])]
        raise RepeatedBroadcast(int(spoken[order[first]]), int(spoken[order[first + 1]]))
    message = np.full(len(node), -1, np.int32)
    if len(spoken):
        key, is_named = _keys(origins, seqs, origin, seq)
        at = np.minimum(np.searchsorted(ordered, key), len(ordered) - 1)
        found = is_named & (ordered[at] == key)
        message[found] = order[at[found]]
    nodes, index = np.unique(node, return_inverse=True)
    compact = index.astype(np.int32)
    return History(compact, message, spoken, _ranks(compact[spoken]), nodes.astype(np.int64))


def find_violations(
    history: History,
    low: int = 0,
    high: int | None = None,
    *,
    on_done: Callable[[int, int], object] = lambda _done, _all: None,
) -> Violations:
    """Return the violations among deliveries of messages from the senders `low` to `high`
    (excluded).

    Senders are indices into `history.nodes`; without bounds, all of them. A delivery of a message
    that no node had broadcast adds no knowledge; it is reported if `low` is 0.
    on_done: called with the number of senders checked so far, and their total.
    """
    high = len(history.nodes) if high is None else high
    sender = history.sender
    known = history.message >= 0
    rows = np.arange(len(history.node))
    delivered = np.ones(len(rows), np.bool_)
    delivered[history.spoken] = False
    premature = delivered.copy()
    premature[known] &= rows[known] < history.spoken[history.message[known]]
    wrong = np.zeros(len(rows), np.bool_)
    width = _block_width(len(history.nodes) + len(history.spoken))
    for start in range(low, high, width):
        on_done(start - low, high - low)
        _walk(history, sender, premature, start, min(start + width, high), wrong)
    on_done(high - low, high - low)
    ours = np.zeros(len(rows), np.bool_)
    ours[known] = (sender[history.message[known]] >= low) & (sender[history.message[known]] < high)
    again = _repeated(history, np.flatnonzero(ours & delivered))
    twice = again[~premature[again]]
    wrong[twice] = True
    kind = np.full(len(rows), LATE, np.int8)
    kind[twice] = TWICE
    if low == 0:
        wrong |= premature
        kind[premature] = UNKNOWN
    found = np.flatnonzero(wrong)
    return Violations(found, kind[found])


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
    follows = np.zeros(len(history.spoken), np.bool_)
    _spread(history, message, learned, follows)
    return Spread(message, learned, follows)


def first_follower(history: History, spread: Spread, node: int, before: int) -> int:
    """Return the first row before row `before` in which `node` delivers a message that follows the
    one of `spread`; -1 if there is none. `node` is an index into `nodes`."""
    rows = np.flatnonzero((history.node[:before] == node) & (history.message[:before] >= 0))
    what = history.message[rows]
    found = rows[spread.follows[what] & (history.spoken[what] < rows)]
    return int(found[0]) if len(found) else -1


def causal_chain(history: History, spread: Spread, follower: int) -> list[int]:
    """Return the rows that lead from the broadcast of the message of `spread` to that of
    `follower`.

    Broadcasts alternate with the deliveries by which the next sender came to know. Where a sender
    follows up on its own broadcast, there is no delivery in between.
    """
    chain = [int(history.spoken[follower])]
    while history.message[chain[-1]] != spread.message:
        # The sender knew before it broadcast, so this row is an earlier one: the walk terminates.
        learned = int(spread.learned[history.node[chain[-1]]])
        speech = int(history.spoken[history.message[learned]])
        chain += [speech] if speech == learned else [learned, speech]
    return chain[::-1]


def _keys(
    origins: NDArray[Any], seqs: NDArray[Any], origin: NDArray[Any], seq: NDArray[Any]
) -> tuple[Ints, Bools]:
    """Return a number for each (origin, seq), and whether both are among `origins` and `seqs`."""
    if not len(origins):
        return np.zeros(len(origin), np.int64), np.zeros(len(origin), np.bool_)
    i = np.minimum(np.searchsorted(origins, origin), len(origins) - 1)
    j = np.minimum(np.searchsorted(seqs, seq), len(seqs) - 1)
    return i * len(seqs) + j, (origins[i] == origin) & (seqs[j] == seq)


def _ranks(sender: Small) -> Small:
    order = np.argsort(sender, kind="stable")
    ordered = sender[order]
    place = np.arange(len(sender))
    starts = np.maximum.accumulate(np.where(np.diff(ordered, prepend=-1) != 0, place, 0))
    ranks = np.empty(len(sender), np.int32)
    ranks[order] = place - starts + 1
    return ranks


def _repeated(history: History, rows: Ints) -> Ints:
    """Return those rows at which a node delivers a message that it delivered in an earlier row."""
    place = history.node[rows].astype(np.int64) * len(history.spoken) + history.message[rows]
    order = np.argsort(place, kind="stable")
    same = np.diff(place[order], prepend=-1) == 0
    return np.sort(rows[order[same]])


def _block_width(table_rows: int) -> int:
    return max(1, min(BLOCK_MAX, TABLE_BYTES_MAX // (4 * max(1, table_rows))))


@compiled
def _walk(
    history: History, sender: Small, premature: Bools, low: int, high: int, wrong: Bools
) -> None:
    """Mark the rows that deliver a message which their node already knows: late, or a duplicate."""
    width = high - low
    know = np.zeros((len(history.nodes), width), np.int32)
    carried = np.zeros((len(history.spoken), width), np.int32)
    for row in range(len(history.node)):
        what = history.message[row]
        if what < 0 or premature[row]:
            continue
        mine, load = know[history.node[row]], carried[what]
        own = sender[what] - low
        if history.spoken[what] == row:
            # Its sender's earlier broadcasts are in its past as well; its own rank stands for them.
            load[:] = mine
        else:
            if 0 <= own < width:
                wrong[row] = mine[own] >= history.rank[what]
                mine[own] = max(mine[own], history.rank[what])
            for i in range(width):
                mine[i] = max(mine[i], load[i])


@compiled
def _spread(history: History, message: int, learned: Ints, follows: Bools) -> None:
    for row in range(history.spoken[message], len(history.node)):
        node, what = history.node[row], history.message[row]
        if what < 0 or history.spoken[what] > row:
            continue
        if history.spoken[what] == row and what != message:
            follows[what] = learned[node] >= 0
        if learned[node] < 0 and (what == message or follows[what]):
            learned[node] = row
