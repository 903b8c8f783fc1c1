"""The loop of the compiled contact world: planned events, frames and timers, in order of time."""

from __future__ import annotations

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.epidemic.bounds import (
    FIT,
    short_of,
    short_of_contact,
    short_of_frame,
    short_of_link_down,
    short_of_retry,
    short_of_slot,
)
from beforehand.kernels.epidemic.channel import schedule
from beforehand.kernels.epidemic.gauges import sample
from beforehand.kernels.epidemic.layer import announce, on_announce, on_gone
from beforehand.kernels.epidemic.nodes import (
    broadcast,
    close_link,
    come,
    empty_channels,
    go,
    open_link,
    take_link,
)
from beforehand.kernels.epidemic.noise import open_frame
from beforehand.kernels.epidemic.order import arm, expire, find_due
from beforehand.kernels.epidemic.queue import index_of, kind_of, pop, ticket_of
from beforehand.kernels.epidemic.reception import on_data
from beforehand.kernels.epidemic.retry import arm_retry, retry
from beforehand.kernels.epidemic.serve import on_request
from beforehand.kernels.epidemic.sets import turn, turn_link
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ALIVE,
    ANNOUNCE,
    ANNOUNCE_TIMER,
    ARMED,
    ARRIVED,
    ASLEEP,
    BROADCAST_AT,
    BUSY,
    COME,
    DATA,
    DONE,
    DOWN,
    DUE_MIN,
    EVENTS,
    FRAME,
    HEAD,
    HEAP,
    IDLE,
    IS_HERE,
    LINK_FREE,
    LIVE,
    NEXT,
    NOW,
    ORDER_DUE,
    ORDER_TICKET,
    ORDER_TIMER,
    OWNER,
    POSITION,
    R_KIND,
    R_LINK,
    REFUSED,
    REQUEST,
    RETRY_TIMER,
    RING_FULL,
    SIDE,
    SLOT,
    UP,
    Fixed,
    State,
)


@part
def _node_of(f: Fixed, s: State, at: int) -> int:
    """Return the node of a planned event; of a contact, the end that comes next."""
    return int(f.plan_b[at] if s.counts[SIDE] else f.plan_a[at])


@part
def _short_of_plan(f: Fixed, s: State, at: int) -> int:
    """Return what is too short for a planned event, or FIT."""
    kind, place, node = f.plan_kind[at], int(f.plan_place[at]), _node_of(f, s, at)
    if kind == COME:
        return short_of_slot(s)
    if kind == DOWN:
        return short_of_link_down(f, s, s.contact_link[place] + s.counts[SIDE], node)
    if kind == BROADCAST_AT:
        if f.lifetime_us and (place >> 6) - (s.counts[LIVE] >> 6) >= f.words:
            return RING_FULL
    elif kind == UP:
        short = short_of_contact(s)
        if short != FIT:
            return short
    return short_of(f, s, node, 0, 0, 0, f.announce_us == 0)


@part
def _end_step(f: Fixed, s: State, node: int) -> None:
    """Set the timer of repeated frames and sample the gauges after a step."""
    arm_retry(f, s, node)
    sample(f, s, node)


@part
def _change_link(f: Fixed, s: State, at: int) -> None:
    """Carry out a link-up or link-down at one end of a contact, then at the other. SIDE is the
    number of ends that are done."""
    place, side, node = int(f.plan_place[at]), s.counts[SIDE], _node_of(f, s, at)
    if f.plan_kind[at] == UP:
        if side == 0:
            s.contact_link[place] = take_link(s)
        open_link(f, s, s.contact_link[place] + side, node, place)
    else:
        k = s.contact_link[place]
        if side == 0:
            empty_channels(s, k)
        close_link(f, s, k + side)
        if side:
            s.link[k, NEXT] = s.counts[LINK_FREE]
            s.counts[LINK_FREE] = k
    _end_step(f, s, node)
    s.counts[SIDE] = 1 - side
    s.counts[POSITION] = at + side


@part
def _change(f: Fixed, s: State, at: int) -> None:
    """Carry out a planned event."""
    kind, node, place = f.plan_kind[at], int(f.plan_a[at]), int(f.plan_place[at])
    if kind in (UP, DOWN):
        _change_link(f, s, at)
        return
    s.counts[POSITION] = at + 1
    if kind == COME:
        come(f, s, node)
    elif kind == BROADCAST_AT:
        broadcast(f, s, node, place)
        _end_step(f, s, node)
    else:
        go(f, s, node)


@part
def _fire(f: Fixed, s: State, kind: int, node: int, ticket: int) -> None:
    """Carry out a timer that is due, or keep it for when the node comes back."""
    if s.node[node, SLOT] < 0 or (kind == ORDER_TIMER and ticket != s.node[node, ORDER_TICKET]):
        return
    if s.node[node, IS_HERE] == 0:
        column = ASLEEP
        while s.node[node, column]:
            column += 1
        s.node[node, column] = kind
        return
    turn(f, s, node)
    if kind == ANNOUNCE_TIMER:
        s.node[node, ARMED] = 0
        announce(f, s, node)
    elif kind == RETRY_TIMER:
        retry(f, s, node)
    else:
        expire(f, s, node, False)
        s.node[node, ORDER_DUE] = AHEAD
        s.counts[DUE_MIN] = 0  # search for the next deadline, whatever was parked in this step
        find_due(f, s, node)
        arm(f, s, node)
    _end_step(f, s, node)


@part
def _arrive(f: Fixed, s: State, k: int) -> None:
    """Hand the first frame of a channel to its receiver, and send the next one."""
    s.counts[ARRIVED] += 1
    node = s.link[k ^ 1, OWNER]
    turn(f, s, node)
    turn_link(f, s, k ^ 1)
    kind = s.record[s.link[k, HEAD], R_KIND]
    if kind == DATA:
        on_data(f, s, k)
    elif kind == ANNOUNCE:
        on_announce(f, s, k)
    elif kind == REQUEST:
        on_request(f, s, k)
    else:
        on_gone(f, s, k)
    _end_step(f, s, node)
    s.link[k, BUSY] = IDLE
    if s.link[k, HEAD] >= 0:
        schedule(f, s, k)


@part
def _advance_live(f: Fixed, s: State) -> None:
    """Advance LIVE and ALIVE."""
    if f.lifetime_us:
        live, now = s.counts[LIVE], s.counts[NOW]
        while s.seq[live] <= now + f.offset_low_us:
            live += 1
        s.counts[LIVE] = live
        alive = max(live, s.counts[ALIVE])
        while f.sent_us[alive] + f.lifetime_us + f.offset_low_us <= now + f.offset_high_us:
            alive += 1
        s.counts[ALIVE] = alive


@part
def _short_of_event(f: Fixed, s: State) -> int:
    """Return what is too short for the first event of the heap, or FIT."""
    low = s.heap[0, 1]
    kind, index = kind_of(low), index_of(low)
    if kind == FRAME:
        if f.is_noisy:
            index = open_frame(s, index)
        return short_of_frame(f, s, index, s.link[index ^ 1, OWNER])
    if kind == RETRY_TIMER:
        return short_of_retry(f, s, index)
    return short_of(f, s, index, 0, 0, 0, kind == ANNOUNCE_TIMER)


@part
def _step(f: Fixed, s: State) -> None:
    """Carry out the first event of the heap."""
    low = s.heap[0, 1]
    pop(s)
    kind, index = kind_of(low), index_of(low)
    if kind != FRAME:
        _fire(f, s, kind, index, ticket_of(low))
    else:
        # A frame that would arrive after the link-down is not in the heap, so the channel is open.
        _arrive(f, s, s.record[index, R_LINK] if f.is_noisy else index)


@kernel
def play(f: Fixed, s: State, position_max: int) -> int:
    """Play until position `position_max` of the plan is reached, all is over, or an array is too
    short. Return which, or why the run cannot go on."""
    counts, plan_t = s.counts, f.plan_t
    while True:
        at = counts[POSITION]
        if at < len(plan_t) and (counts[HEAP] == 0 or plan_t[at] <= s.heap[0, 0]):
            if at >= position_max:
                return DONE
            counts[NOW] = plan_t[at]
            _advance_live(f, s)
            short = _short_of_plan(f, s, at)
            if short != FIT:
                return short
            counts[EVENTS] += 1
            _change(f, s, at)
            if counts[REFUSED]:
                return int(counts[REFUSED])
        elif counts[HEAP]:
            counts[NOW] = s.heap[0, 0]
            _advance_live(f, s)
            short = _short_of_event(f, s)
            if short != FIT:
                return short
            counts[EVENTS] += 1
            _step(f, s)
            if counts[REFUSED]:
                return int(counts[REFUSED])
        else:
            return DONE
