"""Lay out events by causality alone, for logs of nodes that have no common clock.

The place of an event is the number of events on the longest causal chain that ends with it. So each
cause is left of its effects. Two events of one place are concurrent; their distance means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STEP_US = 1_000_000
"""A page shows the place of an event as a time: this much for each place."""


def places_of(
    sequences: Sequence[Sequence[int]], causes: Mapping[int, Sequence[int]]
) -> tuple[dict[int, int], int]:
    """Return the place of each event, 0, 1, ..., and the number of causes that no order can keep.

    sequences: events in an order that is known, such as those of one node. causes: for an event
    those outside of its sequence. O(events + causes).
    """
    place: dict[int, int] = {}
    effects: dict[int, list[int]] = {}
    at_of = {
        event: (s, i) for s, sequence in enumerate(sequences) for i, event in enumerate(sequence)
    }
    missing = {event: sum(cause in at_of for cause in causes.get(event, ())) for event in at_of}
    for event in at_of:
        for cause in causes.get(event, ()):
            if cause in at_of:
                effects.setdefault(cause, []).append(event)
    best = dict.fromkeys(at_of, 0)
    at = [0] * len(sequences)
    awake = list(range(len(sequences)))[::-1]
    broken = 0
    while len(place) < len(at_of):
        if not awake:  # a ring: some event follows itself, so one of its causes is ignored
            stuck = next(s for s, i in enumerate(at) if i < len(sequences[s]))
            broken += missing[sequences[stuck][at[stuck]]]
            missing[sequences[stuck][at[stuck]]] = 0
            awake.append(stuck)
        s = awake.pop()
        while at[s] < len(sequences[s]) and not missing[sequences[s][at[s]]]:
            event = sequences[s][at[s]]
            before = place[sequences[s][at[s] - 1]] + 1 if at[s] else 0
            place[event] = max(best[event], before)
            at[s] += 1
            for effect in effects.get(event, ()):
                best[effect] = max(best[effect], place[event] + 1)
                missing[effect] = max(0, missing[effect] - 1)
                other, i = at_of[effect]
                if other != s and at[other] == i and not missing[effect] and effect not in place:
                    awake.append(other)
    return place, broken
