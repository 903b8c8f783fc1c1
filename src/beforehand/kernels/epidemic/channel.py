"""Channels: one direction of one contact, a queue of records that are cut into frames.

A set on the wire is a list of pairs (word number, bits): 16 bytes for up to 64 ids. Data is a list
of messages, cut into frames when they leave. Only the arrival of the first frame of a channel is in
the event heap, so the heap has as many entries as channels are busy, however much waits in them.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.noise import SECOND_US, send_noisy
from beforehand.kernels.epidemic.queue import give_record, push, take_block, take_record
from beforehand.kernels.epidemic.sets import ONE, ZERO, count_bits, lowest, signed
from beforehand.kernels.epidemic.state import (
    ANNOUNCE,
    BUSY,
    BYTES,
    CUT,
    DATA,
    DOWN_US,
    FRAME,
    FRAMES,
    FREE_US,
    HEAD,
    IDLE,
    IS_UNSORTED,
    NONE,
    NOW,
    NUMBER,
    OWNER,
    PROGRESS_US,
    R_BLOCK,
    R_BYTES,
    R_KIND,
    R_NEXT,
    R_NUMBER,
    R_POSITION,
    R_SENT_US,
    R_SIZE,
    R_TICKET,
    REQUEST,
    RETRIES,
    SENDING,
    TAIL,
    TICKET,
    TOO_LATE,
    UNACKED,
    Fixed,
    State,
)

FRAME_BYTES, ID_BYTES, MESSAGE_BYTES = 8, 12, 16
"""As in `protocols.epidemic.frames`, which a test compares."""


@part
def message_bytes(f: Fixed, s: State, m: int) -> int:
    return int(MESSAGE_BYTES + ID_BYTES * s.past_size[m] + f.payload[m])


@part
def _cut_frame(f: Fixed, s: State, k: int) -> int:
    """Fill the next frame of the first record of a channel, which is data; return its size."""
    r = s.link[k, HEAD]
    start, end = s.record[r, R_BLOCK], s.record[r, R_SIZE]
    at, room, cut, size = s.record[r, R_POSITION], f.frame_bytes, 0, FRAME_BYTES
    while at + cut < end and cut < f.frame_messages:
        more = message_bytes(f, s, signed(s.pool[start + at + cut]))
        if cut and more > room:
            break
        room -= more
        size += more
        cut += 1
    s.link[k, CUT] = cut
    return size


@part
def schedule(f: Fixed, s: State, k: int) -> None:
    """Send the first frame of a channel that is idle: compute when it arrives."""
    link, record = s.link, s.record
    r = link[k, HEAD]
    size = record[r, R_BYTES]
    link[k, CUT] = 0
    if record[r, R_KIND] == DATA:
        size = _cut_frame(f, s, k)
    start = record[r, R_SENT_US]
    if f.bytes_per_s:
        start = max(start, link[k, FREE_US])
        start += (size * SECOND_US + f.bytes_per_s - 1) // f.bytes_per_s
        link[k, FREE_US] = start
    arrive = start + f.latency_us
    if arrive < link[k, DOWN_US]:
        push(s, arrive, FRAME, k, record[r, R_TICKET])
        record[r, R_TICKET] += 1
        link[k, BUSY] = SENDING
    else:
        link[k, BUSY] = TOO_LATE  # and so are all that follow


@part
def enqueue(
    f: Fixed, s: State, k: int, kind: int, block: int, size: int, frame_bytes: int, number: int
) -> None:
    """Append a record to a channel: one frame for each message of data, at most, or one frame."""
    record, link = s.record, s.link
    r = take_record(s)
    record[r, R_KIND], record[r, R_BLOCK], record[r, R_SIZE] = kind, block, size
    record[r, R_POSITION], record[r, R_SENT_US] = 0, s.counts[NOW]
    record[r, R_TICKET], record[r, R_NEXT] = s.counts[TICKET] + 1, NONE
    record[r, R_BYTES], record[r, R_NUMBER] = frame_bytes, number
    s.counts[TICKET] += size if kind == DATA else 1
    if link[k, HEAD] < 0:
        link[k, HEAD] = r
    else:
        record[link[k, TAIL], R_NEXT] = r
    link[k, TAIL] = r
    if link[k, BUSY] == IDLE:
        schedule(f, s, k)


@part
def drop_record(s: State, k: int) -> None:
    """Remove the first record of a channel."""
    r = s.link[k, HEAD]
    s.link[k, HEAD] = s.record[r, R_NEXT]
    give_record(s, r)


@part
def _copy_pairs(s: State, start: int, words: int) -> int:
    block = take_block(s, words)
    for i in range(words):
        s.pool[block + i] = s.pairs[start + i]
    return block


@cold
def _keep_unacked(s: State, k: int, block: int, size: int) -> int:
    """Keep a copy of an announcement until the peer acknowledges it; return its number."""
    node, r = s.link[k, OWNER], take_record(s)
    s.node[node, NUMBER] += 1
    s.record[r, R_KIND], s.record[r, R_SIZE] = ANNOUNCE, size
    s.record[r, R_NUMBER] = s.node[node, NUMBER]
    s.record[r, R_BLOCK] = take_block(s, 2 * size)
    for i in range(2 * size):
        s.pool[s.record[r, R_BLOCK] + i] = s.pool[block + i]
    s.record[r, R_NEXT] = s.link[k, UNACKED]
    s.link[k, UNACKED] = r
    s.counts[RETRIES] = 1
    return int(s.node[node, NUMBER])


@part
def send_pairs(
    f: Fixed, s: State, k: int, kind: int, start: int, end: int, ids: int, number: int
) -> None:
    """Send the pairs start..end-1, which have so many ids, as one frame.

    number: of the announcement that a request acknowledges."""
    block = _copy_pairs(s, 2 * start, 2 * (end - start))
    size = FRAME_BYTES + ID_BYTES * ids
    s.counts[FRAMES] += 1
    s.counts[BYTES] += size
    if f.retry_us and kind == ANNOUNCE:
        number = _keep_unacked(s, k, block, end - start)
    elif f.retry_us and kind == REQUEST and ids:
        s.link[k, PROGRESS_US] = s.counts[NOW]
        s.counts[RETRIES] = 1
    if f.is_noisy:
        send_noisy(f, s, k, kind, block, end - start, size, number)
    else:
        enqueue(f, s, k, kind, block, end - start, size, number)


@part
def send_set(f: Fixed, s: State, k: int, kind: int, count: int, number: int) -> None:
    """Send the first `count` pairs in frames of at most `ids_max` ids, in the order of (seq,
    origin); none if there are no ids."""
    total = 0
    for i in range(count):
        total += count_bits(s.pairs[2 * i + 1])
    if total == 0:
        return
    if total <= f.ids_max:
        send_pairs(f, s, k, kind, 0, count, total, number)
    elif s.counts[IS_UNSORTED]:
        _send_sorted(f, s, k, kind, count, number)
    else:
        _send_cut(f, s, k, kind, count, number)


@cold
def _send_cut(f: Fixed, s: State, k: int, kind: int, count: int, number: int) -> None:
    """Send pairs in several frames, where numbers are in the order of (seq, origin)."""
    pairs = s.pairs
    start, end, ids = 0, 0, 0
    while end < count:
        word = pairs[2 * end + 1]
        more = count_bits(word)
        if ids + more < f.ids_max:
            ids += more
            end += 1
            continue
        kept = ZERO
        for _ in range(f.ids_max - ids):
            kept |= word & (ZERO - word)
            word &= word - ONE
        pairs[2 * end + 1] = kept
        send_pairs(f, s, k, kind, start, end + 1, f.ids_max, number)
        ids, start = 0, end
        pairs[2 * end + 1] = word
        if word == ZERO:
            start = end = end + 1
    if ids:
        send_pairs(f, s, k, kind, start, end, ids, number)


@cold
def _send_sorted(f: Fixed, s: State, k: int, kind: int, count: int, number: int) -> None:
    """Send pairs in several frames, where the order of numbers is not that of (seq, origin)."""
    picked, pairs, total = s.picked, s.pairs, 0
    for i in range(count):
        word = pairs[2 * i + 1]
        while word != ZERO:
            picked[total] = (signed(pairs[2 * i]) << 6) + lowest(word)
            word &= word - ONE
            total += 1
    sort_picked(s, 0, total, True)
    for start in range(0, total, f.ids_max):
        end = min(start + f.ids_max, total)
        sort_picked(s, start, end, False)
        size = 0
        for i in range(start, end):
            w = np.uint64(picked[i] >> 6)
            if size == 0 or pairs[2 * size - 2] != w:
                pairs[2 * size], pairs[2 * size + 1] = w, ZERO
                size += 1
            pairs[2 * size - 1] |= ONE << np.uint64(picked[i] & 63)
        send_pairs(f, s, k, kind, 0, size, end - start, number)


@part
def _comes_after(s: State, a: int, b: int, is_by_id: bool) -> bool:
    if is_by_id and s.seq[a] != s.seq[b]:
        return bool(s.seq[a] > s.seq[b])
    if is_by_id:
        return bool(s.origin[a] > s.origin[b])
    return a > b


@cold
def sort_picked(s: State, start: int, end: int, is_by_id: bool) -> None:
    """Sort these places of `picked` by (seq, origin), or by number (Shell's method)."""
    picked = s.picked
    gap = 1
    while gap < (end - start) // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(start + gap, end):
            m = picked[i]
            j = i
            while j >= start + gap and _comes_after(s, picked[j - gap], m, is_by_id):
                picked[j] = picked[j - gap]
                j -= gap
            picked[j] = m
        gap //= 3


@part
def sort_by_seq(s: State, count: int) -> None:
    """Sort the picked messages by seq, and otherwise as they came."""
    picked = s.picked
    for i in range(1, count):
        m, j = picked[i], i
        while j > 0 and s.seq[picked[j - 1]] > s.seq[m]:
            picked[j] = picked[j - 1]
            j -= 1
        picked[j] = m
