"""What happens in one seed: who is there, what each says and when, and all that goes wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

CLOCK_US_MAX = 25_000_000
"""From the true time. Any two clocks differ by less than the minute that a group agrees on."""
DRIFT_MAX = 0.05
FULL_MAX = 6
"""With more nodes not everybody is linked with everybody."""
SHORT_LIFETIME = "1s"
SHORT_CLOCK_US_MAX = 300_000
"""Where messages expire within the seed: who waits for one that nobody has waits until that has
expired on its own clock, so as long as the clocks are apart."""

SIZES = (*[0, 20, 200, 200, 200] * 4, 5_000, 60_000)

Verb = Literal[
    "kill", "end", "start", "freeze", "thaw", "part", "heal", "unplug", "plug", "quality"
]


@dataclass(frozen=True)
class Quality:
    """Of every cable, one way."""

    loss: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    reorder: float = 0.0
    """How many overtake those that are on their way."""
    duplicate: float = 0.0


PERFECT = Quality()


@dataclass(frozen=True)
class Speech:
    """One broadcast."""

    at_s: float
    size: int
    lifetime: str | None
    """None: so long that it lives to the end."""


@dataclass(frozen=True)
class NodeScript:
    """One node, over all its lives."""

    at: int
    seed: str
    peers: tuple[int, ...]
    """Whom it dials."""
    inbox: bool
    durable: Literal["disk", "os"]
    log_rows_max: int
    clock: tuple[tuple[float, int], ...]
    """From when its clock is how far from the true time, in microseconds."""
    drift: float
    greetings: int
    """How many messages it begins each of its lives with."""
    speeches: tuple[Speech, ...]
    answers: float
    """How likely it is to answer a message."""
    reading_s: float
    """How long its program takes over one message at most."""

    @property
    def name(self) -> str:
        return f"n{self.at:02d}"


@dataclass(frozen=True)
class Fault:
    """Something that is done to a node, or to the network."""

    at_s: float
    verb: Verb
    node: int = -1
    after_up_s: float | None = None
    """So long after the node is up, and all that follows is later by as much as that takes."""
    sides: tuple[int, ...] = ()
    quality: Quality = PERFECT


@dataclass(frozen=True)
class Case:
    """All of one seed. Then everything is healed."""

    seed: int
    nodes: tuple[NodeScript, ...]
    faults: tuple[Fault, ...]
    chaos_s: float
    is_rushed: bool
    """Does it begin before all nodes are up?"""


def draw_case(seed: int, nodes_max: int) -> Case:
    """Everything at once: bad wires, partitions, cables, kills, clocks."""
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
    """Nothing but kill -9, again and again, so that the same stores live through many of them. Most
    of them hit a node that is at work, some hit one that comes up. The first nodes are stations,
    which nobody kills."""
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
    """Who dials whom: connected, whatever it looks like."""
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
            # One of them dials, or the other, or both.
            dialing = rng.randrange(3)
            if dialing != 0:
                peers[at].add(other)
            if dialing != 1:
                peers[other].add(at)
    if kind == "ring":
        peers[0].add(count - 1)
    return [dialed - {at} for at, dialed in enumerate(peers)]


def _draw_kills(rng: random.Random, count: int, chaos_s: float, kills: int) -> Iterator[Fault]:
    """Some come up at once, some in the midst of coming up are killed again."""
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
