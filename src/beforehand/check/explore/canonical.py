"""State canonicalisation: convert a net to bytes and back, omitting everything irrelevant.

The canonical form omits everything on which no future transition depends. So a problem that is
found from one state is found from every state with the same canonical form. It omits:

- *Counters*: only people read them.
- *Tickets* and numbers of frames: only their order is kept.
- *Times*, where cores ask for none (`kind` is "cell"): then any timer may fire next. Where only
  differences of times matter, every state begins at time 0.
- *Cancelled* timers: such a timer is still in the net, but the driver ignores it when it fires.
- The *causal past*, as far as every node has delivered it: another delivery of such a message is a
  violation as a duplicate, whether or not it is also late.
- Everything that the family knows to be irrelevant in its cores (`Family.forget_history`).

`tests/check/explore/test_canonical.py` compares the result with an exploration of whole nets.

Every part of a net has a number: the states of its nodes, its frames in transit, the knowledge of
the oracle. A frozen net is the array of these numbers. So it is small, equal nets are equal bytes,
and thawing a net restores only the parts that differ. Of all renamings of a state
(`check.explore.symmetry`) the one with the smallest bytes is the canonical one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from beforehand.check.explore.names import NodeName, Renaming, renamed
from beforehand.check.explore.net_state import (
    NetState,
    freeze_net_state,
    freeze_oracle,
    rename_net_state,
    rename_oracle,
    thaw_net_state,
    thaw_oracle,
    time_of,
)
from beforehand.check.explore.transition_cache import Pool, TransitionCache
from beforehand.check.net.case import Case, Family
from beforehand.check.net.net import Net, make_net
from beforehand.protocols.contract.base import Core
from beforehand.protocols.contract.driver import Driver

NUMBER: Literal["I"] = "I"
DOWN = -1
T = TypeVar("T", bound=Hashable)


class Canonicalizer:
    """Freezes and thaws a single net object. The next `thaw` overwrites the previous net."""

    def __init__(
        self,
        family: Family,
        case: Case,
        make_core: Callable[[Case, int], Core[Any]] | None,
        group: Sequence[Renaming] = (),
    ) -> None:
        """group: the renamings under which states count as equal."""
        make = make_core or family.make_core
        self.group = group
        frame = partial(family.canonical_frame, case)
        self.memory = TransitionCache(self._canonicalise, frame, has_names=bool(group))
        self.net = make_net(family, case, lambda c, node: self._stand_in(make, c, node))
        self._time = time_of(self.net)
        self._nodes: Pool[tuple[Any, ...]] = Pool()
        self._flights: Pool[tuple[Any, ...]] = Pool()
        self._oracles: Pool[tuple[Any, ...]] = Pool()
        self._others: Pool[NetState] = Pool()
        self._thawed = [DOWN] * (case.nodes + 1)
        """The numbers of the nodes and of the oracle at the last `thaw`."""
        self._renamed: dict[tuple[Pool[Any], int, Renaming], int] = {}
        self.renaming: Renaming = tuple(range(case.nodes))
        """The renaming that gave the last frozen state its smallest bytes."""
        self.net.stepped.update(range(case.nodes))

    def _stand_in(self, make: Callable[[Case, int], Core[Any]], case: Case, node: int) -> Core[Any]:
        return self.memory.stand_in(make(case, NodeName(node) if self.group else node))

    def _canonicalise(self, core: Any, us: int) -> None:
        family, case = self.net.family, self.net.case
        family.forget_history(case, core)
        if self._time == "relative":
            family.move_back(case, core, us, self.net.local_us(core.node) - us)

    # ---- freezing -------------------------------------------------------------------------------

    def freeze(self) -> bytes:
        net = self.net
        is_later = (
            self._time == "relative" and net.now_us > 0
        )  # then the instants of all nodes move back
        numbers = [
            self._freeze_node(driver) if is_later or node in net.stepped else self._thawed[node]
            for node, driver in enumerate(net.drivers)
        ]
        numbers += [*self._freeze_net_state(), *self._freeze_flights()]
        self.renaming = tuple(range(net.case.nodes))
        for renaming in self.group if net.problem is None else ():
            image = self._rename(numbers, renaming)
            if image < numbers:
                numbers, self.renaming = image, renaming
        return array(NUMBER, numbers).tobytes()

    def _freeze_node(self, driver: Driver[Any]) -> int:
        core: Any = driver.core
        past_us = self.net.now_us if self._time == "relative" else 0
        state = (
            self.memory.without_history(core.number, past_us) if driver.is_up else DOWN,
            driver.snapshot(),
        )
        return self._nodes.number(state)

    def _freeze_flights(self) -> list[int]:
        """Return the numbers of the frames, sorted; frames on the same wire keep their order."""
        net, is_timed = self.net, self._time == "bounded"
        numbered = [
            (source, target, self._flights.number((source, target, frame, is_timed and sent_us)))
            for (source, target, _), (frame, sent_us) in net.flights.items()
        ]
        numbered.sort(key=lambda f: f[:2] if net.is_wire(f[0], f[1]) else f)
        return [number for _, _, number in numbered]

    def _freeze_net_state(self) -> tuple[int, int]:
        net, oracle = self.net, self._thawed[-1]
        if net.oracle._rows or oracle == DOWN:
            listeners = range(net.case.stations, net.case.nodes)
            oracle = self._oracles.number(freeze_oracle(net.oracle, listeners))
        return oracle, self._others.number(freeze_net_state(net, self._time))

    # ---- renaming -------------------------------------------------------------------------------

    def _rename(self, numbers: list[int], renaming: Renaming) -> list[int]:
        nodes = self.net.case.nodes
        moved = [0] * nodes
        for node, image in enumerate(renaming):
            moved[image] = self._image(self._nodes, numbers[node], renaming, self._rename_node)
        oracle, rest, *flights = numbers[nodes:]
        flights = [
            self._image(self._flights, number, renaming, _rename_flight) for number in flights
        ]
        flights.sort(key=lambda number: (*self._flights[number][:2], number))
        return [
            *moved,
            self._image(self._oracles, oracle, renaming, rename_oracle),
            self._image(self._others, rest, renaming, rename_net_state),
            *flights,
        ]

    def _image(
        self,
        pool: Pool[T],
        number: int,
        renaming: Renaming,
        rename: Callable[[T, Renaming], T],
    ) -> int:
        key = (pool, number, renaming)
        if key not in self._renamed:
            self._renamed[key] = pool.number(rename(pool[number], renaming))
        return self._renamed[key]

    def _rename_node(self, state: tuple[Any, ...], renaming: Renaming) -> tuple[Any, ...]:
        core, driver = state
        cut_off = renamed(driver.cut_off, renaming)
        return self.memory.renamed(core, renaming), driver._replace(cut_off=cut_off)

    # ---- thawing --------------------------------------------------------------------------------

    def thaw(self, state: bytes) -> Net:
        net, nodes = self.net, self.net.case.nodes
        numbers = memoryview(state).cast(NUMBER).tolist()
        for node, driver in enumerate(net.drivers):
            if node in net.stepped or numbers[node] != self._thawed[node]:
                self._thaw_node(driver, numbers[node])
        if net.oracle._rows or numbers[nodes] != self._thawed[nodes]:
            net.oracle = thaw_oracle(self._oracles[numbers[nodes]])
        self._thawed = numbers[: nodes + 1]
        thaw_net_state(net, self._others[numbers[nodes + 1]], self._time)
        net.flights.clear()
        net.sent.clear()
        for number in numbers[nodes + 2 :]:
            net._launch(*self._flights[number])
        net.stepped.clear()
        net.sights.clear()
        return net

    def _thaw_node(self, driver: Driver[Any], number: int) -> None:
        core, state = self._nodes[number]
        driver.is_up = core != DOWN
        if driver.is_up:
            stand_in: Any = driver.core
            stand_in.number = core
        driver.set_back(state)


def _rename_flight(flight: tuple[Any, ...], renaming: Renaming) -> tuple[Any, ...]:
    source, target, frame, sent_us = flight
    return renaming[source], renaming[target], renamed(frame, renaming), sent_us
