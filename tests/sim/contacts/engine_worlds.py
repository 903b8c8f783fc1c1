"""Random worlds of contacts that both engines play: their results must be equal, row for row."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from beforehand.kernels.compiling import INTERPRETED
from beforehand.mobility.trace import Trace, make_trace
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.clock import Clocks
from beforehand.sim.contacts.links import FOREVER_US, LinkModel
from beforehand.sim.contacts.run import Result, Spec, run_one
from beforehand.sim.contacts.traffic import Traffic
from beforehand.sim.contacts.twin import Twin, Uncovered, refusal

SECOND_US = 1_000_000
FRAMES = ("frames_sent", "frames_lost", "frames_aborted", "bytes_sent")


class Compared(NamedTuple):
    """The observations of one random world."""

    rows: int
    refused: str
    """Why the twin did not play the world, or empty."""
    difference: str
    """The first difference, or empty."""


def draw_world(seed: int, *, size: float = 1.0) -> tuple[Trace, Spec]:
    """Return a random trace and spec: every option that the twin has is drawn.

    size: scales the number of broadcasts and contacts."""
    rng = random.Random(seed)
    nodes = rng.randint(3, 25)
    end_us = int(rng.choice([300, 1200, 3600]) * SECOND_US * size)
    trace = make_trace(
        [str(node) for node in range(nodes)],
        np.array(_draw_contacts(rng, nodes, end_us, max(5, int(200 * size))), np.int64),
        np.array(_draw_presence(rng, nodes, end_us), np.int64),
    )
    protocol = rng.choice(["causal", "delta", "delta", "delta", "none", "none", "vector"])
    has_lifetime = protocol == "delta" or (protocol == "none" and rng.random() < 0.7)
    lifetime_us = rng.choice([5, 30, 120, 600]) * SECOND_US if has_lifetime else None
    more = random.Random(seed + (1 << 40))
    capacity = more.choice([None, None, None, 1, 3, 10, 50, 200])
    loss, duplication = more.choice([(0, 0), (0, 0), (0.2, 0), (0, 0.3), (0.4, 0.2)])
    retry_s = more.choice([None, None, 1, 5]) if loss == duplication == 0 else more.choice([1, 5])
    spec = Spec(
        protocol,
        seed=seed,
        lifetime_us=lifetime_us,
        traffic=Traffic(
            first_us=rng.choice([0, 1, SECOND_US]),
            period_us=rng.choice([500_000, 2_000_000, 20_000_000]),
            payload_bytes=rng.choice([0, 200]),
            law=rng.choice(["periodic", "poisson", "uniform"]),
            phase=rng.random() < 0.3,
            payload_law=rng.choice(["fixed", "uniform", "exponential"]),
            sources=rng.choice([None, None, 0.4]),
        ),
        links=LinkModel(
            latency_us=rng.choice([0, 1, 2000, 300_000]),
            bytes_per_s=rng.choice([None, 1000, 4000, 100_000]),
            loss=loss,
            duplication=duplication,
            jitter_us=more.choice([0, 0, 0, 1000, 2 * SECOND_US]),
            noise_until_us=more.choice([FOREVER_US, FOREVER_US, end_us // 2]),
        ),
        layer=Options(
            announce_us=rng.choice([0, 100_000, 1_000_000, 5_000_000]),
            frame_messages_max=rng.choice([1, 1, None, 3]),
            frame_bytes_max=rng.choice([30, 300, 16_384, 1_000_000]),
            retry_us=retry_s and retry_s * SECOND_US,
            capacity=capacity,
            capacity_bytes=more.choice([None, None, None, 1, 5_000, 50_000]),
            eviction=more.choice(["oldest", "random"]),
            transfer=more.choice(["random", "random", "random", "oldest", "newest"]),
        ),
        literal_barriers=protocol in ("causal", "delta") and rng.random() < 0.1,
        clocks=Clocks(skew_us=more.choice([0, 0, 0, 10_000, 3 * SECOND_US, 60 * SECOND_US])),
        gauge_us=rng.choice([None, 1, 60 * SECOND_US]),
    )
    return trace, spec


def _draw_presence(rng: random.Random, nodes: int, end_us: int) -> list[tuple[int, int, int]]:
    """Return stays: some nodes leave and come back, some of them after several lifetimes."""
    stays = []
    for node in range(nodes):
        begin = rng.randrange(end_us // 2)
        for _ in range(rng.choice([1, 1, 1, 3])):
            end = min(end_us, begin + rng.randrange(end_us // 30, end_us // 2))
            if end <= begin:
                break
            stays.append((node, begin, end))
            begin = end + rng.randrange(0, rng.choice([SECOND_US, end_us // 10, end_us // 3]))
    return stays


def _draw_contacts(
    rng: random.Random, nodes: int, end_us: int, most: int
) -> list[tuple[int, int, int, int]]:
    contacts = []
    for _ in range(rng.randint(5, most)):
        a, b = rng.sample(range(nodes), 2)
        up_us = rng.randrange(end_us)
        longest = rng.choice([1_000_000, 30_000_000, 300_000_000])
        contacts.append((a, b, up_us, up_us + rng.randrange(1, longest)))
    return contacts


def expiring_world() -> tuple[Trace, Spec]:
    """Return a world in which messages expire while a node that waits for their causes is away.

    The ring has turned when it returns: other messages are where the awaited ones were."""
    contacts = [(0, 1, t, t + 3) for t in range(0, 90, 4)]
    contacts += [(1, 2, t, t + 1) for t in (1, 3, 80, 84)] + [(0, 2, 86, 89)]
    stays = [(0, 0, 90), (1, 0, 90), (2, 0, 5), (2, 78, 90)]
    trace = make_trace(
        ["a", "b", "c"],
        np.array([(a, b, up * SECOND_US, down * SECOND_US) for a, b, up, down in contacts]),
        np.array([(n, up * SECOND_US, down * SECOND_US) for n, up, down in stays]),
    )
    spec = Spec(
        "delta",
        seed=1,
        lifetime_us=6 * SECOND_US,
        traffic=Traffic(first_us=0, period_us=30_000, payload_bytes=0),
        links=LinkModel(latency_us=1000, bytes_per_s=6000),
        layer=Options(announce_us=500_000, frame_messages_max=1),
    )
    return trace, spec


def compare(seed: int, *, size: float = 1.0) -> Compared:
    """Play a random world with both engines and compare everything that they return."""
    return compare_engines(*draw_world(seed, size=size))


def compare_engines(trace: Trace, spec: Spec) -> Compared:
    """Play a world with both engines. Interpreted, the twin has no room to spare, so that a bound
    that is too small shows. Compiled, each return to make room would cost more than the events."""
    cores = run_one(trace, spec)
    why = refusal(trace, spec)
    if why is None:
        try:
            twin = Twin(
                trace,
                spec,
                rows_per_page=1 if INTERPRETED else 256,
                room=1 if INTERPRETED else 256,
                spare=0.0,
                note=_ignore,
            ).run()
        except Uncovered as found:
            why = str(found)
        else:
            return Compared(len(twin.columns["kind"]), "", find_difference(cores, twin))
    return Compared(len(cores.columns["kind"]), why, "")


def _ignore(_: str) -> None:
    pass


def find_difference(cores: Result, twin: Result) -> str:
    """Return what differs first between two results, or an empty text."""
    for name, column in cores.columns.items():
        other = twin.columns[name]
        size = min(len(column), len(other))
        if len(found := np.flatnonzero(column[:size] != other[:size])):
            at = int(found[0])
            return f"row {at}, {name}: {column[at]} and {other[at]}"
        if len(column) != len(other):
            return f"{len(column)} and {len(other)} rows"
    if not np.array_equal(cores.senders, twin.senders):
        return "senders"
    if sorted(cores.pasts.tolist()) != sorted(twin.pasts.tolist()):
        return "pasts"
    assert cores.evictions is not None
    assert twin.evictions is not None
    if not np.array_equal(cores.evictions, twin.evictions):
        return "evictions"
    for name in ("gauges", "counters", *FRAMES):
        if getattr(cores, name) != getattr(twin, name):
            return f"{name}: {str(getattr(cores, name))[:300]} and {str(getattr(twin, name))[:300]}"
    return ""
