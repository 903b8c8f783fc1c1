"""Frames that are repeated because no answer came, as `protocols.epidemic.sender` does."""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.channel import send_set
from beforehand.kernels.epidemic.queue import give_record, next_ticket, push
from beforehand.kernels.epidemic.sets import (
    ZERO,
    alive_of,
    first_kept,
    ring,
    signed,
    turn_link,
)
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ANNOUNCE,
    FIRST,
    HELD,
    KNOWN_TO_PEER,
    NEXT,
    NONE,
    NOW,
    PROGRESS_US,
    R_BLOCK,
    R_NEXT,
    R_SIZE,
    REQUEST,
    REQUESTED,
    REQUESTED_HERE,
    REQUESTED_HIGH,
    REQUESTED_LOW,
    RETRIES,
    RETRY_ARMED,
    RETRY_TIMER,
    SLOT,
    UNACKED,
    Fixed,
    State,
)


@part
def arm_retry(f: Fixed, s: State, node: int) -> None:
    """Set the timer of repeated frames at the end of a step, if it has sent any that may be."""
    if f.retry_us and s.counts[RETRIES]:
        s.counts[RETRIES] = 0
        if s.node[node, RETRY_ARMED] == 0:
            s.node[node, RETRY_ARMED] = 1
            push(s, s.counts[NOW] + f.retry_us, RETRY_TIMER, node, next_ticket(s))


@part
def forget_all_unacked(s: State, k: int) -> None:
    """Forget the announcements that a peer has not acknowledged: the contact has ended."""
    while s.link[k, UNACKED] >= 0:
        r = s.link[k, UNACKED]
        s.link[k, UNACKED] = s.record[r, R_NEXT]
        give_record(s, r)


@cold
def _announce_again(f: Fixed, s: State, node: int, k: int) -> None:
    """Repeat the announcements that the peer has not acknowledged, in new ones."""
    low, high, slot = AHEAD, NONE, s.node[node, SLOT]
    r = s.link[k, UNACKED]
    while r >= 0:
        block = s.record[r, R_BLOCK]
        for i in range(s.record[r, R_SIZE]):
            w = signed(s.pool[block + 2 * i])
            if w >= first_kept(f, s):
                s.rest[ring(f, w)] |= s.pool[block + 2 * i + 1]
                low, high = min(low, w), max(high, w)
        r = s.record[r, R_NEXT]
    forget_all_unacked(s, k)
    count = 0
    for w in range(low, high + 1):
        at = ring(f, w)
        word = s.rest[at] & s.sets[slot, at, HELD] & ~s.link_sets[k, at, KNOWN_TO_PEER]
        word = alive_of(f, s, node, w, word)
        s.rest[at] = ZERO
        if word != ZERO:
            s.pairs[2 * count], s.pairs[2 * count + 1] = np.uint64(w), word
            count += 1
    send_set(f, s, k, ANNOUNCE, count, 0)


@cold
def _request_again(f: Fixed, s: State, node: int, k: int) -> None:
    """Repeat the requests that a peer has not answered, unless data keeps arriving. Messages that
    have expired are not requested any more."""
    is_due, count, link_sets = s.counts[NOW] - s.link[k, PROGRESS_US] >= f.retry_us, 0, s.link_sets
    for w in range(max(first_kept(f, s), s.link[k, REQUESTED_LOW]), s.link[k, REQUESTED_HIGH] + 1):
        at = ring(f, w)
        word = alive_of(f, s, node, w, link_sets[k, at, REQUESTED_HERE])
        dropped = link_sets[k, at, REQUESTED_HERE] & ~word
        link_sets[k, at, REQUESTED_HERE] = word
        s.sets[s.node[node, SLOT], at, REQUESTED] &= ~dropped
        if word != ZERO:
            s.counts[RETRIES] = 1
            s.pairs[2 * count], s.pairs[2 * count + 1] = np.uint64(w), word
            count += 1
    if is_due:
        send_set(f, s, k, REQUEST, count, 0)


@cold
def retry(f: Fixed, s: State, node: int) -> None:
    """Repeat what has had no answer: the timer is due."""
    s.node[node, RETRY_ARMED] = 0
    k = s.node[node, FIRST]
    while k >= 0:
        turn_link(f, s, k)
        if s.link[k, UNACKED] >= 0:
            _announce_again(f, s, node, k)
        _request_again(f, s, node, k)
        k = s.link[k, NEXT]
