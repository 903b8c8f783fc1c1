"""The opportunistic family: epidemic forwarding under each of the orders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from beforehand.check.case import (
    Case,
    Family,
    held_for_no_reason,
    lost_in_silence,
    never_delivered,
)
from beforehand.check.net import Net
from beforehand.check.oracle import Violation
from beforehand.core.base import Message
from beforehand.core.epidemic import Epidemic
from beforehand.core.needs import LinkKind
from beforehand.core.options import Options
from beforehand.core.order import Lifetimes
from beforehand.sim.protocols import PROTOCOLS, make_order

SECOND_US = 1_000_000
LIFETIMES_US = (5 * SECOND_US, 20 * SECOND_US, 60 * SECOND_US, 200 * SECOND_US)
PATIENT_US = 10_000 * SECOND_US


@dataclass(frozen=True)
class Setup:
    """How the nodes of a group are made."""

    options: Options
    lifetimes: Lifetimes | None = None
    seed: int = 0


class Contacts(Family):
    """One order. What survives in anybody's store, and lives long enough, reaches everybody."""

    kind: LinkKind = "contact"
    sights: tuple[str, ...] = (
        *("flapped", "crashed", "cut off", "restarted", "set back", "handed over again"),
    )

    def __init__(self, order: str, *, pushes: bool = False) -> None:
        """pushes: links lose nothing, and what is said goes to whoever is in contact."""
        self.name = f"{order}_push" if pushes else order
        self._order, self._pushes = order, pushes
        self.sights += ("behind a mark",) if pushes else ("lost", "doubled")
        if PROTOCOLS[order].takes_lifetime:
            self.sights += ("expired in time",)
        if PROTOCOLS[order].is_causal:
            self.sights += ("waited", "drop")

    def draw(self, rng: random.Random) -> Case:
        lifetimes = None
        if PROTOCOLS[self._order].takes_lifetime and (self._order == "delta" or rng.random() < 0.5):
            skew_us = rng.choice((0, 100_000, 2 * SECOND_US, 20 * SECOND_US))
            lifetimes = Lifetimes(LIFETIMES_US[-1], LIFETIMES_US[-1], skew_us)
        options = self._draw_options(rng)
        is_lossy = options.retry_us is not None and rng.random() < 0.7
        nodes = rng.choice((2, 3, 3, 4, 5))
        # Clocks differ by less than what is agreed; without lifetimes nothing is.
        skew_us = max(0, lifetimes.skew_us - 1) if lifetimes else PATIENT_US
        return Case(
            nodes,
            says=tuple(rng.choice((0, 2, 4, 12)) for _ in range(nodes)),
            options=Setup(options, lifetimes, rng.getrandbits(32)),
            lifetimes_us=LIFETIMES_US if lifetimes else (None,),
            skew_us=skew_us,
            ahead_us=tuple(rng.choice((0, skew_us)) for _ in range(nodes)),
            losses=rng.choice((0, 3, 20)) if is_lossy else 0,
            doubles=rng.choice((0, 3, 20)) if is_lossy else 0,
            flaps=rng.choice((0, 2, 10)),
            crashes=rng.choice((0, 0, 1, 3)),
            settings=rng.choice((0, 0, 3, 10)),
            inbox=rng.random() < 0.3,
        )

    def _draw_options(self, rng: random.Random) -> Options:
        options = Options(
            announce_us=rng.choice((0, 0, 300_000, 2 * SECOND_US)),
            retry_us=rng.choice((None, 500_000, 2 * SECOND_US)),
            capacity=rng.choice((None, None, None, 3, 8)),
            eviction=rng.choice(("oldest", "random")),
            transfer=rng.choice(("random", "random", "oldest", "newest")),
            frame_bytes_max=rng.choice((1, 200, 16_384)),
        )
        if self._pushes:
            marks_after = rng.choice((None, 0, 0, 2))
            changes = {"retry_us": None, "push": True, "marks_after": marks_after}
            return msgspec.structs.replace(options, **changes)
        return options

    def make_core(self, case: Case, node: int) -> Epidemic:
        setup = case.options
        order = make_order(self._order, node, setup.lifetimes)
        rng = random.Random(setup.seed + node)
        return Epidemic(node, order, rng, setup.options, durable=case.is_mortal)

    def judges(self, violation: Violation) -> bool:
        return PROTOCOLS[self._order].is_causal or violation.kind != "late"

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        is_late = net.case.options.lifetimes is not None and message.seq <= net.local_us(node)
        # What a crash cut off was decided in time; the inbox hands it over after the restart.
        if is_late and message not in net.drivers[node].cut_off:
            return f"node {node} delivered {message.id} after its deadline"
        return super().flaw(net, node, message)

    def problems(self, net: Net) -> Iterator[str]:
        setup = net.case.options
        refused = sum(driver.core.counters.refused for driver in net.drivers)
        if refused:
            yield f"{refused} messages were refused although all clocks are sound"
        if any(driver.core.gauges(net.now_us)["unfolded"] for driver in net.drivers):
            net.sights.add("behind a mark")
        yield from held_for_no_reason(net)
        yield from lost_in_silence(net)
        due = set(net.oracle.pasts)
        if setup.lifetimes is not None:
            due = {id for id in due if id[1] > net.now_us + net.case.skew_us}
            if len(due) < len(net.oracle.pasts):
                net.sights.add("expired in time")
        if setup.options.capacity is None:
            yield from never_delivered(net, due)


CONTACTS = (
    *(Contacts(name) for name in PROTOCOLS),
    *(Contacts(name, pushes=True) for name in ("causal", "delta")),
)
