"""One hostile net for every core: whoever plays chooses the moves.

The explorer tries every move (`explore`), the fuzzer draws them (`fuzz`). The net knows the
contract and no protocol: kinds of links, frames lost, doubled and overtaken, clocks that are set,
timers, crashes at any point of a drain, restarts from what was saved. One oracle judges every
delivery by the definition; what else a family of cores promises, it says itself (`Family`).
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
"""A kind of trouble or of progress, and to whom it happens: see the methods `_do_...` of `Net`.
A move that is not possible in a state does nothing, so that any part of a run is a run."""
AGE_US = 3_600_000_000
"""A timer that is due later than this is not waited for."""


@dataclass
class Net(Clocks, Cells, Pacing, Effects):
    """The nodes, what is on its way, and what the definition says about it. It is their port."""

    family: Family
    case: Case
    make_core: Callable[[Case, int], Core[Any]]
    now_us: int = 0
    drivers: list[Driver[Any]] = field(default_factory=list)
    oracle: Oracle = field(default_factory=Oracle)
    broadcasts: list[int] = field(default_factory=list)
    payloads: dict[MessageId, bytes] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    """How often each kind of trouble may still happen."""
    offsets_us: list[int] = field(default_factory=list)
    shift_us: int = 0
    """How far all clocks are ahead of true time."""
    highest_us: int = LONG_AGO
    """What no clock had shown more than when one was last set back."""
    flights: dict[Flight, tuple[Any, int]] = field(default_factory=dict)
    """The frame, and when it was sent."""
    news: list[tuple[int, int, bool, int]] = field(default_factory=list)
    """(node, peer, up, since when): what a node has yet to hear about a link; in order for each
    pair."""
    contacts: set[tuple[int, int]] = field(default_factory=set)
    suspected: set[tuple[int, int]] = field(default_factory=set)
    timers: dict[tuple[int, Timer], tuple[int, int]] = field(default_factory=dict)
    """-> when it is due, and the driver's ticket."""
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    problem: str | None = None
    sights: set[str] = field(default_factory=set)
    waited: int = 0
    held: set[tuple[int, MessageId]] = field(default_factory=set)
    """Received and perhaps saved, not delivered."""
    fresh: set[tuple[int, MessageId]] = field(default_factory=set)
    """The same, in this step."""
    unread: list[Message] = field(default_factory=list)
    """Handed to the application in this step."""
    stepped: set[int] = field(default_factory=set)
    """Who is no longer as it was, for whoever copies nets."""
    given_up: set[tuple[int, MessageId]] = field(default_factory=set)
    """What a node has reported as a loss."""
    dropped: set[tuple[int, int, MessageId]] = field(default_factory=set)
    """(node, peer, message): the node has dropped the message undelivered since it heard that its
    present link to the peer is up."""
    unsaved: dict[int, list[tuple[str, tuple[Any, ...]]]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    carried: Counter[tuple[MessageId, int]] = field(default_factory=Counter)
    """How often a message was sent to a node, where a family counts that."""

    # ---- what can happen ------------------------------------------------------------------------

    def do(self, move: Move) -> bool:
        """Whether the move was possible."""
        return bool(getattr(self, f"_do_{move[0]}")(*move[1:]))

    # ---- how it happens -------------------------------------------------------------------------

    def _do_broadcast(self, node: int, lifetime_us: int | None = None) -> bool:
        driver = self.drivers[node]
        if not self.broadcasts[node] or not driver.is_up:
            return False
        self.broadcasts[node] -= 1
        assert isinstance(driver, BroadcasterDriver)
        try:
            driver.on_broadcast(self.local_us(node), self._words(node), lifetime_us)
        except LocalError as error:
            self.sights.add(f"refused to speak: {error.problem}")
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
                self.problem = f"node {target} refused a frame of {source}: {error}"
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
            self._take("hastes")  # the fuzzer does not ask how many are left
        del self.timers[node, timer]
        self.now_us = max(self.now_us, due_us)
        self.drivers[node].on_timer(self.local_us(node), timer, ticket)
        self._after(node)
        return True

    def _do_up(self, a: int, b: int) -> bool:
        pair = (a, b)
        is_told = all({node, peer} != {a, b} for node, peer, _, _ in self.news)
        both = self.drivers[a].is_up and self.drivers[b].is_up
        if pair in self.contacts or not both or not is_told:
            return False
        self.contacts.add(pair)
        self._tell(a, b, True)
        if pair in self.contacts:  # else the first of them crashed over it
            self._tell(b, a, True)
        return True

    def _do_down(self, a: int, b: int) -> bool:
        if (a, b) not in self.contacts or not self._take("flaps"):
            return False
        self.sights.add("flapped")
        self._part(a, b)
        self._tell(a, b, False)
        if self.drivers[b].is_up:
            self._inform(b, a, False)
        return True

    def _do_tell(self, node: int, peer: int) -> bool:
        for at, (told, about, up, _) in enumerate(self.news):
            if (told, about) == (node, peer):
                del self.news[at]
                self._tell(node, peer, up)
                return True
        return False

    def _do_suspect(self, node: int, peer: int) -> bool:
        """The failure detector is wrong about somebody, until it trusts it again."""
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
        """The next step of the node is its last one, and ends in the middle."""
        if not self._is_mortal(node) or not self._take("crashes"):
            return False
        self.drivers[node].crash_after = effects
        self.stepped.add(node)
        return True

    def _do_crash(self, node: int, left: int = 0) -> bool:
        """`left`: how many of its frames have left it, where they do not depend on a contact."""
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
            self._tell(node, cell, True)
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
        self.news.append((node, peer, up, self.now_us))

    def _tell(self, node: int, peer: int, up: bool) -> None:
        driver = self.drivers[node]
        if driver.is_up and isinstance(driver, BroadcasterDriver):
            if up and self.dropped:
                self.dropped = {item for item in self.dropped if item[:2] != (node, peer)}
            driver.on_link(self.local_us(node), peer, up)
            if up:
                self._grant(node, peer)
            self._after(node)

    def _after(self, node: int) -> None:
        """A step of the node is over, and with it perhaps the node."""
        driver = self.drivers[node]
        self.stepped.add(node)
        if driver.is_up:
            self.held |= self.fresh
            self.fresh.clear()
            if self.case.inbox and self.unread:  # else it crashed before the application was done
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
        self.news = [item for item in self.news if item[0] != node]
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
        """What was under way when a contact ends is lost."""
        self.contacts.discard((a, b))
        self.flights = {f: item for f, item in self.flights.items() if {*f[:2]} != {a, b}}

    def _disconnect(self, node: int, peer: int) -> None:
        """The contact ends, and both of its ends hear of it."""
        pair = (min(node, peer), max(node, peer))
        if pair in self.contacts:
            self._part(*pair)
            self._inform(node, peer, False)
            self._inform(peer, node, False)

    def _look_around(self, node: int) -> None:
        """Its detector reports all links down, and up again where somebody is at the other end."""
        peers = [peer for peer in range(self.case.nodes) if peer != node]
        for peer in peers:
            self._tell(node, peer, False)
        for peer in peers:
            if self.drivers[peer].is_up:
                self._tell(node, peer, True)
                self._inform(peer, node, True)


def make_net(
    family: Family, case: Case, make_core: Callable[[Case, int], Core[Any]] | None = None
) -> Net:
    """make_core: instead of the family's own."""
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
    while net.news:
        net.do(("tell", *net.news[0][:2]))
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
