"""Describe a run of a net in words: a line for each move, with its effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from beforehand.check.net.case import Case, Family
from beforehand.check.net.heal import heal
from beforehand.check.net.net import Move, Net, make_net
from beforehand.check.net.thresholds import in_force
from beforehand.protocols.contract.base import Core, MessageId

WORDS: dict[str, str] = {
    "broadcast": "node {0} broadcasts",
    "lose": "a frame from {0} to {1} is lost",
    "double": "a frame from {0} to {1} is doubled",
    "timer": "at node {0} the timer `{1[0]}` fires",
    "pass": "{0} us pass",
    "set": "the clock of node {0} is set to {1} us ahead",
    "shift": "all clocks are set to {0} us ahead",
    "flush": "the disk of node {0} has what it saved",
    "room": "the wire from {0} to {1} is empty again",
    "open": "the program of node {0} reads: {1}",
    "up": "{0} and {1} come into contact",
    "down": "the contact of {0} and {1} ends",
    "enter": "host {0} enters cell {1}",
    "leave": "host {0} leaves for good",
    "notify": "node {0} gets a link event for {1}",
    "suspect": "node {0} is about to suspect {1}",
    "trust": "node {0} is about to trust {1} again",
    "crash_after": "the next step of node {0} is cut off after {1} effects",
    "crash": "node {0} crashes",
    "restart": "node {0} restarts",
}


def describe_run(
    family: Family,
    case: Case,
    moves: Sequence[Move],
    make_core: Callable[[Case, int], Core[Any]] | None = None,
) -> str:
    """Play the moves again, and return a line for each move, headed by the problem at the end."""
    with in_force(case.thresholds):
        net = make_net(family, case, make_core)
        lines = [line for move in moves for line in _lines(net, move)]
        if not net.problem:
            before = _delivered(net)
            heal(net)
            lines.append(f"  the net heals{_new_deliveries(before, _delivered(net))}")
    return "\n".join([f"{net.problem or 'all went well'}:", *lines])


def _lines(net: Net, move: Move) -> Iterator[str]:
    if net.problem:
        return
    before, up = _delivered(net), [driver.is_up for driver in net.drivers]
    words = _words(net, move)
    if net.do(move):
        fell = [node for node, driver in enumerate(net.drivers) if up[node] and not driver.is_up]
        crash = f", and node {fell[0]} crashes" if fell and move[0] != "crash" else ""
        yield f"  {words}{_new_deliveries(before, _delivered(net))}{crash}"


def _words(net: Net, move: Move) -> str:
    if move[0] != "arrive":
        return WORDS[move[0]].format(*move[1:])
    source, target, _ = move[1:]
    frame = net.flights[move[1:]][0] if move[1:] in net.flights else None
    ids = [message.id for message in getattr(frame, "messages", ())]
    ids += getattr(frame, "ids", ())
    what = type(frame).__name__ + (f" of {_listed(ids)}" if ids else "")
    return f"node {target} receives {what} from {source}"


def _delivered(net: Net) -> dict[Any, list[MessageId]]:
    return {node: list(ids) for node, ids in net.oracle.delivered.items()}


def _new_deliveries(before: dict[Any, list[MessageId]], after: dict[Any, list[MessageId]]) -> str:
    fresh = [(node, ids[len(before.get(node, ())) :]) for node, ids in after.items()]
    return "".join(f", {node} delivers {_listed(ids)}" for node, ids in fresh if ids)


def _listed(ids: Iterable[MessageId]) -> str:
    return ", ".join(f"{origin}:{seq}" for origin, seq in ids)
