"""Verify causal order exactly while a run goes on, if no delivery comes long after its broadcast.

A message has *direct* causes: what its sender delivered since its last broadcast, without what that
itself names as a direct cause. The causal past of a message is the closure over direct causes. A
node *knows* a message that lies in the past of one that it delivered. For each node two sets of the
last messages are kept, a bit for each: the known and the delivered ones.

At a delivery the direct causes that the node does not know yet become known, and in turn theirs.
The past of a known message is known, so the search stops there. In a run in causal order it stops
at once: a delivery costs a look at a few bits, however large its past is. `causality` needs the
whole log, and a pass over it for each block of senders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled
from beforehand.kernels.verify.causality import KINDS

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Kinds = NDArray[np.int8]
Bits = NDArray[np.uint64]

BROADCAST, DELIVER = 0, 2
"""The kinds of log rows that count, as in `events`."""
NONE = -1
LATE, TWICE, UNKNOWN, TOO_OLD, MADE, CELLS, FREE, CAUSES, COUNTS = range(9)
"""The places in `Knowledge.counts`: the violations, the deliveries that cannot be judged, the
number of messages so far, and how much of the other arrays is in use."""
SPARE = 1 << 12


class Knowledge(NamedTuple):
    """The state of the verification. The comments name the axes."""

    counts: Longs
    known: Bits  # node, word
    delivered: Bits  # node, word
    seen: Longs  # node: up to which word of the run its sets are cleared
    front: Ints  # node: the first cell of the direct causes of its next message
    cell: Ints  # cell: (message, next cell)
    start: Longs  # message: where its direct causes begin in `cause`; the last one ends them
    cause: Ints
    stack: Ints


class RunningVerdict:
    """Counts the violations of a run whose rows come in parts, in order.

    A message can be judged while it is one of the last `live` messages at its delivery. `add`
    raises ValueError for older ones, so that no count is wrong. A delivery before the broadcast is
    unknown; for `causality` the next one at the node is then the second, here it is the first."""

    def __init__(self, nodes: int, messages: int, live: int) -> None:
        """Begin. messages: how many the run has. live: after how many others one is never
        delivered."""
        words = (live >> 6) + 2
        counts = np.zeros(COUNTS, np.int64)
        counts[FREE] = NONE
        self._state = Knowledge(
            counts=counts,
            known=np.zeros((nodes, words), np.uint64),
            delivered=np.zeros((nodes, words), np.uint64),
            seen=np.full(nodes, NONE, np.int64),
            front=np.full(nodes, NONE, np.int32),
            cell=np.zeros((SPARE, 2), np.int32),
            start=np.zeros(messages + 1, np.int64),
            cause=np.zeros(SPARE, np.int32),
            stack=np.zeros(words << 6, np.int32),
        )

    @staticmethod
    def size_bytes(nodes: int, live: int) -> int:
        """Return how much memory the sets take."""
        return 2 * nodes * 8 * ((live >> 6) + 2)

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Judge the next rows.

        columns: node, kind and message; messages are numbered in the order of their broadcasts."""
        node, kind, message = (columns[name] for name in ("node", "kind", "message"))
        at = 0
        while at < len(kind):
            at = judge(self._state, node, kind, message, at)
            if at < len(kind):
                self._grow()
        if self._state.counts[TOO_OLD]:
            raise ValueError("a message was delivered after more others than expected")

    def counts(self) -> dict[str, int]:
        """Return the violations so far by kind."""
        return dict(zip(KINDS, self._state.counts[:TOO_OLD].tolist(), strict=True))

    def _grow(self) -> None:
        cell, cause = self._state.cell, self._state.cause
        grown = np.zeros((2 * len(cell), 2), np.int32)
        grown[: len(cell)] = cell
        self._state = self._state._replace(
            cell=grown, cause=np.concatenate([cause, np.zeros(len(grown), np.int32)])
        )


@compiled
def judge(k: Knowledge, node: Ints, kind: Kinds, message: Ints, at: int) -> int:
    """Judge the rows from `at` on; return the first one for which an array is too short."""
    while at < len(kind):
        if kind[at] == BROADCAST:
            if k.counts[CAUSES] + k.counts[CELLS] + 2 > len(k.cause):
                return at
            if k.counts[CELLS] == len(k.cell):
                return at
            if message[at] != k.counts[MADE]:
                raise ValueError("messages are not numbered in the order of their broadcasts")
            _note_broadcast(k, node[at], message[at])
        elif kind[at] == DELIVER:
            if k.counts[CELLS] == len(k.cell):
                return at
            _note_delivery(k, node[at], message[at])
        at += 1
    return at


@compiled
def _has(sets: Bits, node: int, m: int) -> bool:
    word = sets[node, (m >> 6) % sets.shape[1]]
    return bool((word >> np.uint64(m & 63)) & np.uint64(1) != np.uint64(0))


@compiled
def _put(sets: Bits, node: int, m: int) -> None:
    sets[node, (m >> 6) % sets.shape[1]] |= np.uint64(1) << np.uint64(m & 63)


@compiled
def _add_cell(k: Knowledge, node: int, m: int) -> None:
    at = k.counts[FREE]
    if at < 0:
        at = k.counts[CELLS]
        k.counts[CELLS] = at + 1
    else:
        k.counts[FREE] = k.cell[at, 1]
    k.cell[at, 0], k.cell[at, 1] = m, k.front[node]
    k.front[node] = at


@compiled
def _note_broadcast(k: Knowledge, node: int, m: int) -> None:
    """Give a message its direct causes. It is the only one of the sender's next message so far."""
    k.counts[MADE] = m + 1
    end, at = k.counts[CAUSES], np.int64(k.front[node])
    k.start[m] = end
    while at >= 0:
        k.cause[end] = k.cell[at, 0]
        end += 1
        after = np.int64(k.cell[at, 1])
        k.cell[at, 1] = k.counts[FREE]
        k.counts[FREE] = at
        at = after
    k.counts[CAUSES] = k.start[m + 1] = end
    k.front[node] = NONE
    _add_cell(k, node, m)


@compiled
def _note_delivery(k: Knowledge, node: int, m: int) -> None:
    head, words = (k.counts[MADE] - 1) >> 6, k.known.shape[1]
    if m < 0 or m >= k.counts[MADE]:
        k.counts[UNKNOWN] += 1
        return
    if (m >> 6) <= head - words:
        k.counts[TOO_OLD] += 1
        return
    for w in range(max(k.seen[node] + 1, head - words + 1), head + 1):
        k.known[node, w % words] = k.delivered[node, w % words] = np.uint64(0)
    k.seen[node] = head
    if _has(k.delivered, node, m):
        k.counts[TWICE] += 1
    elif _has(k.known, node, m):
        k.counts[LATE] += 1
    _put(k.delivered, node, m)
    _learn(k, node, m, (head - words + 1) << 6)
    _move_front(k, node, m)


@compiled
def _learn(k: Knowledge, node: int, m: int, first: int) -> None:
    """Make a message known, and all of its causal past from message `first` on.

    The past of a message before `first` is before it, so the search ends there too."""
    if _has(k.known, node, m):
        return
    _put(k.known, node, m)
    k.stack[0] = m
    top = 1
    while top:
        top -= 1
        effect = k.stack[top]
        for i in range(k.start[effect], k.start[effect + 1]):
            cause = int(k.cause[i])
            if cause >= first and not _has(k.known, node, cause):
                _put(k.known, node, cause)
                k.stack[top] = cause
                top += 1


@compiled
def _move_front(k: Knowledge, node: int, m: int) -> None:
    """Make a delivered message a direct cause of the next one, in place of those of its own."""
    before, at = np.int64(NONE), np.int64(k.front[node])
    while at >= 0:
        q, after = k.cell[at, 0], np.int64(k.cell[at, 1])
        is_covered = q == m
        for i in range(k.start[m], k.start[m + 1]):
            is_covered |= k.cause[i] == q
        if is_covered:
            if before < 0:
                k.front[node] = after
            else:
                k.cell[before, 1] = after
            k.cell[at, 1] = k.counts[FREE]
            k.counts[FREE] = at
        else:
            before = at
        at = after
    _add_cell(k, node, m)
