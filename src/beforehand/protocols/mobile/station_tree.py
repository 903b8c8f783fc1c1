"""Routing in the tree of stations: the next hop to each station."""

from __future__ import annotations

from collections.abc import Iterable

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import NodeId


def routes(node: NodeId, wires: Iterable[tuple[NodeId, NodeId]]) -> dict[NodeId, NodeId]:
    """Return the next hop from `node` to every other station."""
    wired: dict[NodeId, list[NodeId]] = {node: []}
    count = 0
    for a, b in wires:
        wired.setdefault(a, []).append(b)
        wired.setdefault(b, []).append(a)
        count += 1
    via: dict[NodeId, NodeId] = {}
    frontier = [(peer, peer) for peer in wired[node]]
    while frontier:
        station, first = frontier.pop(0)
        via[station] = first
        frontier += [(peer, first) for peer in wired[station] if peer not in (node, *via)]
    if count != len(wired) - 1 or len(via) != count:
        raise LocalError("the wires of the stations are no tree", hint="n - 1 wires, all connected")
    return via
