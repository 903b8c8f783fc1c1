"""Merge the logs of many nodes into one order that agrees with causality, without any clock.

Two facts are certain: a node's own events happened in its own order, and a message was broadcast
before it was delivered. Every order that respects both gives every event the same causal past. So
the same deliveries are late or duplicate, whichever order is taken.

Each node is read as far as possible: to its end, or to a delivery of a message that is not yet
broadcast. The broadcast wakes the nodes that wait for it. So an event is visited once, or twice if
its node waited there. If all nodes wait, the logs are impossible: some node delivered a message
that was broadcast only after that. One delivery of such a cycle is forced, and reported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]
Small = NDArray[np.int32]

NO_NODE = -1


def merge_by_causality(node: Small, message: Small, broadcast_rows: Ints) -> tuple[Ints, Ints]:
    """Return the rows in an order that agrees with causality, and the forced rows in that order.

    node: of each row, 0, 1, ...; the rows of a node are adjacent, in its own order, shape (rows,).
    message: the message of each row, -1 if no node broadcast it, shape (rows,).
    broadcast_rows: the row of each message's broadcast, shape (messages,).
    """
    nodes_count = int(node[-1]) + 1 if len(node) else 0
    bounds = np.searchsorted(node, np.arange(nodes_count + 1)).astype(np.int64)
    order = np.empty(len(node), np.int64)
    is_forced = np.zeros(len(node), np.bool_)
    _merge(node, message, broadcast_rows, bounds, order, is_forced)
    return order, order[is_forced[order]]


@compiled
def _merge(
    node: Small,
    message: Small,
    broadcast_rows: Ints,
    bounds: Ints,
    order: Ints,
    is_forced: NDArray[np.bool_],
) -> None:
    nodes_count = len(bounds) - 1
    at = bounds[:-1].copy()
    is_placed = np.zeros(len(broadcast_rows), np.bool_)
    first_waiting = np.full(
        len(broadcast_rows), NO_NODE, np.int32
    )  # by message: the head of its list
    next_waiting = np.full(nodes_count, NO_NODE, np.int32)  # by node: a node waits for one message
    awake = np.arange(nodes_count - 1, -1, -1).astype(np.int32)
    awake_count = nodes_count
    done = 0
    while done < len(order):
        if awake_count == 0:
            stuck = _in_ring(node, message, broadcast_rows, bounds, at)
            is_forced[at[stuck]] = True
            _unlink(first_waiting, next_waiting, message[at[stuck]], stuck)
            awake[0] = stuck
            awake_count = 1
        awake_count -= 1
        node_at = awake[awake_count]
        while at[node_at] < bounds[node_at + 1]:
            row = at[node_at]
            what = message[row]
            if what >= 0 and broadcast_rows[what] == row:
                is_placed[what] = True
                waiting = first_waiting[what]
                while waiting != NO_NODE:
                    awake[awake_count] = waiting
                    awake_count += 1
                    waiting = next_waiting[waiting]
            elif what >= 0 and not is_placed[what] and not is_forced[row]:
                next_waiting[node_at] = first_waiting[what]
                first_waiting[what] = node_at
                break
            order[done] = row
            done += 1
            at[node_at] += 1


@compiled
def _in_ring(node: Small, message: Small, broadcast_rows: Ints, bounds: Ints, at: Ints) -> int:
    """Return a node of a cycle of nodes that wait for each other, when no node is awake."""
    node_at = 0
    while at[node_at] == bounds[node_at + 1]:
        node_at += 1
    # The node that should have broadcast waits as well. After as many steps as there are nodes, the
    # walk is inside a cycle.
    for _ in range(len(at)):
        node_at = node[broadcast_rows[message[at[node_at]]]]
    return node_at


@compiled
def _unlink(first_waiting: Small, next_waiting: Small, what: int, node_at: int) -> None:
    """Remove a node from the list of those that wait for a message."""
    if first_waiting[what] == node_at:
        first_waiting[what] = next_waiting[node_at]
        return
    before = first_waiting[what]
    while next_waiting[before] != node_at:
        before = next_waiting[before]
    next_waiting[before] = next_waiting[node_at]
