"""The fuzzer: a seed draws a case and plays random moves; then the net is healed and judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from beforehand.check.fuzz.shrink import shrink
from beforehand.check.fuzz.story import describe_run
from beforehand.check.net.case import Case, Family
from beforehand.check.net.heal import heal
from beforehand.check.net.net import Move, Net, make_net
from beforehand.check.net.thresholds import in_force
from beforehand.protocols.contract.base import Core
from beforehand.sim.streams import generator, stream_key

LENGTHS = (10, 30, 60, 120)
TRIES = 3
PASSES_US = (1_000, 100_000, 1_000_000, 5_000_000)
WEIGHTS = {
    "arrive": 40,
    "broadcast": 14,
    "up": 8,
    "down": 3,
    "notify": 10,
    "timer": 8,
    "pass": 5,
    "lose": 3,
    "double": 3,
    "crash": 2,
    "crash_after": 3,
    "restart": 5,
    "set": 5,
    "shift": 3,
    "suspect": 2,
    "trust": 3,
    "flush": 14,
    "room": 10,
    "open": 3,
    "enter": 8,
    "leave": 2,
}
BURST = 6
MakeCore = Callable[[Case, int], Core[Any]]
Draw = Callable[[Net, random.Random], Iterator[Move]]


@dataclass(frozen=True)
class Outcome:
    """The result of one seed. It depends only on the seed and the family."""

    seed: int
    protocol: str
    problem: str | None
    deliveries: int
    waited: int
    """Deliveries later than their reception. If none waits, a pass proves nothing."""
    sights: frozenset[str]
    moves: int
    shrunk: int = 0
    """The number of moves that are left of a failure after shrinking."""
    allowed: int = 0
    """Violations that the promise of the family allows."""
    story: str = ""
    described: str = field(default="", compare=False)

    @property
    def replay(self) -> str:
        return f"beforehand fuzz --protocol {spelled(self.protocol)} --replay {self.seed}"


def spelled(name: str) -> str:
    """Return the name of a protocol as people write it, with hyphens."""
    return name.replace("_", "-")


def run_seed(
    seed: int, family: Family, make_core: MakeCore | None = None, *, with_story: bool = False
) -> Outcome:
    """Draw, play, heal and judge; shrink a failure and describe its run.

    with_story: also describe a run without a failure."""
    net, moves = play(seed, family, make_core)
    few = shrink(family, net.case, moves, make_core) if net.problem else moves
    story = describe_run(family, net.case, few, make_core) if net.problem or with_story else ""
    seen = ", ".join(sorted(net.sights)) or "nothing out of the ordinary"
    return Outcome(
        seed,
        family.name,
        net.problem,
        deliveries=sum(map(len, net.oracle.delivered.values())),
        waited=net.waited,
        allowed=sum(not family.judges(violation) for violation in net.oracle.violations),
        sights=frozenset(net.sights),
        moves=len(moves),
        shrunk=len(few),
        story=story,
        described=f"{net.case}\n{len(moves)} moves; seen: {seen}",
    )


def play(seed: int, family: Family, make_core: MakeCore | None = None) -> tuple[Net, list[Move]]:
    """Return the net at the end, or at the first problem, and the moves that led there."""
    rng = generator(seed, f"fuzz {family.stream}")
    case = family.draw(rng)
    # The fuzzer draws the thresholds here for every family, so a new core needs no code for this.
    # They have their own random stream, so no other draw depends on them.
    if stream_key(seed, f"thresholds {family.stream}") % 2:
        case = replace(case, thresholds="low")
    with in_force(case.thresholds):
        net = make_net(family, case, make_core)
        return net, _play(net, rng)


def _play(net: Net, rng: random.Random) -> list[Move]:
    kinds, weights = _kinds(net)
    moves: list[Move] = []
    length = rng.choice(LENGTHS)
    for kind in rng.choices(kinds, weights, k=TRIES * length):  # not every drawn move is possible
        for move in _DRAWS[kind](net, rng):
            if net.do(move):
                moves.append(move)
            if net.problem:
                return moves
        if len(moves) >= length:
            break
    heal(net)
    return moves


def _kinds(net: Net) -> tuple[list[str], list[int]]:
    """Return the kinds of moves that are possible in this case, and their weights."""
    troubles = {
        "down": "flaps",
        "lose": "losses",
        "double": "doubles",
        "crash": "crashes",
        "crash_after": "crashes",
        "set": "settings",
        "shift": "shifts",
        "suspect": "suspicions",
        "trust": "suspicions",
        "leave": "leaves",
    }
    kinds = [kind for kind in WEIGHTS if kind not in troubles or net.left[troubles[kind]]]
    if net.family.kind != "contact":
        kinds = [kind for kind in kinds if kind not in ("up", "down")]
    if net.family.kind != "cell":
        kinds.remove("enter")
    if not net.case.is_disk_late:
        kinds.remove("flush")
    if net.case.room_bytes is None:
        kinds.remove("room")
    if not net.case.pauses:
        kinds.remove("open")
    return kinds, [WEIGHTS[kind] for kind in kinds]


def _pair(net: Net, rng: random.Random) -> tuple[int, int]:
    if net.case.edges is not None:
        return rng.choice(net.case.edges)
    a, b = rng.sample(range(net.case.nodes), 2)
    return (a, b) if a < b else (b, a)


def _node(net: Net, rng: random.Random) -> int:
    return rng.randrange(net.case.nodes)


def _arrive(net: Net, rng: random.Random) -> Iterator[Move]:
    """Yield the arrival of a random frame, or of the next few in sending order.

    The order lets exchanges of several frames get to their end."""
    if net.flights and rng.random() < 0.7:
        yield ("arrive", *rng.choice(list(net.flights)))
        return
    for _ in range(BURST):
        if net.flights:
            yield ("arrive", *next(iter(net.flights)))


def _flight(kind: str) -> Draw:
    def draw(net: Net, rng: random.Random) -> Iterator[Move]:
        if net.flights:
            yield (kind, *rng.choice(list(net.flights)))

    return draw


def _timer(net: Net, rng: random.Random) -> Iterator[Move]:
    if net.timers:
        yield ("timer", *rng.choice(list(net.timers)))


def _notify(net: Net, rng: random.Random) -> Iterator[Move]:
    if net.notices:
        yield ("notify", *rng.choice(net.notices)[:2])


def _room(net: Net, rng: random.Random) -> Iterator[Move]:
    if rooms := list(net.rooms()):
        yield ("room", *rng.choice(rooms))


def _set(net: Net, rng: random.Random) -> Iterator[Move]:
    """Yield a clock setting, often to an extreme, and mostly at a node that is down."""
    skew_us = net.case.skew_us
    down = [node for node, driver in enumerate(net.drivers) if not driver.is_up]
    node = rng.choice(down) if down and rng.random() < 0.7 else _node(net, rng)
    yield ("set", node, rng.choice((0, skew_us, rng.randint(0, skew_us))))


def _shift(net: Net, rng: random.Random) -> Iterator[Move]:
    """Yield a setting of all clocks at once.

    If messages have lifetimes, the new time is often just before or after a deadline."""
    start_us, span_us = net.case.shift_us, net.case.shift_span_us
    least_us, most_us = start_us - span_us, start_us + span_us
    shift_us = rng.choice((least_us, start_us, most_us, rng.randint(least_us, most_us)))
    if net.case.lifetimes_us != (None,) and net.oracle.pasts and rng.random() < 0.5:
        end_us = rng.choice(list(net.oracle.pasts))[1] - net.now_us
        near_us = rng.choice((-2, -1, 0, 1)) * (net.case.skew_us // 2 + 1)
        shift_us = min(max(least_us, end_us + near_us), most_us)
    if not net.left["crashes"] or rng.random() < 0.5:
        yield ("shift", shift_us)
        return
    node = _node(net, rng)  # while this node is down, it loses its unsaved state
    yield from (("crash", node, 0), ("shift", shift_us), ("restart", node))


def _pass(net: Net, rng: random.Random) -> Iterator[Move]:
    """Yield the passing of time, often just to a deadline if messages have lifetimes."""
    us = rng.choice(PASSES_US)
    if net.case.lifetimes_us != (None,) and net.oracle.pasts and rng.random() < 0.5:
        left_us = rng.choice(list(net.oracle.pasts))[1] - net.now_us - net.shift_us
        if left_us > 0:
            us = max(1, left_us - rng.choice((0, 1, 2)) * net.case.skew_us // 2)
    yield ("pass", us)


def _one(kind: str, draw: Callable[[Net, random.Random], tuple[Any, ...]]) -> Draw:
    return lambda net, rng: iter([(kind, *draw(net, rng))])


def _two(net: Net, rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.sample(range(net.case.nodes), 2))


def _enter(net: Net, rng: random.Random) -> tuple[int, int]:
    """Return a host and a cell to enter, or now and then no cell."""
    stations = net.case.stations
    return rng.randrange(stations, net.case.nodes), rng.randrange(stations + 1)


_DRAWS: dict[str, Draw] = {
    "arrive": _arrive,
    "lose": _flight("lose"),
    "double": _flight("double"),
    "broadcast": _one(
        "broadcast", lambda net, rng: (_node(net, rng), rng.choice(net.case.lifetimes_us))
    ),
    "up": _one("up", _pair),
    "down": _one("down", _pair),
    "notify": _notify,
    "timer": _timer,
    "pass": _pass,
    "crash": _one("crash", lambda net, rng: (_node(net, rng), rng.randrange(3))),
    "crash_after": _one("crash_after", lambda net, rng: (_node(net, rng), rng.randrange(5))),
    "restart": _one("restart", lambda net, rng: (_node(net, rng),)),
    "set": _set,
    "shift": _shift,
    "suspect": _one("suspect", _two),
    "trust": _one("trust", _two),
    "flush": _one("flush", lambda net, rng: (_node(net, rng),)),
    "room": _room,
    "open": _one("open", lambda net, rng: (_node(net, rng), rng.random() < 0.5)),
    "enter": _one("enter", _enter),
    "leave": _one("leave", lambda net, rng: (_node(net, rng),)),
}
