"""Measure delays while a run goes on: only messages that wait for their delivery are remembered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled
from beforehand.kernels.random.draws import mix

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Kinds = NDArray[np.int8]

RECEIVE, DELIVER, EXPIRE = 1, 2, 3
"""The kinds of log rows that count, as in `events`."""
NONE = -1
OPEN, EXPIRED, COUNTS = range(3)


class Receptions(NamedTuple):
    """The received messages without an outcome yet: a hash table with linear probing."""

    counts: Longs
    key: Longs  # place: node * messages + message, or NONE
    t_us: Longs  # place: when the node received the message


class LogRows(NamedTuple):
    """Columns of a part of a log."""

    t_us: Longs
    node: Ints
    kind: Kinds
    message: Ints


class Measured(NamedTuple):
    """The delays in a part of a log, as many of each as `sizes` tells."""

    sizes: Longs
    delay: Longs
    latency: Longs
    age: Longs


def make_receptions(size: int) -> Receptions:
    """Return an empty table for fewer open receptions than half the size, a power of two."""
    return Receptions(np.zeros(COUNTS, np.int64), np.full(size, NONE), np.zeros(size, np.int64))


@compiled
def _place_of(open_: Receptions, key: int) -> int:
    """Return where a key is, or the empty place where it belongs."""
    mask = len(open_.key) - 1
    at = np.int64(mix(np.uint64(0), key) & np.uint64(mask))
    while open_.key[at] != NONE and open_.key[at] != key:
        at = (at + 1) & mask
    return int(at)


@compiled
def _remove(open_: Receptions, hole: int) -> None:
    """Empty a place, and move later keys so that each is found again."""
    mask = len(open_.key) - 1
    at = (hole + 1) & mask
    while open_.key[at] != NONE:
        home = np.int64(mix(np.uint64(0), open_.key[at]) & np.uint64(mask))
        if ((at - home) & mask) >= ((at - hole) & mask):
            open_.key[hole], open_.t_us[hole] = open_.key[at], open_.t_us[at]
            hole = at
        at = (at + 1) & mask
    open_.key[hole] = NONE
    open_.counts[OPEN] -= 1


@compiled
def add_all(open_: Receptions, old: Receptions) -> None:
    """Move the content of another table here."""
    for place in range(len(old.key)):
        if old.key[place] != NONE:
            at = _place_of(open_, old.key[place])
            open_.key[at], open_.t_us[at] = old.key[place], old.t_us[place]
    for i in range(COUNTS):
        open_.counts[i] = old.counts[i]


@compiled
def measure(
    open_: Receptions, rows: LogRows, origin: Ints, sent_us: Longs, found: Measured, row: int
) -> int:
    """Measure the rows from `row` on; return the first one for which the table is too small.

    origin, sent_us: of each message. A node delivers its own messages without a reception."""
    while row < len(rows.kind):
        kind, node, m = rows.kind[row], np.int64(rows.node[row]), rows.message[row]
        if RECEIVE <= kind <= EXPIRE and origin[m] != node:
            if 2 * open_.counts[OPEN] + 2 > len(open_.key):
                return row
            now_us, key = rows.t_us[row], node * len(origin) + m
            at = _place_of(open_, key)
            if kind == RECEIVE:
                if open_.key[at] == key:
                    raise ValueError("a waiting message was received again")
                open_.key[at], open_.t_us[at] = key, now_us
                open_.counts[OPEN] += 1
                found.delay[found.sizes[0]] = now_us - sent_us[m]
                found.sizes[0] += 1
            elif open_.key[at] != NONE:
                if kind == DELIVER:
                    found.latency[found.sizes[1]] = now_us - open_.t_us[at]
                    found.age[found.sizes[1]] = now_us - sent_us[m]
                    found.sizes[1] += 1
                else:
                    open_.counts[EXPIRED] += 1
                _remove(open_, at)
        row += 1
    return row
