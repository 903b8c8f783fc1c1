"""Find the causal edges between the events of another system's log, by its source of causality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from beforehand.logs.model import BROADCAST, DELIVER, RECEIVE, SEND, Event, Run


@dataclass
class Edges:
    """The edges of a run; an event is the index of its row."""

    causes: dict[int, list[int]] = field(default_factory=dict)
    """By event: its direct causes at other nodes, or the broadcast of what it delivers."""
    named: dict[int, list[int]] = field(default_factory=dict)
    """By event: the events that it names as its causes, at its own node too."""
    mere: set[int] = field(default_factory=set)
    """Events that are only the reception of another event."""
    is_way_known: bool = True
    """Whether an edge is a message from node to node, and not a broadcast that came by any way."""


def edges_of(run: Run, rows: Sequence[Event]) -> Edges:
    edges = Edges()
    if run.causality == "clocks":
        _of_clocks(rows, edges)
    elif run.causality == "parents":
        _of_parents(rows, edges)
    elif run.causality == "messages":
        _of_messages(run, rows, edges)
    return edges


def _of_messages(run: Run, rows: Sequence[Event], edges: Edges) -> None:
    edges.is_way_known = any(event.kind == SEND for event in rows)
    sent: dict[str, int] = {}
    for at, event in enumerate(rows):
        if event.kind in (SEND, BROADCAST) and event.message:
            sent.setdefault(event.message, at)
    for at, event in enumerate(rows):
        cause = sent.get(event.message) if event.message else None
        if event.kind in (RECEIVE, DELIVER) and cause is not None:
            edges.causes[at] = [cause]
            edges.mere.add(at)
    number = {id(event): at for at, event in enumerate(rows)}
    shown: dict[str, set[str]] = {}
    for read in run.reads:
        at, known = number[id(read.event)], shown.setdefault(read.event.node, set())
        new = [value for value in dict.fromkeys(read.shown) if value not in known and value in sent]
        known.update(read.shown)
        if new:
            edges.causes[at] = [sent[value] for value in new]
            edges.mere.add(at)


def _of_parents(rows: Sequence[Event], edges: Edges) -> None:
    by_id: dict[str, int] = {}
    for at, event in enumerate(rows):
        by_id.setdefault(event.id, at)
    for at, event in enumerate(rows):
        causes = [by_id[parent] for parent in event.parents if by_id.get(parent, at) != at]
        edges.named[at] = causes
        edges.causes[at] = [cause for cause in causes if rows[cause].node != event.node]


def _of_clocks(rows: Sequence[Event], edges: Edges) -> None:
    """Find what each event has learned since the event before it, without what that implies."""
    events = {(event.node, event.position): at for at, event in enumerate(rows)}
    for at, event in enumerate(rows):
        if event.clock is None:
            continue
        before = rows[at - 1] if at and rows[at - 1].node == event.node else None
        known = {} if before is None or before.clock is None else before.clock
        grown = {
            host: events[host, count]
            for host, count in event.clock.items()
            if host != event.node and count > known.get(host, 0) and (host, count) in events
        }
        causes = []
        for host, cause in grown.items():
            others = (rows[other].clock or {} for h, other in grown.items() if h != host)
            if not any(clock.get(host, 0) >= event.clock[host] for clock in others):
                causes.append(cause)
        edges.causes[at] = edges.named[at] = causes
