"""One hostile net for every core: whoever plays chooses the moves.

The explorer tries every move (`explore`), the fuzzer draws them (`fuzz`). The net knows the
contract and no protocol: kinds of links, frames lost, doubled and overtaken, clocks that are set,
timers, crashes at any point of a drain, restarts from what was saved. One oracle judges every
delivery by the definition; what else a family of cores promises, it says itself (`Family`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from beforehand.check.case import TROUBLES, Case, Family
from beforehand.check.cells import Cells, Flight, settle
from beforehand.check.oracle import Oracle
from beforehand.core.base import EVERYBODY, Core, Message, MessageId, Timer
from beforehand.core.driver import Driver, LeaverDriver, SpeakerDriver
from beforehand.core.needs import Link, Needs, refuse_unmet
from beforehand.core.outbox import LossKind
from beforehand.core.tables import Store
from beforehand.errors import LocalError

Move = tuple[Any, ...]
"""A kind of trouble or of progress, and to whom it happens: see the methods `_do_...` of `Net`.
A move that is not possible in a state does nothing, so that any part of a run is a run."""
FOREVER_US = 1 << 62
AGE_US = 3_600_000_000
"""A timer that is due later than this is not waited for."""


@dataclass
class Net(Cells):
    """The nodes, what is on its way, and what the definition says about it. It is their port."""

    family: Family
    case: Case
    make_core: Callable[[Case, int], Core[Any]]
    now_us: int = 0
    drivers: list[Driver[Any]] = field(default_factory=list)
    oracle: Oracle = field(default_factory=Oracle)
    says: list[int] = field(default_factory=list)
    payloads: dict[MessageId, bytes] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    """How often each kind of trouble may still happen."""
    offsets_us: list[int] = field(default_factory=list)
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
    carried: Counter[tuple[MessageId, int]] = field(default_factory=Counter)
    """How often a message was sent to a node, where a family counts that."""

    # ---- what carries out the effects of a core -------------------------------------------------

    def send(self, node: Any, sends: Sequence[tuple[Any, Any]]) -> None:
        for peer, frame in sends:
            for target in range(self.case.nodes) if peer is EVERYBODY else (peer,):
                if target == node or (peer is EVERYBODY and target < self.case.stations):
                    continue
                self.family.sent(self, target, frame)
                if self._has_link(node, target):
                    self._launch(node, target, frame, self.now_us)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        for message in messages:
            if self.case.inbox and message.id in self.oracle.delivered[node]:
                self.sights.add("handed over again")
                continue
            seen = len(self.oracle.violations)
            self.oracle.see(node, "deliver", message.id)
            broken = [str(v) for v in self.oracle.violations[seen:] if self.family.judges(v)]
            self.problem = self.problem or "".join(broken) or self.family.flaw(self, node, message)
            self.fresh.discard((node, message.id))
            if (node, message.id) in self.held:
                self.held.discard((node, message.id))
                self.waited += 1
                self.sights.add("waited")
        self.unread += messages

    def wake(self, node: Any, timer: Timer, due_us: int, ticket: int) -> None:
        # A timer is a delay: it does not wait for a clock that is set back.
        wait_us = max(0, due_us - self.local_us(node))
        self.timers[node, timer] = (self.now_us + wait_us, ticket)

    def spoke(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        for delivered in deliveries:
            if delivered.id == message:
                break
            self.oracle.see(node, "learn", delivered.id)  # it is delivered after the sends
        self.oracle.see(node, "broadcast", message)
        self.payloads[message] = self._words(node)

    def received(self, node: Any, messages: Sequence[Message]) -> None:
        self.fresh.update((node, message.id) for message in messages)
        for message in messages if self.family.learns else ():
            self.oracle.see(node, "learn", message.id)

    def lost(self, node: Any, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        for kind, message in losses:
            self.sights.add(kind)
            self.given_up.add((node, message))
            self.held.discard((node, message))
            self.fresh.discard((node, message))

    # ---- what can happen ------------------------------------------------------------------------

    def do(self, move: Move) -> bool:
        """Whether the move was possible."""
        return bool(getattr(self, f"_do_{move[0]}")(*move[1:]))

    def local_us(self, node: int) -> int:
        return self.now_us + self.offsets_us[node]

    # ---- how it happens -------------------------------------------------------------------------

    def _do_speak(self, node: int, lifetime_us: int | None = None) -> bool:
        driver = self.drivers[node]
        if not self.says[node] or not driver.is_up:
            return False
        self.says[node] -= 1
        assert isinstance(driver, SpeakerDriver)
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
        self.drivers[target].on_message(self.local_us(target), source, frame)
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
        if self.flights or self.news:
            self._take("hastes")  # the fuzzer does not ask how many are left
        del self.timers[node, timer]
        self.now_us = max(self.now_us, due_us)
        self.drivers[node].on_timer(self.local_us(node), timer, ticket)
        self._after(node)
        return True

    def _do_pass(self, us: int) -> bool:
        """Time, as far as what is on its way allows."""
        us = min(us, self._latest_us() - self.now_us)
        self.now_us += us
        return us > 0

    def _do_set(self, node: int, offset_us: int) -> bool:
        if not self._take("settings"):
            return False
        if offset_us < self.offsets_us[node]:
            self.sights.add("set back")
        self.offsets_us[node] = offset_us
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

    def _do_fuse(self, node: int, effects: int) -> bool:
        """The next step of the node is its last one, and ends in the middle."""
        if not self._is_mortal(node) or not self._take("crashes"):
            return False
        self.drivers[node].fuse = effects
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

    def _latest_us(self) -> int:
        """Time stops there until something has arrived, or somebody has heard."""
        if self.case.delay_us_max is None:
            return FOREVER_US
        since_us = [sent_us for _, sent_us in self.flights.values()] + [n[3] for n in self.news]
        return min(since_us) + self.case.delay_us_max if since_us else FOREVER_US

    def _words(self, node: int) -> bytes:
        return b"%d.%d" % (node, self.says[node])

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
        if driver.is_up and isinstance(driver, SpeakerDriver):
            driver.on_link(self.local_us(node), peer, up)
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
            return
        self.fresh.clear()
        self.unread.clear()
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
    net = Net(family, case, make_core or family.make_core)
    net.says = list(case.says)
    net.left.update({trouble: getattr(case, trouble) for trouble in TROUBLES})
    net.offsets_us = list(case.ahead_us or (0,) * case.nodes)
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
    if hasattr(core, "on_broadcast"):
        drive = LeaverDriver if hasattr(core, "on_leave") else SpeakerDriver
    return drive(make, net, store=Store(), inbox=net.case.inbox)
