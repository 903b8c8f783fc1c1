"""The delivery order of the compiled contact world: barriers, vectors, waiting and expiry.

It does what `protocols.orders.barrier`, `vector` and `pending` do. A pending message is an entry
under one missing cause. The entries of a cause are a list, found by a hash of (node, cause), which
is looked up only if the bit of the cause in AWAITED is set.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, kernel, part
from beforehand.kernels.epidemic.barrier import note_delivered, purge_barrier
from beforehand.kernels.epidemic.queue import add_row, next_ticket, push
from beforehand.kernels.epidemic.sets import (
    ONE,
    ZERO,
    bit,
    clock_of,
    first_kept,
    has,
    is_dead,
    lowest,
    ring,
    signed,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ALIVE,
    AWAITED,
    AWAITED_SEEN,
    BARRIER_PURGE_AT,
    BARRIER_SIZE,
    DELIVER,
    DELIVERED,
    DELIVERIES,
    DUE_MIN,
    E_MESSAGE,
    E_MET,
    E_NEXT,
    ENTRIES_TOP,
    ENTRY_FREE,
    EXPIRE,
    EXPIRED,
    IS_EARLIER,
    IS_UNSORTED,
    LAPSED,
    NONE,
    NOW,
    ORDER_DUE,
    ORDER_TICKET,
    ORDER_TIMER,
    PENDING,
    SLOT,
    W_FIRST,
    W_LAST,
    W_MESSAGE,
    W_NEXT,
    W_NODE,
    W_TICKET,
    WAIT_FREE,
    WAITS,
    WAITS_TOP,
    WORD,
    Fixed,
    Ints,
    State,
)
from beforehand.kernels.random.draws import mix


@part
def is_met(f: Fixed, s: State, node: int, cause: int) -> bool:
    """Return whether a cause is delivered at this node, or expired."""
    if is_dead(f, s, node, cause):
        return True
    return has(f, s, s.node[node, SLOT], DELIVERED, cause)


@part
def bucket_of(s: State, node: int, m: int) -> int:
    return signed(mix(np.uint64(node), m) & np.uint64(len(s.bucket) - 1))


@kernel
def rehash(s: State, old: Ints) -> None:
    """Move all waits from an old table of buckets to the one of the state, which is empty."""
    for place in range(len(old)):
        at = np.int64(old[place])
        while at >= 0:
            after = np.int64(s.wait[at, W_NEXT])
            new = bucket_of(s, s.wait[at, W_NODE], s.wait[at, W_MESSAGE])
            s.wait[at, W_NEXT] = s.bucket[new]
            s.bucket[new] = at
            at = after


@part
def find_wait(s: State, node: int, cause: int) -> int:
    """Return the row of a wait, which is there."""
    at = int(s.bucket[bucket_of(s, node, cause)])
    while s.wait[at, W_NODE] != node or s.wait[at, W_MESSAGE] != cause:
        at = int(s.wait[at, W_NEXT])
    return at


@part
def _take_wait(s: State, node: int, cause: int, e: int) -> None:
    """Add a wait for a cause, with its first entry."""
    at = s.counts[WAIT_FREE]
    if at < 0:
        at = s.counts[WAITS_TOP]
        s.counts[WAITS_TOP] = at + 1
    else:
        s.counts[WAIT_FREE] = s.wait[at, W_NEXT]
    place = bucket_of(s, node, cause)
    s.wait[at, W_NODE], s.wait[at, W_MESSAGE] = node, cause
    s.wait[at, W_FIRST], s.wait[at, W_LAST] = e, e
    s.wait[at, W_TICKET] = s.counts[WAITS]
    s.counts[WAITS] += 1
    s.wait[at, W_NEXT] = s.bucket[place]
    s.bucket[place] = at


@part
def _park(f: Fixed, s: State, node: int, e: int, cause: int) -> None:
    """Make entry `e` wait for a cause."""
    slot, wait = s.node[node, SLOT], s.wait
    s.entry[e, E_NEXT] = NONE
    if has(f, s, slot, AWAITED, cause):
        at = find_wait(s, node, cause)
        if wait[at, W_FIRST] < 0:
            wait[at, W_FIRST] = e
        else:
            s.entry[wait[at, W_LAST], E_NEXT] = e
        wait[at, W_LAST] = e
    else:
        s.sets[slot, ring(f, cause >> 6), AWAITED] |= bit(cause)
        _take_wait(s, node, cause, e)
    s.counts[DUE_MIN] = min(s.counts[DUE_MIN], s.seq[cause])


@part
def unpark(f: Fixed, s: State, node: int, cause: int) -> int:
    """Remove the wait for a cause; return the first of its entries, or NONE if all were dropped."""
    s.sets[s.node[node, SLOT], ring(f, cause >> 6), AWAITED] &= ~bit(cause)
    place, wait = bucket_of(s, node, cause), s.wait
    at, before = s.bucket[place], NONE
    while wait[at, W_NODE] != node or wait[at, W_MESSAGE] != cause:
        before, at = at, wait[at, W_NEXT]
    if before < 0:
        s.bucket[place] = wait[at, W_NEXT]
    else:
        wait[before, W_NEXT] = wait[at, W_NEXT]
    wait[at, W_NEXT] = s.counts[WAIT_FREE]
    s.counts[WAIT_FREE] = at
    return int(wait[at, W_FIRST])


@part
def _wake(f: Fixed, s: State, node: int, e: int, top: int) -> int:
    """Make the entries of a list wait for their next missing cause. Push the messages without one
    onto the stack, of height `top`; return its new height."""
    entry = s.entry
    while e >= 0:
        after, m, at = int(entry[e, E_NEXT]), int(entry[e, E_MESSAGE]), int(entry[e, E_MET])
        start, size = s.past_start[m], s.past_size[m]
        has_lapsed = is_dead(f, s, node, m)  # the node was away when the deadline of m passed
        if has_lapsed:
            at = size
        while at < size and is_met(f, s, node, int(s.past[start + at])):
            at += 1
        if at < size:
            entry[e, E_MET] = at
            _park(f, s, node, e, int(s.past[start + at]))
        else:
            if has_lapsed:
                s.lapsed[s.counts[LAPSED]] = m
                s.counts[LAPSED] += 1
            else:
                s.ready[top] = m
                top += 1
            s.node[node, PENDING] -= 1
            entry[e, E_NEXT] = s.counts[ENTRY_FREE]
            s.counts[ENTRY_FREE] = e
        e = after
    return top


@part
def _settle(f: Fixed, s: State, node: int, top: int) -> None:
    """Deliver what is on the stack, and all that this unblocks in turn."""
    slot = s.node[node, SLOT]
    while top:
        top -= 1
        m = signed(s.ready[top])
        s.sets[slot, ring(f, m >> 6), DELIVERED] |= bit(m)
        add_row(s, node, DELIVER, m, 0)
        s.counts[DELIVERIES] += 1
        note_delivered(f, s, node, m)
        if has(f, s, slot, AWAITED, m):
            top = _wake(f, s, node, unpark(f, s, node, m), top)


@part
def admit(f: Fixed, s: State, node: int, m: int) -> None:
    """Deliver a received message, or make it wait."""
    start = s.past_start[m]
    for i in range(s.past_size[m]):
        cause = int(s.past[start + i])
        if not is_met(f, s, node, cause):
            e = s.counts[ENTRY_FREE]
            if e < 0:
                e = s.counts[ENTRIES_TOP]
                s.counts[ENTRIES_TOP] = e + 1
            else:
                s.counts[ENTRY_FREE] = s.entry[e, E_NEXT]
            s.entry[e, E_MESSAGE], s.entry[e, E_MET] = m, i
            s.node[node, PENDING] += 1
            _park(f, s, node, e, cause)
            return
    s.ready[0] = m
    _settle(f, s, node, 1)


@part
def _comes_later(s: State, a: int, b: int) -> bool:
    """Return whether the message that wait `a` is for expires after that of wait `b`."""
    one, other = s.seq[s.wait[a, W_MESSAGE]], s.seq[s.wait[b, W_MESSAGE]]
    if one != other:
        return bool(one > other)
    return bool(s.wait[a, W_TICKET] > s.wait[b, W_TICKET])


@part
def _first_awaited(f: Fixed, s: State, node: int) -> int:
    """Return the message that expires first of those that a node awaits, or NONE."""
    slot, first, best = s.node[node, SLOT], NONE, NONE
    for w in range(first_kept(f, s), s.counts[WORD] + 1):
        word = s.sets[slot, ring(f, w), AWAITED]
        while word != ZERO:
            m = (w << 6) + lowest(word)
            word &= word - ONE
            if not f.repeats and s.counts[IS_UNSORTED] == 0:
                return m
            at = find_wait(s, node, m)
            if best < 0 or _comes_later(s, best, at):
                first, best = m, at
    return first


@part
def _list_waits(f: Fixed, s: State, node: int, is_last: bool) -> int:
    """List the waits of a node for expired messages in `ready`, or all if the node leaves for good,
    in the order in which the messages expire; return how many.

    The waits lie in the words that the ring held when the order was last active: messages that
    expired while the node was away are still awaited."""
    seen, count = s.node[node, AWAITED_SEEN], 0
    high = seen if is_last else min(seen, s.counts[ALIVE] >> 6)
    for w in range(max(0, seen - f.words + 1), high + 1):
        word = s.sets[s.node[node, SLOT], ring(f, w), AWAITED]
        while word != ZERO:
            m = (w << 6) + lowest(word)
            word &= word - ONE
            if is_last or is_dead(f, s, node, m):
                at, place = find_wait(s, node, m), count
                while f.lifetime_us and place > 0 and _comes_later(s, s.ready[place - 1], at):
                    s.ready[place] = s.ready[place - 1]
                    place -= 1
                s.ready[place] = at
                count += 1
    return count


@part
def _take_awaited(f: Fixed, s: State, node: int, is_last: bool) -> int:
    """Remove all waits of a node for expired messages, or all if it leaves for good; return their
    entries as one list."""
    first, last = NONE, NONE
    for i in range(_list_waits(f, s, node, is_last)):
        e = unpark(f, s, node, int(s.wait[s.ready[i], W_MESSAGE]))
        if first < 0:
            first = e
        elif e >= 0:
            s.entry[last, E_NEXT] = e
        while e >= 0:
            last, e = e, int(s.entry[e, E_NEXT])
    return first


@part
def log_lapsed(s: State, node: int) -> None:
    """Log the messages that expired while they waited."""
    for i in range(s.counts[LAPSED]):
        add_row(s, node, EXPIRE, int(s.lapsed[i]), 0)
    s.counts[EXPIRED] += s.counts[LAPSED]
    s.counts[LAPSED] = 0


@cold
def _expire_awaited(f: Fixed, s: State, node: int, broadcasts: bool) -> None:
    first = _take_awaited(f, s, node, False)
    top = _wake(f, s, node, first, 0)
    if not broadcasts:
        log_lapsed(s, node)
    _settle(f, s, node, top)


@part
def expire(f: Fixed, s: State, node: int, broadcasts: bool) -> None:
    """Wait no longer for messages that have expired.

    broadcasts: the caller logs its broadcast first, and then calls `log_lapsed`."""
    if f.lifetime_us == 0:
        return
    # While the timer of the order is set to a later time, everything awaited is alive.
    if s.node[node, PENDING] and s.node[node, ORDER_DUE] <= clock_of(f, s, node):
        _expire_awaited(f, s, node, broadcasts)
    s.node[node, AWAITED_SEEN] = s.counts[WORD]
    if s.node[node, BARRIER_SIZE] >= s.node[node, BARRIER_PURGE_AT]:
        purge_barrier(f, s, node)


@cold
def _find_due(f: Fixed, s: State, node: int) -> None:
    m = _first_awaited(f, s, node)
    while f.is_bounded and m >= 0 and s.wait[find_wait(s, node, m), W_FIRST] < 0:
        unpark(f, s, node, m)  # all that waited for it was dropped
        m = _first_awaited(f, s, node)
    if m >= 0 and s.seq[m] < s.node[node, ORDER_DUE]:
        s.node[node, ORDER_DUE] = s.seq[m]
        s.counts[IS_EARLIER] = 1


@part
def find_due(f: Fixed, s: State, node: int) -> None:
    """Find when the order has to act, if a message now waits for an earlier deadline. This comes
    before the cache evicts: what it then drops does not count."""
    if f.lifetime_us and s.counts[DUE_MIN] < s.node[node, ORDER_DUE]:
        _find_due(f, s, node)
    s.counts[DUE_MIN] = AHEAD


@part
def arm(f: Fixed, s: State, node: int) -> None:
    """Set the timer of the order, if `find_due` has found an earlier time."""
    if s.counts[IS_EARLIER]:
        s.counts[IS_EARLIER] = 0
        s.node[node, ORDER_TICKET] = next_ticket(s)
        due = max(s.counts[NOW], s.node[node, ORDER_DUE] - f.offset_us[node])
        push(s, due, ORDER_TIMER, node, s.node[node, ORDER_TICKET])


@cold
def forget_pending(f: Fixed, s: State, node: int) -> None:
    """Free all entries and waits of a node that leaves for good."""
    e = _take_awaited(f, s, node, True) if s.node[node, PENDING] else NONE
    while e >= 0:
        after = s.entry[e, E_NEXT]
        s.entry[e, E_NEXT] = s.counts[ENTRY_FREE]
        s.counts[ENTRY_FREE] = e
        e = after
