"""The barriers of the compiled contact world: what the next message of a node names as causes.

As in `protocols.orders.barrier`: the last delivered message of each origin that no later delivery
covers, until it has expired by every clock.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import part
from beforehand.kernels.epidemic.queue import give_block, take_block
from beforehand.kernels.epidemic.sets import clock_of, signed
from beforehand.kernels.epidemic.state import (
    BARRIER,
    BARRIER_PURGE_AT,
    BARRIER_ROOM,
    BARRIER_SIZE,
    Fixed,
    State,
)

BARRIER_MIN = 64
"""As `PURGE_AT_MIN` of `protocols.orders.order`."""


@part
def _append_to_barrier(s: State, node: int, m: int, size: int) -> None:
    """Append a message to the barrier, which has `size` entries."""
    base, room = s.node[node, BARRIER], s.node[node, BARRIER_ROOM]
    if size == room:
        at = take_block(s, 2 * room)
        for i in range(size):
            s.pool[at + i] = s.pool[base + i]
        give_block(s, base, room)
        base = at
        s.node[node, BARRIER], s.node[node, BARRIER_ROOM] = at, 2 * room
    s.pool[base + size] = np.uint64(m)


@part
def note_delivered(f: Fixed, s: State, node: int, m: int) -> None:
    """Add a message to what the node's next message names, and remove what its causes cover."""
    base, pool, mine = s.node[node, BARRIER], s.pool, s.origin[m]
    start, end = s.past_start[m], s.past_start[m] + s.past_size[m]
    kept, is_there = 0, False
    for i in range(s.node[node, BARRIER_SIZE]):
        q = signed(pool[base + i])
        origin = s.origin[q]
        is_covered = False
        if f.covers:
            for j in range(start, end):
                is_covered |= s.past[j] >= q and s.origin[s.past[j]] == origin
        if not is_covered:
            if origin == mine:
                q, is_there = m, True
            pool[base + kept] = np.uint64(q)
            kept += 1
    if not is_there:
        _append_to_barrier(s, node, m, kept)
        kept += 1
    s.node[node, BARRIER_SIZE] = kept


@part
def is_named(f: Fixed, s: State, node: int, q: int) -> bool:
    """Return whether some node may still deliver message q of the barrier after the next one."""
    return bool(s.seq[q] > clock_of(f, s, node) - f.skew_us)


@part
def purge_barrier(f: Fixed, s: State, node: int) -> None:
    """Remove messages from the barrier that have expired by every clock."""
    base, kept = s.node[node, BARRIER], 0
    for i in range(s.node[node, BARRIER_SIZE]):
        q = s.pool[base + i]
        if is_named(f, s, node, signed(q)):
            s.pool[base + kept] = q
            kept += 1
    s.node[node, BARRIER_SIZE] = kept
    s.node[node, BARRIER_PURGE_AT] = max(BARRIER_MIN, 2 * kept)
