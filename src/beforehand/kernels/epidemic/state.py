"""The data of the compiled contact world: its input, its state, its output, and how it grows.

A message is a number, its place in the workload, so numbers grow with time. Its origin, seq and
causes are columns. Compiled code allocates nothing. Before an event it computes how much the event
may need at most (`kernels.epidemic.bounds`). If an array is too short, it returns which one, and
the caller enlarges it or takes the full pages of the log away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bytes = NDArray[np.int8]
Bits = NDArray[np.uint64]

NONE = -1
AHEAD = 1 << 62

BROADCAST, RECEIVE, DELIVER, EXPIRE, DROP, JOIN, LEAVE = 0, 1, 2, 3, 4, 6, 7
"""The kinds of log rows, as in `sim.log`."""
DOWN, GO, COME, UP, BROADCAST_AT = range(5)
"""The kinds of planned events, in their order at one instant."""

HELD, DELIVERED, REQUESTED, AWAITED, FRESH, EVICTED, NODE_SETS = range(7)
"""The sets of messages of a node:

- HELD: stored
- DELIVERED: delivered
- REQUESTED: requested from a peer
- AWAITED: a pending message waits for it
- FRESH: stored since the last announcement
- EVICTED: evicted since the last link-up; only if caches are bounded"""
KNOWN_TO_PEER, REQUESTED_HERE, OFFERED_AGAIN, LINK_SETS = range(4)
"""The sets of one end of a contact: what the peer has, what is requested from it, and what of that
it announced again; the last one only if messages can be offered again."""
FRAME, ANNOUNCE_TIMER, ORDER_TIMER, RETRY_TIMER = range(4)
"""The kinds of events in the heap."""
ANNOUNCE, REQUEST, DATA, GONE = range(4)
"""The kinds of records on a channel."""

SLOT, FIRST, LAST, DEGREE, ARMED, ORDER_DUE, ORDER_TICKET, PHASE = range(8)
ENTRIES, PURGE_AT, DRAWS, PENDING, BARRIER, BARRIER_ROOM, BARRIER_SIZE = range(8, 15)
BARRIER_PURGE_AT, FRESH_LOW, FRESH_HIGH, LAST_SEQ, IS_HERE = range(15, 20)
ASLEEP, ASLEEP_TOO, ASLEEP_LAST, SEEN, AWAITED_SEEN, GAUGE_DUE = range(20, 26)
LIST, LIST_ROOM, LIST_FIRST, EARLIEST, EVICTED_SIZE, EVICTED_LOW, EVICTED_HIGH = range(26, 33)
PLACES, PLACES_ROOM, PLACES_SIZE, STORED_BYTES, NUMBER, RETRY_ARMED = range(33, 39)
TAKEN, TAKEN_PURGE_AT, NODE_COLUMNS = range(39, 42)
"""The columns of `State.node`.

- SLOT: its place in `State.sets`; FIRST, LAST, DEGREE: the list of its links
- ARMED: whether the announcement timer is set; ORDER_DUE, ORDER_TICKET: the timer of the order
- ENTRIES: the number of stored messages, expired ones included until the next purge
- BARRIER, BARRIER_ROOM, BARRIER_SIZE: the block in the pool that lists what its next message names
- FRESH_LOW, FRESH_HIGH: the range of words of FRESH
- ASLEEP, ASLEEP_TOO, ASLEEP_LAST: timers that came due while the node was away
- SEEN, AWAITED_SEEN: up to which word of the run its part of the ring is cleared
- LIST, LIST_ROOM, LIST_FIRST: the block in the pool that lists the stored messages, the longest
  stored first, and where it begins there; EARLIEST: no deadline of these is earlier
- PLACES, PLACES_ROOM, PLACES_SIZE: the block from which a random message is evicted
- STORED_BYTES: the size of the stored messages; NUMBER: of the last announcement
- RETRY_ARMED: whether the timer of repeated frames is set
- TAKEN, TAKEN_PURGE_AT: how many messages a node without an order remembers as delivered, expired
  ones included until the next purge
- EVICTED_SIZE, EVICTED_LOW, EVICTED_HIGH: the size of EVICTED, and the range of its words"""

OWNER, HAS_ANNOUNCED, NEXT, BEFORE, FREE_US, DOWN_US, HEAD, TAIL, CUT, BUSY = range(10)
REQUESTED_LOW, REQUESTED_HIGH, LINK_SEEN, KNOWN, CONTACT, SENT, PROGRESS_US, UNACKED = range(10, 18)
LINK_COLUMNS = 18
"""The columns of `State.link`: one row for each end of a contact, which also is the channel from
that end. The other end of link `k` is `k ^ 1`.

- FREE_US: when the channel has sent what was cut off; HEAD, TAIL: its queue of records
- CUT: the number of messages in the frame that is under way; BUSY: IDLE, SENDING or TOO_LATE
- KNOWN: how many messages the peer is known to have, expired ones included
- CONTACT: its place in the trace; SENT: how many frames had draws of their own
- PROGRESS_US: when the peer last sent data, or was last asked for some
- UNACKED: the list of the announcements that the peer has not acknowledged"""
IDLE, SENDING, TOO_LATE = range(3)

R_KIND, R_BLOCK, R_SIZE, R_POSITION, R_SENT_US, R_TICKET, R_NEXT, R_BYTES, R_NUMBER = range(9)
R_LINK, RECORD_COLUMNS = 9, 10
"""The columns of `State.record`: frames that wait on a channel. The block in the pool is a list of
messages (DATA), or of pairs (word number, bits). R_NUMBER: the number of an announcement, or the
one that a request acknowledges. R_LINK: the channel of a frame that is in the heap itself."""

W_NODE, W_MESSAGE, W_FIRST, W_LAST, W_NEXT, W_TICKET, WAIT_COLUMNS = range(7)
"""The columns of `State.wait`: the entries that wait for a message at a node, first to last.
Of messages with equal deadlines, the one that was awaited first (W_TICKET) expires first."""
E_MESSAGE, E_MET, E_NEXT, ENTRY_COLUMNS = range(4)
"""The columns of `State.entry`: a pending message, and how many of its causes are met."""

NOW, POSITION, HEAP, TICKET, ROWS, LIVE, WORD, RECORD_FREE, LINK_FREE, SLOT_FREE = range(10)
POOL_TOP, PAST_TOP, WAIT_FREE, ENTRY_FREE, FRAMES, BYTES, ARRIVED, STALE = range(10, 18)
DUPLICATE, RECEIVED, DELIVERIES, DUE_MIN, EVENTS, LINKS_TOP, SLOTS_TOP = range(18, 25)
RECORDS_TOP, WAITS_TOP, ENTRIES_TOP, LAPSED, EXPIRED, SAMPLES, NEED, SIDE = range(25, 33)
WAITS, EVICTIONS, EVICTION_ROWS, DROPPED, REFUSED, ALIVE, IS_UNSORTED = range(33, 40)
LOST, ABORTED, RETRIES, IS_EARLIER, COUNTS = range(40, 45)
"""The places in `State.counts`.

- LIVE: the first message that has not expired by the clock of every node; ALIVE: from here on all
  messages live by every clock; WORD: the last word of messages so far
- DUE_MIN: the earliest seq for which a message began to wait in this step; IS_EARLIER: whether
  the timer of the order has to be set for it
- *_TOP: how much of an array has ever been used; *_FREE: the first of the used rows that are free
- SIDE: how many ends of the planned contact have been carried out
- NEED: how long the array must be that is too short
- REFUSED: why the run cannot go on, or 0
- IS_UNSORTED: whether numbers are not in the order of (seq, origin)
- LOST, ABORTED: frames of noisy links that never arrive, and those whose contact ended
- RETRIES: whether the step has sent something that is repeated if no answer comes"""

DONE, SHORT_ROWS, SHORT_POOL, SHORT_HEAP, SHORT_RECORDS, SHORT_WAITS, SHORT_ENTRIES = range(7)
SHORT_PAST, SHORT_LINKS, SHORT_SLOTS, SHORT_SAMPLES, SHORT_EVICTIONS = range(7, 12)
RING_FULL, MANY_EVICTED, MANY_KNOWN = range(12, 15)
"""Why compiled code returns. The last three are refusals: more live messages than the ring was made
for, and in runs with bounded caches so many evictions between two link-ups, or so many messages
known to a peer, that the cores forget some of them."""
BY_DRAW, OLDEST_FIRST, NEWEST_FIRST = range(3)
"""Which of the requested messages is sent first."""

SAMPLE_COLUMNS = 6
"""The columns of `State.sample`: time, node, and the gauges of `sim.contacts.world.GAUGES`."""
CLASSES = 40
"""The pool has blocks of 2, 4, 8, ... words: a list of free ones for each size."""


class Fixed(NamedTuple):
    """The constants of a run."""

    plan_t: Longs
    plan_kind: Bytes
    plan_a: Ints
    plan_b: Ints
    plan_place: Ints
    contact_down: Longs
    last_down: Longs
    sent_us: Longs
    """When each message is broadcast, and AHEAD after the last."""
    offset_us: Longs
    """How far the clock of each node is ahead."""
    offset_low_us: int
    offset_high_us: int
    """The smallest and the largest of these."""
    skew_us: int
    """The agreed bound of their differences."""
    latency_us: int
    bytes_per_s: int
    """0: unlimited."""
    announce_us: int
    lifetime_us: int
    """0: none."""
    is_causal: bool
    is_vector: bool
    """Whether a message names the last message of every origin."""
    covers: bool
    """Whether a delivered message covers what it names, so that the next message need not."""
    frame_bytes: int
    frame_messages: int
    ids_max: int
    payload: Ints
    """The size of the payload of each message."""
    capacity: int
    """The largest number of messages that a node stores, or AHEAD."""
    capacity_bytes: int
    """The largest size of these, or AHEAD."""
    is_bounded: bool
    """Whether one of the two is a bound."""
    draws_evicted: bool
    """Whether an evicted message is drawn; else it is the longest stored."""
    transfer: int
    """BY_DRAW, OLDEST_FIRST or NEWEST_FIRST."""
    lists: bool
    """Whether nodes list what they store in order."""
    retry_us: int
    """0: links are reliable, and nothing is repeated."""
    repeats: bool
    """Whether a message can be offered or come again."""
    is_noisy: bool
    loss: float
    duplication: float
    jitter_us: int
    noise_until_us: int
    noise_key: np.uint64
    gauge_us: int
    """0: gauges are not sampled."""
    key: np.uint64
    words: int
    """The size of the ring: a multiple of 64."""
    inverse: int
    """2**40 / words, rounded up."""


class State(NamedTuple):
    """The mutable state of a run. The comments name the axes."""

    counts: Longs  # NOW, POSITION, ...
    node: Longs  # node, column
    link: Longs  # link, column
    record: Longs  # record, column
    sets: Bits  # slot, word, set
    slot_next: Longs
    filled: Bits  # slot, (HELD, FRESH), word: a bit for each word of that set that is not 0
    link_sets: Bits  # link, word, set
    heap: Longs  # (time, ticket << 26 | kind << 24 | index)
    pool: Bits  # blocks: sets, lists and barriers
    free: Longs  # class of sizes: the first free block
    origin: Ints
    seq: Longs
    past_start: Longs  # message: where its causes begin in `past`
    past_size: Ints
    past: Ints
    contact_link: Ints
    bucket: Ints  # hash of (node, message): the first wait
    wait: Ints  # wait, column
    entry: Ints  # entry, column
    ready: Ints  # a stack: messages to be delivered
    lapsed: Ints  # messages that expired while they waited
    picked: Longs  # the messages of a frame
    pairs: Bits  # a set that is about to be sent
    rest: Bits  # word: what has to be requested elsewhere
    stamp: Ints  # origin: the last sample that counted it
    sample: Longs  # sample, column
    eviction: Longs  # eviction: time, node, message
    row_t: Longs
    row_node: Ints
    row_kind: Bytes
    row_message: Ints
    row_value: Ints


ROW_TYPES = {
    "row_t": np.int64,
    "row_node": np.int32,
    "row_kind": np.int8,
    "row_message": np.int32,
    "row_value": np.int32,
}
"""The columns of the log."""


def make_state(
    fixed: Fixed, *, nodes: int, messages: int, rows: int, slots: int, links: int, room: int
) -> State:
    """Return the initial state.

    rows: the size of a page of the log. slots, links: how many nodes are there and how many ends
    of contacts are up at once at most. room: a power of two, the first size of arrays that grow.
    The system gives memory to arrays of zeros when it is written, so an array of the final size
    costs no more than one that grows, and is never copied.
    """
    words = fixed.words
    counts = np.zeros(COUNTS, np.int64)
    counts[WORD], counts[DUE_MIN] = NONE, AHEAD
    counts[IS_UNSORTED] = fixed.lifetime_us == 0 or fixed.offset_low_us < fixed.offset_high_us
    for free in (RECORD_FREE, LINK_FREE, SLOT_FREE, WAIT_FREE, ENTRY_FREE):
        counts[free] = NONE
    return State(
        counts=counts,
        node=_make_nodes(fixed, nodes),
        link=np.zeros((links, LINK_COLUMNS), np.int64),
        record=np.zeros((room, RECORD_COLUMNS), np.int64),
        sets=np.zeros((slots, words, NODE_SETS if fixed.is_bounded else EVICTED), np.uint64),
        slot_next=np.zeros(slots, np.int64),
        filled=np.zeros((slots, 2, words >> 6), np.uint64),
        link_sets=np.zeros(
            (links, words, LINK_SETS if fixed.repeats else OFFERED_AGAIN), np.uint64
        ),
        heap=np.zeros((room, 2), np.int64),
        pool=np.zeros(16 * room, np.uint64),
        free=np.full(CLASSES, NONE),
        origin=np.zeros(messages + 1, np.int32),
        seq=np.full(messages + 1, AHEAD),
        past_start=np.zeros(messages, np.int64),
        past_size=np.zeros(messages, np.int32),
        past=np.zeros(4 * room, np.int32),
        contact_link=np.zeros(len(fixed.contact_down), np.int32),
        bucket=np.full(room, NONE, np.int32),
        wait=np.zeros((room, WAIT_COLUMNS), np.int32),
        entry=np.zeros((room, ENTRY_COLUMNS), np.int32),
        ready=np.zeros(messages + 1, np.int32),
        lapsed=np.zeros(messages + 1, np.int32),
        picked=np.zeros(messages + 1, np.int64),
        pairs=np.zeros(2 * words + 2, np.uint64),
        rest=np.zeros(words, np.uint64),
        stamp=np.full(nodes if fixed.gauge_us else 0, NONE, np.int32),
        sample=np.zeros((room, SAMPLE_COLUMNS), np.int64),
        eviction=np.zeros((room, 3), np.int64),
        **{name: np.empty(rows, kind) for name, kind in ROW_TYPES.items()},
    )


def _make_nodes(fixed: Fixed, nodes: int) -> Longs:
    node = np.zeros((nodes, NODE_COLUMNS), np.int64)
    for column, value in (
        *((SLOT, NONE), (FIRST, NONE), (LAST, NONE), (ORDER_DUE, AHEAD)),
        *((PURGE_AT, 64), (BARRIER_PURGE_AT, 64), (FRESH_LOW, AHEAD), (FRESH_HIGH, NONE)),
        *((EARLIEST, AHEAD), (EVICTED_LOW, AHEAD), (EVICTED_HIGH, NONE), (TAKEN_PURGE_AT, 64)),
    ):
        node[:, column] = value
    if fixed.lifetime_us:
        node[:, LAST_SEQ] = -AHEAD
    return node
