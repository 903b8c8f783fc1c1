"""The epidemic layer of the compiled contact world: announcements, requests and data.

It does what `protocols.epidemic.epidemic` and `sender` do. A frame arrives over channel `k`; the
receiver's end is `k ^ 1`.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.cache import check_known
from beforehand.kernels.epidemic.channel import (
    drop_record,
    send_pairs,
    send_set,
)
from beforehand.kernels.epidemic.order import arm
from beforehand.kernels.epidemic.queue import next_ticket, push
from beforehand.kernels.epidemic.sets import (
    ZERO,
    alive_of,
    clear_fresh,
    clock_of,
    count_bits,
    first_kept,
    following,
    ring,
    signed,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ANNOUNCE,
    ANNOUNCE_TIMER,
    ARMED,
    EVICTED,
    FIRST,
    FRESH,
    FRESH_HIGH,
    FRESH_LOW,
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
    PROGRESS_US,
    R_BLOCK,
    R_NUMBER,
    R_SIZE,
    REQUEST,
    REQUESTED,
    REQUESTED_HERE,
    REQUESTED_HIGH,
    REQUESTED_LOW,
    SLOT,
    WORD,
    Fixed,
    State,
)


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
            word = s.sets[slot, at, which] & ~s.link_sets[k, at, KNOWN_TO_PEER]
            if f.is_bounded:
                word &= s.sets[slot, at, HELD]
            word = alive_of(f, s, node, w, word)
            if word != ZERO:
                pairs[2 * count], pairs[2 * count + 1] = np.uint64(w), word
                count += 1
            w = following(f, s, slot, brief, w + 1, high)
        send_set(f, s, k, ANNOUNCE, count, 0)
        k = link[k, NEXT]
    clear_fresh(f, s, node)


@part
def announce_later(f: Fixed, s: State, node: int) -> None:
    """Announce at the next tick of the node's own period."""
    if s.node[node, ARMED] == 0:
        s.node[node, ARMED] = 1
        past = (clock_of(f, s, node) - s.node[node, PHASE]) % f.announce_us
        push(s, s.counts[NOW] + f.announce_us - past, ANNOUNCE_TIMER, node, next_ticket(s))


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
    node, number = s.link[back, OWNER], s.record[r, R_NUMBER]
    slot = s.node[node, SLOT]
    sets, link_sets, pairs, pool = s.sets, s.link_sets, s.pairs, s.pool
    block, count = s.record[r, R_BLOCK], 0
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(pool[block + 2 * i]), pool[block + 2 * i + 1]
        if w < first_kept(f, s):
            continue  # expired: the ring holds other messages there
        at = ring(f, w)
        lacking = bits & ~sets[slot, at, HELD]
        dead = lacking & ~alive_of(f, s, node, w, lacking)
        if f.repeats:
            link_sets[back, at, OFFERED_AGAIN] |= bits & link_sets[back, at, REQUESTED_HERE]
        if f.is_bounded:
            new = bits & ~(link_sets[back, at, KNOWN_TO_PEER] | dead)
            s.link[back, KNOWN] += count_bits(new)
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
    if count == 0 and number:
        send_pairs(f, s, back, REQUEST, 0, 0, 0, number)  # only acknowledge
    send_set(f, s, back, REQUEST, count, number)
    if f.is_bounded:
        check_known(s, node, back)


@cold
def ask_elsewhere(f: Fixed, s: State, node: int, low: int, high: int) -> None:
    """Request the messages in `rest`, which one peer will not send, from other peers."""
    slot, link_sets, pairs, rest = s.node[node, SLOT], s.link_sets, s.pairs, s.rest
    for w in range(low, high + 1):
        s.sets[slot, ring(f, w), REQUESTED] &= ~rest[ring(f, w)]
        rest[ring(f, w)] = alive_of(f, s, node, w, rest[ring(f, w)])
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
        send_set(f, s, k, REQUEST, count, 0)
        k = s.link[k, NEXT]
    for w in range(low, high + 1):
        rest[ring(f, w)] = ZERO


@cold
def on_gone(f: Fixed, s: State, k: int) -> None:
    """Request from other peers what the peer does not hold any more."""
    r, back = s.link[k, HEAD], k ^ 1
    block = s.record[r, R_BLOCK]
    low, high = AHEAD, NONE
    s.link[back, PROGRESS_US] = s.counts[NOW]
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(s.pool[block + 2 * i]), s.pool[block + 2 * i + 1]
        if w >= first_kept(f, s):
            at = ring(f, w)
            gone = bits
            if f.repeats:
                gone = bits & ~s.link_sets[back, at, OFFERED_AGAIN]
                s.link_sets[back, at, OFFERED_AGAIN] &= ~bits
                s.link[back, KNOWN] -= count_bits(gone & s.link_sets[back, at, KNOWN_TO_PEER])
            s.link_sets[back, at, KNOWN_TO_PEER] &= ~gone
            s.rest[at] = bits & s.link_sets[back, at, REQUESTED_HERE]
            s.link_sets[back, at, REQUESTED_HERE] &= ~bits
            low, high = min(low, w), max(high, w)
    drop_record(s, k)
    ask_elsewhere(f, s, s.link[back, OWNER], low, high)
