"""The data of the compiled overlay world: its input, state and output, and its bit sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled, part
from beforehand.kernels.queue.calendar import Calendar, make_calendar

Ints = NDArray[np.int32]
Narrow = NDArray[Any]
"""Integers of `NARROW` or `WIDE`."""
Longs = NDArray[np.int64]
Bytes = NDArray[np.int8]
Bits = NDArray[np.uint64]

NONE = -1
ZERO, ONE = np.uint64(0), np.uint64(1)

GAP_FREE, HELD, DELIVERED, PENDING, EARLY, AT_BROADCAST = range(6)
"""The sets of messages that a node keeps:

- GAP_FREE: received, with all earlier ones of the same origin
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
    end_us: int
    """No packet may arrive at this time or later: the rows or the calendar could not hold it."""


class State(NamedTuple):
    """The mutable state of a run. The comments name the axes.

    Sets of messages are bits, 64 to a word. Comparing the causes of a message with the messages of
    a node takes one step per word, and the words of a node stay in the cache.
    """

    counts: Longs  # ROWS, PACKETS, ...
    needs: Bits  # message, word: its causes
    needed: Bits  # message, word: those of which it is a cause, with the next of its origin
    sets: Bits  # node, (GAP_FREE, ...), word
    order: Narrow  # node, message: its order of arrival at the node, if it is held back
    arrivals: Longs  # node
    postponed: Bytes  # node, message: clusters 1..postponed are still to be served
    calendar: Calendar
    free_us: Longs  # node: when its sending queue is empty
    past_start: Ints  # message: where its causes begin in `past`
    past_count: Ints  # message
    past: Ints
    woken: Bits  # word: the messages that one arrival may release
    ready: Ints  # the messages that one step delivers
    work: Ints  # the messages that one step may release
    before: Bytes  # message: its `postponed` before the step


class Rows(NamedTuple):
    """The output: up to `value` a row for each event, then a row for each packet.

    The log is also the memory of the packets in transit. A packet is known by its first `send` row:
    the rows from there on name its source and its messages."""

    t_us: Narrow
    node: Narrow
    kind: Bytes
    message: Narrow
    value: Narrow
    target: Narrow
    wait_us: Narrow


class Packets(NamedTuple):
    """The packets, as the `send` rows of the log describe them."""

    source: Narrow
    messages: Narrow
    bytes: Narrow


class Widths(NamedTuple):
    """The types of the rows."""

    time: type[np.signedinteger[Any]]
    value: type[np.signedinteger[Any]]
    number: type[np.integer[Any]]
    """Of nodes, messages, and counts of messages."""
    size: type[np.integer[Any]]
    """Of packets, in bytes."""


NARROW = Widths(np.int32, np.int32, np.uint16, np.uint16)
"""13 bytes an event and 12 a packet, for up to 65,535 messages and the first 35 minutes."""
WIDE = Widths(np.int64, np.int64, np.int32, np.int32)
ROWS, PACKETS, SEEN, PAST, READY, LATE = range(6)
"""Indices into `counts`. LATE: packets that would arrive at `end_us` or later."""


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


def make_state(nodes: int, messages: int, widths: Widths) -> State:
    """Return the initial state. messages: the number of messages of all nodes together."""
    words = (messages + 63) // 64
    packets_max = nodes * messages
    return State(
        np.zeros(6, np.int64),
        np.zeros((messages, words), np.uint64),
        np.zeros((messages, words), np.uint64),
        np.zeros((nodes, 6, words), np.uint64),
        np.empty((nodes, messages), widths.number),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, messages), np.int8),
        make_calendar(messages + packets_max),
        np.zeros(nodes, np.int64),
        np.zeros(messages, np.int32),
        np.zeros(messages, np.int32),
        np.empty(messages * nodes, np.int32),
        np.zeros(words, np.uint64),
        np.empty(messages, np.int32),
        np.empty(messages, np.int32),
        np.empty(messages, np.int8),
    )


def make_rows(nodes: int, messages: int, widths: Widths) -> Rows:
    packets_max = nodes * messages
    rows_max = count_rows(nodes, messages)
    return Rows(
        np.empty(rows_max, widths.time),
        np.empty(rows_max, widths.number),
        np.empty(rows_max, np.int8),
        np.empty(rows_max, widths.number),
        np.empty(rows_max, widths.value),
        np.empty(packets_max, widths.number),
        np.empty(packets_max, widths.time),
    )


def make_packets(packets: int, widths: Widths) -> Packets:
    return Packets(
        np.zeros(packets, widths.number),
        np.zeros(packets, widths.number),
        np.zeros(packets, widths.size),
    )


def count_rows(nodes: int, messages: int) -> int:
    """Return the most rows of a run."""
    # Each message is broadcast once, and received, sent and delivered at most once per node.
    return messages + 3 * nodes * messages


@part
def whole(value: Any) -> int:
    """Return an entry of a narrow array as an integer that arithmetic does not overflow."""
    return np.int64(value)  # type: ignore[return-value]


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
