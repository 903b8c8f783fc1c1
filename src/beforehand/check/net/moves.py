"""Enumerate all moves that are possible in a net, for the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from beforehand.check.net.cells import Flight
from beforehand.check.net.net import Move, Net

CRASH_POINTS = range(4)
"""After how many effects of a step a node may crash: none, the saves, and two more."""


def all_moves(net: Net) -> Iterator[Move]:
    if net.problem:
        return
    for node in range(net.case.nodes):
        if net.broadcasts[node] and net.drivers[node].is_up:
            yield from (("broadcast", node, us) for us in net.case.lifetimes_us)
    for flight in _distinct_flights(net):
        if net.queued(flight):
            continue
        yield ("arrive", *flight)
        if net.left["losses"]:
            yield ("lose", *flight)
        if net.left["doubles"]:
            yield ("double", *flight)
    yield from _link_moves(net)
    yield from _pacing_moves(net)
    yield from _crash_moves(net)
    yield from _next_instant(net)
    yield from _clock_moves(net)
    if net.left["early_timers"] or net.is_silent():  # most timers handle silence
        yield from (("timer", *key) for key in net.timers)


def _distinct_flights(net: Net) -> list[Flight]:
    """Return the frames in transit, but of equal frames between two nodes only the first."""
    found: list[Flight] = []
    for flight, (frame, _) in net.flights.items():
        if all(f[:2] != flight[:2] or net.flights[f][0] != frame for f in found):
            found.append(flight)
    return found


def _next_instant(net: Net) -> Iterator[Move]:
    """Yield the time until the next deadline on any clock, if messages have lifetimes."""
    if net.case.lifetimes_us == (None,):
        return
    ahead_us = [net.shift_us + offset_us for offset_us in net.offsets_us]
    ends_us = {net.deadline_us(id) - us for id in net.oracle.pasts for us in ahead_us}
    later_us = [end_us for end_us in ends_us if end_us > net.now_us]
    if later_us:
        yield ("pass", min(later_us) - net.now_us)


def _clock_moves(net: Net) -> Iterator[Move]:
    """Yield the settings of clocks that the case allows.

    A single clock is set to either end of the allowed skew. All clocks together are set to their
    start value, or to either end of the allowed span around it."""
    if net.left["settings"]:
        for node, offset_us in enumerate(net.offsets_us):
            ends_us = dict.fromkeys((0, net.case.skew_us))
            yield from (("set", node, us) for us in ends_us if us != offset_us)
    if net.left["shifts"]:
        start_us, span_us = net.case.shift_us, net.case.shift_span_us
        shifts_us = dict.fromkeys((start_us - span_us, start_us, start_us + span_us))
        yield from (("shift", us) for us in shifts_us if us != net.shift_us)


def _link_moves(net: Net) -> Iterator[Move]:
    yield from (("notify", *pair) for pair in dict.fromkeys(item[:2] for item in net.notices))
    pairs = list(combinations(range(net.case.nodes), 2))
    if net.family.kind == "contact":
        for pair in pairs if net.case.edges is None else net.case.edges:
            if pair not in net.contacts:
                yield ("up", *pair)
            elif net.left["flaps"]:
                yield ("down", *pair)
    if net.family.kind == "cell":
        for host in range(net.case.stations, net.case.nodes):
            before = net.cell_of(host)
            if before is None or net.left["flaps"]:
                nowhere = net.case.stations  # for now; the host may return later
                cells = range(net.case.stations if before is None else nowhere + 1)
                yield from (("enter", host, cell) for cell in cells if cell != before)
    if net.left["leaves"]:
        yield from (("leave", host) for host in range(net.case.stations, net.case.nodes))
    yield from (("trust", *pair) for pair in sorted(net.suspected))
    if net.left["suspicions"]:
        for a, b in pairs:
            yield from (("suspect", a, b), ("suspect", b, a))


def _pacing_moves(net: Net) -> Iterator[Move]:
    yield from (("room", *pair) for pair in net.rooms())
    yield from (("open", node, True) for node in sorted(net.closed))
    for node in range(net.case.nodes):
        if net.case.is_disk_late and net.is_flush_due(node) and net.drivers[node].is_up:
            yield ("flush", node)
        if net.left["pauses"] and node not in net.closed:
            yield ("open", node, False)


def _crash_moves(net: Net) -> Iterator[Move]:
    for node, driver in enumerate(net.drivers):
        if not driver.is_up:
            yield ("restart", node)
        elif net.left["crashes"] and driver.crash_after is None:
            leaving = sum(flight[0] == node for flight in net.flights)
            yield from (("crash", node, left) for left in range(leaving + 1))
            yield from (("crash_after", node, effects) for effects in CRASH_POINTS)
