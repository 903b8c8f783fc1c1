"""Sound logs of a few events, and the same with one violation of each kind."""

from __future__ import annotations

from dataclasses import dataclass, replace

from beforehand.logs.model import Event


@dataclass(frozen=True)
class Plant:
    """Events with one violation."""

    events: list[Event]
    proof: list[int]
    """The events that prove it, by number."""


def clocked(node: str, **clock: int) -> Event:
    return Event(node, "local", "", 0, clock=clock)


CLOCKED = [
    clocked("a", a=1),
    clocked("a", a=2),
    clocked("b", a=2, b=1),
    clocked("b", a=2, b=2),
    clocked("c", a=2, b=2, c=1),
]
CLOCKS = {
    "": Plant(CLOCKED, []),
    "not monotone": Plant([*CLOCKED, clocked("c", a=1, b=2, c=2)], [4, 5]),
    "not closed": Plant([*CLOCKED[:4], clocked("c", b=2, c=1)], [3, 4]),
    "cycle": Plant([CLOCKED[0], clocked("a", a=2, b=1), *CLOCKED[2:]], [1, 2]),
}


def caused(node: str, own: str, *parents: str) -> Event:
    return Event(node, "local", "", 0, own, parents=parents)


CAUSED = [
    caused("a", "e0"),
    caused("b", "e1", "e0"),
    caused("c", "e2", "e1"),
    caused("d", "e3", "e2"),
]
PARENTS = {
    "": Plant(CAUSED, []),
    "cycle": Plant([CAUSED[0], caused("b", "e1", "e3"), *CAUSED[2:]], [1, 2, 3]),
    "own parent": Plant([*CAUSED[:2], caused("c", "e2", "e2"), CAUSED[3]], [2]),
}


def put(node: str, message: str) -> Event:
    return Event(node, "send", "", 0, message=message)


def got(node: str, message: str, creator: str = "") -> Event:
    return Event(node, "receive", "", 0, message=message, text=creator)


SENT = [put("a", "m1"), got("b", "m1", "a"), put("b", "m2"), got("a", "m2", "b")]
MESSAGES = {
    "": Plant(SENT, []),
    "receive before send": Plant([SENT[3], SENT[0], SENT[1], SENT[2]], [0, 1, 2, 3]),
    "receive too many": Plant([*SENT, SENT[1]], [0, 1, 4]),
    "receive without send": Plant([*SENT, got("b", "m9", "a")], [4]),
}


def said(node: str, message: str) -> Event:
    return Event(node, "broadcast", "", 0, message=message)


def took(node: str, message: str) -> Event:
    return Event(node, "deliver", "", 0, message=message)


SAID = [said("a", "m1"), took("b", "m1"), said("b", "m2"), took("c", "m1"), took("c", "m2")]
BROADCASTS = {
    "": Plant(SAID, []),
    "late": Plant([*SAID[:3], SAID[4], SAID[3]], [0, 1, 2, 3, 4]),
    "twice": Plant([*SAID, took("c", "m1")], [3, 5]),
    "unknown": Plant([*SAID, took("c", "m9")], [5]),
}
CONSUMED = [took("a", "5"), took("a", "6")]
CONSUMER = {"": Plant(CONSUMED, []), "twice": Plant([*CONSUMED, took("a", "5")], [0, 2])}


def wrote(node: str, value: str) -> Event:
    return Event(node, "broadcast", "", 0, message=value, text=value)


def read(node: str, values: str) -> Event:
    return Event(node, "deliver", "", 0, text=f"[{values}]")


READ = [wrote("a", "1"), read("b", "1"), wrote("b", "2"), read("c", "1 2")]
READS = {
    "": Plant(READ, []),
    "late": Plant([*READ[:3], wrote("c", "3"), read("a", "1 3"), read("c", "1 2 3")], []),
    "unknown": Plant([*READ, read("c", "1 2 9")], [4]),
    "gap": Plant([*READ[:3], read("c", "2")], [0, 2, 3]),
    "own write missing": Plant([*READ[:3], read("a", "")], [0, 3]),
    "twice in a read": Plant([*READ[:3], read("c", "1 2 1")], [3]),
}
# A read that shows the cause after the effect also lacked the cause before: a gap.
READS["late"] = Plant([*READ[:3], read("c", "2"), read("c", "2 1")], [0, 2, 3, 4])
PLANTS = {
    "clocks": CLOCKS,
    "parents": PARENTS,
    "messages": MESSAGES,
    "broadcasts": BROADCASTS,
    "consumer": CONSUMER,
    "reads": READS,
}


def with_clocks(events: list[Event]) -> list[Event]:
    """Return broadcasts and deliveries with the vector clocks of their nodes."""
    known: dict[str, dict[str, int]] = {}
    carried: dict[str, dict[str, int]] = {}
    found = []
    for event in events:
        clock = known.setdefault(event.node, {})
        for node, entry in carried.get(event.message, {}).items():
            clock[node] = max(entry, clock.get(node, 0))
        clock[event.node] = clock.get(event.node, 0) + 1
        if event.kind == "broadcast":
            carried[event.message] = dict(clock)
        found.append(replace(event, clock=dict(clock)))
    return found
