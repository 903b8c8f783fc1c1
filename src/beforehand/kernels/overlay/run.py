"""The compiled equivalent of `sim.overlay`: same seed, same packets, same events (a test compares).

A message has the index `origin * messages + seq - 1`. All knowledge about messages is in bit sets:
the messages that a node has or holds back, the causes of a message, the messages that depend on it.
The messages that wait for an arrival are found by comparing two sets, of 16 words for 1,024
messages. A run of a million receptions allocates a handful of arrays. The steps are those of
`protocols.vcube.node`, under the same names.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.overlay.send import (
    BROADCAST,
    DELIVER,
    RECEIVE,
    SEND,
    close,
    load,
    pack,
    row,
    serve,
)
from beforehand.kernels.overlay.state import (
    AT_BROADCAST,
    DELIVERED,
    EARLY,
    GAP_FREE,
    HELD,
    HOT,
    LATE,
    NONE,
    ONE,
    PAST,
    PENDING,
    READY,
    ROWS,
    SEEN,
    ZERO,
    Fixed,
    Longs,
    Rows,
    State,
    add,
    has,
    lacks,
    lowest,
    meets,
    remove,
    whole,
)
from beforehand.kernels.queue.calendar import LEFT, TODAY, insert, open_day, take
from beforehand.kernels.queue.heap import due_us, event, ticket

LINE = 8
"""Words in a cache line."""


@kernel
def simulate(fixed: Fixed, state: State, rows: Rows, times: Longs) -> bool:
    """Fill `rows`, given when each message is broadcast. `state.counts` has the number of rows.

    Return False if a packet arrives at `fixed.end_us` or later: the rows are then void."""
    calendar, broadcasts = state.calendar, len(times)
    for m in range(broadcasts):
        insert(calendar, event(times[m], m))
    while calendar.counts[LEFT] and not state.counts[LATE]:
        if calendar.counts[TODAY] == 0:
            open_day(calendar)
            _look_ahead(state, rows, broadcasts)
        now = take(calendar)
        now_us, what = due_us(now), ticket(now)
        if what < broadcasts:
            _broadcast(fixed, state, rows, now_us, what)
        else:
            _receive(fixed, state, rows, now_us, what - broadcasts)
    return not state.counts[LATE]


@part
def _look_ahead(state: State, rows: Rows, broadcasts: int) -> None:
    """Prefetch what the packets of today will need.

    Cache misses that do not depend on each other overlap: ten take about as long as one."""
    seen, today, sets = ZERO, state.calendar.today, state.sets
    for i in range(state.calendar.counts[TODAY]):
        first = ticket(today[i]) - broadcasts
        if first >= 0:
            seen ^= np.uint64(rows.value[first] ^ rows.message[first])
            seen ^= np.uint64(rows.node[first] ^ rows.kind[first])
    for i in range(state.calendar.counts[TODAY]):
        first = ticket(today[i]) - broadcasts
        if first >= 0:
            seen ^= np.uint64(rows.target[rows.value[first]])
    for i in range(state.calendar.counts[TODAY]):
        first = ticket(today[i]) - broadcasts
        if first >= 0:
            node, m = rows.target[rows.value[first]], rows.message[first]
            for word in range(0, sets.shape[2], LINE):
                seen ^= state.needs[m, word] ^ state.needed[m, word]
                for which in range(HOT):
                    seen ^= sets[node, which, word]
    state.counts[SEEN] = np.int64(seen)  # else the compiler would remove the reads


# ---- inputs -------------------------------------------------------------------------------------


@part
def _broadcast(fixed: Fixed, state: State, rows: Rows, now_us: int, m: int) -> None:
    node = fixed.origin[m]
    if not fixed.has_past:
        _take_past(fixed, state, node, m)
    row(state, rows, now_us, node, BROADCAST, m, state.past_count[m])
    for at in range(state.past_start[m], state.past_start[m] + state.past_count[m]):
        cause = state.past[at]
        state.needs[m, cause >> 6] |= ONE << np.uint64(cause & 63)
        state.needed[cause, m >> 6] |= ONE << np.uint64(m & 63)
    if m > node * fixed.messages:
        state.needed[m - 1, m >> 6] |= ONE << np.uint64(m & 63)
    for which in (GAP_FREE, DELIVERED, AT_BROADCAST):
        add(state.sets, node, which, m)
    if fixed.root == NONE or fixed.root == node:
        serve(fixed, state, rows, now_us, node, m, 0, fixed.dimension)
    else:
        load(state, rows, now_us, node, m)
        close(fixed, state, rows, now_us, node, fixed.root, 1)
    row(state, rows, now_us, node, DELIVER, m, 0)


@part
def _take_past(fixed: Fixed, state: State, node: int, m: int) -> None:
    """Store the causes of `m`: of each origin, the last message delivered since the node's own last
    broadcast."""
    sets = state.sets
    start = end = state.counts[PAST]
    for word in range(sets.shape[2]):
        new = sets[node, DELIVERED, word] & ~sets[node, AT_BROADCAST, word]
        sets[node, AT_BROADCAST, word] = sets[node, DELIVERED, word]
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
def _receive(fixed: Fixed, state: State, rows: Rows, now_us: int, first: int) -> None:
    packet, end = whole(rows.value[first]), first
    used = state.counts[ROWS]
    while end < used and rows.kind[end] == SEND and rows.value[end] == packet:
        end += 1
    node = whole(rows.target[packet])
    height = _height(fixed, whole(rows.node[first]), node)
    # In the single tree a node's own message comes back, only to be forwarded.
    for at in range(first, end):
        m = whole(rows.message[at])
        if fixed.origin[m] != node:
            row(state, rows, now_us, node, RECEIVE, m, packet)
    for at in range(first, end):
        m = whole(rows.message[at])
        if fixed.origin[m] == node:
            serve(fixed, state, rows, now_us, node, m, 0, height)
        else:
            _arrive(fixed, state, rows, now_us, node, m, height)
    for at in range(state.counts[READY]):
        row(state, rows, now_us, node, DELIVER, state.ready[at], 0)
    state.counts[READY] = 0


@part
def _height(fixed: Fixed, source: int, node: int) -> int:
    """Return how many clusters `node` serves for a packet of `source`.

    A node forwards to the first node of one of its clusters, which serves the clusters below. Only
    the root of the single tree serves all: it gets packets straight from their origins."""
    if node == fixed.root:
        return fixed.dimension
    apart, height = source ^ node, -1
    while apart:
        apart >>= 1
        height += 1
    return height


# ---- arrivals -----------------------------------------------------------------------------------


@part
def _arrive(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, m: int, height: int
) -> None:
    is_ready = _is_ready(fixed, state, node, m)
    if is_ready:
        _deliver(fixed, state, node, m)
    else:
        add(state.sets, node, PENDING, m)
    is_alone = not _advance(fixed, state, node, m, height)
    state.arrivals[node] += 1
    if is_alone:
        # A delivered message has been received, so without an undelivered cause nothing is held
        # back.
        left = 0 if is_ready else _blocked(fixed, state, node, m, height)
        if left:
            state.order[node, m] = state.arrivals[node]
            state.postponed[node, m] = left
            add(state.sets, node, HELD, m)
        serve(fixed, state, rows, now_us, node, m, left, height)
        return
    state.order[node, m] = state.arrivals[node]
    state.postponed[node, m] = height
    state.woken[m >> 6] |= ONE << np.uint64(m & 63)
    count = _release(fixed, state, node)
    highest = 0
    for i in range(count):
        highest = max(highest, state.before[state.work[i]])
    for level in range(1, highest + 1):
        if fixed.child[node, level] != NONE:
            pack(fixed, state, rows, now_us, node, level, count)


@part
def _release(fixed: Fixed, state: State, node: int) -> int:
    """Judge the messages in `woken` again, and put them into `work` in the order of arrival."""
    woken, sets, count = state.woken, state.sets, 0
    for word in range(len(woken)):
        while woken[word] != ZERO:  # in order of seq for each origin
            m = (word << 6) + lowest(woken[word])
            woken[word] &= woken[word] - ONE
            state.before[m] = state.postponed[node, m]
            left = _blocked(fixed, state, node, m, state.postponed[node, m])
            state.postponed[node, m] = left
            if left:
                add(sets, node, HELD, m)
            else:
                remove(sets, node, HELD, m)
            later = m + 1
            if later % fixed.messages and has(sets, node, HELD, later):
                woken[later >> 6] |= ONE << np.uint64(later & 63)
            _insert(state, node, m, count)
            count += 1
    return count


@part
def _insert(state: State, node: int, m: int, count: int) -> None:
    """Insert a message into `work`, which is short, by the order of arrival."""
    work, order = state.work, state.order
    i = count
    while i > 0 and order[node, work[i - 1]] > order[node, m]:
        work[i] = work[i - 1]
        i -= 1
    work[i] = m


@part
def _advance(fixed: Fixed, state: State, node: int, m: int, height: int) -> bool:
    """Put the messages that waited for this arrival into `woken`. Return whether there are any."""
    sets = state.sets
    first = fixed.origin[m] * fixed.messages
    if m > first and not has(sets, node, GAP_FREE, m - 1):
        add(sets, node, EARLY, m)
        return False
    found, words, is_here = ZERO, len(state.woken), True
    while is_here:
        add(sets, node, GAP_FREE, m)
        # Nothing is held back for a message that the node forwards to no cluster.
        for word in range(words if height and meets(state.needed, m, sets, node, HELD) else 0):
            items = state.needed[m, word] & sets[node, HELD, word]
            while items != ZERO:
                item = (word << 6) + lowest(items)
                items &= items - ONE
                # A message that is held back from more clusters than this one serves waits for
                # another.
                if height >= state.postponed[node, item]:
                    state.woken[word] |= ONE << np.uint64(item & 63)
                    found = ONE
        if has(sets, node, HELD, m):
            state.woken[m >> 6] |= ONE << np.uint64(m & 63)
            found = ONE
        m += 1
        is_here = m < first + fixed.messages and has(sets, node, EARLY, m)
    return bool(found != ZERO)


@part
def _blocked(fixed: Fixed, state: State, node: int, m: int, limit: int) -> int:
    if limit == 0 or not fixed.aggregates:
        return 0
    if not has(state.sets, node, GAP_FREE, m):
        return limit
    worst = 0
    if m > fixed.origin[m] * fixed.messages:
        worst = state.postponed[node, m - 1]
    for word in range(len(state.woken) if lacks(state.needs, m, state.sets, node, GAP_FREE) else 0):
        missing = state.needs[m, word] & ~state.sets[node, GAP_FREE, word]
        while missing != ZERO:
            cause = (word << 6) + lowest(missing)
            missing &= missing - ONE
            origin = fixed.origin[cause]
            # In a full cube only the distance matters, and its table stays in the cache.
            height = fixed.height[node ^ origin] if fixed.is_full else fixed.heights[node, origin]
            worst = max(worst, height)
            if worst >= limit:
                return limit
    return min(worst, limit)


# ---- deliveries ---------------------------------------------------------------------------------


@part
def _deliver(fixed: Fixed, state: State, node: int, m: int) -> None:
    """Deliver a message, and all messages that this makes ready."""
    counts, ready, sets, words = state.counts, state.ready, state.sets, len(state.woken)
    at = counts[READY]
    ready[at] = m
    counts[READY] += 1
    while at < counts[READY]:
        m = ready[at]
        at += 1
        add(sets, node, DELIVERED, m)
        for word in range(words if meets(state.needed, m, sets, node, PENDING) else 0):
            items = state.needed[m, word] & sets[node, PENDING, word]
            while items != ZERO:
                item = (word << 6) + lowest(items)
                items &= items - ONE
                if _is_ready(fixed, state, node, item):
                    remove(sets, node, PENDING, item)
                    ready[counts[READY]] = item
                    counts[READY] += 1


@part
def _is_ready(fixed: Fixed, state: State, node: int, m: int) -> bool:
    """Return whether all causes of a message are delivered."""
    if m > fixed.origin[m] * fixed.messages and not has(state.sets, node, DELIVERED, m - 1):
        return False
    return not lacks(state.needs, m, state.sets, node, DELIVERED)
