"""Liveness: find fair cycles of moves in which a deliverable message is never delivered.

`explore` heals a net that has come to rest, and then judges it. It does not judge a net that never
comes to rest. A node that requests a message for ever, and a peer that always answers that it was
evicted, look like progress. So this module searches the graph of all states for *fair cycles*.

A cycle is a strongly connected component of the graph. It is fair (weak fairness) if every move
that is possible in all of its states is also taken in it. Fairness applies to the arrival of a
frame, a link notification, a timer, the flush of a disk, room on a wire, and an application that
reads again. All other moves may never happen: a broadcast, a link that comes up, a restart, and
every kind of fault. Each kind of fault has a budget, so no cycle contains a fault.

Suppose that a component is not fair: some move is possible in all of its states, and no edge inside
the component takes it. Then no part of it is fair either, so components need not be divided
further.

In a fair cycle no message is delivered, because a delivered message stays delivered. A message is
*deliverable* at a node under these conditions. The node is up, has not delivered the message, and
has not reported it as lost. A peer to which the node is linked, directly or through others, holds
it. A fair cycle with a deliverable message is starvation. A fair cycle without one is a net that
never comes to rest: frames circulate to no effect.

Time: where only differences of times matter, states do not contain the time, and a timer that fires
for ever is a cycle. With lifetimes time is absolute, so a cycle contains no timer. A timer that
fires for ever then shows as an exploration that is not complete. The graph is not reduced: the
ample sets of `check.explore.ample` do not preserve cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from beforehand.check.explore.canonical import Canonicalizer
from beforehand.check.explore.components import components
from beforehand.check.net.case import Case, Family, had, honest
from beforehand.check.net.moves import all_moves
from beforehand.check.net.net import Move, Net
from beforehand.protocols.contract.base import Core, MessageId

FAIR = ("arrive", "notify", "timer", "flush", "room")


class Edge(NamedTuple):
    """A move from one state to another."""

    target: int
    move: Move
    label: Hashable
    """Identifies the move in all states: it has the frame instead of its number. None: fairness
    does not apply."""


@dataclass
class Liveness:
    """The result of the search."""

    states: int = 0
    cycles: int = 0
    """The number of components with a cycle, fair or not."""
    is_complete: bool = False
    problem: str | None = None
    path: list[Move] = field(default_factory=list)
    """The moves to a state of the cycle. Frame numbers are those of the graph's states."""
    cycle: list[Move] = field(default_factory=list)
    """The moves of a shortest closed path in the cycle. A walk through all states is fair."""


def find_fair_cycle(
    family: Family,
    case: Case,
    states_max: int,
    make_core: Callable[[Case, int], Core[Any]] | None = None,
) -> Liveness:
    """Search all reachable states, at most `states_max`, for a fair cycle."""
    found = Liveness()
    canonicalizer = Canonicalizer(family, case, make_core)
    states, edges, found.is_complete = _graph(canonicalizer, states_max)
    found.states = len(states)
    for component in components([[edge.target for edge in out] for out in edges]):
        inside = set(component)
        if not any(edge.target in inside for at in component for edge in edges[at]):
            continue
        found.cycles += 1
        if not is_fair(component, edges):
            continue
        start = min(component)
        lacking = sorted(deliverable(canonicalizer.thaw(states[start])), key=str)
        found.problem = "never at rest: frames or timers go round for ever"
        if lacking:
            node, id = lacking[0]
            found.problem = f"node {node} never delivers {id}, which a peer holds: moves repeat"
        found.path = _way(edges, 0, {start}, set(range(len(states))))
        found.cycle = _way(edges, start, {start}, inside)
        if lacking:
            return found
    return found


def deliverable(net: Net) -> Iterator[tuple[int, MessageId]]:
    """Yield (node, message) where the node lacks a message that a connected peer holds."""
    cores: list[Any] = [driver.core for driver in net.drivers]
    up = [node for node in honest(net) if net.drivers[node].is_up]
    for node in up:
        near, edge = {node}, [node]
        while edge:
            at = edge.pop()
            more = {a + b - at for a, b in net.contacts if at in (a, b)} & set(up) - near
            near |= more
            edge += more
        held = {id for peer in near - {node} for id in cores[peer].holds(net.local_us(peer))}
        for id in held & net.oracle.pasts.keys() - had(net, node):
            if (node, id) not in net.reported_lost:
                yield node, id


def _graph(
    canonicalizer: Canonicalizer, states_max: int
) -> tuple[list[bytes], list[list[Edge]], bool]:
    """Return all states, the moves from each, and whether the graph is complete."""
    states = [canonicalizer.freeze()]
    known = {states[0]: 0}
    edges: list[list[Edge]] = []
    while len(edges) < len(states):
        state = states[len(edges)]
        out: list[Edge] = []
        for move in list(all_moves(canonicalizer.thaw(state))):
            net = canonicalizer.thaw(state)
            label = _label(net, move)
            if not net.do(move):
                continue
            frozen = canonicalizer.freeze()
            if frozen not in known:
                if len(states) >= states_max:
                    return states[: len(edges)], [_within(o, len(edges)) for o in edges], False
                known[frozen] = len(states)
                states.append(frozen)
            out.append(Edge(known[frozen], move, label))
        edges.append(out)
    return states, edges, True


def _within(edges: list[Edge], count: int) -> list[Edge]:
    return [edge for edge in edges if edge.target < count]


def _label(net: Net, move: Move) -> Hashable:
    kind, *rest = move
    if kind == "arrive":
        return (kind, *rest[:2], net.flights[rest[0], rest[1], rest[2]][0])
    return move if kind in FAIR or (kind == "open" and rest[1]) else None


def is_fair(component: list[int], edges: list[list[Edge]]) -> bool:
    """Return whether every move that is possible in all states of a component is taken in it."""
    inside = set(component)
    possible = [{edge.label for edge in edges[at]} - {None} for at in component]
    always = set.intersection(*possible)
    return always <= {e.label for at in component for e in edges[at] if e.target in inside}


def _way(edges: list[list[Edge]], start: int, goal: set[int], inside: set[int]) -> list[Move]:
    """Return the moves of a shortest path to the goal: at least one, unless the goal is state 0."""
    if start == 0 and 0 in goal and len(inside) == len(edges):
        return []
    before: dict[int, tuple[int, Move]] = {}
    queue = [start]
    for at in queue:
        for edge in edges[at]:
            if edge.target not in inside or edge.target in before:
                continue
            before[edge.target] = (at, edge.move)
            if edge.target in goal:
                return _back(before, start, edge.target)
            queue.append(edge.target)
    return []


def _back(before: dict[int, tuple[int, Move]], start: int, end: int) -> list[Move]:
    at, moves = end, []
    while True:
        at, move = before[at]
        moves.append(move)
        if at == start:
            return moves[::-1]
