"""Every interleaving of a small net: breadth first, each state once.

A state is a whole net as bytes (`check.ice`), so that two orders of events that lead to the same
state are explored once. *Sometimes* conditions name what must have been seen at least once: a pass
in which nothing ever waited proves nothing.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from beforehand.check.case import Case, Family
from beforehand.check.heal import heal
from beforehand.check.ice import Ice
from beforehand.check.moves import all_moves
from beforehand.check.net import Move, Net, make_net
from beforehand.core.base import Core


@dataclass
class Exploration:
    """What was found."""

    states: int = 0
    transitions: int = 0
    quiet: int = 0
    """States in which nothing is on its way: each was healed and judged."""
    seen: set[str] = field(default_factory=set)
    problem: str | None = None
    path: list[Move] = field(default_factory=list)
    """The shortest sequence of moves that leads to the problem."""
    is_complete: bool = False
    """Was everything explored, or did the bound on states end it?"""


def explore(
    family: Family,
    case: Case,
    states_max: int,
    make_core: Callable[[Case, int], Core[Any]] | None = None,
) -> Exploration:
    """Walk through all reachable states, at most `states_max`; stop at the first problem."""
    found = Exploration()
    ice = Ice(family, case, make_core)
    start = ice.freeze()
    known = {start}
    queue = deque([start])
    ways = _Ways()
    while queue:
        state = queue.popleft()
        net = ice.thaw(state)
        moves = list(all_moves(net))
        found.states += 1
        found.problem = net.problem or _problem_at_rest(net, found)
        if found.problem:
            found.path = ways.lead_to(
                found.states - 1, ice, start, make_net(family, case, make_core)
            )
            return found
        for turn, move in enumerate(moves):
            after = ice.thaw(state)
            if not after.do(move):
                continue
            found.transitions += 1
            found.seen |= after.sights
            frozen = ice.freeze()
            if frozen not in known:
                if len(known) >= states_max:
                    return found
                known.add(frozen)
                queue.append(frozen)
                ways.add(found.states - 1, turn)
    found.is_complete = True
    return found


def _problem_at_rest(net: Net, found: Exploration) -> str | None:
    """In a state in which nothing is on its way, all must be well once the net is healed."""
    if net.flights or net.news:
        return None
    found.quiet += 1
    heal(net)
    if not any(net.says) and not net.problem:
        found.seen.add("complete")
    return net.problem


class _Ways:
    """How each state was first reached, in few bytes: from which one, by which of its moves."""

    def __init__(self) -> None:
        self._before = array("q", [0])
        self._turn = array("I", [0])

    def add(self, before: int, turn: int) -> None:
        """The next state was reached from the one of that number."""
        self._before.append(before)
        self._turn.append(turn)

    def lead_to(self, state: int, ice: Ice, start: bytes, plain: Net) -> list[Move]:
        """The moves from the start on, played again to know them, as they are in a plain net."""
        turns = []
        while state:
            turns.append(self._turn[state])
            state = self._before[state]
        path: list[Move] = []
        frozen = start
        for turn in reversed(turns):
            net = ice.thaw(frozen)
            move = list(all_moves(net))[turn]
            path.append(_as_in(plain, net, move))
            plain.do(path[-1])
            net.do(move)
            frozen = ice.freeze()
        return path


def _as_in(plain: Net, net: Net, move: Move) -> Move:
    """A thawed net has its own numbers for what is on its way."""
    kind, *flight = move
    if kind not in ("arrive", "lose", "double"):
        return move
    frame, _ = net.flights[flight[0], flight[1], flight[2]]
    flights = plain.flights.items()
    same = (f for f, (other, _) in flights if [*f[:2]] == flight[:2] and other == frame)
    return (kind, *next(same, flight))
