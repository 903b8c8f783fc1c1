"""Carry out the plan at nodes: broadcasts, link-ups and link-downs, joining and leaving."""

from __future__ import annotations

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.barrier import is_named, note_delivered, purge_barrier
from beforehand.kernels.epidemic.cache import forget_evicted, purge_taken, shrink, store
from beforehand.kernels.epidemic.channel import drop_record
from beforehand.kernels.epidemic.draws import draw
from beforehand.kernels.epidemic.layer import (
    announce,
    announce_later,
    ask_elsewhere,
    finish_step,
)
from beforehand.kernels.epidemic.order import expire, find_due, forget_pending, log_lapsed
from beforehand.kernels.epidemic.queue import add_row, give_block, next_ticket, push, take_block
from beforehand.kernels.epidemic.retry import forget_all_unacked
from beforehand.kernels.epidemic.sets import (
    ZERO,
    add_fresh,
    bit,
    clock_of,
    first_kept,
    ring,
    signed,
    turn,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ASLEEP,
    ASLEEP_LAST,
    ASLEEP_TOO,
    AWAITED_SEEN,
    BARRIER,
    BARRIER_ROOM,
    BARRIER_SIZE,
    BEFORE,
    BROADCAST,
    BUSY,
    CONTACT,
    DEGREE,
    DELIVER,
    DELIVERED,
    DELIVERIES,
    DOWN_US,
    ENTRIES,
    FIRST,
    FREE_US,
    HAS_ANNOUNCED,
    HEAD,
    IDLE,
    IS_HERE,
    IS_UNSORTED,
    JOIN,
    KNOWN,
    LAST,
    LAST_SEQ,
    LEAVE,
    LINK_FREE,
    LINK_SEEN,
    LINKS_TOP,
    LIST,
    LIST_ROOM,
    NEXT,
    NONE,
    NOW,
    ORDER_TICKET,
    ORDER_TIMER,
    OWNER,
    PAST_TOP,
    PHASE,
    PLACES,
    PLACES_ROOM,
    PROGRESS_US,
    REQUESTED_HERE,
    REQUESTED_HIGH,
    REQUESTED_LOW,
    SEEN,
    SENT,
    SLOT,
    SLOT_FREE,
    SLOTS_TOP,
    TAIL,
    TAKEN,
    UNACKED,
    WORD,
    Fixed,
    State,
)
from beforehand.kernels.random.draws import unit


@part
def _name_causes(f: Fixed, s: State, node: int, m: int) -> int:
    """Write the causes of a new message; return the largest seq that it must exceed."""
    last = s.node[node, LAST_SEQ]
    size = 0
    if f.is_causal:
        base = s.node[node, BARRIER]
        s.past_start[m] = s.counts[PAST_TOP]
        for i in range(s.node[node, BARRIER_SIZE]):
            q = signed(s.pool[base + i])
            if f.lifetime_us:
                last = max(last, s.seq[q])
            if f.lifetime_us == 0 or is_named(f, s, node, q):
                s.past[s.counts[PAST_TOP] + size] = q
                size += 1
        s.counts[PAST_TOP] += size
        if f.lifetime_us:
            purge_barrier(f, s, node)
        if not f.is_vector:
            s.node[node, BARRIER_SIZE] = 0
    s.past_size[m] = size
    return int(last)


@part
def _note_order(s: State, m: int) -> None:
    """Note whether message m, just broadcast, does not follow m - 1 in (seq, origin)."""
    if s.counts[IS_UNSORTED] == 0 and m:
        is_before = s.seq[m] < s.seq[m - 1]
        is_twin = s.seq[m] == s.seq[m - 1] and s.origin[m] < s.origin[m - 1]
        s.counts[IS_UNSORTED] = is_before or is_twin


@cold
def broadcast(f: Fixed, s: State, node: int, m: int) -> None:
    """Broadcast message m."""
    s.counts[WORD] = max(s.counts[WORD], m >> 6)
    turn(f, s, node)
    s.origin[m] = node
    if f.is_causal:
        expire(f, s, node, True)
    else:
        purge_taken(f, s, node)
        s.node[node, TAKEN] += 1
    last = _name_causes(f, s, node, m)
    ends = clock_of(f, s, node) + f.lifetime_us
    s.seq[m] = max(ends, last + 1) if f.lifetime_us else last + 1
    s.node[node, LAST_SEQ] = s.seq[m]
    _note_order(s, m)
    add_row(s, node, BROADCAST, m, s.past_size[m])
    log_lapsed(s, node)
    add_row(s, node, DELIVER, m, 0)
    s.counts[DELIVERIES] += 1
    s.sets[s.node[node, SLOT], ring(f, m >> 6), DELIVERED] |= bit(m)
    if f.is_causal:
        note_delivered(f, s, node, m)
        find_due(f, s, node)
    store(f, s, node, m)
    shrink(f, s, node)
    add_fresh(f, s, node, m)
    finish_step(f, s, node)


@cold
def open_link(f: Fixed, s: State, k: int, node: int, place: int) -> None:
    """Add one end of a contact to the links of its node."""
    link, before = s.link, s.node[node, LAST]
    link[k, OWNER], link[k, HAS_ANNOUNCED], link[k, NEXT], link[k, BEFORE] = node, 0, NONE, before
    link[k, FREE_US], link[k, DOWN_US] = 0, f.contact_down[place]
    link[k, CONTACT], link[k, SENT], link[k, UNACKED] = place, 0, NONE
    link[k, HEAD], link[k, TAIL], link[k, PROGRESS_US] = NONE, NONE, s.counts[NOW]
    link[k, BUSY], link[k, REQUESTED_LOW], link[k, REQUESTED_HIGH] = IDLE, AHEAD, NONE
    link[k, LINK_SEEN], link[k, KNOWN] = s.counts[WORD], 0
    for w in range(f.words):
        for which in range(s.link_sets.shape[2]):
            s.link_sets[k, w, which] = ZERO
    if before < 0:
        s.node[node, FIRST] = k
    else:
        link[before, NEXT] = k
    s.node[node, LAST] = k
    s.node[node, DEGREE] += 1
    if f.is_bounded:
        forget_evicted(f, s, node)
    if s.node[node, ENTRIES] == 0:
        link[k, HAS_ANNOUNCED] = 1
    elif f.announce_us == 0:
        turn(f, s, node)
        announce(f, s, node)
    else:
        announce_later(f, s, node)


@cold
def close_link(f: Fixed, s: State, k: int) -> None:
    """Remove one end of a contact, and request elsewhere what was requested from its peer."""
    link = s.link
    node, before, after = link[k, OWNER], link[k, BEFORE], link[k, NEXT]
    turn(f, s, node)
    turn_link(f, s, k)
    if before < 0:
        s.node[node, FIRST] = after
    else:
        link[before, NEXT] = after
    if after < 0:
        s.node[node, LAST] = before
    else:
        link[after, BEFORE] = before
    s.node[node, DEGREE] -= 1
    forget_all_unacked(s, k)
    low, high = max(link[k, REQUESTED_LOW], first_kept(f, s)), link[k, REQUESTED_HIGH]
    for w in range(low, high + 1):
        s.rest[ring(f, w)] = s.link_sets[k, ring(f, w), REQUESTED_HERE]
    ask_elsewhere(f, s, node, low, high)


@part
def take_link(s: State) -> int:
    """Return the first of two free rows of `State.link`."""
    k = s.counts[LINK_FREE]
    if k < 0:
        k = s.counts[LINKS_TOP]
        s.counts[LINKS_TOP] = k + 2
    else:
        s.counts[LINK_FREE] = s.link[k, NEXT]
    return int(k)


@part
def empty_channels(s: State, k: int) -> None:
    """Drop what is under way in both directions of a contact."""
    for side in range(2):
        while s.link[k + side, HEAD] >= 0:
            drop_record(s, k + side)


@part
def _wake_up(s: State, node: int) -> None:
    """Set the timers again that came due while a node was away."""
    for column in (ASLEEP, ASLEEP_TOO, ASLEEP_LAST):
        kind = s.node[node, column]
        if kind:
            ticket = next_ticket(s)
            if kind == ORDER_TIMER:
                s.node[node, ORDER_TICKET] = ticket
            push(s, s.counts[NOW], kind, node, ticket)
            s.node[node, column] = 0


@part
def _clear_slot(f: Fixed, s: State, slot: int) -> None:
    for w in range(f.words):
        for which in range(s.sets.shape[2]):
            s.sets[slot, w, which] = ZERO
    for w in range(f.words >> 6):
        s.filled[slot, 0, w] = s.filled[slot, 1, w] = ZERO


@cold
def come(f: Fixed, s: State, node: int) -> None:
    """Let a node join, or return."""
    s.node[node, IS_HERE] = 1
    add_row(s, node, JOIN, NONE, 0)
    if s.node[node, SLOT] >= 0:
        _wake_up(s, node)
        return
    slot = s.counts[SLOT_FREE]
    if slot < 0:
        slot = s.counts[SLOTS_TOP]
        s.counts[SLOTS_TOP] = slot + 1
    else:
        s.counts[SLOT_FREE] = s.slot_next[slot]
        _clear_slot(f, s, slot)
    s.node[node, SLOT] = slot
    s.node[node, SEEN] = s.node[node, AWAITED_SEEN] = s.counts[WORD]
    if f.announce_us:
        s.node[node, PHASE] = int(unit(draw(f, s, node)) * f.announce_us)
    s.node[node, BARRIER], s.node[node, BARRIER_ROOM] = take_block(s, 4), 4
    s.node[node, BARRIER_SIZE] = 0
    s.node[node, LIST], s.node[node, LIST_ROOM] = take_block(s, 4), 4
    s.node[node, PLACES], s.node[node, PLACES_ROOM] = take_block(s, 4), 4


@cold
def go(f: Fixed, s: State, node: int) -> None:
    """Let a node leave; for good, if it does not come back."""
    s.node[node, IS_HERE] = 0
    add_row(s, node, LEAVE, NONE, 0)
    if s.counts[NOW] < f.last_down[node]:
        return
    forget_pending(f, s, node)
    give_block(s, s.node[node, BARRIER], s.node[node, BARRIER_ROOM])
    give_block(s, s.node[node, LIST], s.node[node, LIST_ROOM])
    give_block(s, s.node[node, PLACES], s.node[node, PLACES_ROOM])
    slot = s.node[node, SLOT]
    s.slot_next[slot] = s.counts[SLOT_FREE]
    s.counts[SLOT_FREE] = slot
    s.node[node, SLOT] = NONE
