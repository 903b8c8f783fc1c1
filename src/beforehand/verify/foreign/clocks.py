"""Judge vector clocks: each is monotone at its node, closed, and no two events know each other."""

from __future__ import annotations

from collections import Counter

from beforehand.errors import InputError, visible
from beforehand.logs.model import Event, Run
from beforehand.verify.foreign.findings import Judged, name_some

Key = tuple[str, int]
"""A node and its own counter: the name of an event."""


def judge_clocks(run: Run) -> Judged:
    judged = Judged()
    events = _index(run)
    chains: dict[str, list[Event]] = {}
    for key in sorted(events):
        chains.setdefault(key[0], []).append(events[key])
    outside: Counter[str] = Counter()
    cycles: set[tuple[Key, Key]] = set()
    for node, chain in chains.items():
        previous: Event | None = None
        for event in chain:
            if previous is not None:
                judged.edge(previous, event)
                _judge_step(previous, event, judged)
            grown = _grown(previous, event)
            _judge_grown(event, grown, events, outside, judged, cycles)
            previous = event
        _judge_gaps(node, chain, judged)
    for node, count in sorted(outside.items()):
        where = "whose log is missing" if node not in chains else "that are not in the log"
        judged.doubts.append(f"clocks name {count:,} events of `{node}` {where}")
    if len(run.events) == 1:
        judged.notes.append("there is one event only")
    _note_disorder(run, judged)
    return judged


def _index(run: Run) -> dict[Key, Event]:
    events: dict[Key, Event] = {}
    for event in run.events:
        assert event.clock is not None
        assert event.position is not None
        key = (event.node, event.position)
        if key in events:
            one, two = sorted((events[key], event), key=lambda e: (e.file, e.line))
            raise InputError(
                f"two events claim counter {key[1]} of `{visible(key[0])}`",
                where=f"{one.where} and {two.where}",
                hint="two runs in one file? put `=== name ===` between them, or split the file",
            )
        events[key] = event
    return events


def _judge_step(previous: Event, event: Event, judged: Judged) -> None:
    assert previous.clock is not None
    assert event.clock is not None
    known = event.clock
    lost = [h for h, k in previous.clock.items() if k and known.get(h, 0) < k]
    if lost:
        host = min(lost)
        judged.add(
            "not monotone",
            f"the clock of `{event.node}` goes back: it knew {previous.clock[host]} events of "
            f"`{host}`, then {known.get(host, 0)}",
            previous,
            event,
        )


def _grown(previous: Event | None, event: Event) -> dict[str, int]:
    """Return the entries of other nodes that grew at this event."""
    assert event.clock is not None
    before = {} if previous is None or previous.clock is None else previous.clock
    clock = event.clock.items()
    return {h: k for h, k in clock if h != event.node and k > before.get(h, 0)}


def _judge_grown(
    event: Event,
    grown: dict[str, int],
    events: dict[Key, Event],
    outside: Counter[str],
    judged: Judged,
    cycles: set[tuple[Key, Key]],
) -> None:
    """Judge what an event has learned. Entries that did not grow were judged when they did."""
    assert event.clock is not None
    assert event.position is not None
    causes: dict[str, Event] = {}
    for host, counter in sorted(grown.items()):
        cause = events.get((host, counter))
        if cause is None:
            outside[host] += 1
            continue
        causes[host] = cause
        assert cause.clock is not None
        if cause.clock.get(event.node, 0) >= event.position:
            one, two = sorted(((event.node, event.position), (host, counter)))
            if (one, two) not in cycles:
                cycles.add((one, two))
                judged.add("cycle", "two events know each other", cause, event)
            continue
        lacks = [h for h, k in cause.clock.items() if k > event.clock.get(h, 0)]
        if lacks:
            lack = min(lacks)
            judged.add(
                "not closed",
                f"an event of `{event.node}` knows event {counter} of `{host}`, but not event "
                f"{cause.clock[lack]} of `{lack}`, which that one knew",
                cause,
                event,
            )
    for host, cause in causes.items():
        others = (c.clock for h, c in causes.items() if h != host and c.clock is not None)
        if not any(clock.get(host, 0) >= grown[host] for clock in others):
            judged.messages += 1
            judged.edge(cause, event)


def _judge_gaps(node: str, chain: list[Event], judged: Judged) -> None:
    positions = [event.position or 0 for event in chain]
    missing = positions[-1] - len(positions)
    if missing > 0:
        judged.doubts.append(f"{missing:,} events of `{node}` are missing: gaps in its counters")


def _note_disorder(run: Run, judged: Judged) -> None:
    last: dict[tuple[str, str], Event] = {}
    back: list[str] = []
    for event in sorted(run.events, key=lambda event: (event.file, event.line)):
        key = (event.node, event.file)
        if key in last and (event.position or 0) < (last[key].position or 0):
            back.append(f"{event.where} ({event.node})")
        last[key] = event
    if back:
        judged.notes.append(name_some(back, "lines are not in the order of their node"))
