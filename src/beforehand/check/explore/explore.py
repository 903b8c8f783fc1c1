"""The explorer: try every interleaving of a small net, breadth first, each state once.

A state is a whole net as bytes (`check.explore.canonical`). So two orders of events that lead to
the same state are explored once. Two reductions keep the number of states down:

- states that differ only in the names of nodes count as one (`check.explore.symmetry`);
- moves that can wait are not tried in every order (`check.explore.ample`).

Both preserve every problem, and every state at rest up to names.

*Sometimes* conditions name situations that must occur at least once: a pass in which no message
ever waited proves nothing.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from beforehand.check.explore.ample import Ample
from beforehand.check.explore.canonical import Canonicalizer
from beforehand.check.explore.names import Renaming, inverse, renamed
from beforehand.check.explore.symmetry import find_asymmetry, renamings
from beforehand.check.net.case import Case, Family
from beforehand.check.net.heal import heal
from beforehand.check.net.moves import all_moves
from beforehand.check.net.net import Move, Net, make_net
from beforehand.protocols.contract.base import Core


@dataclass
class Exploration:
    """The result of an exploration."""

    states: int = 0
    transitions: int = 0
    quiet: int = 0
    """States without frames in transit and link notifications. Each was healed and judged."""
    seen: set[str] = field(default_factory=set)
    problem: str | None = None
    path: list[Move] = field(default_factory=list)
    """The shortest sequence of moves that leads to the problem."""
    is_complete: bool = False
    """Whether all states were explored: no bound on states and no asymmetry prevented it."""
    reduced: int = 0
    """States in which not all moves were tried."""
    asymmetry: str | None = None
    """A step of a core that depends on the names of nodes. With such a step, symmetry must not be
    used to omit states."""


def explore(
    family: Family,
    case: Case,
    states_max: int,
    make_core: Callable[[Case, int], Core[Any]] | None = None,
    *,
    reductions: bool = True,
) -> Exploration:
    """Explore all reachable states, at most `states_max`; stop at the first problem.

    reductions: omit states that are represented by others. If a core depends on the names of nodes,
        the net is explored again without symmetry. If there is a problem, the net is explored again
        without reductions, because a reduced path is not the shortest.
    """
    if not reductions:
        return walk(family, case, states_max, make_core)
    group = renamings(family, case)
    found = walk(family, case, states_max, make_core, group=group, is_ample=True)
    if found.asymmetry and not found.problem:
        asymmetry = found.asymmetry
        found = walk(family, case, states_max, make_core, is_ample=True)
        found.asymmetry = asymmetry
    if found.problem:
        again = walk(family, case, states_max, make_core)
        return again if again.problem else found
    return found


def walk(
    family: Family,
    case: Case,
    states_max: int,
    make_core: Callable[[Case, int], Core[Any]] | None = None,
    *,
    group: Sequence[Renaming] = (),
    is_ample: bool = False,
) -> Exploration:
    """Explore once. group: count states as equal under these renamings. is_ample: apply
    partial-order reduction."""
    found = Exploration()
    canonicalizer = Canonicalizer(family, case, make_core, group)
    ample = Ample(canonicalizer.net, canonicalizer.memory) if is_ample else None
    start = canonicalizer.freeze()
    first = canonicalizer.renaming
    known = {start: 0}
    queue = deque([start])
    ways = _Ways()
    while queue:
        state = queue.popleft()
        net = canonicalizer.thaw(state)
        moves = list(all_moves(net))
        chosen = ample.chosen(moves) if ample else None
        found.states += 1
        found.problem = net.problem or _problem_at_rest(net, found)
        if found.problem:
            plain = make_net(family, case, make_core)
            found.path = ways.lead_to(found.states - 1, canonicalizer, start, plain, first)
            return found
        is_open = False  # whether a move leads to a state that is not yet explored
        for turn in _turns(moves, chosen):
            if turn == ALL and is_open:
                found.reduced += 1
                break
            if turn == ALL or not canonicalizer.thaw(state).do(moves[turn]):
                continue
            found.transitions += 1
            found.seen |= net.sights
            frozen = canonicalizer.freeze()
            if frozen not in known:
                if len(known) >= states_max:
                    return found
                known[frozen] = len(known)
                queue.append(frozen)
                ways.add(found.states - 1, turn)
            is_open = is_open or known[frozen] >= found.states
    found.asymmetry = find_asymmetry(canonicalizer.memory, group)
    found.is_complete = found.asymmetry is None
    return found


ALL = -1
"""Marks, among the turns, where the moves that can wait begin."""


def _turns(moves: list[Move], chosen: set[Move] | None) -> Iterator[int]:
    """Yield the indices of the chosen moves, then `ALL`, then the indices of the others."""
    if chosen is None:
        yield from range(len(moves))
        return
    yield from (turn for turn, move in enumerate(moves) if move in chosen)
    yield ALL
    yield from (turn for turn, move in enumerate(moves) if move not in chosen)


def _problem_at_rest(net: Net, found: Exploration) -> str | None:
    """If nothing is in transit, heal and judge the net, and return the problem, if any."""
    if net.flights or net.notices:
        return None
    found.quiet += 1
    heal(net)
    if not any(net.broadcasts) and not net.problem:
        found.seen.add("complete")
    return net.problem


class _Ways:
    """How each state was first reached, stored compactly: predecessor and index of the move."""

    def __init__(self) -> None:
        self._before = array("q", [0])
        self._turn = array("I", [0])

    def add(self, before: int, turn: int) -> None:
        """Record that the next new state was reached from state `before`."""
        self._before.append(before)
        self._turn.append(turn)

    def lead_to(
        self, state: int, canonicalizer: Canonicalizer, start: bytes, plain: Net, first: Renaming
    ) -> list[Move]:
        """Return the moves from the start to a state, as moves of a plain net.

        Only indices of moves are stored, so the moves are found by playing them again."""
        turns = []
        while state:
            turns.append(self._turn[state])
            state = self._before[state]
        path: list[Move] = []
        frozen = start
        # For each node of the thawed net, its name in the plain net.
        names = inverse(first)
        for turn in reversed(turns):
            net = canonicalizer.thaw(frozen)
            move = list(all_moves(net))[turn]
            path.append(_as_in(plain, net, move, names))
            plain.do(path[-1])
            net.do(move)
            frozen = canonicalizer.freeze()
            names = tuple(names[node] for node in inverse(canonicalizer.renaming))
        return path


def _as_in(plain: Net, net: Net, move: Move, names: Renaming) -> Move:
    """Translate a move of a thawed net into a move of the plain net.

    A thawed net has its own numbers of frames and its own names of nodes."""
    kind, *rest = move
    if kind in ("arrive", "lose", "double"):
        source, target, ticket = rest
        frame = renamed(net.flights[source, target, ticket][0], names)
        pair = (names[source], names[target])
        canonical = partial(plain.family.canonical_frame, plain.case)
        flights = plain.flights.items()
        same = (f for f, (other, _) in flights if f[:2] == pair and canonical(other) == frame)
        return (kind, *next(same, (*pair, ticket)))
    if kind == "up":
        return (kind, *sorted(names[node] for node in rest))
    nodes = 0 if kind in ("pass", "shift") else 2 if kind in ("notify", "room") else 1
    return (kind, *(names[node] for node in rest[:nodes]), *rest[nodes:])
