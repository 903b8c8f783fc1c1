"""How the compiled overlay world sends: the content of packets, and their times."""

from __future__ import annotations

from beforehand.kernels.compiling import part
from beforehand.kernels.overlay.state import (
    CARGO,
    HEIGHT,
    LABEL,
    LOADED,
    NONE,
    PACKET,
    PACKETS,
    ROWS,
    TARGET,
    Fixed,
    Rows,
    State,
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
            load(state, m)
            close(fixed, state, rows, now_us, node, child, level - 1, 1)


@part
def load(state: State, m: int) -> None:
    state.cargo[state.counts[CARGO]] = m
    state.counts[CARGO] += 1


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
                close(fixed, state, rows, now_us, node, child, level - 1, loaded)
                loaded, size = 0, fixed.header_bytes
            load(state, m)
            loaded += 1
            size += more
    if loaded:
        close(fixed, state, rows, now_us, node, child, level - 1, loaded)


@part
def close(
    fixed: Fixed,
    state: State,
    rows: Rows,
    now_us: int,
    node: int,
    target: int,
    height: int,
    loaded: int,
) -> None:
    """Send the messages that were loaded last, as one packet."""
    counts = state.counts
    packet, end = counts[PACKETS], counts[CARGO]
    counts[PACKETS] = packet + 1
    size = fixed.header_bytes
    for at in range(end - loaded, end):
        m = state.cargo[at]
        size += fixed.payload_bytes + fixed.entry_bytes * (1 + state.past_count[m])
        row(state, rows, now_us, node, SEND, m, packet)
    ready_us = now_us + fixed.process_us
    start_us = max(ready_us, state.free_us[node])
    state.free_us[node] = start_us + fixed.transmit_us
    state.cargo[end + TARGET], state.cargo[end + HEIGHT] = target, height
    state.cargo[end + PACKET], state.cargo[end + LOADED] = packet, loaded
    counts[CARGO] = end + LABEL
    rows.source[packet], rows.target[packet] = node, target
    rows.messages[packet], rows.bytes[packet] = loaded, size
    rows.wait_us[packet] = start_us - ready_us
    last = state.cargo[end - 1]
    seq = last - fixed.origin[last] * fixed.messages + 1
    link = node * fixed.nodes + target
    code, a, b = fixed.law
    travel = travel_us(fixed.key, fixed.origin[last], seq, link, code, a, b)
    broadcasts = fixed.nodes * fixed.messages
    arrival = event(state.free_us[node] + travel, broadcasts + end)
    insert(state.calendar, arrival)
