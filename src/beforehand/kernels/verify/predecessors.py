"""Find known messages by their direct predecessors: cheap where a message has few of them.

The direct predecessors of a message are what its sender delivered since its broadcast before, less
what follows from the rest. The knowledge of a node is closed: with a message it knows the
predecessors of the message, and theirs. So a node that learns a message looks at its predecessors
and stops at those that it knows. Each node is walked on its own, with one number per sender, and
needs no other node. The cost is a look per delivery and predecessor, whatever the number of
senders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import unlocked

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.int8]

STACK = 1 << 12
UNKNOWN, OWN_BROADCAST, KNOWN = -1, -2, -3
"""Instead of a message: a delivery before any broadcast, a broadcast, a delivery of a message that
the node knew."""


class Predecessors(NamedTuple):
    """The direct predecessors of each message, and the rows of each node."""

    start: Ints
    """Where the predecessors of each message begin, shape (messages + 1,)."""
    messages: Small
    """The predecessors of all messages, one after the other."""
    delivered: Small
    """The message that each row delivers, or `UNKNOWN`, `OWN_BROADCAST` or `KNOWN`. Rows are
    grouped by node, in the order of the run within each."""
    bounds: Ints
    """Where the rows of each node begin in `delivered`, shape (nodes + 1,)."""
    first: Ints
    """Where the messages of each column begin in `by_rank`, shape (columns + 1,)."""
    by_rank: Small
    """The messages, grouped by the column of their sender, by rank."""
    looks: int
    """How many predecessors the walk of all nodes looks at if no delivery is late."""


def predecessors_of(
    node: Small,
    message: Small,
    broadcast_rows: Ints,
    column: Small,
    nodes_count: int,
    looks_max: int,
) -> Predecessors | None:
    """Return the direct predecessors; None if there are more than `looks_max` to look at.

    node, message, broadcast_rows: as in `History`.
    column: the column of each message's sender: 0, 1, ..., shape (messages,).
    """
    bounds = np.zeros(nodes_count + 1, np.int64)
    deliveries = np.full(
        len(broadcast_rows), -1, np.int64
    )  # the broadcast is a row of the message, too
    _count(node, message, bounds[1:], deliveries)
    np.cumsum(bounds, out=bounds)
    delivered = np.empty(len(node), np.int32)
    _group(node, message, broadcast_rows, bounds[:-1].copy(), delivered)
    by_rank = np.argsort(column, kind="stable").astype(np.int32)
    first = np.searchsorted(column[by_rank], np.arange(column.max() + 2)).astype(np.int64)
    before = np.full(len(broadcast_rows), -1, np.int32)
    same = column[by_rank[1:]] == column[by_rank[:-1]]
    before[by_rank[1:][same]] = by_rank[:-1][same]
    start = np.zeros(len(broadcast_rows) + 1, np.int64)
    found = _direct(node[broadcast_rows], before, delivered, bounds, start, looks_max)
    if start[-1] < 0:
        return None
    looks = int((deliveries * np.diff(start)).sum())
    if looks > looks_max:
        return None
    return Predecessors(start, found, delivered, bounds, first, by_rank, looks)


@unlocked
def _count(node: Small, message: Small, by_node: Ints, by_message: Ints) -> None:
    for row in range(len(node)):
        by_node[node[row]] += 1
        if message[row] >= 0:
            by_message[message[row]] += 1


@unlocked
def _group(node: Small, message: Small, broadcast_rows: Ints, at: Ints, delivered: Small) -> None:
    for row in range(len(node)):
        node_at, what = node[row], message[row]
        if what >= 0 and broadcast_rows[what] >= row:
            what = OWN_BROADCAST if broadcast_rows[what] == row else UNKNOWN
        delivered[at[node_at]] = what
        at[node_at] += 1


@unlocked
def _direct(
    sender: Small, before: Small, delivered: Small, bounds: Ints, start: Ints, looks_max: int
) -> Small:
    """Return the direct predecessors of all messages; `start[-1]` is -1 if that is given up.

    sender: the node that broadcast each message.
    before: the message that its sender broadcast before, -1 if it is the first.
    """
    at = bounds[:-1].copy()
    mark = np.full(len(sender), -1, np.int32)
    found = np.empty(1024, np.int32)
    used = 0
    looks = 0
    for what in range(len(sender)):
        node_at = sender[what]
        begin = at[node_at]
        end = begin
        while delivered[end] != OWN_BROADCAST:
            x = delivered[end]
            if x >= 0:
                looks += 1 + start[x + 1] - start[x]
                for j in range(start[x], start[x + 1]):
                    mark[found[j]] = what
                if before[x] >= 0:
                    mark[before[x]] = what
            end += 1
        if looks > looks_max:
            start[-1] = -1
            return found[:0]
        if used + end - begin > len(found):
            larger = np.empty(2 * (used + end - begin), np.int32)
            larger[:used] = found[:used]
            found = larger
        for i in range(begin, end):
            x = delivered[i]
            if x >= 0 and mark[x] != what:
                mark[x] = what
                found[used] = x
                used += 1
        start[what + 1] = used
        at[node_at] = end + 1
    return found[:used].copy()


@unlocked
def mark_known(column: Small, rank: Small, known: Predecessors, low: int, high: int) -> None:
    """Write `KNOWN` over each message that a node delivers and knows already.

    low, high: the nodes to walk, as indices.
    """
    knows = np.zeros(len(known.first) - 1, np.int32)
    stack = np.empty(STACK, np.int32)
    for node_at in range(low, high):
        knows[:] = 0
        for i in range(known.bounds[node_at], known.bounds[node_at + 1]):
            what = known.delivered[i]
            if what < 0:
                continue
            if knows[column[what]] >= rank[what]:
                known.delivered[i] = KNOWN
                continue
            stack[0] = what
            top = 1
            while top > 0:
                top -= 1
                x = stack[top]
                sender = column[x]
                old = knows[sender]
                if old >= rank[x]:
                    continue
                knows[sender] = rank[x]
                for k in range(old, rank[x]):
                    y = known.by_rank[known.first[sender] + k]
                    for j in range(known.start[y], known.start[y + 1]):
                        p = known.messages[j]
                        if knows[column[p]] < rank[p]:
                            if top == len(stack):
                                larger = np.empty(2 * top, np.int32)
                                larger[:top] = stack
                                stack = larger
                            stack[top] = p
                            top += 1


@unlocked
def rows_of_known(node: Small, known: Predecessors, marks: Flags) -> None:
    """Set `marks` to 1 in the rows whose message is overwritten by `KNOWN`."""
    at = known.bounds[:-1].copy()
    for row in range(len(node)):
        if known.delivered[at[node[row]]] == KNOWN:
            marks[row] = 1
        at[node[row]] += 1
