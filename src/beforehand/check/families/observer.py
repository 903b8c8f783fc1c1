"""The observer of processes whose clocks are skewed and set back, within the agreed limits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from beforehand.check.net.case import Case, Family
from beforehand.check.net.net import Net
from beforehand.protocols.contract.base import (
    EVERYBODY,
    Core,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, LinkKind, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.observer.observer import PERFECT, Observer, Stamped
from beforehand.protocols.observer.timestamp import Guarantees, LogicalClock

TICK_US = 1_000
EVENTS_MAX = 1_000
"""No process has more events than this in a whole run, so also not at one value of its clock."""


@dataclass(frozen=True)
class Setup:
    guarantees: Guarantees


class Process:
    """An observed process: it stamps its broadcasts, and merges the stamps that it receives."""

    needs = Needs({"feed": Link()})
    tables: tuple[Table, ...] = ()

    def __init__(self, node: int, guarantees: Guarantees) -> None:
        self.node: NodeId = node
        self.counters = Counters()
        self._clock = LogicalClock(node, guarantees)

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Stamped], lifetime_us: int | None = None
    ) -> MessageId:
        self.counters.broadcast += 1
        message = Message((self.node, self.counters.broadcast), (), payload)
        assert isinstance(self.node, int)
        stamped = Stamped(message, self.node, self._clock.send(now_us // TICK_US))
        out.sends.append((EVERYBODY, stamped))
        return message.id

    def on_message(self, now_us: int, source: NodeId, frame: Stamped, out: Outbox[Stamped]) -> None:
        self._clock.receive(now_us // TICK_US, frame.stamp)
        out.receives.append(frame.message)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Stamped]) -> None:
        """Do nothing: a feed has no links."""

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Stamped]) -> None:
        """Do nothing: a process sets no timers."""

    def restore(self, now_us: int, rows: Rows, out: Outbox[Stamped]) -> None:
        """Do nothing: a process never crashes."""

    def explain(self, message: MessageId) -> MessageStatus:
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {}


class ObserverFamily(Family):
    """With the full wait and the full stamp, the observer delivers all messages that it received,
    once and in causal order."""

    name = "observer"
    kind: LinkKind = "feed"
    learns = True
    sights = ("waited", "lost", "doubled", "crashed", "cut off", "restarted", "set back")

    def draw(self, rng: random.Random) -> Case:
        processes = rng.choice((1, 2, 3, 5))
        epsilon, delay = rng.choice((0, 1, 3, 8)), rng.choice((1, 5, 20))
        # A frame arrives within `delay` ticks of true time. Meanwhile its sender's clock may have
        # been set forward by ε, and each reading is rounded down.
        guarantees = Guarantees(processes, epsilon, delay + epsilon + 2, EVENTS_MAX)
        skew_us = epsilon * TICK_US
        return Case(
            processes + 1,
            broadcasts=(*(rng.choice((1, 4, 12)) for _ in range(processes)), 0),
            options=Setup(guarantees),
            skew_us=skew_us,
            ahead_us=tuple(rng.choice((0, skew_us)) for _ in range(processes + 1)),
            delay_us_max=delay * TICK_US,
            losses=rng.choice((0, 5)),
            doubles=rng.choice((0, 5)),
            crashes=rng.choice((0, 1, 3)),
            mortal=(processes,),
            settings=rng.choice((0, 5, 20)),
            inbox=rng.random() < 0.3,
        )

    def make_core(self, case: Case, node: int) -> Core[Any]:
        guarantees = case.options.guarantees
        if node < case.nodes - 1:
            return Process(node, guarantees)
        return Observer(node, guarantees, PERFECT, tick_us=TICK_US, durable=case.is_mortal)

    def problems(self, net: Net) -> Iterator[str]:
        eye = net.case.nodes - 1
        driver = net.drivers[eye]
        assert isinstance(driver.core, Observer)
        faults = {k: v for k, v in msgspec.structs.asdict(driver.core.disorder).items() if v}
        if faults:
            yield f"the observer reports {faults} although all guarantees hold"
        excused = set() if net.case.inbox else {message.id for message in driver.cut_off}
        held = {id for node, id in net.held if node == eye} - excused
        if held:
            yield f"node {eye} never delivered {sorted(held, key=str)}"
