"""Channels: one direction of one contact, a queue of records that are cut into frames.

A set on the wire is a list of pairs (word number, bits): 16 bytes for up to 64 ids. Data is a list
of messages, cut into frames when they leave. Only the arrival of the first frame of a channel is in
the event heap, so the heap has as many entries as channels are busy, however much waits in them.
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.queue import give_block, push, take_block
from beforehand.kernels.epidemic.sets import ONE, ZERO, count_bits, lowest, signed
from beforehand.kernels.epidemic.state import (
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
    NOW,
    R_BLOCK,
    R_BYTES,
    R_KIND,
    R_NEXT,
    R_POSITION,
    R_SENT_US,
    R_SIZE,
    R_TICKET,
    RECORD_FREE,
    RECORDS_TOP,
    SENDING,
    TAIL,
    TICKET,
    TOO_LATE,
    Fixed,
    State,
)

FRAME_BYTES, ID_BYTES, MESSAGE_BYTES = 8, 12, 16
"""As in `protocols.epidemic.frames`, which a test compares."""
SECOND_US = 1_000_000


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
def enqueue(f: Fixed, s: State, k: int, kind: int, block: int, size: int, frame_bytes: int) -> None:
    """Append a record to a channel: one frame for each message of data, at most, or one frame."""
    record, link = s.record, s.link
    r = s.counts[RECORD_FREE]
    if r < 0:
        r = s.counts[RECORDS_TOP]
        s.counts[RECORDS_TOP] = r + 1
    else:
        s.counts[RECORD_FREE] = record[r, R_NEXT]
    record[r, R_KIND], record[r, R_BLOCK], record[r, R_SIZE] = kind, block, size
    record[r, R_POSITION], record[r, R_SENT_US] = 0, s.counts[NOW]
    record[r, R_TICKET], record[r, R_NEXT] = s.counts[TICKET] + 1, -1
    record[r, R_BYTES] = frame_bytes
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
    record, link = s.record, s.link
    r = link[k, HEAD]
    words = record[r, R_SIZE] if record[r, R_KIND] == DATA else 2 * record[r, R_SIZE]
    give_block(s, record[r, R_BLOCK], words)
    link[k, HEAD] = record[r, R_NEXT]
    record[r, R_NEXT] = s.counts[RECORD_FREE]
    s.counts[RECORD_FREE] = r


@part
def _send_pairs(f: Fixed, s: State, k: int, kind: int, start: int, end: int, ids: int) -> None:
    """Send the pairs start..end-1, which have so many ids, as one frame."""
    words = 2 * (end - start)
    block = take_block(s, words)
    for i in range(words):
        s.pool[block + i] = s.pairs[2 * start + i]
    size = FRAME_BYTES + ID_BYTES * ids
    s.counts[FRAMES] += 1
    s.counts[BYTES] += size
    enqueue(f, s, k, kind, block, end - start, size)


@part
def send_set(f: Fixed, s: State, k: int, kind: int, count: int) -> None:
    """Send the first `count` pairs in frames of at most `ids_max` ids, in the order of (seq,
    origin)."""
    total = 0
    for i in range(count):
        total += count_bits(s.pairs[2 * i + 1])
    if total == 0:
        return
    if total <= f.ids_max:
        _send_pairs(f, s, k, kind, 0, count, total)
    elif f.lifetime_us:
        _send_cut(f, s, k, kind, count)
    else:
        _send_sorted(f, s, k, kind, count)


@cold
def _send_cut(f: Fixed, s: State, k: int, kind: int, count: int) -> None:
    """Send pairs in several frames; with lifetimes numbers are in the order of (seq, origin)."""
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
        _send_pairs(f, s, k, kind, start, end + 1, f.ids_max)
        ids, start = 0, end
        pairs[2 * end + 1] = word
        if word == ZERO:
            start = end = end + 1
    if ids:
        _send_pairs(f, s, k, kind, start, end, ids)


@cold
def _send_sorted(f: Fixed, s: State, k: int, kind: int, count: int) -> None:
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
        _send_pairs(f, s, k, kind, 0, size, end - start)


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
