"""Hostile networks for VCube: a seed draws one, plays it with random moves, and judges it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from beforehand.check.cube_net import Case, Move, Net, make_net
from beforehand.check.outcome import Outcome
from beforehand.core.base import MessageId
from beforehand.core.packets import Packet
from beforehand.core.vcube import VCube
from beforehand.sim.streams import generator

MOVES_MAX = 200_000


@dataclass(frozen=True)
class Step:
    """A move, and what came of it."""

    move: Move
    messages: tuple[MessageId, ...]
    """That it is about."""
    delivered: tuple[MessageId, ...]
    told: str


def run_seed(seed: int) -> Outcome:
    net, steps = play(seed)
    arrivals = [step for step in steps if step.move[0] == "arrive"]
    return Outcome(
        seed,
        "vcube",
        (net.problem,) if net.problem else (),
        deliveries=sum(map(len, net.delivered)),
        waited=sum(len(set(step.delivered) - set(step.messages)) for step in arrivals),
        story=_story(net, steps) if net.problem else "",
        described=f"{net.case}\n{len(steps)} moves; seen: {', '.join(net.sights)}",
    )


def play(seed: int, make_core: Callable[..., VCube] = VCube) -> tuple[Net, list[Step]]:
    """Draw a network and play it to the end, or until something is wrong with it."""
    rng = generator(seed, "fuzz vcube")
    net = make_net(draw_case(rng), make_core)
    haste = rng.choice((0.05, 0.3, 0.9))
    steps: list[Step] = []
    while True:
        moves = net.moves()
        is_quiet = not net.problem and not net.flights and not net.news
        if is_quiet:
            net.problem = net.quiet_problem()
        elif len(steps) == MOVES_MAX:
            net.problem = "does not come to rest"
        if net.problem or not moves:
            return net, steps
        # Arrivals are most of the moves; the others get their turn before all is over.
        rare = [move for move in moves if move[0] != "arrive"]
        move = rng.choice(rare if rare and (is_quiet or rng.random() < haste) else moves)
        steps.append(_take(net, move))


def draw_case(rng: random.Random) -> Case:
    nodes = rng.choice((2, 3, 4, 5, 6, 7, 8, 8, 11, 13, 16))
    most = rng.choice((1, 2, 4))
    crashes = rng.choice((0, 0, 1, 2, nodes // 2))
    absent = rng.sample(range(nodes), rng.randrange(nodes - 1)) if rng.random() < 0.3 else []
    return Case(
        nodes,
        tuple(rng.randint(0, most) for _ in range(nodes)),
        aggregates=rng.random() < 0.8,
        root=rng.choice((None, None, 0)),
        absent=tuple(absent),
        crashes=crashes,
        recoveries=rng.randrange(crashes + len(absent) + 1),
        mtu_bytes=rng.choice((30, 60, 1500)),
    )


# ---- telling ------------------------------------------------------------------------------------


def _take(net: Net, move: Move) -> Step:
    kind, which = move[0], move[1]
    node, told = which, f"node {which} {kind}s"
    messages: tuple[MessageId, ...] = ()
    if kind == "arrive":
        source, node, packet = net.flights[which]
        told = f"node {node} receives {packet} from {source}"
        if isinstance(packet, Packet):
            messages = tuple(message.id for message in packet.messages)
            told = f"node {node} receives {_listed(messages)} from {source}"
    elif kind == "tell":
        node, peer, is_up = net.news[which]
        told = f"node {node} hears that {peer} is {'up' if is_up else 'down'}"
    elif kind == "crash":
        told = f"node {node} crashes, {move[2]} of its packets have left"
    before = set(net.delivered[node])
    net.do(move)
    delivered = tuple(id for id in net.delivered[node] if id not in before)
    if delivered:
        told += f", delivers {_listed(delivered)}"
    return Step(move, messages, delivered, told)


def _story(net: Net, steps: list[Step]) -> str:
    """Who was up when, and what became of the messages that the problem names."""

    def lines() -> Iterator[str]:
        yield f"{net.problem}:"
        for at, step in enumerate(steps):
            is_about = any(str(id) in str(net.problem) for id in step.messages + step.delivered)
            if is_about or step.move[0] in ("crash", "recover", "tell"):
                yield f"  {at:>6}  {step.told}"

    return "\n".join(lines())


def _listed(ids: tuple[MessageId, ...]) -> str:
    return ", ".join(f"{origin}:{seq}" for origin, seq in ids)
