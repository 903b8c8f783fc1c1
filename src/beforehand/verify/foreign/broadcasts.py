"""Judge logs of broadcasts and deliveries by the rules of docs/verify.md: late, twice, unknown."""

from __future__ import annotations

import numpy as np

from beforehand.errors import InputError, visible
from beforehand.kernels.verify.causality import LATE, TWICE, find_violations
from beforehand.kernels.verify.index import index_log
from beforehand.kernels.verify.merge import merge_by_causality
from beforehand.logs.model import BROADCAST, DELIVER, Event, Run
from beforehand.verify.foreign.chains import Graph, Place
from beforehand.verify.foreign.findings import Finding, Judged, Order, name_some
from beforehand.verify.foreign.messages import WHOLE_HINT


def judge_broadcasts(run: Run, *, is_whole: bool = False) -> Judged:
    """Judge broadcasts and deliveries.

    is_whole: whether the log has every event of the run. A log of one file is whole.
    """
    events = [event for event in run.events if event.kind in (BROADCAST, DELIVER)]
    order = Order(run, events)
    judged = Judged(doubts=order.doubts)
    if run.causality == "messages":  # the positions of clocks are judged with the clocks
        whole = Order(run, run.events)
        judged.doubts += whole.gaps()
        judged.notes += whole.notes
    if not events:
        judged.doubts.append("nothing was broadcast or delivered")
        return judged
    places = [(s, i) for s, sequence in enumerate(order.sequences) for i in range(len(sequence))]
    rows = [order.sequences[s][i] for s, i in places]
    if nameless := [event.where for event in rows if not event.message]:
        raise InputError("an event names no message", where=nameless[0])
    if not any(event.kind == DELIVER for event in rows):
        judged.doubts.append("nothing was delivered")
    broadcasts = _find_broadcasts(rows)
    line = np.array([s for s, _ in places], np.int32)
    numbers = {message: at for at, message in enumerate(broadcasts)}
    message = np.array([numbers.get(event.message, -1) for event in rows], np.int32)
    if run.is_total:
        merged = np.argsort([event.position or 0 for event in rows])
        forced = np.zeros(0, np.int64)
    else:
        merged, forced = merge_by_causality(
            line, message, np.array([*broadcasts.values()], np.int64)
        )
    judged.edges = len(rows) - len(order.sequences)
    graph = _graph(order.sequences, places, rows, broadcasts, judged)
    violations = _violations(rows, merged)
    for row in forced.tolist():
        _add_forced(graph, places, rows, broadcasts, row, judged)
    unknown: dict[tuple[str, str], Event] = {}
    for at, kind in violations:
        event = rows[at]
        first = unknown.get((event.node, event.message))
        if kind in (LATE, TWICE):
            _add(graph, places, rows, at, kind, broadcasts, judged)
        elif first is not None:
            judged.add("twice", _twice(event), first, event)
        elif at not in forced:
            unknown[event.node, event.message] = event
    _judge_unknown([*unknown.values()], run, broadcasts, judged, is_whole)
    return judged


def _find_broadcasts(rows: list[Event]) -> dict[str, int]:
    """Return the row of each message's broadcast."""
    broadcasts: dict[str, int] = {}
    for row, event in enumerate(rows):
        if event.kind != BROADCAST:
            continue
        if event.message in broadcasts:
            one, two = sorted((rows[broadcasts[event.message]].where, event.where))
            problem = f"message `{visible(event.message)}` is broadcast twice"
            raise InputError(problem, where=f"{one} and {two}", hint="an id must name one message")
        broadcasts[event.message] = row
    return broadcasts


def _graph(
    sequences: list[list[Event]],
    places: list[Place],
    rows: list[Event],
    broadcasts: dict[str, int],
    judged: Judged,
) -> Graph:
    effects: dict[Place, list[Place]] = {}
    for row, event in enumerate(rows):
        cause = broadcasts.get(event.message)
        if event.kind == DELIVER and cause is not None:
            effects.setdefault(places[cause], []).append(places[row])
            judged.edge(rows[cause], event)
            judged.messages += 1
    return Graph(sequences, effects)


def _violations(rows: list[Event], merged: np.ndarray) -> list[tuple[int, int]]:
    """Return the rows and the kinds of violations, in an order that follows causality."""
    numbers: dict[str, int] = {}
    seq = np.array([numbers.setdefault(e.message, len(numbers)) for e in rows], np.int64)[merged]
    is_broadcast = np.array([event.kind == BROADCAST for event in rows])[merged]
    nodes: dict[str, int] = {}
    node = np.array([nodes.setdefault(e.node, len(nodes)) for e in rows], np.int64)[merged]
    history = index_log(node, is_broadcast, np.zeros(len(rows), np.int64), seq)
    found = find_violations(history)
    return [(int(merged[row]), int(kind)) for row, kind in zip(found.row, found.kind, strict=True)]


def _add_forced(
    graph: Graph,
    places: list[Place],
    rows: list[Event],
    broadcasts: dict[str, int],
    row: int,
    judged: Judged,
) -> None:
    event, cause = rows[row], broadcasts[rows[row].message]
    what = f"`{event.node}` delivered `{event.message}` before it was broadcast, in every order"

    def chain() -> list[Event]:
        if places[row][0] == places[cause][0]:
            return [event, rows[cause]]
        return graph.path(places[row], places[cause])

    judged.findings.append(Finding("receive before send", what, chain))


def _add(
    graph: Graph,
    places: list[Place],
    rows: list[Event],
    row: int,
    kind: int,
    broadcasts: dict[str, int],
    judged: Judged,
) -> None:
    event = rows[row]
    sequence, index = places[row]
    if kind == TWICE:
        before = [e for e in graph.sequences[sequence][:index] if e.kind == DELIVER]
        first = next((e for e in before if e.message == event.message), event)
        judged.add("twice", _twice(event), first, event)
        return
    what = f"`{event.node}` delivered `{event.message}` after a message that causally follows it"

    def chain() -> list[Event]:
        path = graph.path(places[broadcasts[event.message]], (sequence, index - 1))
        delivered = [e for e in path if e.node == event.node and e.kind == DELIVER]
        last = path.index(delivered[-1]) + 1 if delivered and path[-1].kind != DELIVER else None
        return [*path[:last], event]

    judged.findings.append(Finding("late", what, chain))


def _twice(event: Event) -> str:
    return f"`{event.node}` delivered `{event.message}` twice"


def _judge_unknown(
    unknown: list[Event], run: Run, broadcasts: dict[str, int], judged: Judged, is_whole: bool
) -> None:
    files = {event.file for event in run.events}
    if unknown and not is_whole and (len(files) > 1 or not broadcasts or judged.doubts):
        names = sorted({event.message for event in unknown})
        what = name_some(names, "delivered messages have no broadcast here")
        judged.doubts.append(f"{what}; {WHOLE_HINT}")
        return
    for event in unknown:
        so_far = " so far" if event.message in broadcasts else ""
        what = f"`{event.node}` delivered `{event.message}`, which no node had broadcast{so_far}"
        judged.add("unknown", what, event)
