"""The message cache of the compiled contact world, as `protocols.epidemic.cache` has it.

An unbounded cache is a set and a count. A bounded one also lists its messages, the longest stored
first, with the expired ones until they are removed: what a node evicts depends on these too.
"""

from __future__ import annotations

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.order import find_wait, is_met, unpark
from beforehand.kernels.epidemic.places import add_place, draw_place, renew_places
from beforehand.kernels.epidemic.queue import add_row, give_block, take_block
from beforehand.kernels.epidemic.sets import (
    ZERO,
    alive_of,
    bit,
    clock_of,
    count_bits,
    first_kept,
    has,
    is_dead,
    ring,
    signed,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    DELIVER,
    DELIVERED,
    DROP,
    DROPPED,
    E_MESSAGE,
    E_NEXT,
    EARLIEST,
    ENTRIES,
    ENTRY_FREE,
    EVICTED,
    EVICTED_HIGH,
    EVICTED_LOW,
    EVICTED_SIZE,
    EVICTION_ROWS,
    EVICTIONS,
    FIRST,
    HELD,
    KNOWN,
    KNOWN_TO_PEER,
    LIST,
    LIST_FIRST,
    LIST_ROOM,
    LIVE,
    MANY_EVICTED,
    MANY_KNOWN,
    NEXT,
    NONE,
    NOW,
    PENDING,
    PURGE_AT,
    REFUSED,
    ROWS,
    SLOT,
    STORED_BYTES,
    TAKEN,
    TAKEN_PURGE_AT,
    W_FIRST,
    W_LAST,
    WORD,
    Fixed,
    State,
)

PURGE_MIN = 64
HELD_HEAD_BYTES, CAUSE_BYTES, FEW, MANY, INT_ID = 32 + 1024, 32, 8, 13 + 4 * 128, 19
"""As in `protocols.epidemic.sizes`: the parts of the size of a held message."""
EVICTED_MAX, KNOWN_MIN = 1024, 1024
"""As in `protocols.epidemic.cache` and `peer`."""


@part
def held_bytes(f: Fixed, s: State, m: int) -> int:
    """Return what a held message counts against `capacity_bytes`, as `epidemic.sizes` does."""
    causes = s.past_size[m]
    size = HELD_HEAD_BYTES + f.payload[m]
    return int(size + (CAUSE_BYTES * (1 + causes) if causes <= FEW else MANY + INT_ID * causes))


@part
def store(f: Fixed, s: State, node: int, m: int) -> None:
    slot, at = s.node[node, SLOT], ring(f, m >> 6)
    s.sets[slot, at, HELD] |= bit(m)
    s.filled[slot, 0, at >> 6] |= bit(at)
    if f.lists:
        _list_stored(f, s, node, m)
    s.node[node, ENTRIES] += 1


@cold
def _list_stored(f: Fixed, s: State, node: int, m: int) -> None:
    _append(s, node, m)
    s.node[node, EARLIEST] = min(s.node[node, EARLIEST], s.seq[m])
    s.node[node, STORED_BYTES] += held_bytes(f, s, m)
    if f.draws_evicted:
        add_place(s, node, m)


@part
def _append(s: State, node: int, m: int) -> None:
    """Append a message to the list of what the node stores."""
    base, room = s.node[node, LIST], s.node[node, LIST_ROOM]
    first, size = s.node[node, LIST_FIRST], s.node[node, ENTRIES]
    if first + size == room:
        at, more = base, room
        if 2 * size >= room:
            at, more = take_block(s, 2 * room), 2 * room
        for i in range(size):
            s.pool[at + i] = s.pool[base + first + i]
        if at != base:
            give_block(s, base, room)
        s.node[node, LIST], s.node[node, LIST_ROOM], s.node[node, LIST_FIRST] = at, more, 0
        base, first = at, 0
    s.pool[base + first + size] = m


@part
def count_held(f: Fixed, s: State, node: int) -> int:
    """Return how many of the held messages have not expired."""
    return count_alive(f, s, node, HELD)


@part
def count_alive(f: Fixed, s: State, node: int, which: int) -> int:
    """Return how many messages of a set have not expired."""
    slot, alive = s.node[node, SLOT], 0
    low = max(first_kept(f, s), s.counts[LIVE] >> 6) if f.lifetime_us else 0
    for w in range(low, s.counts[WORD] + 1):
        alive += count_bits(alive_of(f, s, node, w, s.sets[slot, ring(f, w), which]))
    return alive


@part
def shrink(f: Fixed, s: State, node: int) -> None:
    """Remove expired messages if the cache has doubled, and evict what is beyond its bound."""
    if f.lists:
        if f.draws_evicted:
            renew_places(s, node)
        if f.lifetime_us and s.node[node, ENTRIES] >= s.node[node, PURGE_AT]:
            _remove_expired(f, s, node, False)
        if is_too_full(f, s, node):
            _evict(f, s, node)
    elif f.lifetime_us and s.node[node, ENTRIES] >= s.node[node, PURGE_AT]:
        # Only the count matters: an empty cache has nothing to announce.
        held = count_held(f, s, node)
        s.node[node, ENTRIES] = held
        s.node[node, PURGE_AT] = max(PURGE_MIN, 2 * held)


@part
def is_too_full(f: Fixed, s: State, node: int) -> bool:
    if s.node[node, ENTRIES] > f.capacity:
        return True
    return bool(s.node[node, STORED_BYTES] > f.capacity_bytes)


@cold
def _remove_expired(f: Fixed, s: State, node: int, evicts: bool) -> None:
    """Remove expired messages from the list of what the node stores.

    evicts: they count as evicted, because the cache was too full."""
    base, kept, earliest = s.node[node, LIST] + s.node[node, LIST_FIRST], 0, AHEAD
    if f.lifetime_us and s.node[node, EARLIEST] <= clock_of(f, s, node):
        for i in range(s.node[node, ENTRIES]):
            m = signed(s.pool[base + i])
            if not is_dead(f, s, node, m):
                s.pool[base + kept] = m
                kept += 1
                earliest = min(earliest, s.seq[m])
                continue
            s.node[node, STORED_BYTES] -= held_bytes(f, s, m)
            if evicts:
                s.counts[EVICTIONS] += 1
                s.node[node, EVICTED_SIZE] += 1
        s.node[node, ENTRIES], s.node[node, EARLIEST] = kept, earliest
    s.node[node, PURGE_AT] = max(PURGE_MIN, 2 * s.node[node, ENTRIES])


@cold
def _evict(f: Fixed, s: State, node: int) -> None:
    """Evict messages until the cache is within its bounds."""
    _remove_expired(f, s, node, True)
    mark = s.counts[ROWS]
    while s.row_kind[mark - 1] == DELIVER and s.row_t[mark - 1] == s.counts[NOW]:
        mark -= 1
    while is_too_full(f, s, node):
        m = _take_drawn(f, s, node) if f.draws_evicted else _take_first(s, node)
        s.node[node, ENTRIES] -= 1
        s.node[node, STORED_BYTES] -= held_bytes(f, s, m)
        _forget(f, s, node, m)
        if f.is_causal and not has(f, s, s.node[node, SLOT], DELIVERED, m):
            _drop(f, s, node, m)
            _log_drop(s, node, m, mark)
            mark += 1
    if s.node[node, EVICTED_SIZE] > EVICTED_MAX:
        s.counts[REFUSED] = MANY_EVICTED


@part
def _take_first(s: State, node: int) -> int:
    """Take the message that the node has stored longest from its list."""
    first = s.node[node, LIST_FIRST]
    s.node[node, LIST_FIRST] = first + 1
    return signed(s.pool[s.node[node, LIST] + first])


@part
def _take_drawn(f: Fixed, s: State, node: int) -> int:
    """Take a random message from the list of a node."""
    m = draw_place(f, s, node)
    base, at = s.node[node, LIST] + s.node[node, LIST_FIRST], 0
    while signed(s.pool[base + at]) != m:
        at += 1
    for i in range(at + 1, s.node[node, ENTRIES]):
        s.pool[base + i - 1] = s.pool[base + i]
    return m


@part
def _forget(f: Fixed, s: State, node: int, m: int) -> None:
    """Remove a message from the sets of a node, and note that it was evicted."""
    w, at, b = m >> 6, ring(f, m >> 6), bit(m)
    slot, row = s.node[node, SLOT], s.counts[EVICTION_ROWS]
    s.eviction[row, 0], s.eviction[row, 1], s.eviction[row, 2] = s.counts[NOW], node, m
    s.counts[EVICTION_ROWS] = row + 1
    s.counts[EVICTIONS] += 1
    s.sets[slot, at, HELD] &= ~b
    if s.sets[slot, at, EVICTED] & b == ZERO:
        s.sets[slot, at, EVICTED] |= b
        s.node[node, EVICTED_SIZE] += 1
        s.node[node, EVICTED_LOW] = min(s.node[node, EVICTED_LOW], w)
        s.node[node, EVICTED_HIGH] = max(s.node[node, EVICTED_HIGH], w)
    k = s.node[node, FIRST]
    while k >= 0:
        turn_link(f, s, k)
        if s.link_sets[k, at, KNOWN_TO_PEER] & b != ZERO:
            s.link_sets[k, at, KNOWN_TO_PEER] &= ~b
            s.link[k, KNOWN] -= 1
        k = s.link[k, NEXT]


@part
def forget_evicted(f: Fixed, s: State, node: int) -> None:
    """Let a node request again what it has evicted: a link came up."""
    low = max(first_kept(f, s), s.node[node, EVICTED_LOW])
    for w in range(low, s.node[node, EVICTED_HIGH] + 1):
        s.sets[s.node[node, SLOT], ring(f, w), EVICTED] = ZERO
    s.node[node, EVICTED_SIZE] = 0
    s.node[node, EVICTED_LOW], s.node[node, EVICTED_HIGH] = AHEAD, NONE


@part
def check_known(s: State, node: int, k: int) -> None:
    """Refuse the run if the cores would forget a part of what the peer is known to have."""
    if s.link[k, KNOWN] > KNOWN_MIN + 2 * s.node[node, ENTRIES]:
        s.counts[REFUSED] = MANY_KNOWN


@part
def _drop(f: Fixed, s: State, node: int, m: int) -> None:
    """Remove an evicted message from the pending ones, where it is."""
    at = s.past_start[m]
    while is_met(f, s, node, int(s.past[at])):
        at += 1
    cause = int(s.past[at])
    wait = find_wait(s, node, cause)
    before, e = NONE, int(s.wait[wait, W_FIRST])
    while s.entry[e, E_MESSAGE] != m:
        before, e = e, int(s.entry[e, E_NEXT])
    after = s.entry[e, E_NEXT]
    if before < 0:
        s.wait[wait, W_FIRST] = after
    else:
        s.entry[before, E_NEXT] = after
    if after < 0:
        s.wait[wait, W_LAST] = before
    s.entry[e, E_NEXT] = s.counts[ENTRY_FREE]
    s.counts[ENTRY_FREE] = e
    s.node[node, PENDING] -= 1
    # With lifetimes the empty wait stays: its message keeps its place among equal deadlines.
    if f.lifetime_us == 0 and s.wait[wait, W_FIRST] < 0:
        unpark(f, s, node, cause)


@part
def _log_drop(s: State, node: int, m: int, mark: int) -> None:
    """Log that a message was dropped, before the deliveries of this step, from row `mark` on."""
    s.counts[DROPPED] += 1
    add_row(s, node, DROP, m, 0)
    for row in range(s.counts[ROWS] - 1, mark, -1):
        s.row_t[row], s.row_node[row] = s.row_t[row - 1], s.row_node[row - 1]
        s.row_kind[row], s.row_message[row] = s.row_kind[row - 1], s.row_message[row - 1]
        s.row_value[row] = s.row_value[row - 1]
    s.row_node[mark], s.row_kind[mark], s.row_message[mark] = node, DROP, m
    s.row_t[mark], s.row_value[mark] = s.counts[NOW], 0


@part
def purge_taken(f: Fixed, s: State, node: int) -> None:
    """Let a node without an order forget what has expired, if what it remembers has doubled."""
    if f.lifetime_us and s.node[node, TAKEN] >= s.node[node, TAKEN_PURGE_AT]:
        s.node[node, TAKEN] = count_alive(f, s, node, DELIVERED)
        s.node[node, TAKEN_PURGE_AT] = max(PURGE_MIN, 2 * s.node[node, TAKEN])
