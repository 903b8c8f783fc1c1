"""The workload: when each node broadcasts. It is drawn by key, so every protocol sees the same."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from beforehand.errors import InputError
from beforehand.mobility.trace import Trace
from beforehand.sim.streams import stream_key, unit
from beforehand.units import format_duration

BROADCASTS_MAX = 1_000_000
"""The limit for one run. The largest published run has 12,000. Each broadcast costs receptions."""


@dataclass(frozen=True, order=True)
class Broadcast:
    """A planned broadcast."""

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
    """Return the broadcasts of all nodes of a trace while they are present, in order of time."""
    return sorted(
        Broadcast(t_us, node, traffic.payload_bytes)
        for node, up_us, down_us in trace.presence.tolist()
        for t_us in range(up_us + traffic.first_us, down_us, traffic.period_us)
    )


def check_size(trace: Trace, traffic: Traffic, where: str = "") -> None:
    """Refuse a trace with more broadcasts than a machine can finish, before the run begins."""
    count = sum(
        max(0, -((up_us + traffic.first_us - down_us) // traffic.period_us))
        for _, up_us, down_us in trace.presence.tolist()
    )
    if count > BROADCASTS_MAX:
        there_us = sum(down_us - up_us for _, up_us, down_us in trace.presence.tolist())
        enough = format_duration(10 ** len(str(there_us // BROADCASTS_MAX)))
        raise InputError(
            f"a broadcast every {format_duration(traffic.period_us)} makes {count:,} of them, "
            f"of which {BROADCASTS_MAX:,} can be played",
            where=where,
            hint=f"a longer period, for example `{enough}`, makes fewer",
        )


def scattered(
    trace: Trace, seed: int, *, messages: int, payload_bytes: int, lifetimes_us: tuple[int, ...]
) -> list[Broadcast]:
    """Return that many broadcasts at random instants of random presences."""
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
