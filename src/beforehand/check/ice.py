"""Nets as bytes and back. What only tells one history from another is left out.

Left out is what nothing that comes can depend on, so that what is found from a state is found from
all that are taken for the same. *Counts* are read by nobody but people. *Tickets* and numbers of
frames: that they are in order is kept. *Times*, where cores ask for none (`kind` is "cell"): then
any timer may be the next. A timer that was *cancelled* is still in the net, but when it comes the
driver does nothing. The *causal past* as far as everybody has delivered it: to deliver that once
more is wrong as the second time, whether or not it is late. `tests/check/test_ice.py` compares with
an exploration of whole nets.

Whatever a net is made of has a number: the states of its nodes, what is on its way, what the oracle
knows. A frozen net is those numbers; so it is small, equal nets are equal bytes, and to thaw one
takes only what is not as it was.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, Literal

from beforehand.check.case import Case, Family
from beforehand.check.net import Net, make_net
from beforehand.check.oracle import Oracle
from beforehand.check.recall import Memory, Pool
from beforehand.core.base import Core
from beforehand.core.driver import Driver

NUMBER: Literal["I"] = "I"
DOWN = -1


class Ice:
    """Freezes and thaws one net again and again: what was thawed is gone with the next one."""

    def __init__(
        self, family: Family, case: Case, make_core: Callable[[Case, int], Core[Any]] | None
    ) -> None:
        make = make_core or family.make_core
        self._memory = Memory(family.forget_counts)
        self.net = make_net(family, case, lambda c, node: self._memory.stand_in(make(c, node)))
        # Hosts and stations repeat themselves for ever: their time is only an order of events.
        self._is_timeless = family.kind == "cell"
        self._is_timed = case.delay_us_max is not None
        self._nodes: Pool[tuple[Any, ...]] = Pool()
        self._flights: Pool[tuple[Any, ...]] = Pool()
        self._oracles: Pool[tuple[Any, ...]] = Pool()
        self._others: Pool[tuple[Any, ...]] = Pool()
        self._thawed = [DOWN] * (case.nodes + 1)
        """The numbers of the nodes and of the oracle, as they were thawed last."""
        self.net.stepped.update(range(case.nodes))

    # ---- to bytes -------------------------------------------------------------------------------

    def freeze(self) -> bytes:
        net = self.net
        numbers = [
            self._freeze_node(driver) if node in net.stepped else self._thawed[node]
            for node, driver in enumerate(net.drivers)
        ]
        return array(NUMBER, [*numbers, *self._freeze_rest(), *self._freeze_flights()]).tobytes()

    def _freeze_node(self, driver: Driver[Any]) -> int:
        core: Any = driver.core
        rows = driver._store._rows if driver._store is not None else {}
        state = (
            self._memory.without_counts(core.number) if driver.is_up else DOWN,
            driver.fuse,
            tuple(driver.cut_off),
            tuple(sorted(driver._timers)),
            tuple((table, tuple(saved.items())) for table, saved in rows.items()),
        )
        return self._nodes.number(state)

    def _freeze_flights(self) -> list[int]:
        """In the order of their numbers, but for wires, where those before are those before."""
        net, is_timed = self.net, self._is_timed
        numbered = [
            (source, target, self._flights.number((source, target, frame, is_timed and sent_us)))
            for (source, target, _), (frame, sent_us) in net.flights.items()
        ]
        numbered.sort(key=lambda f: f[:2] if net.is_wire(f[0], f[1]) else f)
        return [number for _, _, number in numbered]

    def _freeze_rest(self) -> tuple[int, int]:
        net, is_timeless = self.net, self._is_timeless
        oracle = self._thawed[-1]
        if net.oracle._rows or oracle == DOWN:
            listeners = range(net.case.stations, net.case.nodes)
            oracle = self._oracles.number(_freeze_oracle(net.oracle, listeners))
        others = (
            () if is_timeless else tuple(sorted((k, due) for k, (due, _) in net.timers.items())),
            tuple(sorted(net.contacts)),
            tuple(sorted(net.suspected)),
            tuple(net.news),
            (net.shift_us, net.highest_us, *net.offsets_us),
            0 if is_timeless else net.now_us,
            tuple(net.says),
            tuple(sorted(net.left.items())),
            tuple(sorted(net.carried.items())),
            tuple(sorted(net.held)),
            tuple(sorted(net.given_up)),
            tuple(sorted(net.dropped)),
            tuple(sorted(net.payloads.items())),
            net.problem,
        )
        return oracle, self._others.number(others)

    # ---- and back -------------------------------------------------------------------------------

    def thaw(self, state: bytes) -> Net:
        net, nodes = self.net, self.net.case.nodes
        numbers = memoryview(state).cast(NUMBER).tolist()
        for node, driver in enumerate(net.drivers):
            if node in net.stepped or numbers[node] != self._thawed[node]:
                self._thaw_node(driver, numbers[node])
        if net.oracle._rows or numbers[nodes] != self._thawed[nodes]:
            net.oracle = _thaw_oracle(self._oracles[numbers[nodes]])
        self._thawed = numbers[: nodes + 1]
        self._thaw_others(numbers[nodes + 1])
        net.flights.clear()
        net.sent.clear()
        for number in numbers[nodes + 2 :]:
            net._launch(*self._flights[number])
        net.stepped.clear()
        net.sights.clear()
        return net

    def _thaw_node(self, driver: Driver[Any], number: int) -> None:
        core, driver.fuse, cut_off, timers, rows = self._nodes[number]
        driver.is_up = core != DOWN
        if driver.is_up:
            stand_in: Any = driver.core
            stand_in.number = core
        driver.cut_off = list(cut_off)
        driver._timers = dict.fromkeys(timers, 1)
        driver._ticket = 1
        if driver._store is not None:
            driver._store._rows = {table: dict(saved) for table, saved in rows}

    def _thaw_others(self, number: int) -> None:
        net = self.net
        timers, contacts, suspected, news, offsets_us, net.now_us, *rest = self._others[number]
        net.timers = {key: (due_us, 1) for key, due_us in timers}
        if self._is_timeless:
            drivers = enumerate(net.drivers)
            net.timers = {(node, t): (0, 1) for node, driver in drivers for t in driver._timers}
        net.contacts, net.suspected = set(contacts), set(suspected)
        net.news = list(news)
        net.shift_us, net.highest_us, *net.offsets_us = offsets_us
        says, left, carried, held, given_up, dropped, payloads, net.problem = rest
        net.says = list(says)
        for counts, saved in ((net.left, left), (net.carried, carried)):
            counts.clear()
            dict.update(counts, saved)  # a Counter's own is slow
        net.held, net.given_up, net.dropped = set(held), set(given_up), set(dropped)
        net.payloads = dict(payloads)


def _freeze_oracle(oracle: Oracle, listeners: Collection[int]) -> tuple[Any, ...]:
    """As far as it matters for what comes. What all listeners have delivered is never late, but
    twice: whose causal past it is in does not matter any more."""
    every = [set(oracle.delivered[node]) for node in listeners]
    settled = set.intersection(*every)
    return (
        tuple(sorted((id, tuple(sorted(past - settled))) for id, past in oracle.pasts.items())),
        *(
            tuple(sorted((node, tuple(sorted(ids))) for node, ids in of.items() if ids))
            for of in (
                oracle.delivered,
                {node: ids - settled for node, ids in oracle._known.items()},
                {node: ids - settled for node, ids in oracle._overtaken.items()},
            )
        ),
    )


def _thaw_oracle(state: tuple[Any, ...]) -> Oracle:
    oracle = Oracle()
    pasts, delivered, known, overtaken = state
    oracle.pasts = {id: frozenset(past) for id, past in pasts}
    oracle.delivered = defaultdict(list, {node: list(ids) for node, ids in delivered})
    oracle._known = defaultdict(set, {node: set(ids) for node, ids in known})
    oracle._overtaken = defaultdict(set, {node: set(ids) for node, ids in overtaken})
    return oracle
