"""Every interleaving of a small net: breadth first, each state once.

A state is a whole net as bytes, so that two orders of events that lead to the same state are
explored once. *Sometimes* conditions name what must have been seen at least once: a pass in which
nothing ever waited proves nothing.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from beforehand.check.case import Case, Family
from beforehand.check.heal import heal
from beforehand.check.moves import all_moves
from beforehand.check.net import Move, Net, make_net
from beforehand.check.oracle import Oracle
from beforehand.core.base import Core
from beforehand.core.driver import Driver


@dataclass
class Exploration:
    """What was found."""

    states: int = 0
    transitions: int = 0
    quiet: int = 0
    """States in which nothing is on its way: each was healed and judged."""
    seen: set[str] = field(default_factory=set)
    problem: str | None = None
    path: list[Move] = field(default_factory=list)
    """The shortest sequence of moves that leads to the problem."""
    is_complete: bool = False
    """Was everything explored, or did the bound on states end it?"""


def explore(
    family: Family,
    case: Case,
    states_max: int,
    make_core: Callable[[Case, int], Core[Any]] | None = None,
) -> Exploration:
    """Walk through all reachable states, at most `states_max`; stop at the first problem."""
    found = Exploration()
    ice = _Ice(family, case, make_core)
    start = ice.freeze(make_net(family, case, make_core))
    parents: dict[bytes, tuple[bytes, Move] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        net = ice.thaw(state)
        found.states += 1
        moves = list(all_moves(net))
        found.problem = net.problem or _problem_at_rest(net, found)
        if found.problem:
            found.path = _path(parents, state)
            return found
        for move in moves:
            after = ice.thaw(state)
            if not after.do(move):
                continue
            found.transitions += 1
            found.seen |= after.sights
            frozen = ice.freeze(after)
            if frozen not in parents:
                if len(parents) >= states_max:
                    return found
                parents[frozen] = (state, move)
                queue.append(frozen)
    found.is_complete = True
    return found


def _problem_at_rest(net: Net, found: Exploration) -> str | None:
    """In a state in which nothing is on its way, all must be well once the net is healed."""
    if net.flights or net.news:
        return None
    found.quiet += 1
    heal(net)
    if not any(net.says) and not net.problem:
        found.seen.add("complete")
    return net.problem


def _path(parents: dict[bytes, tuple[bytes, Move] | None], state: bytes) -> list[Move]:
    path: list[Move] = []
    link = parents[state]
    while link is not None:
        state, move = link
        path.append(move)
        link = parents[state]
    return path[::-1]


class _Ice:
    """Nets as bytes and back. What only tells one history from another is left out."""

    def __init__(
        self, family: Family, case: Case, make_core: Callable[[Case, int], Core[Any]] | None
    ) -> None:
        self._family = family
        self._net = make_net(family, case, make_core)  # the one that is thawed again and again
        self._nodes: list[Any] = []

    def freeze(self, net: Net) -> bytes:
        nodes = [
            self._nodes[node]
            if self._nodes and node not in net.stepped
            else self._freeze_node(driver)
            for node, driver in enumerate(net.drivers)
        ]
        is_timed = net.case.delay_us_max is not None
        flights = sorted(
            (key[:2], net.queued(key), sent_us if is_timed else 0, pickle.dumps(frame), frame)
            for key, (frame, sent_us) in net.flights.items()
        )
        # Hosts and stations repeat themselves for ever: their time is only an order of events.
        is_timeless = self._family.kind == "cell"
        oracle = net.oracle
        state = (
            nodes,
            [(*pair, frame, sent_us) for pair, _, sent_us, _, frame in flights],
            sorted((id, sorted(past)) for id, past in oracle.pasts.items()),
            [
                sorted((node, sorted(ids)) for node, ids in of.items() if ids)
                for of in (oracle.delivered, oracle._known, oracle._overtaken)
            ],
            sorted((key, 0 if is_timeless else due_us) for key, (due_us, _) in net.timers.items()),
            (sorted(net.contacts), sorted(net.suspected), net.news, net.offsets_us),
            0 if is_timeless else net.now_us,
            (net.says, sorted(net.left.items()), sorted(net.carried.items())),
            (sorted(net.held), sorted(net.payloads.items()), net.problem),
        )
        return _pickled(state)

    def _freeze_node(self, driver: Driver[Any]) -> Any:
        self._family.forget_counts(driver.core)
        # With the pickler's memory: inside a core, one object may be in two registries.
        core = pickle.dumps(driver.core) if driver.is_up else None
        rows = driver._store._rows if driver._store is not None else {}
        return core, driver.fuse, driver.cut_off, sorted(driver._timers), rows

    def thaw(self, state: bytes) -> Net:
        nodes, flights, pasts, judged, timers, links, net_us, left, rest = pickle.loads(state)
        net, self._nodes = self._net, nodes
        for driver, (core, fuse, cut_off, keys, rows) in zip(net.drivers, nodes, strict=True):
            driver.is_up = core is not None
            if core is not None:
                driver.core = pickle.loads(core)
            driver.fuse, driver.cut_off = fuse, list(cut_off)
            driver._timers = dict.fromkeys(keys, 1)
            driver._ticket = 1
            if driver._store is not None:
                driver._store._rows = {table: dict(saved) for table, saved in rows.items()}
        net.stepped.clear()
        net.flights.clear()
        net.sent.clear()
        for source, target, frame, sent_us in flights:
            net._launch(source, target, frame, sent_us)
        net.oracle = _thaw_oracle(pasts, judged)
        net.timers = {key: (due_us, 1) for key, due_us in timers}
        contacts, suspected, net.news, net.offsets_us = links
        net.now_us = net_us
        net.contacts, net.suspected = set(contacts), set(suspected)
        net.says, remaining, carried = left
        net.left, net.carried = Counter(dict(remaining)), Counter(dict(carried))
        held, payloads, net.problem = rest
        net.held, net.payloads = set(held), dict(payloads)
        net.sights.clear()
        return net


def _thaw_oracle(pasts: list[Any], judged: list[Any]) -> Oracle:
    oracle = Oracle()
    oracle.pasts = {id: frozenset(past) for id, past in pasts}
    delivered, known, overtaken = judged
    oracle.delivered = defaultdict(list, delivered)
    oracle._known = defaultdict(set, {node: set(ids) for node, ids in known})
    oracle._overtaken = defaultdict(set, {node: set(ids) for node, ids in overtaken})
    return oracle


def _pickled(state: object) -> bytes:
    """Without the pickler's memory of objects, so that equal states give equal bytes."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.fast = True
    pickler.dump(state)
    return buffer.getvalue()
