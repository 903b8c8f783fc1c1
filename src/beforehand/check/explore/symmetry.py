"""Symmetry reduction: states that differ only in the names of nodes are explored once.

A *renaming* is a permutation of the nodes that preserves the case: the same edges, and equal
numbers of broadcasts, clocks and options for a node and its image. Of all renamings of a state the
explorer keeps the one with the smallest bytes.

This is sound only if every step commutes with renaming: the renamed core, given the renamed input,
must reach the renamed state with the renamed effects. A core that breaks ties by node id does not
commute. So commutation is checked, not assumed: after an exploration `find_asymmetry` repeats every
step that a core took under every renaming. If one does not commute, the net is explored again
without symmetry.

Renaming requires that node ids are distinguishable from other numbers. In the states of an
exploration they are of the type `NodeName`, and payloads, which name their origin, are of the type
`NamedPayload` (`check.explore.names`).

The following is not renamed, and such cases are explored in full:

- saved rows and signatures, in which ids are bytes: cases with crashes, and groups;
- links that flap: the net notifies the node with the lower id at once, and the other one later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from beforehand.check.explore.names import Renaming, renamed
from beforehand.check.explore.transition_cache import Step, TransitionCache
from beforehand.check.net.case import Case, Family


def renamings(family: Family, case: Case) -> list[Renaming]:
    """Return all renamings of a case but the identity; none where renaming is not sound."""
    edges = case.edges
    is_plain = family.kind == "contact" and not (case.is_mortal or case.flaps or case.suspicions)
    signing = getattr(case.options, "signing", "none")
    if not is_plain or signing != "none" or family.hostile(case) or edges is None:
        return []
    pairs = {frozenset(pair) for pair in edges}
    roles = list(zip(case.broadcasts, case.ahead_us or (0,) * case.nodes, strict=True))
    return [
        renaming
        for renaming in list(permutations(range(case.nodes)))[1:]
        if {frozenset((renaming[a], renaming[b])) for a, b in edges} == pairs
        and all(roles[node] == roles[image] for node, image in enumerate(renaming))
    ]


def find_asymmetry(memory: TransitionCache, group: Sequence[Renaming]) -> str | None:
    """Return the description of a step that does not commute with renaming, or None."""
    for (number, name, before, after), step in list(memory.steps()) if group else ():
        for renaming in group:
            image = memory.renamed(number, renaming)
            inputs = renamed(before, renaming), renamed(after, renaming)
            again = memory.take(image, name, *inputs)
            if _comparable(again) != _comparable(_renamed_step(memory, step, renaming)):
                return f"`{name}` with {before} does not commute with the renaming {renaming}"
    return None


def _renamed_step(memory: TransitionCache, step: Step, renaming: Renaming) -> Step:
    number, answer, effects = step
    moved = [(kind, [renamed(item, renaming) for item in done]) for kind, done in effects]
    return memory.renamed(number, renaming), renamed(answer, renaming), moved


def _comparable(step: Step) -> tuple[object, ...]:
    """Return a step in a form in which the order of its frames does not matter.

    In a net of contacts, frames in transit have no order: the frames of a step are a multiset."""
    number, answer, effects = step
    sends = Counter(item for kind, done in effects if kind == "sends" for item in done)
    rest = [(kind, done) for kind, done in effects if kind != "sends"]
    return number, repr(answer), sends, rest
