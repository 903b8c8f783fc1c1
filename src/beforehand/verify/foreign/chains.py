"""Find the shortest causal chain between two events: through nodes' orders and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beforehand.logs.model import Event

Place = tuple[int, int]
"""A sequence and the index of an event in it."""


class Graph:
    """Events in sequences, and the receptions of each message by the place of its sending."""

    def __init__(
        self, sequences: Sequence[Sequence[Event]], effects: Mapping[Place, Sequence[Place]]
    ) -> None:
        self.sequences, self.effects = sequences, effects

    def path(self, start: Place, goal: Place) -> list[Event]:
        """Return a path with the fewest messages, at least one; empty if there is none.

        It ends at the goal or at an earlier event of the goal's sequence, if that is where the
        path came in. Each sequence is searched from the earliest event that was reached, so the
        search looks at no event twice.
        """
        came: dict[Place, tuple[Place, Place]] = {}
        searched: dict[int, int] = {}
        level = [start]
        while level:
            following: list[Place] = []
            for entry in level:
                sequence, first = entry
                if sequence == goal[0] and first <= goal[1] and entry in came:
                    return self._between(came, start, entry, goal)
                end = searched.get(sequence, len(self.sequences[sequence]))
                for at in range(first, end):
                    for effect in self.effects.get((sequence, at), ()):
                        is_goal = effect[0] == goal[0] and effect[1] <= goal[1]
                        is_new = effect[1] < searched.get(effect[0], effect[1] + 1)
                        if effect not in came and (is_goal or is_new):
                            came[effect] = ((sequence, at), entry)
                            following.append(effect)
                searched[sequence] = min(end, first)
            level = following
        return []

    def _between(
        self, came: Mapping[Place, tuple[Place, Place]], start: Place, last: Place, goal: Place
    ) -> list[Event]:
        places = [goal, last]
        at = last
        while True:
            cause, at = came[at]
            places += [cause, at]
            if at == start:
                break
        unique = dict.fromkeys(reversed(places))
        path = [self.sequences[sequence][index] for sequence, index in unique]
        return [*path, path[0]] if goal == start else path
