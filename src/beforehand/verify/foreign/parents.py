"""Judge logs whose events name their direct causes: no cycle, and every parent is there."""

from __future__ import annotations

from collections import Counter

from beforehand.logs.model import Event, Run
from beforehand.verify.foreign.findings import Judged, Order, name_some


def judge_parents(run: Run) -> Judged:
    judged = Judged(doubts=[])
    by_id: dict[str, Event] = {}
    twice: Counter[str] = Counter()
    for event in sorted(run.events, key=lambda event: (event.file, event.line)):
        if event.id in by_id:
            twice[event.id] += 1
        else:
            by_id[event.id] = event
    if twice:
        judged.doubts.append(name_some(sorted(twice), "ids are there more than once"))
    lost: list[str] = []
    for event in by_id.values():
        for parent in event.parents:
            cause = by_id.get(parent)
            if cause is None:
                lost.append(f"{parent} (of {event.where})")
                continue
            if cause is event:
                judged.add("cycle", f"event `{event.id}` is its own parent", event)
                continue
            judged.edge(cause, event)
            judged.messages += cause.node != event.node
    if lost:
        judged.doubts.append(name_some(lost, "parents are not in the log"))
    _judge_cycles(by_id, judged)
    if run.is_sequential:
        _judge_chains(run, by_id, judged)
    return judged


def _judge_cycles(by_id: dict[str, Event], judged: Judged) -> None:
    """Find the events that no order can place, and report a shortest cycle of each component."""
    waits = {i: {p for p in e.parents if p in by_id and p != i} for i, e in by_id.items()}
    children: dict[str, list[str]] = {}
    for event, parents in waits.items():
        for parent in parents:
            children.setdefault(parent, []).append(event)
    count = {event: len(parents) for event, parents in waits.items()}
    ready = [event for event, many in count.items() if not many]
    for event in ready:
        for child in children.get(event, ()):
            count[child] -= 1
            if not count[child]:
                ready.append(child)
    stuck = {event for event, many in count.items() if many}
    while stuck:
        ring = _ring(min(stuck), waits, stuck)
        if ring:
            events = tuple(by_id[i] for i in ring)
            judged.add("cycle", f"{len(ring)} events are among their own causes", *events)
            stuck -= {*ring}
            stuck = _still_stuck(stuck, waits)
        else:  # this event is in no cycle, but follows one
            stuck.discard(min(stuck))


def _still_stuck(stuck: set[str], waits: dict[str, set[str]]) -> set[str]:
    """Return the events that are stuck among themselves."""
    while free := {event for event in stuck if not waits[event] & stuck}:
        stuck = stuck - free
    return stuck


def _ring(start: str, waits: dict[str, set[str]], stuck: set[str]) -> list[str]:
    """Return a shortest cycle through an event, in the order of causes; empty if there is none."""
    effect: dict[str, str] = {}
    level = [start]
    while level:
        following = []
        for event in level:
            for parent in sorted(waits[event] & stuck):
                if parent == start:
                    ring = [event]
                    while ring[-1] != start:
                        ring.append(effect[ring[-1]])
                    return ring
                if parent not in effect:
                    effect[parent] = event
                    following.append(parent)
        level = following
    return []


def _judge_chains(run: Run, by_id: dict[str, Event], judged: Judged) -> None:
    """Judge that the events of each node form a chain: each knows the one before it."""
    order = Order(run, list(by_id.values()))
    judged.doubts += order.doubts
    for one, two in order.pairs():
        if one.id not in two.parents:
            judged.edges += 1
