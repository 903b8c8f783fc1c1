"""The measures of VCU section 5, from runs of the overlay world that share their random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, COLUMNS, DELIVER, RECEIVE
from beforehand.kernels.verify.causality import find_violations, index_log
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import Columns, Law, OverlayRun, OverlaySpec, System

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEVER = -1


class OverlayCase(msgspec.Struct, frozen=True):
    """Runs of one seed: the same broadcasts over the same network, with different systems."""

    nodes: int
    seed: int
    runs: tuple[tuple[System, int], ...]
    """System and payload bytes of each run. The others are compared with the first."""
    starts: Law
    propagation: Law


class Bar(msgspec.Struct, frozen=True):
    """A bar of a histogram: how often a value occurred."""

    histogram: str
    value: int
    count: int


class OverlayMeasure(msgspec.Struct, frozen=True):
    """The measures of one run. Latencies are in µs and exclude a message's own node."""

    nodes: int
    seed: int
    system: System
    payload_bytes: int
    broadcasts: int
    packets: int
    packed: int
    """Packets with more than one message."""
    bytes: int
    deliveries: int
    missing: int
    """Deliveries that should have happened and did not."""
    violations: int
    reception_us_avg: float
    reception_us_max: int
    delivery_us_avg: float
    held_us_avg: float
    """The average time from reception to delivery."""
    delayed: int
    """Messages that were not delivered at their reception."""
    queue_us_avg: float
    """The average time of a packet in the sending queue of a node."""
    pairs: int
    """Receptions that came two to a packet in the first run of the case. The next two fields are
    the averages of the same receptions in this run."""
    pair_reception_us_avg: float | None
    pair_delivery_us_avg: float | None
    histograms: tuple[Bar, ...]
    """The histograms:

    - per_packet: messages of a packet
    - causes: of a message
    - size: bytes of a packet
    - buffered: the most messages that a node held back at once
    - most_packed: the most messages that a node sent in one packet"""


def run_case(case: OverlayCase) -> Iterator[tuple[OverlayMeasure, OverlayRun]]:
    """Run the case, and yield the measures and the result of each of its runs."""
    pairs: Bools | None = None
    for system, payload_bytes in case.runs:
        spec = OverlaySpec(
            case.nodes,
            system,
            starts=case.starts,
            propagation=case.propagation,
            payload_bytes=payload_bytes,
        )
        result = run_compiled(spec, case.seed)
        if pairs is None:
            pairs = _came_in_pairs(spec, result)
        yield measure_overlay(spec, case.seed, result, pairs), result


def measure_overlay(
    spec: OverlaySpec, seed: int, result: OverlayRun, pairs: Bools
) -> OverlayMeasure:
    """Return the measures of one run.

    pairs: the receptions to average separately, of shape (nodes, messages)."""
    times, packets = _times_of(spec, result.events), result.packets
    reception_us = (times.receive_us - times.start_us)[times.is_received]
    delivery_us = (times.deliver_us - times.start_us)[times.is_received]
    chosen = pairs & times.is_received
    deliveries = int((result.events["kind"] == DELIVER).sum())
    broadcasts = spec.nodes * spec.messages
    return OverlayMeasure(
        nodes=spec.nodes,
        seed=seed,
        system=spec.system,
        payload_bytes=spec.payload_bytes,
        broadcasts=broadcasts,
        packets=len(packets["source"]),
        packed=int((packets["messages"] > 1).sum()),
        bytes=int(packets["bytes"].sum()),
        deliveries=deliveries,
        missing=broadcasts * spec.nodes - deliveries,
        violations=count_violations(result.events),
        reception_us_avg=float(reception_us.mean()),
        reception_us_max=int(reception_us.max()),
        delivery_us_avg=float(delivery_us.mean()),
        held_us_avg=float((delivery_us - reception_us).mean()),
        delayed=int((delivery_us > reception_us).sum()),
        queue_us_avg=float(packets["wait_us"].mean()),
        pairs=int(chosen.sum()),
        pair_reception_us_avg=_mean((times.receive_us - times.start_us)[chosen]),
        pair_delivery_us_avg=_mean((times.deliver_us - times.start_us)[chosen]),
        histograms=(
            *_bars("per_packet", packets["messages"]),
            *_bars("causes", np.diff(result.past.start)),
            *_bars("size", packets["bytes"]),
            *_bars("buffered", most_buffered(times)),
            *_bars("most_packed", _most_packed(spec, packets)),
        ),
    )


def count_violations(events: Columns) -> int:
    """Return the number of deliveries out of causal order, twice or of unknown messages."""
    kind = events["kind"]
    rows = np.flatnonzero((kind == BROADCAST) | (kind == DELIVER))
    names = ("node", "origin", "seq")
    node, origin, seq = (events[name][rows].astype(COLUMNS[name], copy=False) for name in names)
    history = index_log(node, kind[rows] == BROADCAST, origin, seq)
    return len(find_violations(history).row)


class Times(NamedTuple):
    """The instants of each message, of shape (nodes, messages); NEVER where there is none."""

    start_us: Longs
    """The broadcast of each message."""
    receive_us: Longs
    deliver_us: Longs
    is_received: Bools
    """Whether the message was received and delivered. A node never receives its own message, even
    if a tree leads back to it."""


def _times_of(spec: OverlaySpec, events: Columns) -> Times:
    kind, t_us = events["kind"], events["t_us"]
    node, message = events["node"], _message(spec, events)
    shape = (spec.nodes, spec.nodes * spec.messages)
    start_us = np.full(shape[1], NEVER, t_us.dtype)
    start_us[message[kind == BROADCAST]] = t_us[kind == BROADCAST]
    receive_us, deliver_us = np.full(shape, NEVER, t_us.dtype), np.full(shape, NEVER, t_us.dtype)
    for code, matrix in ((RECEIVE, receive_us), (DELIVER, deliver_us)):
        rows = np.flatnonzero(kind == code)
        matrix[node[rows], message[rows]] = t_us[rows]
    is_received = (receive_us != NEVER) & (deliver_us != NEVER)
    return Times(start_us, receive_us, deliver_us, is_received)


def _message(spec: OverlaySpec, events: Columns) -> Longs:
    return events["origin"] * spec.messages + events["seq"] - 1


def _came_in_pairs(spec: OverlaySpec, result: OverlayRun) -> Bools:
    events = result.events
    rows = np.flatnonzero(events["kind"] == RECEIVE)
    rows = rows[result.packets["messages"][events["value"][rows]] == 2]
    pairs = np.zeros((spec.nodes, spec.nodes * spec.messages), np.bool_)
    pairs[events["node"][rows], _message(spec, events)[rows]] = True
    return pairs


def most_buffered(times: Times) -> Longs:
    """Return for each node the most messages that were received and undelivered at one instant."""
    most = np.zeros(len(times.receive_us), np.int64)
    held = times.is_received & (times.deliver_us > times.receive_us)
    for node in np.flatnonzero(held.any(axis=1)):
        came_us = np.sort(times.receive_us[node, held[node]])
        left_us = np.sort(times.deliver_us[node, held[node]])
        # The peak is at an arrival. By then the messages that this arrival makes deliverable have
        # left.
        here = np.searchsorted(came_us, came_us, "right")
        gone = np.searchsorted(left_us, came_us, "right")
        most[node] = (here - gone).max()
    return most


def _most_packed(spec: OverlaySpec, packets: Columns) -> Longs:
    most = np.zeros(spec.nodes, np.int64)
    np.maximum.at(most, packets["source"], packets["messages"])
    return most


def _mean(values: Longs) -> float | None:
    return float(values.mean()) if len(values) else None


def _bars(histogram: str, values: Longs) -> Iterator[Bar]:
    counts = np.bincount(values)
    return (Bar(histogram, int(v), int(counts[v])) for v in np.flatnonzero(counts))
