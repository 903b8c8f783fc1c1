"""The data of the compiled overlay world: its input, state and output, and its bit sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled, part
from beforehand.kernels.queue.calendar import Calendar, make_calendar

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bytes = NDArray[np.int8]
Bits = NDArray[np.uint64]

NONE = -1
ZERO, ONE = np.uint64(0), np.uint64(1)

PASSED, HELD, DELIVERED, PENDING, EARLY, AT_BROADCAST = range(6)
"""The sets of messages that a node keeps:

- PASSED: received, with all earlier ones of the same origin
- HELD: held back from some cluster
- DELIVERED: delivered
- PENDING: waiting for delivery
- EARLY: received before an earlier one of the same origin
- AT_BROADCAST: delivered when the node last broadcast"""
HOT = 4
"""How many of these sets, from the first on, are read for every message."""


class Fixed(NamedTuple):
    """The constants of a run."""

    nodes: int
    messages: int
    """The number of messages of each node."""
    dimension: int
    root: int
    """The root of the single tree, or NONE."""
    aggregates: bool
    process_us: int
    transmit_us: int
    header_bytes: int
    entry_bytes: int
    payload_bytes: int
    mtu_bytes: int
    law: tuple[int, float, float]
    key: np.uint64
    has_past: bool
    """Whether the causes of the messages are given."""
    origin: Ints
    """The origin of each message."""
    child: Ints
    """(node, cluster): the first live node of the cluster, or NONE."""
    heights: Bytes
    """(node, origin): the number of clusters that the node serves for messages of the origin; empty
    if `is_full`."""
    is_full: bool
    """Whether there is a tree for each origin, and no node is missing from the cube."""
    height: Bytes
    """node ^ origin: the same as `heights`, if `is_full`."""


class State(NamedTuple):
    """The mutable state of a run. The comments name the axes.

    Sets of messages are bits, 64 to a word. Comparing the causes of a message with the messages of
    a node takes one step per word, and the words of a node stay in the cache.
    """

    counts: Longs  # ROWS, PACKETS, ...
    needs: Bits  # message, word: its causes
    needed: Bits  # message, word: those of which it is a cause, with the next of its origin
    sets: Bits  # node, (PASSED, ...), word
    order: Ints  # node, message: its order of arrival, if it is held back
    postponed: Bytes  # node, message: clusters 1..postponed are still to be served
    calendar: Calendar
    free_us: Longs  # node: when its sending queue is empty
    cargo: Ints  # for every packet the messages, then TARGET, ...
    past_start: Ints  # message: where its causes begin in `past`
    past_count: Ints  # message
    past: Ints
    woken: Bits  # word: the messages that one arrival may release
    ready: Ints  # the messages that one step delivers
    work: Ints  # the messages that one step may release
    before: Bytes  # message: its `postponed` before the step


class Rows(NamedTuple):
    """The output: up to `value` a row for each event, then a row for each packet."""

    t_us: Longs
    node: Ints
    kind: Bytes
    message: Ints
    value: Longs
    source: Ints
    target: Ints
    messages: Ints
    bytes: Ints
    wait_us: Longs


TARGET, HEIGHT, PACKET, LOADED = range(4)
"""The label of a packet, four words of `cargo` after its messages: its target, the height of its
tree there, its number, and its number of messages. An event holds the position of the label, so one
cache miss brings both the label and the messages before it."""
LABEL = 4
ROWS, PACKETS, CARGO, ARRIVALS, SEEN, PAST, READY = range(7)


@compiled
def heights_of(child: Ints, root: int) -> Bytes:
    """Return `Fixed.heights`, by walking down every tree from its root."""
    nodes, levels = child.shape
    heights = np.zeros((nodes, nodes), np.int8)
    todo = np.empty(nodes, np.int32)
    for origin in range(nodes):
        head = origin if root == NONE else root
        heights[head, origin] = levels - 1
        todo[0] = head
        count = 1
        while count:
            count -= 1
            node = todo[count]
            for level in range(1, heights[node, origin] + 1):
                if child[node, level] != NONE:
                    heights[child[node, level], origin] = level - 1
                    todo[count] = child[node, level]
                    count += 1
    return heights


def make_state(nodes: int, messages: int) -> State:
    """Return the initial state. messages: the number of messages of all nodes together."""
    words = (messages + 63) // 64
    packets_max = nodes * messages
    return State(
        np.zeros(7, np.int64),
        np.zeros((messages, words), np.uint64),
        np.zeros((messages, words), np.uint64),
        np.zeros((nodes, 6, words), np.uint64),
        np.empty((nodes, messages), np.int32),
        np.zeros((nodes, messages), np.int8),
        make_calendar(messages + packets_max),
        np.zeros(nodes, np.int64),
        np.empty(packets_max * (1 + LABEL), np.int32),
        np.zeros(messages, np.int32),
        np.zeros(messages, np.int32),
        np.empty(messages * nodes, np.int32),
        np.zeros(words, np.uint64),
        np.empty(messages, np.int32),
        np.empty(messages, np.int32),
        np.empty(messages, np.int8),
    )


def make_rows(nodes: int, messages: int) -> Rows:
    # Each message is broadcast once, and received, sent and delivered at most once per node.
    packets_max = nodes * messages
    rows_max = messages + 3 * packets_max
    return Rows(
        np.empty(rows_max, np.int64),
        np.empty(rows_max, np.int32),
        np.empty(rows_max, np.int8),
        np.empty(rows_max, np.int32),
        np.empty(rows_max, np.int64),
        np.empty(packets_max, np.int32),
        np.empty(packets_max, np.int32),
        np.empty(packets_max, np.int32),
        np.empty(packets_max, np.int32),
        np.empty(packets_max, np.int64),
    )


# ---- sets --------------------------------------------------------------------------------------


@part
def add(sets: Bits, node: int, which: int, m: int) -> None:
    sets[node, which, m >> 6] |= ONE << np.uint64(m & 63)


@part
def remove(sets: Bits, node: int, which: int, m: int) -> None:
    sets[node, which, m >> 6] &= ~(ONE << np.uint64(m & 63))


@part
def has(sets: Bits, node: int, which: int, m: int) -> bool:
    return bool((sets[node, which, m >> 6] >> np.uint64(m & 63)) & ONE)


@part
def lowest(word: np.uint64) -> int:
    """Return the position of the lowest set bit of a word that is not 0."""
    return int(trailing_zeros(word))  # type: ignore[call-arg]  # one argument, once compiled


# The next two loops have no early exit, so that the compiler vectorises them.


@part
def meets(bits: Bits, m: int, sets: Bits, node: int, which: int) -> bool:
    """Return whether any message of row `m` is in the set."""
    found = ZERO
    for word in range(bits.shape[1]):
        found |= bits[m, word] & sets[node, which, word]
    return bool(found != ZERO)


@part
def lacks(bits: Bits, m: int, sets: Bits, node: int, which: int) -> bool:
    """Return whether any message of row `m` is missing from the set."""
    found = ZERO
    for word in range(bits.shape[1]):
        found |= bits[m, word] & ~sets[node, which, word]
    return bool(found != ZERO)
