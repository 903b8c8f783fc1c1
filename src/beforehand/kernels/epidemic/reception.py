"""Data that arrives in the compiled contact world: received, stored, delivered and announced."""

from __future__ import annotations

from beforehand.kernels.compiling import part
from beforehand.kernels.epidemic.cache import check_known, purge_taken, shrink, store
from beforehand.kernels.epidemic.channel import drop_record, sort_by_seq
from beforehand.kernels.epidemic.layer import finish_step
from beforehand.kernels.epidemic.order import admit, expire, find_due
from beforehand.kernels.epidemic.queue import add_row
from beforehand.kernels.epidemic.sets import (
    ZERO,
    add_fresh,
    bit,
    first_kept,
    has,
    is_dead,
    ring,
    signed,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    CUT,
    DELIVER,
    DELIVERED,
    DELIVERIES,
    DUPLICATE,
    FIRST,
    HEAD,
    HELD,
    KNOWN,
    KNOWN_TO_PEER,
    NEXT,
    NOW,
    OFFERED_AGAIN,
    OWNER,
    PROGRESS_US,
    R_BLOCK,
    R_POSITION,
    R_SIZE,
    RECEIVE,
    RECEIVED,
    REQUESTED,
    REQUESTED_HERE,
    SLOT,
    STALE,
    TAKEN,
    Fixed,
    State,
)


@part
def _note_came(f: Fixed, s: State, node: int, k: int, m: int) -> None:
    """Note that a message came over the node's end `k`: it is requested from no peer any more."""
    slot, at, b = s.node[node, SLOT], ring(f, m >> 6), bit(m)
    if s.link_sets[k, at, KNOWN_TO_PEER] & b == ZERO:
        s.link_sets[k, at, KNOWN_TO_PEER] |= b
        s.link[k, KNOWN] += 1
    if f.repeats:
        s.link_sets[k, at, OFFERED_AGAIN] &= ~b
    if s.link_sets[k, at, REQUESTED_HERE] & b != ZERO:
        s.link_sets[k, at, REQUESTED_HERE] &= ~b
        s.sets[slot, at, REQUESTED] &= ~b
    elif s.sets[slot, at, REQUESTED] & b != ZERO:
        s.sets[slot, at, REQUESTED] &= ~b
        other = s.node[node, FIRST]
        while other >= 0:
            turn_link(f, s, other)
            s.link_sets[other, at, REQUESTED_HERE] &= ~b
            if f.repeats:
                s.link_sets[other, at, OFFERED_AGAIN] &= ~b
            other = s.link[other, NEXT]


@part
def _take_frame(f: Fixed, s: State, k: int) -> int:
    """Take the frame of data that has arrived: pick and log the new messages, return how many."""
    r, back = s.link[k, HEAD], k ^ 1
    node, source = s.link[back, OWNER], s.link[k, OWNER]
    start, count = s.record[r, R_BLOCK] + s.record[r, R_POSITION], 0
    for i in range(s.link[k, CUT]):
        m = signed(s.pool[start + i])
        if m >> 6 >= first_kept(f, s):
            _note_came(f, s, node, back, m)
        if is_dead(f, s, node, m):
            s.counts[STALE] += 1
            continue
        if has(f, s, s.node[node, SLOT], HELD, m):
            s.counts[DUPLICATE] += 1
            continue
        s.picked[count] = m
        count += 1
        add_row(s, node, RECEIVE, m, source)
    s.record[r, R_POSITION] += s.link[k, CUT]
    if s.record[r, R_POSITION] == s.record[r, R_SIZE]:
        drop_record(s, k)
    s.counts[RECEIVED] += count
    return count


@part
def _was_delivered(f: Fixed, s: State, node: int, m: int) -> bool:
    """Return whether a message was delivered, evicted and received again; count it then."""
    if f.is_bounded and has(f, s, s.node[node, SLOT], DELIVERED, m):
        s.counts[DUPLICATE] += 1
        return True
    return False


@part
def _deliver_all(f: Fixed, s: State, node: int, count: int) -> None:
    """Deliver the picked messages in the order in which they came."""
    purge_taken(f, s, node)
    for i in range(count):
        m = s.picked[i]
        if not _was_delivered(f, s, node, m):
            s.sets[s.node[node, SLOT], ring(f, m >> 6), DELIVERED] |= bit(m)
            add_row(s, node, DELIVER, m, 0)
            s.counts[DELIVERIES] += 1
            s.node[node, TAKEN] += 1


@part
def _accept(f: Fixed, s: State, node: int, count: int) -> None:
    """Store, deliver and announce the picked messages, which are new."""
    for i in range(count):
        add_fresh(f, s, node, s.picked[i])
        store(f, s, node, s.picked[i])  # in the order of the frame, before they are sorted
    if f.is_causal:
        expire(f, s, node, False)
        if not f.is_vector:
            sort_by_seq(s, count)
        for i in range(count):
            if not _was_delivered(f, s, node, s.picked[i]):
                admit(f, s, node, s.picked[i])
        find_due(f, s, node)
    else:
        _deliver_all(f, s, node, count)
    shrink(f, s, node)
    finish_step(f, s, node)


@part
def on_data(f: Fixed, s: State, k: int) -> None:
    """Take a frame of data."""
    node = s.link[k ^ 1, OWNER]
    s.link[k ^ 1, PROGRESS_US] = s.counts[NOW]
    count = _take_frame(f, s, k)
    if count:
        _accept(f, s, node, count)
    if f.is_bounded:
        check_known(s, node, k ^ 1)
