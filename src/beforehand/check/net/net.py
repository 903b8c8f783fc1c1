"""One hostile net for every core. Its user, the explorer or the fuzzer, chooses the moves.

The explorer tries every move (`explore`); the fuzzer draws moves at random (`fuzz`). The net knows
the contract of cores and no protocol. It models kinds of links, frames that are lost, duplicated or
reordered, clock settings, timers, crashes at any point of a drain, and restarts from saved state.
One oracle judges every delivery by the definition of causal order. Each protocol family checks its
further promises itself (`Family`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from beforehand.check.net.case import TROUBLES, Case, Family
from beforehand.check.net.cells import Cells, Flight, settle
from beforehand.check.net.clocks import Clocks
from beforehand.check.net.effects import Effects
from beforehand.check.net.pacing import LateStore, Pacing
from beforehand.check.net.thresholds import thresholds_in_force
from beforehand.check.rules.oracle import Oracle
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Core, Message, MessageId, Timer
from beforehand.protocols.contract.driver import (
    BroadcasterDriver,
    Driver,
    LeaverDriver,
    PacedDriver,
)
from beforehand.protocols.contract.needs import Link, Needs, refuse_unmet
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.orders.order import LONG_AGO

Move = tuple[Any, ...]
"""A kind of fault or progress, and the nodes that it concerns: see the methods `_do_...` of `Net`.
An impossible move does nothing, so any subsequence of a run's moves is also a run."""
AGE_US = 3_600_000_000
"""The net never fires a timer that is due later than this from now."""


@dataclass
class Net(Clocks, Cells, Pacing, Effects):
    """The nodes, the frames in transit, and the oracle. It is the port of the nodes' drivers."""

    family: Family
    case: Case
    make_core: Callable[[Case, int], Core[Any]]
    now_us: int = 0
    drivers: list[Driver[Any]] = field(default_factory=list)
    oracle: Oracle = field(default_factory=Oracle)
    broadcasts: list[int] = field(default_factory=list)
    payloads: dict[MessageId, bytes] = field(default_factory=dict)
    deadlines: dict[MessageId, int] = field(default_factory=dict)
    """The deadlines of messages whose seq is none."""
    floors: dict[int, int] = field(default_factory=dict)
    """The stamp floor of each node that has reported one."""
    left: Counter[str] = field(default_factory=Counter)
    """The remaining budget for each kind of fault."""
    offsets_us: list[int] = field(default_factory=list)
    shift_us: int = 0
    """How far all clocks are ahead of true time."""
    highest_us: int = LONG_AGO
    """The highest reading of any clock, as of the last time that a clock was set back."""
    flights: dict[Flight, tuple[Any, int]] = field(default_factory=dict)
    """Frames in transit: flight -> (the frame, when it was sent)."""
    notices: list[tuple[int, int, bool, int]] = field(default_factory=list)
    """Link notifications that a node has not received yet: (node, peer, up, since when). They are
    in order for each pair."""
    contacts: set[tuple[int, int]] = field(default_factory=set)
    suspected: set[tuple[int, int]] = field(default_factory=set)
    timers: dict[tuple[int, Timer], tuple[int, int]] = field(default_factory=dict)
    """(node, timer) -> (when it is due, the driver's ticket)."""
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    problem: str | None = None
    sights: set[str] = field(default_factory=set)
    waited: int = 0
    held: set[tuple[int, MessageId]] = field(default_factory=set)
    """Messages that a node received, and perhaps saved, but did not deliver."""
    fresh: set[tuple[int, MessageId]] = field(default_factory=set)
    """Messages that a node received in the current step and did not deliver."""
    unread: list[Message] = field(default_factory=list)
    """Messages handed to the application in the current step."""
    stepped: set[int] = field(default_factory=set)
    """Nodes that may have changed. Code that copies nets reads this set and clears it."""
    reported_lost: set[tuple[int, MessageId]] = field(default_factory=set)
    """(node, message): losses that the node has reported."""
    dropped: set[tuple[int, int, MessageId]] = field(default_factory=set)
    """(node, peer, message): the node has dropped the message undelivered since it was notified
    that its present link to the peer is up."""
    unsaved: dict[int, list[tuple[str, tuple[Any, ...]]]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    carried: Counter[tuple[MessageId, int]] = field(default_factory=Counter)
    """How often a message was sent to a node, for families that count this."""

    # ---- moves ----------------------------------------------------------------------------------

    def do(self, move: Move) -> bool:
        """Make a move, and return whether it was possible."""
        return bool(getattr(self, f"_do_{move[0]}")(*move[1:]))

    def deadline_us(self, id: MessageId) -> int:
        """Return the deadline of a message, if messages have lifetimes."""
        return self.deadlines.get(id, id[1])

    # ---- implementations of the moves -----------------------------------------------------------

    def _do_broadcast(self, node: int, lifetime_us: int | None = None) -> bool:
        driver = self.drivers[node]
        if not self.broadcasts[node] or not driver.is_up:
            return False
        self.broadcasts[node] -= 1
        assert isinstance(driver, BroadcasterDriver)
        try:
            driver.on_broadcast(self.local_us(node), self._words(node), lifetime_us)
        except LocalError as error:
            self.sights.add(f"refused to broadcast: {error.problem}")
        self._after(node)
        return True

    def _do_arrive(self, *flight: int) -> bool:
        source, target, _ = flight
        if flight not in self.flights or self.queued(flight):
            return False
        frame, _ = self.flights.pop(flight)
        try:
            self.drivers[target].on_message(self.local_us(target), source, frame)
        except RemoteError as error:
            if source not in self.family.hostile(self.case):
                self.problem = f"node {target} refused a frame of {source}: {error.problem}"
            self.sights.add("refused")
            self._disconnect(target, source)
        self._after(target)
        return True

    def _do_lose(self, *flight: int) -> bool:
        if flight not in self.flights or self.is_wire(*flight[:2]) or not self._take("losses"):
            return False
        del self.flights[flight]
        self.sights.add("lost")
        return True

    def _do_double(self, *flight: int) -> bool:
        if flight not in self.flights or self.is_wire(*flight[:2]) or not self._take("doubles"):
            return False
        self._launch(flight[0], flight[1], *self.flights[flight])
        self.sights.add("doubled")
        return True

    def _do_timer(self, node: int, timer: Timer) -> bool:
        due_us, ticket = self.timers.get((node, timer), (0, 0))
        if not ticket or due_us > self._latest_us() or due_us > self.now_us + AGE_US:
            return False
        if not self.is_silent():
            self._take("early_timers")  # the fuzzer ignores this budget
        del self.timers[node, timer]
        self.now_us = max(self.now_us, due_us)
        self.drivers[node].on_timer(self.local_us(node), timer, ticket)
        self._after(node)
        return True

    def _do_up(self, a: int, b: int) -> bool:
        pair = (a, b)
        is_known = all({node, peer} != {a, b} for node, peer, _, _ in self.notices)
        both = self.drivers[a].is_up and self.drivers[b].is_up
        if pair in self.contacts or not both or not is_known:
            return False
        self.contacts.add(pair)
        self._notify(a, b, True)
        if pair in self.contacts:  # else the first node crashed in its step
            self._notify(b, a, True)
        return True

    def _do_down(self, a: int, b: int) -> bool:
        if (a, b) not in self.contacts or not self._take("flaps"):
            return False
        self.sights.add("flapped")
        self._part(a, b)
        self._notify(a, b, False)
        if self.drivers[b].is_up:
            self._inform(b, a, False)
        return True

    def _do_notify(self, node: int, peer: int) -> bool:
        for at, (notified, about, up, _) in enumerate(self.notices):
            if (notified, about) == (node, peer):
                del self.notices[at]
                self._notify(node, peer, up)
                return True
        return False

    def _do_suspect(self, node: int, peer: int) -> bool:
        """Let the failure detector suspect a live peer. A `trust` move ends the suspicion."""
        both = self.drivers[node].is_up and self.drivers[peer].is_up
        if (node, peer) in self.suspected or not both or not self._take("suspicions"):
            return False
        self.suspected.add((node, peer))
        self._inform(node, peer, False)
        self.sights.add("suspected")
        return True

    def _do_trust(self, node: int, peer: int) -> bool:
        if (node, peer) not in self.suspected:
            return False
        self.suspected.discard((node, peer))
        self._inform(node, peer, True)
        return True

    def _do_crash_after(self, node: int, effects: int) -> bool:
        """Let the node crash in its next step, after that many effects of the step."""
        if not self._is_mortal(node) or not self._take("crashes"):
            return False
        self.drivers[node].crash_after = effects
        self.stepped.add(node)
        return True

    def _do_crash(self, node: int, left: int = 0) -> bool:
        """Crash a node.

        left: how many of the node's frames in transit survive. On a contact none does."""
        if not self._is_mortal(node) or not self._take("crashes"):
            return False
        self.drivers[node].crash()
        leaving = [flight for flight in self.flights if flight[0] == node]
        for flight in leaving[left:]:
            del self.flights[flight]
        self._after(node)
        return True

    def _do_restart(self, node: int) -> bool:
        driver = self.drivers[node]
        if driver.is_up:
            return False
        driver.restart(self.local_us(node))
        self.sights.add("restarted")
        if self.family.kind == "detector":
            self._look_around(node)
        self._after(node)
        if (cell := self.cell_of(node)) is not None:
            self._notify(node, cell, True)
        return True

    # ---- steps ----------------------------------------------------------------------------------

    def _words(self, node: int) -> bytes:
        return b"%d.%d" % (node, self.broadcasts[node])

    def _take(self, trouble: str) -> bool:
        if not self.left[trouble]:
            return False
        self.left[trouble] -= 1
        return True

    def _is_mortal(self, node: int) -> bool:
        chosen = self.case.mortal
        return self.drivers[node].is_up and (chosen is None or node in chosen)

    def _has_link(self, node: int, target: int) -> bool:
        if self.family.kind == "contact":
            return (min(node, target), max(node, target)) in self.contacts
        if self.family.kind == "cell" and not self.is_wire(node, target):
            return self.drivers[target].is_up and self.cell_of(max(node, target)) in (node, target)
        return self.drivers[target].is_up

    def _launch(self, source: int, target: int, frame: Any, sent_us: int) -> None:
        self.sent[source, target] += 1
        self.flights[source, target, self.sent[source, target]] = (frame, sent_us)

    def _inform(self, node: int, peer: int, up: bool) -> None:
        self.notices.append((node, peer, up, self.now_us))

    def _notify(self, node: int, peer: int, up: bool) -> None:
        driver = self.drivers[node]
        if driver.is_up and isinstance(driver, BroadcasterDriver):
            if up and self.dropped:
                self.dropped = {item for item in self.dropped if item[:2] != (node, peer)}
            driver.on_link(self.local_us(node), peer, up)
            if up:
                self._grant(node, peer)
            self._after(node)

    def _after(self, node: int) -> None:
        """Finish a step of the node. If the node crashed in it, clean up after the crash."""
        driver = self.drivers[node]
        self.stepped.add(node)
        if driver.is_up:
            self.held |= self.fresh
            self.fresh.clear()
            # A node that crashed before the application was done acknowledges nothing.
            if self.case.inbox and self.unread:
                driver.acknowledge([message.id for message in self.unread])
            self.unread.clear()
            self.sights.update(self.family.look(self, node))
            self.problem = self.problem or self.family.broken_rule(self, node)
            return
        self.fresh.clear()
        self.unread.clear()
        self._drop_unsaved(node)
        self.sights.add("cut off" if driver.cut_off else "crashed")
        self.timers = {key: due for key, due in self.timers.items() if key[0] != node}
        self.flights = {key: frame for key, frame in self.flights.items() if key[1] != node}
        self.notices = [item for item in self.notices if item[0] != node]
        self.suspected = {pair for pair in self.suspected if node not in pair}
        others = [i for i, other in enumerate(self.drivers) if other.is_up]
        if self.family.kind == "contact":
            others = [peer for peer in others if self._has_link(node, peer)]
            for peer in others:
                self._part(min(node, peer), max(node, peer))
        if self.family.kind not in ("feed", "cell"):
            for peer in others:
                self._inform(peer, node, False)

    def _part(self, a: int, b: int) -> None:
        """End a contact. All frames in transit on it are lost."""
        self.contacts.discard((a, b))
        self.flights = {f: item for f, item in self.flights.items() if {*f[:2]} != {a, b}}

    def _disconnect(self, node: int, peer: int) -> None:
        """End a contact and notify both of its ends."""
        pair = (min(node, peer), max(node, peer))
        if pair in self.contacts:
            self._part(*pair)
            self._inform(node, peer, False)
            self._inform(peer, node, False)

    def _look_around(self, node: int) -> None:
        """Let the node's failure detector report all links down, then those to live peers up."""
        peers = [peer for peer in range(self.case.nodes) if peer != node]
        for peer in peers:
            self._notify(node, peer, False)
        for peer in peers:
            if self.drivers[peer].is_up:
                self._notify(node, peer, True)
                self._inform(peer, node, True)


def make_net(
    family: Family, case: Case, make_core: Callable[[Case, int], Core[Any]] | None = None
) -> Net:
    """Return a net in the initial state of the case. make_core: replaces the family's own."""
    assert case.thresholds == thresholds_in_force(), "play it inside of `thresholds.in_force`"
    net = Net(family, case, make_core or family.make_core)
    net.broadcasts = list(case.broadcasts)
    net.left.update({trouble: getattr(case, trouble) for trouble in TROUBLES})
    net.offsets_us = list(case.ahead_us or (0,) * case.nodes)
    net.shift_us = case.shift_us
    link = Link(reliable=not (case.losses or case.doubles))
    given = Needs({family.kind: link, "wire": Link(True, True)}, case.skew_us)
    for node in range(case.nodes):
        net.drivers.append(_make_driver(net, node))
        if not case.is_unfair:
            refuse_unmet(net.drivers[node].core.needs, given)
    for node in case.absent:
        net.drivers[node].crash()
        net._after(node)
    while net.notices:
        net.do(("notify", *net.notices[0][:2]))
    if case.is_linked and family.kind == "cell":
        settle(net)
    elif case.is_linked and case.edges is not None:
        for pair in case.edges:
            net.do(("up", *pair))
    net.sights.clear()
    return net


def _make_driver(net: Net, node: int) -> Driver[Any]:
    make = partial(net.make_core, net.case, node)
    core = make()
    drive: type[Driver[Any]] = Driver
    if hasattr(core, "on_room"):
        drive = PacedDriver
    elif hasattr(core, "on_broadcast"):
        drive = LeaverDriver if hasattr(core, "on_leave") else BroadcasterDriver
    is_late = net.case.is_disk_late and drive is PacedDriver
    return drive(make, net, store=LateStore() if is_late else Store(), inbox=net.case.inbox)
