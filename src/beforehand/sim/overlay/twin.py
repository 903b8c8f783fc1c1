"""The compiled twin of the overlay world: the run that `world.run` gives, without the cores.

Its columns hold the same numbers in fewer bytes: 13 an event suffice for most runs. A run with more
messages, larger packets or later times takes 25.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import COLUMNS
from beforehand.kernels.overlay.run import simulate
from beforehand.kernels.overlay.send import describe
from beforehand.kernels.overlay.state import (
    NARROW,
    NONE,
    PACKETS,
    ROWS,
    WIDE,
    Fixed,
    State,
    Widths,
    count_rows,
    heights_of,
    make_packets,
    make_rows,
    make_state,
)
from beforehand.kernels.queue.heap import DUE_US_MAX, TICKETS_MAX
from beforehand.protocols.vcube.frames import ENTRY_BYTES, HEADER_BYTES
from beforehand.protocols.vcube.topology import NO_NODE, dimension, first_live, full_heights
from beforehand.sim.overlay.world import (
    PACKET_COLUMNS,
    Columns,
    OverlayRun,
    OverlaySpec,
    Past,
    start_times,
)
from beforehand.sim.streams import stream_key

IN_TRANSIT = ("target", "wait_us")


def run_compiled(spec: OverlaySpec, seed: int, past: Past | None = None) -> OverlayRun:
    """Run once without the cores, with the same result."""
    messages = spec.nodes * spec.messages
    # An event is known by the index of a message, or by that of a row.
    if messages + count_rows(spec.nodes, messages) > TICKETS_MAX:
        raise InputError(
            f"too large for one run: {spec.nodes} nodes, {messages} messages",
            hint=f"messages x nodes may be at most {TICKETS_MAX // 3 - messages}",
        )
    times = start_times(spec, seed)
    widths = [NARROW] if _is_narrow(spec, times) else []
    for chosen in (*widths, WIDE):
        result = _run_with(chosen, spec, seed, past, times)
        if result is not None:
            return result
    raise InputError(
        f"a packet arrives after {DUE_US_MAX / 3.6e9:.1f} hours",
        hint="choose shorter times for `starts` and `propagation`",
    )


def _is_narrow(spec: OverlaySpec, times: NDArray[np.int64]) -> bool:
    """Return whether narrow rows have room for all but the times of packets, which a run shows."""
    alone = HEADER_BYTES + spec.payload_bytes + ENTRY_BYTES * (1 + len(times))
    return (
        len(times) <= np.iinfo(NARROW.number).max
        and max(spec.mtu_bytes, alone) <= np.iinfo(NARROW.size).max
        and int(times.max()) <= np.iinfo(NARROW.time).max
    )


def _run_with(
    widths: Widths, spec: OverlaySpec, seed: int, past: Past | None, times: NDArray[np.int64]
) -> OverlayRun | None:
    """Return the result, or None if a packet arrives too late for rows of these widths."""
    nodes, messages = spec.nodes, len(times)
    state, rows = make_state(nodes, messages, widths), make_rows(nodes, messages, widths)
    if past is not None:
        state.past_start[:] = past.start[:-1]
        state.past_count[:] = np.diff(past.start)
        state.past[: len(past.origin)] = past.origin * spec.messages + past.seq - 1
    end_us = min(DUE_US_MAX, int(np.iinfo(widths.time).max) + 1)
    fixed = _fixed(spec, seed, past is not None, end_us)
    if not simulate(fixed, state, rows, times):
        return None
    past, past_count = _read_past(spec, state), state.past_count
    size, sent = int(state.counts[ROWS]), int(state.counts[PACKETS])
    del state  # frees its memory before the packets need it
    packets = make_packets(sent, widths)
    describe(fixed, past_count, rows, size, packets)
    columns: Columns = rows._asdict()
    del rows
    sends = {**packets._asdict(), **{name: columns.pop(name)[:sent] for name in IN_TRANSIT}}
    sends = {name: sends[name] for name in PACKET_COLUMNS}
    return OverlayRun(_read_events(spec, columns, size), sends, past)


def _fixed(spec: OverlaySpec, seed: int, has_past: bool, end_us: int) -> Fixed:
    levels = dimension(spec.nodes)
    live = [1 if i < spec.nodes else 0 for i in range(1 << levels)]
    child = [
        [NO_NODE] + [first_live(node, level, live) for level in range(1, levels + 1)]
        for node in range(spec.nodes)
    ]
    root = NONE if spec.root is None else spec.root
    children = np.array(child, np.int32)
    is_full = root == NONE and spec.nodes == 1 << levels
    return Fixed(
        nodes=spec.nodes,
        messages=spec.messages,
        dimension=levels,
        root=root,
        aggregates=spec.aggregates,
        process_us=spec.process_us,
        transmit_us=spec.transmit_us,
        header_bytes=HEADER_BYTES,
        entry_bytes=ENTRY_BYTES,
        payload_bytes=spec.payload_bytes,
        mtu_bytes=spec.mtu_bytes,
        law=spec.propagation.numbers(),
        key=np.uint64(stream_key(seed, "propagation")),
        has_past=has_past,
        origin=np.repeat(np.arange(spec.nodes, dtype=np.int32), spec.messages),
        child=children,
        heights=np.empty((0, 0), np.int8) if is_full else heights_of(children, root),
        is_full=is_full,
        height=np.array(bytearray(full_heights(levels)), np.int8),
        end_us=end_us,
    )


def _read_past(spec: OverlaySpec, state: State) -> Past:
    """Return the causes by index of the message; the run wrote them in broadcast order."""
    start = np.concatenate([[0], np.cumsum(state.past_count)])
    shift = np.repeat(state.past_start - start[:-1], state.past_count)
    origin, seq = np.divmod(state.past[np.arange(start[-1]) + shift], np.int32(spec.messages))
    return Past(start, origin, seq + 1)


def _read_events(spec: OverlaySpec, columns: Columns, size: int) -> Columns:
    """Return the event columns, and remove them from `columns`.

    Otherwise a run of 1024 nodes would need its memory twice here."""
    events = {name: columns.pop(name)[:size] for name in ("t_us", "node", "kind", "value")}
    message = columns.pop("message")[:size]
    if spec.messages == 1:
        # Every seq is 1, so a broadcast view of a single 1 suffices.
        events["origin"], events["seq"] = message, np.broadcast_to(np.int64(1), size)
    else:
        events["origin"], index = np.divmod(message, message.dtype.type(spec.messages))
        events["seq"] = index + index.dtype.type(1)
    return {name: events[name] for name in COLUMNS}
