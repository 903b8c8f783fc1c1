"""What a net adds for cores with flow control: wires with little room, programs that stop reading,
and a disk that is late.

With a late disk the saves of a node, and all that depends on them (deliveries, and what the oracle
is told), wait until a move `flush`. A crash before that loses them. Frames do not wait: that they
tell of nothing unsaved is the core's own rule, and `check.rules.flow_rules` checks it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from beforehand.protocols.contract.driver import Driver, PacedDriver
from beforehand.protocols.contract.outbox import CutReason
from beforehand.protocols.contract.tables import Store

if TYPE_CHECKING:
    from beforehand.check.net.case import Case, Family
    from beforehand.protocols.contract.base import NodeId

WIDE = 1 << 40
"""Bytes of a wire that is never full."""


class LateStore(Store):
    """Saves are applied by `flush`. What waits for them is the net's own business."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[tuple[str, Any, Any]] = []

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        self.pending += saves

    def after(self, action: Callable[[], None]) -> None:
        """The net tells the core itself, at a flush."""

    def flush(self) -> None:
        super().save(self.pending)
        self.pending.clear()

    def drop(self) -> None:
        """A crash: what was not flushed never happened."""
        self.pending.clear()


class Pacing(ABC):
    """A part of `Net`. For families whose cores have no flow control none of it is possible."""

    case: Case
    family: Family
    drivers: list[Driver[Any]]
    flights: dict[Any, Any]
    news: list[tuple[int, int, bool, int]]
    contacts: set[tuple[int, int]]
    sights: set[str]
    problem: str | None
    unsaved: dict[int, list[tuple[str, tuple[Any, ...]]]]
    """By node, what waits for its disk: the method of the port, and its arguments."""
    closed: set[int]
    """The nodes whose program does not read."""

    def cut(self, node: NodeId, peer: NodeId, reason: CutReason) -> None:
        """A node ends a link: the contact is over, and the peer hears of it."""
        assert isinstance(node, int)
        assert isinstance(peer, int)
        self.sights.add(reason)
        if reason == "slow" and peer not in self.family.hostile(self.case):
            self.problem = self.problem or f"node {node} cut off {peer}, which did nothing wrong"
        self._disconnect(node, peer)

    def saved(self, node: NodeId, step: int) -> None:
        """The store of a node is not late."""
        assert isinstance(node, int)
        driver = self.drivers[node]
        if driver.is_up and isinstance(driver, PacedDriver):
            driver.on_saved(self.local_us(node), step)

    def postpone(self, node: Any, name: str, *arguments: Any) -> bool:
        """Whether this waits for the disk of the node."""
        if not isinstance(self.drivers[node]._store, LateStore):
            return False
        frozen = tuple(tuple(a) if isinstance(a, Sequence) else a for a in arguments)
        self.unsaved.setdefault(node, []).append((name, frozen))
        return True

    def is_flush_due(self, node: int) -> bool:
        store = self.drivers[node]._store
        return isinstance(store, LateStore) and bool(store.pending or self.unsaved.get(node))

    def is_silent(self) -> bool:
        """Return whether nothing is under way: no frame and no news of a link, and neither a disk
        nor a wire that a node waits for. Most timers are for silence."""
        if self.flights or self.news:
            return False
        if self.case.room_bytes is not None and any(self.rooms()):
            return False
        return not self.case.is_disk_late or not any(map(self.is_flush_due, self._nodes_up()))

    def _nodes_up(self) -> Iterable[int]:
        return (node for node, driver in enumerate(self.drivers) if driver.is_up)

    def rooms(self) -> Iterable[tuple[int, int]]:
        """(node, peer): the wire between them is empty, and the node does not know it."""
        for pair in sorted(self.contacts):
            for node, peer in (pair, pair[::-1]):
                driver = self.drivers[node]
                if not isinstance(driver, PacedDriver) or self.case.room_bytes is None:
                    continue
                is_told = driver.core.room_left(peer) >= self.case.room_bytes
                if not is_told and not any(f[:2] == (node, peer) for f in self.flights):
                    yield node, peer

    def _do_flush(self, node: int) -> bool:
        """The disk has everything that the node saved."""
        driver = self.drivers[node]
        if not driver.is_up or not self.is_flush_due(node):
            return False
        assert isinstance(driver, PacedDriver)
        assert isinstance(driver._store, LateStore)
        step = driver.core.saving_step()
        driver._store.flush()
        for name, arguments in self.unsaved.pop(node, ()):
            getattr(self, f"_{name}_now")(node, *arguments)
        driver.on_saved(self.local_us(node), step)
        self._after(node)
        return True

    def _do_room(self, node: int, peer: int) -> bool:
        if (node, peer) not in self.rooms():
            return False
        self._grant(node, peer)
        self._after(node)
        return True

    def _do_open(self, node: int, is_open: bool) -> bool:
        driver = self.drivers[node]
        if not driver.is_up or not isinstance(driver, PacedDriver):
            return False
        if is_open == (node not in self.closed) or (not is_open and not self._take("pauses")):
            return False
        (self.closed.discard if is_open else self.closed.add)(node)
        self.sights.add("closed")
        driver.on_open(self.local_us(node), is_open)
        self._after(node)
        return True

    def _grant(self, node: int, peer: int) -> None:
        driver = self.drivers[node]
        if driver.is_up and isinstance(driver, PacedDriver):
            room = WIDE if self.case.room_bytes is None else self.case.room_bytes
            driver.on_room(self.local_us(node), peer, room)

    def _drop_unsaved(self, node: int) -> None:
        """The node crashed."""
        store = self.drivers[node]._store
        self.closed.discard(node)
        if isinstance(store, LateStore):
            if store.pending:
                self.sights.add("lost before the disk had it")
            store.drop()
            self.unsaved.pop(node, None)

    @abstractmethod
    def _take(self, trouble: str) -> bool: ...

    @abstractmethod
    def _disconnect(self, node: int, peer: int) -> None: ...

    @abstractmethod
    def _after(self, node: int) -> None: ...

    @abstractmethod
    def local_us(self, node: int) -> int: ...
