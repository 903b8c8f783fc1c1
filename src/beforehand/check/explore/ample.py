"""Partial-order reduction: try only the moves of some nodes where all other moves can wait.

Two arrivals at different nodes commute. Each changes one node, the frames that leave it, and the
oracle's knowledge of that node. A delivery is judged by the causal past that its message got at the
broadcast. So it is enough to try the moves of a set T of nodes (an *ample set*), if

1. no sequence of moves of the other nodes sends a frame into T. Then, until T makes its first move,
   the possible moves of T stay those that are possible now;
2. a frame, or a link notification, is on its way to a node in T. So no timer fires before T has
   moved, and no run comes to rest without a move of T;
3. T contains all nodes that are down, that have a pending link notification, or that can be
   linked. So the other nodes have no moves but arrivals and broadcasts;
4. no fault budget is left, no clock matters, and wires and disks hold nothing back. This excludes
   everything else that could remove a frame, or that depends on two nodes at once;
5. at least one of these moves leads to a state that is not yet explored, so that the moves of the
   other nodes are not postponed for ever (the queue proviso of breadth-first search). `explore`
   ensures this.

Why no problem and no state at rest is lost: take a run from here to a state at rest. By (2) it
contains a move of T. By (1) the first such move is possible now. It commutes with all moves before
it, which are moves of other nodes. So the run with that move first reaches the same state at rest.
Now take a run to a problem. If it contains a move of T, the same argument applies. If it contains
none, it is also possible after any move of T; by (5) it is not postponed for ever.

Condition (1) is decided by exploring the other nodes alone, from core to core, up to a bound on
their states. A single frame that changes nothing at its target, now or later
(`history.stays_without_effect`), commutes with every other move. It is an ample set of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from beforehand.check.explore.history import stays_without_effect
from beforehand.check.explore.transition_cache import Pool, Step, TransitionCache
from beforehand.check.net.net import Move, Net
from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import EVERYBODY
from beforehand.protocols.contract.driver import BroadcasterDriver, PacedDriver
from beforehand.protocols.epidemic.epidemic import Epidemic

STATES_MAX = 400
"""The search for a frame into T visits at most this many states of the other nodes. If there are
more, T is rejected."""
OTHER = -1
"""Stands for the core of a node in T."""


class Outside(NamedTuple):
    """The state of the nodes outside T, and the frames in transit to them."""

    cores: tuple[int, ...]
    flights: tuple[tuple[int, int, int], ...]
    """(source, target, number of the frame), sorted."""
    broadcasts: tuple[int, ...]


class Ample:
    """Chooses the moves to try first, for the states of one exploration."""

    def __init__(self, net: Net, memory: TransitionCache) -> None:
        self._net = net
        self._memory = memory
        self._frames: Pool[Any] = Pool()
        self._is_apart: dict[tuple[frozenset[int], Outside], bool] = {}

    def chosen(self, moves: list[Move]) -> set[Move] | None:
        """Return the moves of an ample set, or None if all moves must be tried."""
        net = self._net
        if len(moves) < 2 or not self._is_still():
            return None
        for (source, target, ticket), (frame, _) in net.flights.items():
            core: Any = net.drivers[target].core
            if isinstance(core, Epidemic) and stays_without_effect(core, frame):
                return {("arrive", source, target, ticket)}
        nodes = self._nodes(moves)
        if nodes is None:
            return None
        return {move for move in moves if set(_nodes_of(move)) <= nodes}

    # ---- the nodes of an ample set --------------------------------------------------------------

    def _is_still(self) -> bool:
        """Return whether condition (4) holds in the present state of the net."""
        net, case = self._net, self._net.case
        if any(net.left.values()) or net.suspected or net.closed or net.problem:
            return False
        if net.family.kind not in ("contact", "feed") or case.lifetimes_us != (None,):
            return False
        if case.delay_us_max is not None or case.is_disk_late or case.room_bytes is not None:
            return False
        return all(
            driver.crash_after is None and type(driver) in (BroadcasterDriver, PacedDriver)
            for driver in net.drivers
        )

    def _nodes(self, moves: list[Move]) -> frozenset[int] | None:
        """Return the smallest T, or None if it would be all nodes that can move."""
        net = self._net
        awaited = {flight[1] for flight in net.flights} | {item[0] for item in net.notices}
        active = {node for move in moves for node in _nodes_of(move)}
        bound = {node for node, driver in enumerate(net.drivers) if not driver.is_up}
        bound |= {item[0] for item in net.notices}
        bound |= {node for move in moves if move[0] == "up" for node in move[1:]}
        rest = sorted(active - bound)
        for size in range(len(rest)):
            for more in combinations(rest, size):
                nodes = frozenset({*bound, *more})
                if nodes & awaited and self._others_stay_apart(nodes):
                    return nodes
        return None

    # ---- the moves of the other nodes -----------------------------------------------------------

    def _others_stay_apart(self, nodes: frozenset[int]) -> bool:
        """Return whether condition (1) holds."""
        net = self._net
        cores: list[Any] = [driver.core for driver in net.drivers]
        start = Outside(
            tuple(
                OTHER if node in nodes else self._memory.without_history(core.number, 0)
                for node, core in enumerate(cores)
            ),
            tuple(
                sorted(
                    (source, target, self._frames.number(frame))
                    for (source, target, _), (frame, _) in net.flights.items()
                    if target not in nodes
                )
            ),
            tuple(0 if node in nodes else count for node, count in enumerate(net.broadcasts)),
        )
        known = self._is_apart.get((nodes, start))
        return self._search(nodes, start) if known is None else known

    def _search(self, nodes: frozenset[int], start: Outside) -> bool:
        """Search depth first through all states that the other nodes can reach by themselves."""
        visited = {start}
        path = [(start, self._steps(nodes, start))]
        while path:
            after = next(path[-1][1], start)
            known = after is not None and self._is_apart.get((nodes, after))
            if after is None or known is False or len(visited) > STATES_MAX:
                if len(visited) <= STATES_MAX:
                    self._is_apart.update({(nodes, state): False for state, _ in path})
                self._is_apart[nodes, start] = False
                return False
            if after is start:
                path.pop()
            elif known is None and after not in visited:
                visited.add(after)
                path.append((after, self._steps(nodes, after)))
        self._is_apart.update({(nodes, state): True for state in visited})
        return True

    def _steps(self, nodes: frozenset[int], state: Outside) -> Iterator[Outside | None]:
        """Yield the state after each move of another node; None if it sends into `nodes`."""
        net, broadcasts = self._net, state.broadcasts
        for at, (source, target, number) in enumerate(state.flights):
            if at and state.flights[at - 1] == (source, target, number):
                continue
            left = state.flights[:at] + state.flights[at + 1 :]
            before = (net.local_us(target), source, self._frames[number])
            state_left = state._replace(flights=left)
            yield self._after(nodes, target, "on_message", (before, ()), state_left)
        for node, count in enumerate(broadcasts):
            if count and node not in nodes:
                fewer = (*broadcasts[:node], count - 1, *broadcasts[node + 1 :])
                payload = (net.local_us(node), b"%d.%d" % (node, count - 1))
                state_left = state._replace(broadcasts=fewer)
                yield self._after(nodes, node, "on_broadcast", (payload, (None,)), state_left)

    def _after(
        self,
        nodes: frozenset[int],
        node: int,
        name: str,
        inputs: tuple[tuple[Any, ...], tuple[Any, ...]],
        state: Outside,
    ) -> Outside | None:
        try:
            number, sends = self._step(state.cores[node], node, name, *inputs)
        except (RemoteError, _NotSimulated):
            return None
        flights = [*state.flights]
        for peer, frame in sends:
            everybody = range(self._net.case.stations, self._net.case.nodes)
            for target in everybody if peer is EVERYBODY else (peer,):
                if target in nodes:
                    return None
                if target != node and self._net._has_link(node, target):
                    flights.append((node, target, self._frames.number(frame)))
        cores = (*state.cores[:node], number, *state.cores[node + 1 :])
        return Outside(cores, tuple(sorted(flights)), state.broadcasts)

    def _step(
        self, core: int, node: int, name: str, before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> tuple[int, list[Any]]:
        """Return the number of the core after a step of its driver, and the frames sent."""
        step = self._memory.step(core, name, self._memory.with_names(name, before), after)
        number, sends = step[0], _sends(step)
        if isinstance(self._net.drivers[node], PacedDriver):
            saved = self._memory.core(number).saving_step()
            if saved > self._memory.core(core).saving_step():
                step = self._memory.step(number, "on_saved", (self._net.local_us(node), saved), ())
                number, sends = step[0], sends + _sends(step)
        return self._memory.without_history(number, 0), sends


class _NotSimulated(Exception):
    """Raised for a step with effects on more than one node."""


def _sends(step: Step) -> list[Any]:
    _, answer, effects = step
    done = dict(effects)
    if isinstance(answer, Exception) or "cuts" in done:
        raise _NotSimulated
    return list(done.get("sends", ()))


def _nodes_of(move: Move) -> tuple[int, ...]:
    """Return the nodes that a move changes."""
    kind, *rest = move
    if kind == "arrive":
        return (rest[1],)
    return tuple(rest[:2]) if kind == "up" else (rest[0],)
