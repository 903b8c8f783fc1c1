"""The epidemic layer of the compiled contact world: announcements, requests and data.

It does what `protocols.epidemic.epidemic` and `sender` do on reliable links.
A frame arrives over channel `k`; the receiver's end is `k ^ 1`.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.cache import check_known, shrink, store
from beforehand.kernels.epidemic.channel import (
    drop_record,
    enqueue,
    message_bytes,
    send_set,
    sort_by_seq,
    sort_picked,
)
from beforehand.kernels.epidemic.order import admit, arm, expire
from beforehand.kernels.epidemic.queue import add_row, next_ticket, push, take_block
from beforehand.kernels.epidemic.sets import (
    ONE,
    ZERO,
    add_fresh,
    bit,
    clear_fresh,
    count_bits,
    first_kept,
    following,
    has,
    live_mask,
    lowest,
    ring,
    signed,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ANNOUNCE,
    ANNOUNCE_TIMER,
    ARMED,
    BYTES,
    CUT,
    DATA,
    DELIVER,
    DELIVERED,
    DELIVERIES,
    DRAWS,
    DUPLICATE,
    EVICTED,
    FIRST,
    FRAMES,
    FRESH,
    FRESH_HIGH,
    FRESH_LOW,
    GONE,
    HAS_ANNOUNCED,
    HEAD,
    HELD,
    KNOWN,
    KNOWN_TO_PEER,
    LIVE,
    NEXT,
    NONE,
    NOW,
    OFFERED_AGAIN,
    OWNER,
    PHASE,
    R_BLOCK,
    R_POSITION,
    R_SIZE,
    RECEIVE,
    RECEIVED,
    REQUEST,
    REQUESTED,
    REQUESTED_HERE,
    REQUESTED_HIGH,
    REQUESTED_LOW,
    SLOT,
    STALE,
    WORD,
    Fixed,
    State,
)
from beforehand.kernels.random.draws import mix

FACTOR, SUM = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
_32 = np.uint64(32)
FRAME_HEAD = 8


@part
def draw(f: Fixed, s: State, node: int) -> np.uint64:
    """Return the next draw of a node, as `sim.streams.KeyedDraws` does."""
    at = s.node[node, DRAWS]
    s.node[node, DRAWS] = at + 1
    return mix(mix(f.key, node), at)


@cold
def announce(f: Fixed, s: State, node: int) -> None:
    """Announce the new messages to every peer that is not known to have them; to a new peer,
    everything."""
    slot, link, pairs = s.node[node, SLOT], s.link, s.pairs
    oldest = s.counts[LIVE] >> 6 if f.lifetime_us else 0
    k = s.node[node, FIRST]
    while k >= 0:
        turn_link(f, s, k)
        which, brief = FRESH, 1
        low, high = max(oldest, s.node[node, FRESH_LOW]), s.node[node, FRESH_HIGH]
        if link[k, HAS_ANNOUNCED] == 0:
            which, brief, low, high = HELD, 0, oldest, s.counts[WORD]
            link[k, HAS_ANNOUNCED] = 1
        count = 0
        w = following(f, s, slot, brief, low, high)
        while w <= high:
            at = ring(f, w)
            word = s.sets[slot, at, which] & ~s.link_sets[k, at, KNOWN_TO_PEER] & live_mask(s, w)
            if f.capacity:
                word &= s.sets[slot, at, HELD]
            if word != ZERO:
                pairs[2 * count], pairs[2 * count + 1] = np.uint64(w), word
                count += 1
            w = following(f, s, slot, brief, w + 1, high)
        send_set(f, s, k, ANNOUNCE, count)
        k = link[k, NEXT]
    clear_fresh(f, s, node)


@part
def announce_later(f: Fixed, s: State, node: int) -> None:
    """Announce at the next tick of the node's own period."""
    if s.node[node, ARMED] == 0:
        s.node[node, ARMED] = 1
        now = s.counts[NOW]
        due = now + f.announce_us - (now - s.node[node, PHASE]) % f.announce_us
        push(s, due, ANNOUNCE_TIMER, node, next_ticket(s))


@part
def finish_step(f: Fixed, s: State, node: int) -> None:
    """Announce what a step has stored, and set timers, in the order in which a driver does."""
    if s.node[node, FIRST] < 0:
        clear_fresh(f, s, node)
        arm(f, s, node)
    elif f.announce_us == 0:
        announce(f, s, node)
        arm(f, s, node)
    else:
        arm(f, s, node)
        announce_later(f, s, node)


@part
def _note_requested(s: State, k: int, w: int) -> None:
    s.link[k, REQUESTED_LOW] = min(s.link[k, REQUESTED_LOW], w)
    s.link[k, REQUESTED_HIGH] = max(s.link[k, REQUESTED_HIGH], w)


@part
def on_announce(f: Fixed, s: State, k: int) -> None:
    """Request what the node lacks and has not requested."""
    r, back = s.link[k, HEAD], k ^ 1
    slot = s.node[s.link[back, OWNER], SLOT]
    sets, link_sets, pairs, pool = s.sets, s.link_sets, s.pairs, s.pool
    block, count = s.record[r, R_BLOCK], 0
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(pool[block + 2 * i]), pool[block + 2 * i + 1]
        if w < first_kept(f, s):
            continue  # expired: the ring holds other messages there
        at = ring(f, w)
        lacking = bits & ~sets[slot, at, HELD]
        dead = lacking & ~live_mask(s, w)
        if f.capacity:
            new = bits & ~(link_sets[back, at, KNOWN_TO_PEER] | dead)
            s.link[back, KNOWN] += count_bits(new)
            link_sets[back, at, OFFERED_AGAIN] |= bits & link_sets[back, at, REQUESTED_HERE]
            dead |= lacking & sets[slot, at, EVICTED]
            link_sets[back, at, KNOWN_TO_PEER] |= new
        else:
            link_sets[back, at, KNOWN_TO_PEER] = (link_sets[back, at, KNOWN_TO_PEER] | bits) & ~dead
        lacking &= ~(dead | sets[slot, at, REQUESTED])
        if lacking != ZERO:
            sets[slot, at, REQUESTED] |= lacking
            link_sets[back, at, REQUESTED_HERE] |= lacking
            _note_requested(s, back, w)
            pairs[2 * count], pairs[2 * count + 1] = np.uint64(w), lacking
            count += 1
    drop_record(s, k)
    send_set(f, s, back, REQUEST, count)
    if f.capacity:
        check_known(s, s.link[back, OWNER], back)


@part
def on_request(f: Fixed, s: State, k: int) -> None:
    """Send what is held, and the ids of what is not."""
    r, back = s.link[k, HEAD], k ^ 1
    node = s.link[back, OWNER]
    slot, block = s.node[node, SLOT], s.record[r, R_BLOCK]
    found_count = gone_count = 0
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(s.pool[block + 2 * i]), s.pool[block + 2 * i + 1]
        found = ZERO
        if w >= first_kept(f, s):
            at = ring(f, w)
            found = bits & s.sets[slot, at, HELD] & live_mask(s, w)
            s.link[back, KNOWN] += count_bits(found & ~s.link_sets[back, at, KNOWN_TO_PEER])
            s.link_sets[back, at, KNOWN_TO_PEER] |= found
        gone = bits & ~found
        if gone != ZERO:
            s.pairs[2 * gone_count], s.pairs[2 * gone_count + 1] = np.uint64(w), gone
            gone_count += 1
        while found != ZERO:
            s.picked[found_count] = (w << 6) + lowest(found)
            found &= found - ONE
            found_count += 1
    drop_record(s, k)
    key = draw(f, s, node)
    if found_count:
        _serve(f, s, back, found_count, key)
    send_set(f, s, back, GONE, gone_count)


@part
def _serve(f: Fixed, s: State, k: int, count: int, key: np.uint64) -> None:
    """Send the picked messages in a random order, and count their frames."""
    picked = s.picked
    if f.lifetime_us == 0:
        sort_picked(s, 0, count, True)
    for last in range(count - 1, 0, -1):
        key = key * FACTOR + SUM
        chosen = signed(((key >> _32) * np.uint64(last + 1)) >> _32)
        picked[last], picked[chosen] = picked[chosen], picked[last]
    block = take_block(s, count)
    total, frames, room, cut = 0, 0, 0, 0
    for i in range(count):
        size = message_bytes(f, s, picked[i])
        if frames == 0 or cut == f.frame_messages or size > room:
            frames += 1
            room, cut = f.frame_bytes, 0
        room -= size
        cut += 1
        total += size
        s.pool[block + i] = np.uint64(picked[i])
    s.counts[FRAMES] += frames
    s.counts[BYTES] += total + FRAME_HEAD * frames
    enqueue(f, s, k, DATA, block, count, 0)


@part
def _note_came(f: Fixed, s: State, node: int, k: int, m: int) -> None:
    """Note that a message came over the node's end `k`: it is requested from no peer any more."""
    slot, at, b = s.node[node, SLOT], ring(f, m >> 6), bit(m)
    if s.link_sets[k, at, KNOWN_TO_PEER] & b == ZERO:
        s.link_sets[k, at, KNOWN_TO_PEER] |= b
        s.link[k, KNOWN] += 1
    if f.capacity:
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
            if f.capacity:
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
            if has(f, s, s.node[node, SLOT], HELD, m):
                s.counts[DUPLICATE] += 1
                continue
        if m < s.counts[LIVE]:
            s.counts[STALE] += 1
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
    if f.capacity and has(f, s, s.node[node, SLOT], DELIVERED, m):
        s.counts[DUPLICATE] += 1
        return True
    return False


@part
def _deliver_all(f: Fixed, s: State, node: int, count: int) -> None:
    """Deliver the picked messages in the order in which they came."""
    for i in range(count):
        m = s.picked[i]
        if not _was_delivered(f, s, node, m):
            s.sets[s.node[node, SLOT], ring(f, m >> 6), DELIVERED] |= bit(m)
            add_row(s, node, DELIVER, m, 0)
            s.counts[DELIVERIES] += 1


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
    else:
        _deliver_all(f, s, node, count)
    shrink(f, s, node)
    finish_step(f, s, node)


@part
def on_data(f: Fixed, s: State, k: int) -> None:
    """Take a frame of data."""
    node = s.link[k ^ 1, OWNER]
    count = _take_frame(f, s, k)
    if count:
        _accept(f, s, node, count)
    if f.capacity:
        check_known(s, node, k ^ 1)


@cold
def ask_elsewhere(f: Fixed, s: State, node: int, low: int, high: int) -> None:
    """Request the messages in `rest`, which one peer will not send, from other peers."""
    slot, link_sets, pairs, rest = s.node[node, SLOT], s.link_sets, s.pairs, s.rest
    for w in range(low, high + 1):
        s.sets[slot, ring(f, w), REQUESTED] &= ~rest[ring(f, w)]
        rest[ring(f, w)] &= live_mask(s, w)
    k = s.node[node, FIRST]
    while k >= 0:
        turn_link(f, s, k)
        count = 0
        for w in range(low, high + 1):
            at = ring(f, w)
            offered = rest[at] & link_sets[k, at, KNOWN_TO_PEER]
            if offered != ZERO:
                rest[at] &= ~offered
                s.sets[slot, at, REQUESTED] |= offered
                link_sets[k, at, REQUESTED_HERE] |= offered
                _note_requested(s, k, w)
                pairs[2 * count], pairs[2 * count + 1] = np.uint64(w), offered
                count += 1
        send_set(f, s, k, REQUEST, count)
        k = s.link[k, NEXT]
    for w in range(low, high + 1):
        rest[ring(f, w)] = ZERO


@cold
def on_gone(f: Fixed, s: State, k: int) -> None:
    """Request from other peers what the peer does not hold any more."""
    r, back = s.link[k, HEAD], k ^ 1
    block = s.record[r, R_BLOCK]
    low, high = AHEAD, NONE
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(s.pool[block + 2 * i]), s.pool[block + 2 * i + 1]
        if w >= first_kept(f, s):
            at = ring(f, w)
            gone = bits
            if f.capacity:
                gone = bits & ~s.link_sets[back, at, OFFERED_AGAIN]
                s.link_sets[back, at, OFFERED_AGAIN] &= ~bits
                s.link[back, KNOWN] -= count_bits(gone & s.link_sets[back, at, KNOWN_TO_PEER])
            s.link_sets[back, at, KNOWN_TO_PEER] &= ~gone
            s.rest[at] = bits & s.link_sets[back, at, REQUESTED_HERE]
            s.link_sets[back, at, REQUESTED_HERE] &= ~bits
            low, high = min(low, w), max(high, w)
    drop_record(s, k)
    ask_elsewhere(f, s, s.link[back, OWNER], low, high)
