"""Who broadcasts when: drawn by key, so that every protocol sees the same traffic."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from beforehand.errors import InputError
from beforehand.mobility.trace import Trace
from beforehand.sim.streams import stream_key, unit
from beforehand.units import format_duration

BROADCASTS_MAX = 20_000_000
"""Of one run, before memory is all they take."""


@dataclass(frozen=True, order=True)
class Broadcast:
    """One message to come."""

    t_us: int
    node: int
    payload_bytes: int
    lifetime_us: int | None = None


class Traffic(msgspec.Struct, frozen=True):
    """Every node broadcasts `first_us` after it appears and then every `period_us` (OPP VI)."""

    first_us: int = 20_000_000
    period_us: int = 60_000_000
    payload_bytes: int = 200


def periodic(trace: Trace, traffic: Traffic) -> list[Broadcast]:
    """What all nodes of a trace broadcast while they are there, in order of time."""
    _, up_us, down_us = trace.presence.T
    spans_us = np.maximum(down_us - up_us - traffic.first_us, 0)
    count = sum(-(-span_us // traffic.period_us) for span_us in spans_us.tolist())
    if count > BROADCASTS_MAX:
        raise InputError(
            f"{count:,} broadcasts, one in {format_duration(traffic.period_us)} of each node",
            hint=f"at most {BROADCASTS_MAX:,} fit into one run: choose a longer period",
        )
    return sorted(
        Broadcast(t_us, node, traffic.payload_bytes)
        for node, up_us, down_us in trace.presence.tolist()
        for t_us in range(up_us + traffic.first_us, down_us, traffic.period_us)
    )


def scattered(
    trace: Trace, seed: int, *, messages: int, payload_bytes: int, lifetimes_us: tuple[int, ...]
) -> list[Broadcast]:
    """`messages` broadcasts at random instants of random presences, with one of the lifetimes."""
    key = stream_key(seed, "workload")
    spans = trace.presence.tolist()
    chosen = []
    for index in range(messages):
        node, up_us, down_us = spans[int(unit(key, index, 0) * len(spans))]
        t_us = up_us + int(unit(key, index, 1) * (down_us - up_us))
        lifetime_us = None
        if lifetimes_us:
            lifetime_us = lifetimes_us[int(unit(key, index, 2) * len(lifetimes_us))]
        chosen.append(Broadcast(t_us, node, payload_bytes, lifetime_us))
    return sorted(chosen, key=lambda b: (b.t_us, b.node))
