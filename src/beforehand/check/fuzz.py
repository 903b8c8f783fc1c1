"""A seed draws a case and plays it with random moves; then the net is healed and judged."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from beforehand.check.case import Case, Family
from beforehand.check.heal import heal
from beforehand.check.net import Move, Net, make_net
from beforehand.check.shrink import shrink
from beforehand.check.story import tell
from beforehand.core.base import Core
from beforehand.sim.streams import generator

LENGTHS = (20, 60, 120, 240)
PASSES_US = (1_000, 100_000, 1_000_000, 5_000_000, 30_000_000)
WEIGHTS = {
    "arrive": 40,
    "speak": 14,
    "up": 8,
    "down": 3,
    "tell": 10,
    "timer": 8,
    "pass": 5,
    "lose": 3,
    "double": 3,
    "crash": 2,
    "fuse": 3,
    "restart": 5,
    "set": 3,
    "suspect": 2,
    "trust": 3,
}
MakeCore = Callable[[Case, int], Core[Any]]


@dataclass(frozen=True)
class Outcome:
    """What one seed showed. The same seed always shows the same."""

    seed: int
    protocol: str
    problem: str | None
    deliveries: int
    waited: int
    """Deliveries later than their reception: a swarm in which nothing waits proves nothing."""
    sights: frozenset[str]
    moves: int
    shrunk: int = 0
    """To how many moves a failure came down."""
    story: str = ""
    described: str = field(default="", compare=False)

    @property
    def replay(self) -> str:
        return f"beforehand fuzz --protocol {self.protocol} --replay {self.seed}"


def run_seed(seed: int, family: Family, make_core: MakeCore | None = None) -> Outcome:
    """Draw, play, heal, judge; shrink and tell a failure."""
    net, moves = play(seed, family, make_core)
    story, few = "", moves
    if net.problem:
        few = shrink(family, net.case, moves, make_core)
        story = tell(family, net.case, few, make_core)
    return Outcome(
        seed,
        family.name,
        net.problem,
        deliveries=sum(map(len, net.oracle.delivered.values())),
        waited=net.waited,
        sights=frozenset(net.sights),
        moves=len(moves),
        shrunk=len(few),
        story=story,
        described=f"{net.case}\n{len(moves)} moves; seen: {', '.join(sorted(net.sights))}",
    )


def play(seed: int, family: Family, make_core: MakeCore | None = None) -> tuple[Net, list[Move]]:
    """The net at the end, or where something went wrong, and the moves that led there."""
    rng = generator(seed, f"fuzz {family.name}")
    net = make_net(family, family.draw(rng), make_core)
    kinds, weights = _kinds(net)
    moves: list[Move] = []
    for kind in rng.choices(kinds, weights, k=rng.choice(LENGTHS)):
        move = _DRAWS[kind](net, rng)
        if move is not None and net.do(move):
            moves.append(move)
            if net.problem:
                return net, moves
    heal(net)
    return net, moves


def _kinds(net: Net) -> tuple[list[str], list[int]]:
    """What can happen at all in this case."""
    troubles = {
        "down": "flaps",
        "lose": "losses",
        "double": "doubles",
        "crash": "crashes",
        "fuse": "crashes",
        "set": "settings",
        "suspect": "suspicions",
        "trust": "suspicions",
    }
    kinds = [kind for kind in WEIGHTS if kind not in troubles or net.left[troubles[kind]]]
    if net.family.kind != "contact":
        kinds = [kind for kind in kinds if kind not in ("up", "down")]
    return kinds, [WEIGHTS[kind] for kind in kinds]


def _pair(net: Net, rng: random.Random) -> tuple[int, int]:
    if net.case.edges is not None:
        return rng.choice(net.case.edges)
    a, b = rng.sample(range(net.case.nodes), 2)
    return (a, b) if a < b else (b, a)


def _node(net: Net, rng: random.Random) -> int:
    return rng.randrange(net.case.nodes)


def _flight(kind: str) -> Callable[[Net, random.Random], Move | None]:
    def draw(net: Net, rng: random.Random) -> Move | None:
        return (kind, *rng.choice(list(net.flights))) if net.flights else None

    return draw


def _timer(net: Net, rng: random.Random) -> Move | None:
    return ("timer", *rng.choice(list(net.timers))) if net.timers else None


def _tell(net: Net, rng: random.Random) -> Move | None:
    return ("tell", *rng.choice(net.news)[:2]) if net.news else None


def _set(net: Net, rng: random.Random) -> Move:
    """To an extreme as often as not: that is where agreements break."""
    skew_us = net.case.skew_us
    return ("set", _node(net, rng), rng.choice((0, skew_us, rng.randint(0, skew_us))))


def _pass(net: Net, rng: random.Random) -> Move:
    """Where messages live only so long, often just to the end of one of them."""
    if net.case.lifetimes_us != (None,) and net.oracle.pasts and rng.random() < 0.5:
        left_us = rng.choice(list(net.oracle.pasts))[1] - net.now_us
        if left_us > 0:
            return ("pass", max(1, left_us - rng.choice((0, net.case.skew_us))))
    return ("pass", rng.choice(PASSES_US))


def _speak(net: Net, rng: random.Random) -> Move:
    return ("speak", _node(net, rng), rng.choice(net.case.lifetimes_us))


def _ordered_pair(kind: str) -> Callable[[Net, random.Random], Move | None]:
    return lambda net, rng: (kind, *rng.sample(range(net.case.nodes), 2))


_DRAWS: dict[str, Callable[[Net, random.Random], Move | None]] = {
    "arrive": _flight("arrive"),
    "lose": _flight("lose"),
    "double": _flight("double"),
    "speak": _speak,
    "up": lambda net, rng: ("up", *_pair(net, rng)),
    "down": lambda net, rng: ("down", *_pair(net, rng)),
    "tell": _tell,
    "timer": _timer,
    "pass": _pass,
    "crash": lambda net, rng: ("crash", _node(net, rng), rng.randrange(3)),
    "fuse": lambda net, rng: ("fuse", _node(net, rng), rng.randrange(5)),
    "restart": lambda net, rng: ("restart", _node(net, rng)),
    "set": _set,
    "suspect": _ordered_pair("suspect"),
    "trust": _ordered_pair("trust"),
}
