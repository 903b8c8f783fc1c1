"""Frames on links that lose, duplicate or reorder them, as `sim.contacts.links` does.

Each copy of a frame is a record and an event of its own. On other links a record is a queue of
frames, of which only the first is an event (`kernels.epidemic.channel`).
"""

from __future__ import annotations

import numpy as np

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.queue import (
    give_record,
    next_ticket,
    push,
    take_block,
    take_record,
    words_of,
)
from beforehand.kernels.epidemic.state import (
    ABORTED,
    CONTACT,
    CUT,
    DATA,
    DOWN_US,
    FRAME,
    FREE_US,
    HEAD,
    LOST,
    NONE,
    NOW,
    R_BLOCK,
    R_BYTES,
    R_KIND,
    R_LINK,
    R_NEXT,
    R_NUMBER,
    R_POSITION,
    R_SIZE,
    SENT,
    Fixed,
    State,
)
from beforehand.kernels.random.draws import mix, unit

SECOND_US = 1_000_000


@part
def _delay(f: Fixed, key: np.uint64, which: int) -> int:
    return int(unit(mix(key, which)) * f.jitter_us)


@part
def _push_copy(s: State, k: int, arrive: int, first: int, made: int) -> int:
    """Let a copy of the frame in record `first` arrive; return how many copies there are now.

    made: how many copies there are. The first one takes the record itself."""
    if arrive >= s.link[k, DOWN_US]:
        return made
    r = first
    if made:
        r = take_record(s)
        for column in (R_KIND, R_SIZE, R_POSITION, R_BYTES, R_NUMBER, R_LINK, R_NEXT):
            s.record[r, column] = s.record[first, column]
        words = words_of(s, r)
        s.record[r, R_BLOCK] = take_block(s, words)
        for i in range(words):
            s.pool[s.record[r, R_BLOCK] + i] = s.pool[s.record[first, R_BLOCK] + i]
    push(s, arrive, FRAME, r, next_ticket(s))
    return made + 1


@cold
def send_noisy(
    f: Fixed, s: State, k: int, kind: int, block: int, size: int, frame_bytes: int, number: int
) -> None:
    """Send one frame, whose contents are a block of the pool: it arrives once, twice or never."""
    r, now = take_record(s), s.counts[NOW]
    s.record[r, R_KIND], s.record[r, R_BLOCK], s.record[r, R_SIZE] = kind, block, size
    s.record[r, R_POSITION], s.record[r, R_BYTES], s.record[r, R_NUMBER] = 0, frame_bytes, number
    s.record[r, R_LINK], s.record[r, R_NEXT] = k, NONE
    start = now
    if f.bytes_per_s:
        start = max(now, s.link[k, FREE_US])
        start += (frame_bytes * SECOND_US + f.bytes_per_s - 1) // f.bytes_per_s
        s.link[k, FREE_US] = start
    arrive, copies, made = start + f.latency_us, 0, 0
    if now >= f.noise_until_us:
        copies = 1
        made = _push_copy(s, k, arrive, r, made)
    else:
        s.link[k, SENT] += 1
        key = mix(mix(mix(f.noise_key, s.link[k, CONTACT]), k & 1), s.link[k, SENT])
        if unit(mix(key, 1)) >= f.loss:
            copies += 1
            made = _push_copy(s, k, arrive + _delay(f, key, 2), r, made)
        if unit(mix(key, 3)) < f.duplication:
            copies += 1
            made = _push_copy(s, k, arrive + _delay(f, key, 4), r, made)
    if made == 0:
        s.counts[LOST] += 1
        s.counts[ABORTED] += copies > 0
        give_record(s, r)


@part
def open_frame(s: State, r: int) -> int:
    """Put a frame that has arrived where `kernels.epidemic.layer` reads it; return its channel."""
    k = s.record[r, R_LINK]
    s.link[k, HEAD] = r
    s.link[k, CUT] = s.record[r, R_SIZE] if s.record[r, R_KIND] == DATA else 0
    return int(k)
