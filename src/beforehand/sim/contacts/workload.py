"""A planned broadcast, and broadcasts at random instants for tests and checkers."""

from __future__ import annotations

from dataclasses import dataclass

from beforehand.mobility.trace import Trace
from beforehand.sim.streams import stream_key, unit


@dataclass(frozen=True, order=True)
class Broadcast:
    """A planned broadcast."""

    t_us: int
    node: int
    payload_bytes: int
    lifetime_us: int | None = None


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
