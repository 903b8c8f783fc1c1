"""The group: the same core that `Group` runs on sockets, with proofs, flow control, full caches,
newcomers, a late disk and hostile members.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from beforehand.check.families.contacts import LIFETIMES_US, SECOND_US, SHIFT_US, ContactsFamily
from beforehand.check.net.adversary import Adversary
from beforehand.check.net.case import Case
from beforehand.check.net.net import Net
from beforehand.check.net.signer import Signing, make_proofs
from beforehand.check.rules.flow_rules import breach, broken_rule
from beforehand.protocols.contract.base import Core, Message
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.options import Flow, Options
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic, group_core
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.registry import make_order

FLOW = Flow(window=2, offers_max=4, pushes_max=1, stall_us=2 * SECOND_US)
"""Bounds that a small net reaches."""


@dataclass(frozen=True)
class Setup:
    """How the members of a group are made."""

    lifetimes: Lifetimes
    flow: Flow = FLOW
    capacity: int | None = None
    capacity_bytes: int | None = None
    digest_after: int = 0
    frame_bytes_max: int = 200
    seed: int = 0
    signing: Signing = "sound"
    order: str = "delta"
    patience_us: int | None = None
    hostile: int = 0
    """The number of hostile members. They are the last nodes."""

    @property
    def options(self) -> Options:
        """Return the options in the form that `ContactsFamily` reads."""
        return Options(capacity=self.capacity, capacity_bytes=self.capacity_bytes)


def make_member(case: Case, node: int, draws: Draws) -> PacedEpidemic:
    """Return the core of a member that follows the protocol, with the bounds of the case."""
    setup = case.options
    proofs = make_proofs(setup.signing, node, setup.seed)
    assert proofs is not None
    return group_core(
        node,
        setup.lifetimes,
        draws,
        capacity=setup.capacity,
        capacity_bytes=setup.capacity_bytes,
        proofs=proofs,
        flow=setup.flow,
        digest_after=setup.digest_after,
        frame_bytes_max=setup.frame_bytes_max,
        durable=case.is_mortal,
        order=make_order(setup.order, node, setup.lifetimes),
        patience_us=setup.patience_us,
    )


class GroupFamily(ContactsFamily):
    """A message that lives long enough and stays in some store reaches every member."""

    def __init__(self, order: str = "delta") -> None:
        """order: `Group` runs the Δ order."""
        super().__init__(order, pushes=True)
        self.name = "group" if order == "delta" else f"group_{order}"
        self.sights += ("closed", "lost before the disk had it", "refused", "stalled")

    def draw(self, rng: random.Random) -> Case:
        hostile = rng.choice((0, 0, 0, 1))
        nodes = rng.choice((2, 3, 3, 4, 5)) + hostile
        shifts = rng.choice((0, 0, 1, 3))
        skew_us = rng.choice((0, 100_000, 2 * SECOND_US, 20 * SECOND_US))
        longest_us = LIFETIMES_US[-1] + (2 * SHIFT_US if shifts else 0)
        clocks_us = max(0, skew_us - 1)
        if rng.random() < 0.3:  # order is promised with any clocks
            clocks_us = rng.choice((3 * skew_us // 2, 2 * skew_us, 5 * skew_us + SECOND_US))
        crashes = rng.choice((0, 1, 1, 3))
        setup = Setup(
            Lifetimes(LIFETIMES_US[-1], longest_us, skew_us),
            flow=rng.choice((FLOW, FLOW, Flow(stall_us=2 * SECOND_US))),
            capacity=rng.choice((None, None, None, 3, 8)),
            capacity_bytes=rng.choice((None, None, None, None, 3_500, 9_000)),
            digest_after=rng.choice((0, 0, 2, 8)),
            frame_bytes_max=rng.choice((1, 200, 65_536)),
            seed=rng.getrandbits(32),
            signing=rng.choice(("sound", "sound", "failing")),
            hostile=hostile,
            order=self._order,
            patience_us=rng.choice((0, 3 * SECOND_US, None)) if self._has_floor else None,
        )
        broadcasts = [rng.choice((0, 2, 4, 12)) for _ in range(nodes - hostile)]
        return Case(
            nodes,
            broadcasts=(*broadcasts, *(0,) * hostile),
            options=setup,
            lifetimes_us=LIFETIMES_US,
            skew_us=clocks_us,
            ahead_us=tuple(rng.choice((0, clocks_us)) for _ in range(nodes)),
            flaps=rng.choice((0, 2, 10)),
            crashes=crashes,
            mortal=tuple(range(nodes - hostile)),
            settings=rng.choice((0, 0, 3, 10)),
            shifts=shifts,
            shift_us=SHIFT_US,
            shift_span_us=SHIFT_US,
            pauses=rng.choice((0, 0, 2, 5)),
            room_bytes=rng.choice((None, None, 1, 300, 2_000)),
            is_disk_late=crashes > 0 and rng.random() < 0.8,
            inbox=rng.random() < 0.3,
        )

    def make_core(self, case: Case, node: int) -> Core[Any]:
        seed = case.options.seed
        if node in self.hostile(case):
            return Adversary(node, seed)
        return make_member(case, node, random.Random(seed + node))

    def hostile(self, case: Case) -> Collection[int]:
        return range(case.nodes - case.options.hostile, case.nodes)

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        # With a late disk a delivery was decided in time, but it happens only after the flush.
        return super().flaw(net, node, message) if not net.case.is_disk_late else None

    def broken_rule(self, net: Net, node: int) -> str | None:
        core = net.drivers[node].core
        if not isinstance(core, PacedEpidemic):
            return None
        rule = broken_rule(core, net.local_us(node))
        return None if rule is None else f"node {node} breaks {rule}"

    def breach(self, net: Net, node: int, frame: Any) -> str | None:
        driver = net.drivers[node]
        if not isinstance(driver.core, PacedEpidemic):
            return None
        rule = breach(driver.core, driver.store, frame)
        return None if rule is None else f"node {node} breaks {rule}"
