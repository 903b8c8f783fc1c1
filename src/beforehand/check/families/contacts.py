"""The opportunistic family: epidemic forwarding under each of the orders."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from beforehand.check.explore.history import forget_history, move_instants_back
from beforehand.check.net.case import (
    Case,
    Family,
    held_for_no_reason,
    honest,
    lost_in_silence,
    never_delivered,
)
from beforehand.check.net.net import Net
from beforehand.check.net.signer import Signing, make_proofs
from beforehand.check.rules.bounded import never_offered
from beforehand.check.rules.oracle import Violation
from beforehand.protocols.contract.base import Core, Message, MessageId
from beforehand.protocols.contract.needs import LinkKind
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Announce
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic
from beforehand.protocols.orders.order import LONG_AGO, Lifetimes, Order
from beforehand.protocols.registry import ORDERS, Protocol, make_order

SECOND_US = 1_000_000
LIFETIMES_US = (5 * SECOND_US, 20 * SECOND_US, 60 * SECOND_US, 200 * SECOND_US)
PATIENT_US = 10_000 * SECOND_US
SHIFT_US = LIFETIMES_US[-1] + 50 * SECOND_US
"""If all clocks jump forward by this much, every message is past its deadline."""


@dataclass(frozen=True)
class Setup:
    """How the nodes of a group are made."""

    options: Options
    lifetimes: Lifetimes | None = None
    seed: int = 0
    signing: Signing = "none"


class ContactsFamily(Family):
    """One order. A message that lives long enough and stays in some store reaches every node."""

    kind: LinkKind = "contact"
    sights: tuple[str, ...] = (
        *("flapped", "crashed", "cut off", "restarted", "set back", "handed over again"),
        *("all set back", "all set forward", "evicted", "refused to broadcast: the signer failed"),
    )

    def __init__(self, order: str, *, pushes: bool = False) -> None:
        """pushes: links lose nothing, and a node pushes its broadcasts to all linked peers."""
        self.name = f"{order}_push" if pushes else order
        self._protocol: Protocol = ORDERS[order]
        size = self._protocol.size_checked
        self._order = order if size is None else f"{order}-{size}"
        self._pushes = pushes
        self._has_floor = bool(getattr(self._protocol.make, "has_floor", False))
        self.sights += ("skip", "miss") if self._has_floor else ()
        self.sights += ("behind a digest",) if pushes else ("lost", "doubled")
        if self._protocol.takes_lifetime:
            self.sights += ("expired in time", "early")
        self.sights += ("deferred",) if self._protocol.lifetimes == "must" else ()
        if self._protocol.promise.orders:
            self.sights += ("waited", "drop")

    def draw(self, rng: random.Random) -> Case:
        lifetimes, shifts = None, rng.choice((0, 0, 1, 3))
        takes = self._protocol.lifetimes
        if takes == "must" or (takes == "may" and rng.random() < 0.5):
            skew_us = rng.choice((0, 100_000, 2 * SECOND_US, 20 * SECOND_US))
            # If all clocks may be set back, older messages must not seem to live too long.
            longest_us = LIFETIMES_US[-1] + (2 * SHIFT_US if shifts else 0)
            lifetimes = Lifetimes(LIFETIMES_US[-1], longest_us, skew_us)
        options = self._draw_options(rng)
        is_lossy = options.retry_us is not None and rng.random() < 0.7
        nodes = rng.choice((2, 3, 3, 4, 5))
        # Without lifetimes nothing depends on clocks. With lifetimes, half of the cases violate the
        # agreed skew: then the order is still promised, but delivery in time is not.
        skew_us = max(0, lifetimes.skew_us - 1) if lifetimes else PATIENT_US
        if lifetimes and rng.random() < 0.5:
            agreed_us = lifetimes.skew_us  # up to twice that, messages wait for the clock
            skew_us = rng.choice((3 * agreed_us // 2, 2 * agreed_us, 5 * agreed_us + SECOND_US))
        return Case(
            nodes,
            broadcasts=tuple(rng.choice((0, 2, 4, 12)) for _ in range(nodes)),
            options=Setup(
                *(options, lifetimes, rng.getrandbits(32)),
                signing=rng.choice(("none", "none", "sound", "failing")),
            ),
            lifetimes_us=LIFETIMES_US if lifetimes else (None,),
            skew_us=skew_us,
            ahead_us=tuple(rng.choice((0, skew_us)) for _ in range(nodes)),
            losses=rng.choice((0, 3, 20)) if is_lossy else 0,
            doubles=rng.choice((0, 3, 20)) if is_lossy else 0,
            flaps=rng.choice((0, 2, 10)),
            crashes=rng.choice((0, 0, 1, 3)),
            settings=rng.choice((0, 0, 3, 10)),
            shifts=shifts,
            shift_us=SHIFT_US,
            shift_span_us=SHIFT_US,
            inbox=rng.random() < 0.3,
        )

    def _draw_options(self, rng: random.Random) -> Options:
        options = Options(
            announce_us=rng.choice((0, 0, 300_000, 2 * SECOND_US)),
            retry_us=rng.choice((None, 500_000, 2 * SECOND_US)),
            capacity=rng.choice((None, None, None, 3, 8)),
            capacity_bytes=rng.choice((None, None, None, None, 3_500, 9_000)),
            eviction=rng.choice(("oldest", "random")),
            transfer=rng.choice(("random", "random", "oldest", "newest")),
            frame_bytes_max=rng.choice((1, 200, 16_384)),
        )
        if self._has_floor:
            patience_us = rng.choice((0, 0, 3 * SECOND_US, None))
            options = msgspec.structs.replace(options, patience_us=patience_us)
        if self._pushes:
            digest_after = rng.choice((None, 0, 0, 2))
            changes = {"retry_us": None, "push": True, "digest_after": digest_after}
            return msgspec.structs.replace(options, **changes)
        return options

    def make_core(self, case: Case, node: int) -> Core[Any]:
        setup = case.options
        order = make_order(self._order, node, setup.lifetimes)
        rng = random.Random(setup.seed + node)
        proofs = make_proofs(setup.signing, node, setup.seed)
        return Epidemic(node, order, rng, setup.options, durable=case.is_mortal, proofs=proofs)

    def forget_history(self, case: Case, core: Any) -> None:
        self.forget_counts(core)
        if type(core) in (Epidemic, PacedEpidemic):  # a subclass may use what these do not
            forget_history(core, is_calm=case.is_calm)

    def canonical_frame(self, case: Case, frame: Any) -> Any:
        if isinstance(frame, Announce) and case.options.options.retry_us is None:
            return Announce(0, frame.ids)  # the number exists only to be acknowledged
        return frame

    def is_time_relative(self, net: Net) -> bool:
        # Announcements go out at ticks of an absolute clock, and a deadline is an absolute instant.
        # Which instants a subclass keeps is unknown.
        cores = [driver.core for driver in net.drivers]
        return all(
            core.__class__ is Epidemic
            and not core.order.expires
            and not core._options.announce_us
            and core._proofs is None
            for core in cores
        )

    def move_back(self, case: Case, core: Any, us: int, now_us: int) -> None:
        move_instants_back(core, us, now_us, may_clip=not (case.settings or case.shifts))

    def judges(self, violation: Violation) -> bool:
        return violation.kind in self._protocol.promise.broken_by

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        has_lifetimes = net.case.options.lifetimes is not None
        is_late = has_lifetimes and net.deadline_us(message.id) <= net.local_us(node)
        # A delivery that a crash cut off was decided in time; the inbox hands it over after the
        # restart.
        if is_late and message.id not in [cut.id for cut in net.drivers[node].cut_off]:
            return f"node {node} delivered {message.id} after its deadline"
        # An inbox hands over again what was delivered before the floor rose.
        if message.id[1] <= net.floors.get(node, LONG_AGO) and not net.case.inbox:
            return f"node {node} delivered {message.id}, which lies at or below its floor"
        return super().flaw(net, node, message)

    def look(self, net: Net, node: int) -> Iterator[str]:
        core = net.drivers[node].core
        if any(core.explain(id).until_us is not None for at, id in net.held if at == node):
            yield "deferred"

    def problems(self, net: Net) -> Iterator[str]:
        setup = net.case.options
        refused = sum(driver.core.counters.refused for driver in net.drivers)
        if refused and not self.hostile(net.case):
            yield f"{refused} messages were refused although all nodes are sound"
        if any(driver.core.counters.early for driver in net.drivers):
            net.sights.add("early")
        nodes = enumerate(net.drivers)
        if any(driver.core.gauges(net.local_us(node))["unfolded"] for node, driver in nodes):
            net.sights.add("behind a digest")
        yield from held_for_no_reason(net)
        yield from lost_in_silence(net)
        alive = _alive(net)
        if len(alive) < len(net.oracle.pasts):
            net.sights.add("expired in time")
        if any(driver.core.counters.evicted for driver in net.drivers):
            net.sights.add("evicted")
        if not _keeps_to_the_skew(net.case) or _is_deferred_after_a_fall(net):
            return  # order holds with any clocks, delivery in time does not
        if setup.options.capacity is None and setup.options.capacity_bytes is None:
            yield from never_delivered(net, alive, _need_not_come)
        else:
            yield from never_offered(net, alive, partial(_is_skipped, net))


def _alive(net: Net) -> set[MessageId]:
    """Return the messages whose deadline no clock has ever shown.

    No node can have taken them for expired, not even before all clocks were set back."""
    if net.case.options.lifetimes is None:
        return set(net.oracle.pasts)
    latest_us = net.latest_reading_us()
    return {id for id in net.oracle.pasts if net.deadline_us(id) > latest_us}


def _need_not_come(net: Net, node: int, alive: Collection[MessageId]) -> set[MessageId]:
    """Return the messages that a node need not have delivered. A hostile peer may say that it had a
    message that it never had: that costs messages, but no order."""
    skipped = {id for id in alive if net.family.hostile(net.case) and _is_skipped(net, node, id)}
    return skipped | _waits_for_its_own_clock(net, node, alive)


def _is_skipped(net: Net, node: int, id: MessageId) -> bool:
    """Return whether the message lies at or below the floor of the node."""
    core: Any = net.drivers[node].core
    order: Order = core.order
    return order.has_floor and id[1] <= order.id_floor(LONG_AGO)


def _waits_for_its_own_clock(net: Net, node: int, alive: Collection[MessageId]) -> set[MessageId]:
    """Return the messages that wait, directly or not, for a message that has expired elsewhere.

    They wait until this node's clock shows its deadline. After all clocks were set back, that may
    be later than the time that a healed net is given."""
    if not net.case.shifts:
        return set()
    core = net.drivers[node].core
    waiting = {id: core.explain(id).missing for id in net.oracle.pasts}
    late: set[MessageId] = set()
    while more := {
        id
        for id, missing in waiting.items()
        if id not in late and any(cause in late or cause not in alive for cause in missing)
    }:
        late |= more
    return late


def _is_deferred_after_a_fall(net: Net) -> bool:
    """Return whether a node defers messages because all clocks were set back.

    A node that took no step before that waits until its clock shows the stamps of nodes that did.
    That may be later than the time that a healed net is given."""
    if not net.case.shifts:
        return False
    cores = [net.drivers[node].core for node in honest(net)]
    statuses = [core.explain(id) for core in cores for id in net.oracle.pasts]
    is_early = any(core.counters.early for core in cores)
    return is_early or any(status.until_us is not None for status in statuses)


def _keeps_to_the_skew(case: Case) -> bool:
    lifetimes = case.options.lifetimes
    return lifetimes is None or case.skew_us <= max(0, lifetimes.skew_us - 1)


CONTACTS = (
    *(ContactsFamily(name) for name in ORDERS),
    *(ContactsFamily(name, pushes=True) for name, order in ORDERS.items() if order.promise.is_sure),
)
