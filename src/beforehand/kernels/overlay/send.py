"""How the compiled overlay world sends: the content of packets, and their times."""

from __future__ import annotations

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.overlay.state import (
    LATE,
    NONE,
    PACKETS,
    ROWS,
    Fixed,
    Ints,
    Packets,
    Rows,
    State,
    whole,
)
from beforehand.kernels.queue.calendar import insert
from beforehand.kernels.queue.heap import event
from beforehand.kernels.random.laws import travel_us

BROADCAST, RECEIVE, DELIVER, SEND = 0, 1, 2, 5
"""Kinds of events, as in the event log."""


@part
def row(state: State, rows: Rows, now_us: int, node: int, kind: int, m: int, value: int) -> None:
    at = state.counts[ROWS]
    state.counts[ROWS] = at + 1
    rows.t_us[at] = now_us
    rows.node[at] = node
    rows.kind[at] = kind
    rows.message[at] = m
    rows.value[at] = value


@part
def serve(
    fixed: Fixed,
    state: State,
    rows: Rows,
    now_us: int,
    node: int,
    m: int,
    served: int,
    height: int,
) -> None:
    """Send one message to the clusters served+1..height."""
    for level in range(served + 1, height + 1):
        child = fixed.child[node, level]
        if child != NONE:
            load(state, rows, now_us, node, m)
            close(fixed, state, rows, now_us, node, child, 1)


@part
def load(state: State, rows: Rows, now_us: int, node: int, m: int) -> None:
    """Add a message to the packet that is being made."""
    row(state, rows, now_us, node, SEND, m, state.counts[PACKETS])


@part
def pack(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, level: int, count: int
) -> None:
    """Send to one cluster those of the first `count` messages of `work` that may now go."""
    child = fixed.child[node, level]
    loaded, size = 0, fixed.header_bytes
    for i in range(count):
        m = state.work[i]
        if state.postponed[node, m] < level <= state.before[m]:
            more = fixed.payload_bytes + fixed.entry_bytes * (1 + state.past_count[m])
            if loaded and size + more > fixed.mtu_bytes:
                close(fixed, state, rows, now_us, node, child, loaded)
                loaded, size = 0, fixed.header_bytes
            load(state, rows, now_us, node, m)
            loaded += 1
            size += more
    if loaded:
        close(fixed, state, rows, now_us, node, child, loaded)


@part
def close(
    fixed: Fixed, state: State, rows: Rows, now_us: int, node: int, target: int, loaded: int
) -> None:
    """Send the messages that were loaded last, as one packet."""
    counts = state.counts
    packet, end = counts[PACKETS], counts[ROWS]
    counts[PACKETS] = packet + 1
    ready_us = now_us + fixed.process_us
    start_us = max(ready_us, state.free_us[node])
    state.free_us[node] = start_us + fixed.transmit_us
    rows.target[packet], rows.wait_us[packet] = target, start_us - ready_us
    last = whole(rows.message[end - 1])
    seq = last - fixed.origin[last] * fixed.messages + 1
    link = node * fixed.nodes + target
    code, a, b = fixed.law
    travel = travel_us(fixed.key, fixed.origin[last], seq, link, code, a, b)
    due_us = state.free_us[node] + travel
    if due_us >= fixed.end_us:
        counts[LATE] += 1
        due_us = fixed.end_us - 1
    broadcasts = fixed.nodes * fixed.messages
    insert(state.calendar, event(due_us, broadcasts + end - loaded))


@kernel
def describe(fixed: Fixed, past_count: Ints, rows: Rows, size: int, packets: Packets) -> None:
    """Fill `packets`, which are all 0, from the first `size` rows of the log.

    A run does without them. So they take memory only when that of the run is free again."""
    for at in range(size):
        if rows.kind[at] == SEND:
            packet = rows.value[at]
            if packets.messages[packet] == 0:
                packets.source[packet] = rows.node[at]
                packets.bytes[packet] = fixed.header_bytes
            packets.messages[packet] += 1
            entries = 1 + past_count[rows.message[at]]
            packets.bytes[packet] += fixed.payload_bytes + fixed.entry_bytes * entries
