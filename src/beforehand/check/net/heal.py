"""The end of a hostile run: heal the net, let it come to rest, and check the family's promises.

Healing restarts all nodes, restores the links, and injects no further faults.
"""

from __future__ import annotations

from beforehand.check.net.net import Move, Net

HEAL_US = 60_000_000
"""How long a healed net may take until every message has arrived."""
STEPS_MAX = 20_000
"""The step limit of healing. A net that exceeds it does not come to rest."""


def heal(net: Net) -> None:
    """Heal the net, run it until it rests, and set `net.problem` to the first broken promise."""
    net.left.clear()
    for node, driver in enumerate(net.drivers):
        driver.crash_after = None
        net.stepped.add(node)
        net.do(("restart", node))
    for pair in sorted(net.suspected):
        net.do(("trust", *pair))
    if net.family.kind == "contact":
        _connect(net)
    if net.family.kind == "cell":
        for host in range(net.case.stations, net.case.nodes):
            if net.cell_of(host) is None:
                net.do(("enter", host, host % net.case.stations))
    until_us = net.now_us + HEAL_US
    for _ in range(STEPS_MAX):
        move = _next_step(net, until_us)
        if net.problem:
            return
        if move is None:
            net.problem = next(net.family.problems(net), None)
            return
        net.do(move)
    net.problem = "the healed net does not come to rest"


def _connect(net: Net) -> None:
    """Bring up all edges of the case. If the case names no edges, link the nodes in a line."""
    while net.notices:
        net.do(("notify", *net.notices[0][:2]))
    line = tuple((node, node + 1) for node in range(net.case.nodes - 1))
    for pair in line if net.case.edges is None else net.case.edges:
        net.do(("up", *pair))


def _next_step(net: Net, until_us: int) -> Move | None:
    """Return the next move of a healed net, or None at rest.

    Link notifications come first, then frames in sending order, disk flushes, room on wires, and
    timers in the order of their due times."""
    if net.notices:
        return ("notify", *net.notices[0][:2])
    if net.closed:
        return ("open", min(net.closed), True)
    if net.flights:
        return ("arrive", *next(iter(net.flights)))
    for node in range(net.case.nodes) if net.case.is_disk_late else ():
        if net.is_flush_due(node):
            return ("flush", node)
    if (room := next(iter(net.rooms()), None)) is not None:
        return ("room", *room)
    if net.timers:
        key = min(net.timers, key=lambda key: net.timers[key][0])
        if net.timers[key][0] <= until_us:
            return ("timer", *key)
    return None
