"""The loop of the compiled contact world: planned events, frames and timers, in order of time."""

from __future__ import annotations

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.epidemic.bounds import (
    FIT,
    short_of,
    short_of_contact,
    short_of_frame,
    short_of_link_down,
    short_of_slot,
)
from beforehand.kernels.epidemic.channel import schedule
from beforehand.kernels.epidemic.gauges import sample
from beforehand.kernels.epidemic.layer import announce, on_announce, on_data, on_gone, on_request
from beforehand.kernels.epidemic.nodes import (
    broadcast,
    close_link,
    come,
    empty_channels,
    go,
    open_link,
    take_link,
)
from beforehand.kernels.epidemic.order import arm, expire
from beforehand.kernels.epidemic.queue import index_of, kind_of, pop, ticket_of
from beforehand.kernels.epidemic.sets import turn, turn_link
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ANNOUNCE,
    ANNOUNCE_TIMER,
    ARMED,
    ARRIVED,
    ASLEEP,
    ASLEEP_TOO,
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
    OUT_OF_ORDER,
    OWNER,
    POSITION,
    R_KIND,
    REFUSED,
    REQUEST,
    RING_FULL,
    SIDE,
    SLOT,
    UP,
    Fixed,
    State,
)


@part
def _is_out_of_order(f: Fixed, s: State, m: int) -> bool:
    """Return whether message m, just broadcast, does not follow m - 1 in (seq, origin)."""
    if f.lifetime_us == 0 or m == 0:
        return False
    if s.seq[m] != s.seq[m - 1]:
        return bool(s.seq[m] < s.seq[m - 1])
    return bool(s.origin[m] < s.origin[m - 1])


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
def _change_link(f: Fixed, s: State, at: int) -> None:
    """Carry out a link-up or link-down at one end of a contact, then at the other. SIDE is the
    number of ends that are done."""
    place, side, node = int(f.plan_place[at]), s.counts[SIDE], _node_of(f, s, at)
    if f.plan_kind[at] == UP:
        if side == 0:
            s.contact_link[place] = take_link(s)
        open_link(f, s, s.contact_link[place] + side, node, f.contact_down[place])
    else:
        k = s.contact_link[place]
        if side == 0:
            empty_channels(s, k)
        close_link(f, s, k + side)
        if side:
            s.link[k, NEXT] = s.counts[LINK_FREE]
            s.counts[LINK_FREE] = k
    sample(f, s, node)
    s.counts[SIDE] = 1 - side
    s.counts[POSITION] = at + side


@part
def _change(f: Fixed, s: State, at: int) -> int:
    """Carry out a planned event. Return OUT_OF_ORDER if the run cannot go on, else FIT."""
    kind, node, place = f.plan_kind[at], int(f.plan_a[at]), int(f.plan_place[at])
    if kind in (UP, DOWN):
        _change_link(f, s, at)
        return FIT
    s.counts[POSITION] = at + 1
    if kind == COME:
        come(f, s, node)
    elif kind == BROADCAST_AT:
        broadcast(f, s, node, place)
        sample(f, s, node)
        return OUT_OF_ORDER if _is_out_of_order(f, s, place) else FIT
    else:
        go(f, s, node)
    return FIT


@part
def _fire(f: Fixed, s: State, kind: int, node: int, ticket: int) -> None:
    """Carry out a timer that is due, or keep it for when the node comes back."""
    if s.node[node, SLOT] < 0 or (kind == ORDER_TIMER and ticket != s.node[node, ORDER_TICKET]):
        return
    if s.node[node, IS_HERE] == 0:
        column = ASLEEP if s.node[node, ASLEEP] == 0 else ASLEEP_TOO
        s.node[node, column] = kind
        return
    turn(f, s, node)
    if kind == ANNOUNCE_TIMER:
        s.node[node, ARMED] = 0
        announce(f, s, node)
    else:
        expire(f, s, node, False)
        s.node[node, ORDER_DUE] = AHEAD
        s.counts[DUE_MIN] = 0  # search for the next deadline, whatever was parked in this step
        arm(f, s, node)
    sample(f, s, node)


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
    sample(f, s, node)
    s.link[k, BUSY] = IDLE
    if s.link[k, HEAD] >= 0:
        schedule(f, s, k)


@part
def _advance_live(f: Fixed, s: State) -> None:
    """Advance LIVE to the first message that has not expired."""
    if f.lifetime_us:
        live = s.counts[LIVE]
        while s.seq[live] <= s.counts[NOW]:
            live += 1
        s.counts[LIVE] = live


@part
def _short_of_event(f: Fixed, s: State) -> int:
    """Return what is too short for the first event of the heap, or FIT."""
    low = s.heap[0, 1]
    kind, index = kind_of(low), index_of(low)
    if kind == FRAME:
        return short_of_frame(f, s, index, s.link[index ^ 1, OWNER])
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
        _arrive(f, s, index)


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
            short = _change(f, s, at)
            if short != FIT:
                return short
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
