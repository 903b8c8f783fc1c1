"""VCube in a hostile network: packets in any order, nodes that fail, come back or are missing.

Whoever plays chooses the moves: `fuzz_vcube` at random, and `CubeSystem` gives small networks to
the explorer, which tries every move.

A node that crashes loses the packets on their way to it and the last of those that it sent: it
failed in the middle of a dissemination. It keeps its state and may come back. The others learn of
it one by one, at any time later. Whenever nothing is on its way and everybody knows who is alive,
every live node must have delivered every message that a live node broadcast or delivered.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from beforehand.core.base import MessageId
from beforehand.core.outbox import Outbox
from beforehand.core.packets import CubeFrame, CubeOutbox, Packet
from beforehand.core.vcube import VCube

FOREVER_US = 1 << 60

Move = tuple[Any, ...]
"""("speak", node), ("arrive", flight), ("crash", node, packets that still left), ("recover", node),
("tell", news)."""


@dataclass(frozen=True)
class Case:
    """What a network is made of."""

    nodes: int
    says: tuple[int, ...]
    """How many messages each node broadcasts."""
    aggregates: bool = True
    root: int | None = None
    absent: tuple[int, ...] = ()
    """Down at the start; they may come."""
    crashes: int = 0
    recoveries: int = 0
    mtu_bytes: int = 1500

    @property
    def is_calm(self) -> bool:
        return not self.absent and not self.crashes


@dataclass
class Net:
    """The cores, what is on its way, and what the definition says about it."""

    case: Case
    cores: list[VCube]
    says: list[int]
    is_up: list[bool]
    crashes: int
    recoveries: int
    flights: list[tuple[int, int, CubeFrame]] = field(default_factory=list)
    news: list[tuple[int, int, bool]] = field(default_factory=list)
    """(node, peer, is_up): what a failure detector has yet to say; in order for each pair."""
    pasts: dict[MessageId, frozenset[MessageId]] = field(default_factory=dict)
    delivered: list[list[MessageId]] = field(default_factory=list)
    sent: dict[tuple[MessageId, int], int] = field(default_factory=dict)
    problem: str | None = None
    sights: list[str] = field(default_factory=list)

    def moves(self) -> list[Move]:
        if self.problem:
            return []
        nodes = range(self.case.nodes)
        found: list[Move] = [("speak", i) for i in nodes if self.is_up[i] and self.says[i]]
        found += [("arrive", i) for i, f in enumerate(self.flights) if f not in self.flights[:i]]
        for i, (node, peer, _) in enumerate(self.news):
            if all(earlier[:2] != (node, peer) for earlier in self.news[:i]):
                found.append(("tell", i))
        if self.crashes and sum(self.is_up) > 1:
            for i in nodes:
                if self.is_up[i]:
                    leaving = sum(source == i for source, _, _ in self.flights)
                    found += [("crash", i, kept) for kept in range(leaving + 1)]
        if self.recoveries:
            found += [("recover", i) for i in nodes if not self.is_up[i]]
        return found

    def do(self, move: Move) -> None:
        kind, which = move[0], move[1]
        if kind == "speak":
            self.says[which] -= 1
            self._feed(which, lambda core, out: core.on_broadcast(0, b"", out))
        elif kind == "arrive":
            source, target, packet = self.flights.pop(which)
            self._feed(target, lambda core, out: core.on_message(0, source, packet, out))
        elif kind == "tell":
            node, peer, is_up = self.news.pop(which)
            self._tell(node, peer, is_up)
        elif kind == "crash":
            self._crash(which, move[2])
        else:
            self._recover(which)

    def quiet_problem(self) -> str | None:
        """What is wrong, now that nothing is on its way and everybody knows who is alive."""
        live = [i for i, is_up in enumerate(self.is_up) if is_up]
        due = {id for i in live for id in self.delivered[i]}
        for node in live:
            missing = due - set(self.delivered[node])
            if missing:
                return f"node {node} never delivered {sorted(missing)}"
            for id in self.pasts:
                fate = self.cores[node].explain(id)
                if fate.state == "waiting" and not fate.missing:
                    return f"node {node} holds {id} for no reason"
        if self.case.is_calm:
            return self._delivery_count_problem()
        return None

    def _delivery_count_problem(self) -> str | None:
        """Without failures: each message to each node once, in the single tree also to its root."""
        for origin, seq in self.pasts:
            for target in range(self.case.nodes):
                count = self.sent.get(((origin, seq), target), 0)
                expected = int(target != origin)
                if self.case.root is not None and origin != self.case.root:
                    expected = 1  # it comes back to its origin, and goes to the root first
                if count != expected:
                    return f"message {(origin, seq)} was sent {count} times to node {target}"
        return None

    # ---- how things happen ----------------------------------------------------------------------

    def _feed(self, node: int, give: Callable[[VCube, CubeOutbox], object]) -> None:
        core, out = self.cores[node], CubeOutbox()
        give(core, out)
        for target, packet in out.sends:
            assert isinstance(target, int)
            if self.is_up[target]:
                self.flights.append((node, target, packet))
            messages = packet.messages if isinstance(packet, Packet) else ()
            for message in messages:
                key = (message.id, target)
                self.sent[key] = self.sent.get(key, 0) + 1
            if len(messages) > 1:
                self._see("aggregated")
        self._judge(node, out)
        gauges = core.gauges(0)
        for gauge, sight in (("postponed", "held back"), ("pending", "waited")):
            if gauges[gauge]:
                self._see(sight)

    def _judge(self, node: int, out: CubeOutbox) -> None:
        """Deliveries by the definition: never twice, and never before a cause."""
        for message in out.deliveries:
            id, known = message.id, frozenset(self.delivered[node])
            if id not in self.pasts:
                self.pasts[id] = known
            if id in known:
                self.problem = f"node {node} delivered {id} twice"
            elif not self.pasts[id] <= known:
                late = sorted(self.pasts[id] - known)
                self.problem = f"node {node} delivered {id} before its causes {late}"
            self.delivered[node] = sorted((*known, id))

    def _crash(self, node: int, kept: int) -> None:
        self.crashes -= 1
        self.is_up[node] = False
        leaving = [flight for flight in self.flights if flight[0] == node]
        lost = leaving[kept:]
        self.flights = [f for f in self.flights if f[1] != node and f not in lost]
        self.news = [item for item in self.news if item[0] != node]
        self.news += [(i, node, False) for i, is_up in enumerate(self.is_up) if is_up]
        self._see("crashed")

    def _recover(self, node: int) -> None:
        """It sees all its links down, and up again where somebody is at the other end."""
        self.recoveries -= 1
        self.is_up[node] = True
        peers = [i for i in range(self.case.nodes) if i != node]
        for peer in peers:
            self._tell(node, peer, False)
        for peer in peers:
            if self.is_up[peer]:
                self._tell(node, peer, True)
                self.news.append((peer, node, True))
        self._see("recovered")

    def _tell(self, node: int, peer: int, is_up: bool) -> None:
        before = len(self.flights)
        self._feed(node, lambda core, out: core.on_link(0, peer, is_up, out))
        if len(self.flights) > before:
            self._see("took over")

    def _see(self, sight: str) -> None:
        if sight not in self.sights:
            self.sights = sorted((*self.sights, sight))


def make_net(case: Case, make_core: Callable[..., VCube] = VCube) -> Net:
    cores = [
        make_core(
            node,
            case.nodes,
            aggregates=case.aggregates,
            root=case.root,
            keep_us=0 if case.is_calm else FOREVER_US,
            mtu_bytes=case.mtu_bytes,
        )
        for node in range(case.nodes)
    ]
    is_up = [node not in case.absent for node in range(case.nodes)]
    net = Net(case, cores, list(case.says), is_up, case.crashes, case.recoveries)
    net.delivered = [[] for _ in cores]
    out: CubeOutbox = Outbox()
    for core in cores:
        for peer in case.absent:
            if peer != core.node:
                core.on_link(0, peer, False, out)
    return net


# ---- every move ---------------------------------------------------------------------------------


class CubeSystem:
    """A small network for `check.explore`. A state is a whole `Net`, pickled."""

    def __init__(self, case: Case, sometimes: tuple[str, ...]) -> None:
        self.sometimes = sometimes
        self._case = case
        self._read: tuple[bytes, Net] | None = None

    def initial(self) -> bytes:
        return _freeze(make_net(self._case))

    def moves(self, state: bytes) -> Iterable[Hashable]:
        return self._look(state).moves()

    def step(self, state: bytes, move: Any) -> bytes:
        net: Net = pickle.loads(state)
        net.do(move)
        for core in net.cores:  # counts of the past would keep equal states apart
            core.duplicates = core.refused = 0
        return _freeze(net)

    def problem(self, state: bytes, is_final: bool) -> str | None:
        net = self._look(state)
        if net.problem or net.flights or net.news:
            return net.problem
        return net.quiet_problem()

    def sights(self, state: bytes) -> Iterable[str]:
        return self._look(state).sights

    def _look(self, state: bytes) -> Net:
        """For reading only: the explorer asks several questions about one state in a row."""
        if self._read is None or self._read[0] is not state:
            self._read = (state, pickle.loads(state))
        return self._read[1]


def _freeze(net: Net) -> bytes:
    """Without the pickler's memory of objects, so that equal states give equal bytes."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.fast = True
    pickler.dump(net)
    return buffer.getvalue()
