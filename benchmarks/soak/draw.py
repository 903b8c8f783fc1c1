"""Draw the case of a seed: the nodes, their broadcasts, and all faults."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

CLOCK_US_MAX = 25_000_000
"""The maximum offset from true time; any two clocks then differ by less than the agreed minute."""
DRIFT_MAX = 0.05
FULL_MAX = 6
"""Above this number of nodes, not all pairs are linked."""
SHORT_LIFETIME = "1s"
SHORT_CLOCK_US_MAX = 300_000
"""The maximum clock offset if messages expire within the seed. A node that waits for a message that
no peer has waits until the message has expired on its own clock. This takes as long as the
clocks differ."""

SIZES = (*[0, 20, 200, 200, 200] * 4, 5_000, 60_000)

Verb = Literal[
    "kill", "end", "start", "freeze", "thaw", "part", "heal", "unplug", "plug", "quality"
]


@dataclass(frozen=True)
class Quality:
    """The quality of every cable, in one direction."""

    loss: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    reorder: float = 0.0
    """The share of packets that overtake those in flight."""
    duplicate: float = 0.0


PERFECT = Quality()


@dataclass(frozen=True)
class Speech:
    """One broadcast."""

    at_s: float
    size: int
    lifetime: str | None
    """The lifetime; None for one that lasts to the end of the seed."""


@dataclass(frozen=True)
class NodeScript:
    """The script of one node, over all its incarnations."""

    at: int
    seed: str
    peers: tuple[int, ...]
    """The nodes that it dials."""
    inbox: bool
    durable: Literal["disk", "os"]
    log_rows_max: int
    clock: tuple[tuple[float, int], ...]
    """Steps of (time, offset): from this time on, the clock's offset from true time in
    microseconds."""
    drift: float
    greetings: int
    """The number of messages that it broadcasts at the start of each incarnation."""
    speeches: tuple[Speech, ...]
    answers: float
    """The probability that it answers a message."""
    reading_s: float
    """The maximum time that its application takes to handle one message."""

    @property
    def name(self) -> str:
        return f"n{self.at:02d}"


@dataclass(frozen=True)
class Fault:
    """A fault of a node or of the network."""

    at_s: float
    verb: Verb
    node: int = -1
    after_up_s: float | None = None
    """Wait this long after the node is up; all later faults are delayed by the same time."""
    sides: tuple[int, ...] = ()
    quality: Quality = PERFECT


@dataclass(frozen=True)
class Case:
    """Everything that happens in one seed. Afterwards all faults are healed."""

    seed: int
    nodes: tuple[NodeScript, ...]
    faults: tuple[Fault, ...]
    chaos_s: float
    is_rushed: bool
    """Whether the script begins before all nodes are up."""


def draw_case(seed: int, nodes_max: int) -> Case:
    """Draw a case with all faults: bad links, partitions, unplugged cables, kills, clock errors."""
    rng = random.Random(f"soak {seed}")
    count = rng.randint(max(2, nodes_max // 2), nodes_max)
    chaos_s = rng.uniform(2.0, 4.0)
    nodes = tuple(_draw_nodes(seed, rng, count, chaos_s))
    faults = [
        *_draw_kills(rng, count, chaos_s, rng.randint(0, count)),
        *_draw_freezes(rng, count, chaos_s),
        *_draw_partitions(rng, count, chaos_s),
        *_draw_cables(rng, count, chaos_s),
        *_draw_qualities(rng, chaos_s),
    ]
    faults.sort(key=lambda fault: fault.at_s)
    return Case(seed, nodes, tuple(faults), chaos_s, is_rushed=rng.random() < 0.2)


def draw_kills_case(seed: int, nodes: int, kills: int, stations: int = 0) -> Case:
    """Draw a case of repeated kill -9 only, so that the same stores survive many kills.

    Most kills hit a working node, some hit a starting one. The first nodes are stations, which are
    never killed.
    """
    rng = random.Random(f"kills {seed}")
    scripts = tuple(_draw_nodes(seed, rng, nodes, chaos_s=1.0, is_busy=True))
    faults = []
    for kill in range(kills):
        node = rng.randrange(stations, nodes)
        wait_s = rng.choice((None, 0.0, 0.1, rng.uniform(0.0, 0.4)))
        at_s = kill * rng.uniform(0.01, 0.1)
        faults += [Fault(at_s, "kill", node, wait_s), Fault(at_s, "start", node)]
    return Case(seed, scripts, tuple(faults), chaos_s=1.0, is_rushed=False)


def _draw_nodes(
    seed: int, rng: random.Random, count: int, chaos_s: float, *, is_busy: bool = False
) -> Iterator[NodeScript]:
    peers = _draw_links(rng, count)
    has_short = rng.random() < 0.3
    clock_us_max = SHORT_CLOCK_US_MAX if has_short else CLOCK_US_MAX
    for at in range(count):
        speeches = [
            Speech(
                at_s=rng.uniform(0.0, chaos_s),
                size=rng.choice(SIZES),
                lifetime=SHORT_LIFETIME if has_short and rng.random() < 0.3 else None,
            )
            for _ in range(rng.randint(0, round(6 * chaos_s)))
        ]
        jumps = [
            (rng.uniform(0.0, chaos_s), rng.randint(-clock_us_max, clock_us_max))
            for _ in range(rng.randint(0, 3))
        ]
        yield NodeScript(
            at=at,
            seed=f"node {seed} {at}",
            peers=tuple(sorted(peers[at])),
            inbox=rng.random() < 0.5,
            durable="os" if rng.random() < 0.3 else "disk",
            log_rows_max=rng.choice((10, 100, 20_000, 20_000)),
            clock=((0.0, rng.randint(-clock_us_max, clock_us_max)), *sorted(jumps)),
            drift=rng.uniform(-DRIFT_MAX, DRIFT_MAX),
            greetings=rng.choice((5, 20) if is_busy else (0, 0, 1, 4)),
            speeches=tuple(sorted(speeches, key=lambda speech: speech.at_s)),
            answers=rng.choice((0.0, 0.01, 0.04)),
            reading_s=rng.choice((0.0, 0.0, 0.003, 0.01)),
        )


def _draw_links(rng: random.Random, count: int) -> list[set[int]]:
    """Draw which nodes dial which; the result is always connected."""
    peers: list[set[int]] = [set() for _ in range(count)]
    kind = rng.choice(("line", "star", "tree", "ring", "full" if count <= FULL_MAX else "mesh"))
    for at in range(1, count):
        others = {
            "star": [0],
            "tree": [rng.randrange(at)],
            "mesh": rng.sample(range(at), min(at, 3)),
            "full": list(range(at)),
        }.get(kind, [at - 1])
        for other in others:
            # Either node dials, or both.
            dialing = rng.randrange(3)
            if dialing != 0:
                peers[at].add(other)
            if dialing != 1:
                peers[other].add(at)
    if kind == "ring":
        peers[0].add(count - 1)
    return [dialed - {at} for at, dialed in enumerate(peers)]


def _draw_kills(rng: random.Random, count: int, chaos_s: float, kills: int) -> Iterator[Fault]:
    """Draw kills and restarts; some nodes are killed again while they start."""
    for _ in range(kills):
        node, at_s = rng.randrange(count), rng.uniform(0.0, chaos_s)
        yield Fault(at_s, "kill" if rng.random() < 0.8 else "end", node)
        yield Fault(at_s + rng.choice((0.0, 0.05, rng.uniform(0.0, 0.7))), "start", node)


def _draw_freezes(rng: random.Random, count: int, chaos_s: float) -> Iterator[Fault]:
    for _ in range(rng.randint(0, 2)):
        node, at_s = rng.randrange(count), rng.uniform(0.0, chaos_s)
        yield Fault(at_s, "freeze", node)
        yield Fault(at_s + rng.uniform(0.1, 1.5), "thaw", node)


def _draw_partitions(rng: random.Random, count: int, chaos_s: float) -> Iterator[Fault]:
    at_s = 0.0
    for _ in range(rng.randint(0, 3)):
        at_s += rng.uniform(0.1, chaos_s / 2)
        parts = rng.choice((2, 2, 3, count))
        yield Fault(at_s, "part", sides=tuple(rng.randrange(parts) for _ in range(count)))
        at_s += rng.uniform(0.1, chaos_s / 2)
        yield Fault(at_s, "heal")


def _draw_cables(rng: random.Random, count: int, chaos_s: float) -> Iterator[Fault]:
    for _ in range(rng.randint(0, 3)):
        node, at_s = rng.randrange(count), rng.uniform(0.0, chaos_s)
        for _ in range(rng.randint(1, 5)):
            yield Fault(at_s, "unplug", node)
            at_s += rng.uniform(0.02, 0.6)
            yield Fault(at_s, "plug", node)
            at_s += rng.uniform(0.02, 0.3)


def _draw_qualities(rng: random.Random, chaos_s: float) -> Iterator[Fault]:
    for _ in range(rng.randint(0, 3)):
        quality = Quality(
            loss=rng.choice((0.0, 0.01, 0.1, 0.25)),
            delay_s=rng.choice((0.0, 0.002, 0.02, 0.08)),
            jitter_s=rng.choice((0.0, 0.005, 0.05)),
            reorder=rng.choice((0.0, 0.05, 0.3)),
            duplicate=rng.choice((0.0, 0.02, 0.2)),
        )
        yield Fault(rng.uniform(0.0, chaos_s), "quality", quality=quality)
