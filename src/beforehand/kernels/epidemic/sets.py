"""Sets of messages as bits, 64 to a word, in a ring of words that turns with time.

Word `w` of the run is at `ring(w)`. With lifetimes only words that hold live messages are in use.
Each node, and each end of a contact, clears its own part of the ring when it is next touched. A
summary bit per non-empty word makes a link-up cost what is held, not what is alive somewhere.
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from beforehand.kernels.compiling import INTERPRETED, cold, part
from beforehand.kernels.epidemic.state import (
    AHEAD,
    ALIVE,
    AWAITED,
    FRESH,
    FRESH_HIGH,
    FRESH_LOW,
    LINK_SEEN,
    LIVE,
    NONE,
    NOW,
    SEEN,
    SLOT,
    WORD,
    Fixed,
    State,
)

ONE, ZERO = np.uint64(1), np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
INVERSE_BITS = 40
"""`ring` is exact while words of the run x words of the ring < 2**40: up to 2**26 messages."""
_5, _3, _F, _1 = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)


@part
def signed(word: np.uint64) -> int:
    """Return a word as a signed number: `int` would leave it unsigned."""
    return np.int64(word)  # type: ignore[return-value]


@part
def lowest(word: np.uint64) -> int:
    """Return the position of the lowest bit of a word that is not 0."""
    if INTERPRETED:  # in tests: the instruction exists in compiled code only
        return int(word & (ZERO - word)).bit_length() - 1
    return signed(trailing_zeros(word))  # type: ignore[call-arg]


@part
def count_bits(word: np.uint64) -> int:
    """Return the number of bits of a word. LLVM makes one instruction of it where there is one."""
    x = word - ((word >> np.uint64(1)) & _5)
    x = (x & _3) + ((x >> np.uint64(2)) & _3)
    x = (x + (x >> np.uint64(4))) & _F
    return signed((x * _1) >> np.uint64(56))


@part
def bit(m: int) -> np.uint64:
    return ONE << np.uint64(m & 63)


@part
def ring(f: Fixed, w: int) -> int:
    """Return the place of word w in the ring: w modulo its size, without a division."""
    w = int(w)  # a message may be of 32 bits
    return w - ((w * f.inverse) >> INVERSE_BITS) * f.words


@part
def has(f: Fixed, s: State, slot: int, which: int, m: int) -> bool:
    return bool((s.sets[slot, ring(f, m >> 6), which] >> np.uint64(m & 63)) & ONE != ZERO)


@part
def clock_of(f: Fixed, s: State, node: int) -> int:
    """Return what the clock of a node shows."""
    return int(s.counts[NOW] + f.offset_us[node])


@part
def is_dead(f: Fixed, s: State, node: int, m: int) -> bool:
    """Return whether a message has expired by the clock of a node."""
    if m >= s.counts[ALIVE]:
        return False
    return bool(m < s.counts[LIVE] or s.seq[m] <= clock_of(f, s, node))


@part
def alive_of(f: Fixed, s: State, node: int, w: int, word: np.uint64) -> np.uint64:
    """Return those bits of word w whose messages have not expired by the clock of a node."""
    live = s.counts[LIVE]
    if w > s.counts[ALIVE] >> 6:
        return word
    if w < live >> 6:
        return ZERO
    if w == live >> 6:
        word &= ALL << np.uint64(live & 63)
    if s.counts[ALIVE] > live and word != ZERO:
        word = _alive_one_by_one(f, s, node, w, word)
    return word


@cold
def _alive_one_by_one(f: Fixed, s: State, node: int, w: int, word: np.uint64) -> np.uint64:
    """Do the same where some nodes, by their clocks, see messages alive that others do not."""
    left, now_us = word, clock_of(f, s, node)
    while left != ZERO:
        m = (w << 6) + lowest(left)
        if s.seq[m] <= now_us:
            word &= ~bit(m)
        left &= left - ONE
    return word


@part
def first_kept(f: Fixed, s: State) -> int:
    """Return the first word that the ring holds. All words before it have expired."""
    return int(max(0, s.counts[WORD] - f.words + 1))


@part
def turn(f: Fixed, s: State, node: int) -> None:
    """Clear the words of a node that the ring has reached since it was last touched.

    AWAITED is cleared by the order (`kernels.epidemic.order.expire`): messages that expired while
    a node was away are still awaited there."""
    head, seen = s.counts[WORD], s.node[node, SEEN]
    if seen < head:
        slot = s.node[node, SLOT]
        for w in range(max(seen + 1, head - f.words + 1), head + 1):
            at = ring(f, w)
            for which in range(s.sets.shape[2]):
                if which != AWAITED:
                    s.sets[slot, at, which] = ZERO
            s.filled[slot, 0, at >> 6] &= ~bit(at)
            s.filled[slot, 1, at >> 6] &= ~bit(at)
        s.node[node, SEEN] = head


@part
def turn_link(f: Fixed, s: State, k: int) -> None:
    """Clear the words of one end of a contact, as `turn` does for a node."""
    head, seen = s.counts[WORD], s.link[k, LINK_SEEN]
    if seen < head:
        for w in range(max(seen + 1, head - f.words + 1), head + 1):
            for which in range(s.link_sets.shape[2]):
                s.link_sets[k, ring(f, w), which] = ZERO
        s.link[k, LINK_SEEN] = head


@part
def following(f: Fixed, s: State, slot: int, which: int, w: int, high: int) -> int:
    """Return the first word from w on that is not empty; beyond `high` if there is none.

    which: 0 for HELD, 1 for FRESH."""
    while w <= high:
        at = ring(f, w)
        left = s.filled[slot, which, at >> 6] >> np.uint64(at & 63)
        if left != ZERO:
            return w + lowest(left)
        w += 64 - (at & 63)
    return w


@part
def add_fresh(f: Fixed, s: State, node: int, m: int) -> None:
    w, slot = m >> 6, s.node[node, SLOT]
    at = ring(f, w)
    s.sets[slot, at, FRESH] |= bit(m)
    s.filled[slot, 1, at >> 6] |= bit(at)
    s.node[node, FRESH_LOW] = min(s.node[node, FRESH_LOW], w)
    s.node[node, FRESH_HIGH] = max(s.node[node, FRESH_HIGH], w)


@part
def clear_fresh(f: Fixed, s: State, node: int) -> None:
    slot, high = s.node[node, SLOT], s.node[node, FRESH_HIGH]
    w = following(f, s, slot, 1, max(first_kept(f, s), s.node[node, FRESH_LOW]), high)
    while w <= high:
        at = ring(f, w)
        s.sets[slot, at, FRESH] = ZERO
        s.filled[slot, 1, at >> 6] &= ~bit(at)
        w = following(f, s, slot, 1, w + 1, high)
    s.node[node, FRESH_LOW], s.node[node, FRESH_HIGH] = AHEAD, NONE
