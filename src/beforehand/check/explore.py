"""Every interleaving of a small system: breadth first, each state once.

A `System` says what can happen in a state. Its states are hashable values, so that two orders of
events that lead to the same state are explored once. *Sometimes* conditions name what must have
been seen at least once: a pass in which nothing ever waited proves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)


class System(Protocol[State]):
    """A small closed world."""

    sometimes: tuple[str, ...]

    def initial(self) -> State: ...

    def moves(self, state: State) -> Iterable[Hashable]:
        """All that can happen next. None: the run is over."""
        ...

    def step(self, state: State, move: Hashable) -> State: ...

    def problem(self, state: State, is_final: bool) -> str | None:
        """What is wrong in this state, if anything."""
        ...

    def sights(self, state: State) -> Iterable[str]:
        """Which of the *sometimes* conditions this state shows."""
        ...


@dataclass
class Exploration(Generic[State]):
    """What was found."""

    states: int = 0
    transitions: int = 0
    finals: int = 0
    seen: set[str] = field(default_factory=set)
    problem: str | None = None
    path: list[Hashable] = field(default_factory=list)
    """The shortest sequence of moves that leads to the problem."""
    is_complete: bool = False
    """Was everything explored, or did the bound on states end it?"""


def explore(system: System[State], states_max: int) -> Exploration[State]:
    """Walk through all reachable states, at most `states_max`; stop at the first problem."""
    found: Exploration[State] = Exploration()
    start = system.initial()
    parents: dict[State, tuple[State, Hashable] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        moves = list(system.moves(state))
        found.states += 1
        found.finals += not moves
        found.seen.update(system.sights(state))
        found.problem = system.problem(state, not moves)
        if found.problem:
            found.path = _path(parents, state)
            return found
        for move in moves:
            found.transitions += 1
            after = system.step(state, move)
            if after not in parents:
                if len(parents) >= states_max:
                    return found
                parents[after] = (state, move)
                queue.append(after)
    found.is_complete = True
    return found


def _path(parents: dict[State, tuple[State, Hashable] | None], state: State) -> list[Hashable]:
    path: list[Hashable] = []
    link = parents[state]
    while link is not None:
        state, move = link
        path.append(move)
        link = parents[state]
    return path[::-1]
