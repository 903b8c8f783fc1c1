"""State proven bounds of what one event can need, checked before the event.

The bounds follow from what a step does, with D the links of the node, E its stored messages, P its
pending ones, C the messages of the frame that arrives, I the ids in it, B the entries of the
barrier:

- rows: RECEIVE and DELIVER or DROP for each of C; DELIVER, EXPIRE or DROP for each of P; two for a
  broadcast.
- pool: a set of n pairs takes a block of fewer than 4n words. An announcement has at most E pairs
  for each of D peers; a request at most as many pairs as the announcement; the sets of a request
  elsewhere have I pairs together, because no id is requested twice. Data takes fewer than 2I words,
  and a barrier that grows to n entries takes blocks of fewer than 8n words together.
- pool, evictions: a bounded cache lists E + C + 1 messages, in blocks of fewer than 8 times as many
  words, and evicts at most all of them.
- heap: each channel that starts to send, or each copy of a frame, and three timers.
- pool, places: a list of no more than twice the stored messages grows by doubling.
- records: each set is cut into at most 1 + ids / ids_max frames. On noisy links each message of
  data is a frame of its own at worst.
- copies: a frame on a noisy link can arrive twice, and an announcement is kept until it is
  acknowledged.
- waits: each of C and of P waits for one cause at most, and so does each entry.
"""

from __future__ import annotations

from beforehand.kernels.compiling import part
from beforehand.kernels.epidemic.channel import ID_BYTES
from beforehand.kernels.epidemic.state import (
    BARRIER_SIZE,
    CUT,
    DEGREE,
    ENTRIES,
    ENTRIES_TOP,
    EVICTION_ROWS,
    FIRST,
    HEAD,
    HEAP,
    LINKS_TOP,
    NEED,
    NEXT,
    NONE,
    PAST_TOP,
    PENDING,
    PLACES_SIZE,
    POOL_TOP,
    R_BYTES,
    R_SIZE,
    RECORDS_TOP,
    REQUESTED_HIGH,
    REQUESTED_LOW,
    ROWS,
    SAMPLES,
    SHORT_ENTRIES,
    SHORT_EVICTIONS,
    SHORT_HEAP,
    SHORT_LINKS,
    SHORT_PAST,
    SHORT_POOL,
    SHORT_RECORDS,
    SHORT_ROWS,
    SHORT_SAMPLES,
    SHORT_SLOTS,
    SHORT_WAITS,
    SLOTS_TOP,
    WAITS_TOP,
    Fixed,
    State,
)

FIT = NONE
"""Everything is large enough."""


@part
def _is_short(s: State, used: int, more: int, length: int) -> bool:
    s.counts[NEED] = used + more
    return used + more > length


@part
def short_of(
    f: Fixed, s: State, node: int, came: int, words: int, cuts: int, announces: bool
) -> int:
    """Return what is too short for a step of `node`, or FIT; NEED is then the length needed.

    came: messages of the frame that arrives. words: of the pool, for what the step sends besides
    announcements. cuts: frames of these beyond one for each link. announces: if it has any."""
    degree, pending = s.node[node, DEGREE] + 1, s.node[node, PENDING]
    announced = min(s.node[node, ENTRIES] + came + 1, f.words << 6) if announces else 0
    named = s.node[node, BARRIER_SIZE] + pending + came + 1
    counts = s.counts
    if _is_short(s, counts[ROWS], 2 * came + pending + 2, len(s.row_t)):
        return SHORT_ROWS
    cut = announced // f.ids_max
    copies, frames = 1, degree * (2 + cut) + cuts + 2
    if f.retry_us or f.is_noisy:
        copies = 3
    pool = copies * (words + 4 * degree * (min(announced, f.words) + cut + 2)) + 8 * named
    if f.lists:
        stored = s.node[node, ENTRIES] + came + 1
        pool += 8 * (stored + s.node[node, PLACES_SIZE] + came + 1)
        if f.is_bounded and _is_short(s, counts[EVICTION_ROWS], stored, len(s.eviction)):
            return SHORT_EVICTIONS
    if _is_short(s, counts[POOL_TOP], pool, len(s.pool)):
        return SHORT_POOL
    arrivals = 2 * frames if f.is_noisy else degree
    if _is_short(s, counts[HEAP], arrivals + 7, len(s.heap)):
        return SHORT_HEAP
    if _is_short(s, counts[RECORDS_TOP], copies * frames, len(s.record)):
        return SHORT_RECORDS
    if _is_short(s, counts[WAITS_TOP], came + pending, len(s.wait)):
        return SHORT_WAITS
    if _is_short(s, counts[ENTRIES_TOP], came, len(s.entry)):
        return SHORT_ENTRIES
    if _is_short(s, counts[PAST_TOP], named, len(s.past)):
        return SHORT_PAST
    if f.gauge_us and _is_short(s, counts[SAMPLES], 1, len(s.sample)):
        return SHORT_SAMPLES
    return FIT


@part
def short_of_frame(f: Fixed, s: State, k: int, node: int) -> int:
    """Return what is too short for the frame that has arrived over channel `k` at a node."""
    r, came = s.link[k, HEAD], s.link[k, CUT]
    if came:
        return short_of(f, s, node, came, 0, 0, f.announce_us == 0)
    ids = s.record[r, R_BYTES] // ID_BYTES
    cuts = ids if f.is_noisy else 0
    return short_of(f, s, node, 0, 4 * (s.record[r, R_SIZE] + ids) + 2 * ids + 8, cuts, False)


@part
def short_of_retry(f: Fixed, s: State, node: int) -> int:
    """Return what is too short for the timer of repeated frames."""
    words, k = 0, s.node[node, FIRST]
    while k >= 0:
        words += min(max(0, s.link[k, REQUESTED_HIGH] - s.link[k, REQUESTED_LOW] + 1), f.words)
        k = s.link[k, NEXT]
    cuts = 64 * words // f.ids_max + s.node[node, DEGREE]
    return short_of(f, s, node, 0, 4 * (words + cuts), cuts, True)


@part
def short_of_link_down(f: Fixed, s: State, k: int, node: int) -> int:
    """Return what is too short for the link-down of one end of a contact."""
    words = min(max(0, s.link[k, REQUESTED_HIGH] - s.link[k, REQUESTED_LOW] + 1), f.words)
    pairs = words * min(64, s.node[node, DEGREE] + 1)
    cuts = 64 * words // f.ids_max
    return short_of(f, s, node, 0, 4 * (pairs + cuts), cuts, False)


@part
def short_of_contact(s: State) -> int:
    """Return whether there is room for the two ends of a new contact."""
    if _is_short(s, s.counts[LINKS_TOP], 2, len(s.link)):
        return SHORT_LINKS
    return FIT


@part
def short_of_slot(s: State) -> int:
    """Return whether there is room for a node that joins: its sets, its barrier and its row."""
    if _is_short(s, s.counts[SLOTS_TOP], 1, len(s.sets)):
        return SHORT_SLOTS
    if _is_short(s, s.counts[POOL_TOP], 12, len(s.pool)):
        return SHORT_POOL
    if _is_short(s, s.counts[HEAP], 3, len(s.heap)):
        return SHORT_HEAP
    if _is_short(s, s.counts[ROWS], 1, len(s.row_t)):
        return SHORT_ROWS
    return FIT
