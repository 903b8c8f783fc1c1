"""Answers to requests in the compiled contact world: what a node sends, and in which order."""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.channel import (
    FRAME_BYTES,
    drop_record,
    enqueue,
    message_bytes,
    send_set,
    sort_picked,
)
from beforehand.kernels.epidemic.draws import shuffle_picked
from beforehand.kernels.epidemic.noise import send_noisy
from beforehand.kernels.epidemic.queue import give_record, take_block
from beforehand.kernels.epidemic.sets import (
    ONE,
    ZERO,
    alive_of,
    bit,
    count_bits,
    first_kept,
    lowest,
    ring,
    signed,
)
from beforehand.kernels.epidemic.state import (
    BY_DRAW,
    BYTES,
    DATA,
    ENTRIES,
    FRAMES,
    GONE,
    HEAD,
    HELD,
    IS_UNSORTED,
    KNOWN,
    KNOWN_TO_PEER,
    LIST,
    LIST_FIRST,
    LIVE,
    NEWEST_FIRST,
    NONE,
    OWNER,
    R_BLOCK,
    R_NEXT,
    R_NUMBER,
    R_SIZE,
    SLOT,
    UNACKED,
    Fixed,
    State,
)


@cold
def _forget_unacked(s: State, k: int, number: int) -> None:
    """Forget the announcement with this number: the peer has acknowledged it."""
    before, r = NONE, s.link[k, UNACKED]
    while r >= 0 and s.record[r, R_NUMBER] != number:
        before, r = r, s.record[r, R_NEXT]
    if r < 0:
        return
    if before < 0:
        s.link[k, UNACKED] = s.record[r, R_NEXT]
    else:
        s.record[before, R_NEXT] = s.record[r, R_NEXT]
    give_record(s, r)


@cold
def _sort_by_storing(f: Fixed, s: State, node: int, count: int) -> None:
    """Sort the picked messages in the order in which the node stored them, or against it."""
    for i in range(count):
        s.rest[ring(f, s.picked[i] >> 6)] |= bit(s.picked[i])
    base, found = s.node[node, LIST] + s.node[node, LIST_FIRST], 0
    for i in range(s.node[node, ENTRIES]):
        m = signed(s.pool[base + i])
        # An expired message may be listed whose word is used by others now.
        if m >= s.counts[LIVE] and s.rest[ring(f, m >> 6)] & bit(m) != ZERO:
            s.picked[found] = m
            found += 1
    for i in range(count):
        s.rest[ring(f, s.picked[i] >> 6)] = ZERO
    if f.transfer == NEWEST_FIRST:
        for i in range(count // 2):
            other = count - 1 - i
            s.picked[i], s.picked[other] = s.picked[other], s.picked[i]


@part
def on_request(f: Fixed, s: State, k: int) -> None:
    """Send what is held, and the ids of what is not."""
    r, back = s.link[k, HEAD], k ^ 1
    node, number, is_empty = s.link[back, OWNER], s.record[r, R_NUMBER], s.record[r, R_SIZE] == 0
    slot, block = s.node[node, SLOT], s.record[r, R_BLOCK]
    found_count = gone_count = 0
    for i in range(s.record[r, R_SIZE]):
        w, bits = signed(s.pool[block + 2 * i]), s.pool[block + 2 * i + 1]
        found = ZERO
        if w >= first_kept(f, s):
            at = ring(f, w)
            found = alive_of(f, s, node, w, bits & s.sets[slot, at, HELD])
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
    if number:
        _forget_unacked(s, back, number)
    if is_empty:
        return  # it only acknowledges
    if f.transfer != BY_DRAW:
        _sort_by_storing(f, s, node, found_count)
    else:
        if s.counts[IS_UNSORTED]:
            sort_picked(s, 0, found_count, True)
        shuffle_picked(f, s, node, found_count)
    if f.is_noisy:
        _serve_noisy(f, s, back, found_count)
    elif found_count:
        _serve(f, s, back, found_count)
    send_set(f, s, back, GONE, gone_count, 0)


@part
def _serve(f: Fixed, s: State, k: int, count: int) -> None:
    """Send the picked messages, and count their frames."""
    picked = s.picked
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
    s.counts[BYTES] += total + FRAME_BYTES * frames
    enqueue(f, s, k, DATA, block, count, 0, 0)


@cold
def _serve_noisy(f: Fixed, s: State, k: int, count: int) -> None:
    """Send the picked messages in frames of their own: each of them may be lost."""
    start = 0
    while start < count:
        room, end, size = f.frame_bytes, start, FRAME_BYTES
        while end < count and end - start < f.frame_messages:
            more = message_bytes(f, s, s.picked[end])
            if end > start and more > room:
                break
            room -= more
            size += more
            end += 1
        block = take_block(s, end - start)
        for i in range(start, end):
            s.pool[block + i - start] = np.uint64(s.picked[i])
        s.counts[FRAMES] += 1
        s.counts[BYTES] += size
        send_noisy(f, s, k, DATA, block, end - start, size, 0)
        start = end
