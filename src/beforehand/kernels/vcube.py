"""The compiled twin of `sim.overlay`: same seed, same packets, same events (a test says so).

A message has the index `origin * messages + seq - 1`. What a node knows of a message is a cell of a
(node, message) array, and who waits for what is a chain through such cells: a run of a million
receptions allocates a handful of arrays. The steps are those of `core.vcube`, under the same names.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.heap import due_us, event, pop, push, ticket
from beforehand.kernels.laws import travel_us
from beforehand.kernels.vcube_state import (
    ARRIVALS,
    ARRIVED,
    AWAITED,
    AWAITING,
    AWAITS,
    CARGO,
    DELIVERED,
    HEIGHT,
    LABEL,
    LOADED,
    NEXT,
    NONE,
    ONE,
    ORDER,
    PACKET,
    PACKETS,
    PASSED,
    PAST,
    POSTPONED,
    QUEUED,
    ROWS,
    TARGET,
    TOLD,
    WAITING,
    WANTED,
    ZERO,
    Fixed,
    Longs,
    Rows,
    State,
    add,
    has,
    lowest,
)

BROADCAST, RECEIVE, DELIVER, SEND = 0, 1, 2, 5
"""Kinds of events, as in the event log."""


@kernel
def simulate(fixed: Fixed, state: State, rows: Rows, times: Longs) -> None:
    """Fill `rows`, given when each message is broadcast. How many is in `state.counts`."""
    counts, queue = state.counts, state.queue
    broadcasts = len(times)
    for m in range(broadcasts):
        counts[QUEUED] = push(queue, counts[QUEUED], event(times[m], m))
    while counts[QUEUED]:
        now_us, what = due_us(queue[0]), ticket(queue[0])
        counts[QUEUED] = pop(queue, counts[QUEUED])
        if what < broadcasts:
            _broadcast(fixed, state, rows, now_us, what)
        else:
            _receive(fixed, state, rows, now_us, what - broadcasts)


@part
def _row(state: State, rows: Rows, now_us: int, node: int, kind: int, m: int, value: int) -> None:
    at = state.counts[ROWS]
    state.counts[ROWS] = at + 1
    rows.t_us[at] = now_us
    rows.node[at] = node
    rows.kind[at] = kind
    rows.message[at] = m
    rows.value[at] = value


# ---- inputs -------------------------------------------------------------------------------------


@part
def _broadcast(fixed: Fixed, state: State, rows: Rows, now_us: int, m: int) -> None:
    node = fixed.origin[m]
    if not fixed.has_past:
        _take_past(fixed, state, node, m)
    _row(state, rows, now_us, node, BROADCAST, m, state.past_count[m])
    for at in range(state.past_start[m], state.past_start[m] + state.past_count[m]):
        state.needs[m, state.past[at] >> 6] |= ONE << np.uint64(state.past[at] & 63)
    for which in (PASSED, DELIVERED, TOLD):
        add(state.sets, node, which, m)
    if fixed.root == NONE or fixed.root == node:
        _serve(fixed, state, rows, now_us, node, m, fixed.dimension)
    else:
        _load(state, m)
        _close(fixed, state, rows, now_us, node, fixed.root, fixed.dimension, 1)
    _row(state, rows, now_us, node, DELIVER, m, 0)


@part
def _take_past(fixed: Fixed, state: State, node: int, m: int) -> None:
    """Of each origin, the last message delivered since the node's own last one."""
    sets = state.sets
    start = end = state.counts[PAST]
    for word in range(sets.shape[2]):
        new = sets[node, DELIVERED, word] & ~sets[node, TOLD, word]
        sets[node, TOLD, word] = sets[node, DELIVERED, word]
        while new != ZERO:
            cause = (word << 6) + lowest(new)
            new &= new - ONE
            if end > start and fixed.origin[state.past[end - 1]] == fixed.origin[cause]:
                end -= 1
            state.past[end] = cause
            end += 1
    state.past_start[m], state.past_count[m] = start, end - start
    state.counts[PAST] = end


@part
def _receive(fixed: Fixed, state: State, rows: Rows, now_us: int, end: int) -> None:
    label = state.cargo[end : end + LABEL]
    node, height, packet, start = label[TARGET], label[HEIGHT], label[PACKET], end - label[LOADED]
    # In the single tree a node's own message comes back, to be sent on and nothing else.
    for at in range(start, end):
        if fixed.origin[state.cargo[at]] != node:
            _row(state, rows, now_us, node, RECEIVE, state.cargo[at], packet)
    for at in range(start, end):
        m = state.cargo[at]
        if fixed.origin[m] == node:
            _serve(fixed, state, rows, now_us, node, m, height)
        else:
            _arrive(fixed, state, rows, now_us, node, m, height)
    _deliver(fixed, state, rows, now_us, node, start, end)


# ---- arrivals -----------------------------------------------------------------------------------


@part
def _arrive(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, m: int, height: int
) -> None:
    count = _advance(fixed, state, node, m)
    left, _ = _blocked(fixed, state, node, m, height)
    if count == 0 and left == 0:
        _serve(fixed, state, rows, now_us, node, m, height)
        return
    state.counts[ARRIVALS] += 1
    state.cells[node, m, ORDER] = state.counts[ARRIVALS]
    state.cells[node, m, POSTPONED] = height
    state.work[count] = m
    count += 1
    _release(fixed, state, node, count)
    highest = 0
    for i in range(count):
        highest = max(highest, state.before[state.work[i]])
    for level in range(1, highest + 1):
        if fixed.child[node, level] != NONE:
            _pack(fixed, state, rows, now_us, node, level, count)


@part
def _release(fixed: Fixed, state: State, node: int, count: int) -> None:
    """Judge anew the messages in `work`; leaves them in the order of arrival."""
    _sort(state, node, count, False)  # a message after the previous one of its origin
    for i in range(count):
        m = state.work[i]
        state.before[m] = state.cells[node, m, POSTPONED]
        left, awaited = _blocked(fixed, state, node, m, state.cells[node, m, POSTPONED])
        state.cells[node, m, POSTPONED] = left
        if left:
            state.cells[node, m, AWAITS] = awaited
            _chain(state, AWAITED, AWAITING, node, awaited, m)
    _sort(state, node, count, True)


@part
def _advance(fixed: Fixed, state: State, node: int, m: int) -> int:
    """How many messages waited for this arrival; they are in `work`."""
    sets = state.sets
    add(sets, node, ARRIVED, m)
    first = fixed.origin[m] * fixed.messages
    if m > first and not has(state.sets, node, PASSED, m - 1):
        return 0
    count = 0
    while m < first + fixed.messages and has(sets, node, ARRIVED, m):
        add(sets, node, PASSED, m)
        if has(sets, node, AWAITED, m):
            last = state.cells[node, m, AWAITING]
            item = NONE
            while item != last:
                item = state.cells[node, last if item == NONE else item, AWAITING + NEXT]
                state.work[count] = item
                count += 1
        m += 1
    return count


@part
def _blocked(fixed: Fixed, state: State, node: int, m: int, limit: int) -> tuple[int, int]:
    if limit == 0 or not fixed.aggregates:
        return 0, NONE
    if not has(state.sets, node, PASSED, m):
        return limit, m
    worst, awaited = 0, NONE
    if m > fixed.origin[m] * fixed.messages and state.cells[node, m - 1, POSTPONED]:
        worst, awaited = state.cells[node, m - 1, POSTPONED], state.cells[node, m - 1, AWAITS]
    for word in range(state.needs.shape[1]):
        missing = state.needs[m, word] & ~state.sets[node, PASSED, word]
        while missing != ZERO:
            cause = (word << 6) + lowest(missing)
            missing &= missing - ONE
            height = fixed.heights[node, fixed.origin[cause]]
            if height >= limit:
                return limit, cause
            if height > worst:
                worst, awaited = height, cause
    return min(worst, limit), awaited


@part
def _chain(state: State, which: int, last: int, node: int, key: int, item: int) -> None:
    """Append to the chain of `key`, a ring that is entered at its last item."""
    sets, cells = state.sets, state.cells
    if has(sets, node, which, key):
        end = cells[node, key, last]
        cells[node, item, last + NEXT] = cells[node, end, last + NEXT]
        cells[node, end, last + NEXT] = item
    else:
        add(sets, node, which, key)
        cells[node, item, last + NEXT] = item
    cells[node, key, last] = item


@part
def _sort(state: State, node: int, count: int, by_arrival: bool) -> None:
    """Of the messages in `work`, which are few."""
    work, cells = state.work, state.cells
    for i in range(1, count):
        m = work[i]
        rank = cells[node, m, ORDER] if by_arrival else m
        j = i
        while j > 0 and rank < (cells[node, work[j - 1], ORDER] if by_arrival else work[j - 1]):
            work[j] = work[j - 1]
            j -= 1
        work[j] = m


# ---- sending ------------------------------------------------------------------------------------


@part
def _serve(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, m: int, height: int
) -> None:
    for level in range(1, height + 1):
        child = fixed.child[node, level]
        if child != NONE:
            _load(state, m)
            _close(fixed, state, rows, now_us, node, child, level - 1, 1)


@part
def _load(state: State, m: int) -> None:
    state.cargo[state.counts[CARGO]] = m
    state.counts[CARGO] += 1


@part
def _pack(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, level: int, count: int
) -> None:
    """What the first `count` messages of `work` have for one cluster."""
    child = fixed.child[node, level]
    loaded, size = 0, fixed.header_bytes
    for i in range(count):
        m = state.work[i]
        if state.cells[node, m, POSTPONED] < level <= state.before[m]:
            more = fixed.payload_bytes + fixed.entry_bytes * (1 + state.past_count[m])
            if loaded and size + more > fixed.mtu_bytes:
                _close(fixed, state, rows, now_us, node, child, level - 1, loaded)
                loaded, size = 0, fixed.header_bytes
            _load(state, m)
            loaded += 1
            size += more
    if loaded:
        _close(fixed, state, rows, now_us, node, child, level - 1, loaded)


@part
def _close(
    fixed: Fixed,
    state: State,
    rows: Rows,
    now_us: int,
    node: int,
    target: int,
    height: int,
    loaded: int,
) -> None:
    """Send what was loaded last, as one packet."""
    counts = state.counts
    packet, end = counts[PACKETS], counts[CARGO]
    counts[PACKETS] = packet + 1
    size = fixed.header_bytes
    for at in range(end - loaded, end):
        m = state.cargo[at]
        size += fixed.payload_bytes + fixed.entry_bytes * (1 + state.past_count[m])
        _row(state, rows, now_us, node, SEND, m, packet)
    ready_us = now_us + fixed.process_us
    start_us = max(ready_us, state.free_us[node])
    state.free_us[node] = start_us + fixed.transmit_us
    state.cargo[end + TARGET], state.cargo[end + HEIGHT] = target, height
    state.cargo[end + PACKET], state.cargo[end + LOADED] = packet, loaded
    counts[CARGO] = end + LABEL
    rows.source[packet], rows.target[packet] = node, target
    rows.messages[packet], rows.bytes[packet] = loaded, size
    rows.wait_us[packet] = start_us - ready_us
    last = state.cargo[end - 1]
    seq = last - fixed.origin[last] * fixed.messages + 1
    link = node * fixed.nodes + target
    code, a, b = fixed.law
    travel = travel_us(fixed.key, fixed.origin[last], seq, link, code, a, b)
    broadcasts = fixed.nodes * fixed.messages
    arrival = event(state.free_us[node] + travel, broadcasts + end)
    counts[QUEUED] = push(state.queue, counts[QUEUED], arrival)


# ---- deliveries ---------------------------------------------------------------------------------


@part
def _deliver(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, start: int, end: int
) -> None:
    """`work` is a ring here: no message is in it twice, so it cannot overflow."""
    work, size = state.work, len(state.work)
    first = count = 0
    for at in range(start, end):
        if fixed.origin[state.cargo[at]] != node:
            count = _wait(fixed, state, node, state.cargo[at], count)
    while first != count:
        m = work[first]
        first = first + 1 if first + 1 < size else 0
        add(state.sets, node, DELIVERED, m)
        _row(state, rows, now_us, node, DELIVER, m, 0)
        if has(state.sets, node, WANTED, m):
            last = state.cells[node, m, WAITING]
            item = state.cells[node, last, WAITING + NEXT]
            while True:
                following = state.cells[node, item, WAITING + NEXT]  # waiting on may change it
                count = _wait(fixed, state, node, item, count)
                if item == last:
                    break
                item = following


@part
def _wait(fixed: Fixed, state: State, node: int, m: int, count: int) -> int:
    """Put the message into `work` at `count` if it is ready, else where it waits."""
    awaited = _undelivered(fixed, state, node, m)
    if awaited != NONE:
        _chain(state, WANTED, WAITING, node, awaited, m)
        return count
    state.work[count] = m
    return count + 1 if count + 1 < len(state.work) else 0


@part
def _undelivered(fixed: Fixed, state: State, node: int, m: int) -> int:
    """The first cause of a message that the node has not delivered, or NONE."""
    if m > fixed.origin[m] * fixed.messages and not has(state.sets, node, DELIVERED, m - 1):
        return m - 1
    for word in range(state.needs.shape[1]):
        missing = state.needs[m, word] & ~state.sets[node, DELIVERED, word]
        if missing != ZERO:
            return (word << 6) + lowest(missing)
    return NONE
