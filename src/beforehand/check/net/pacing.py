"""The part of a net for cores with flow control: wires with little room, applications that stop
reading, and a late disk.

With a late disk, a `flush` move applies the saves of a node. Everything that depends on them waits
for it too: deliveries, and reports to the oracle. A crash before the flush loses them. Frames do
not wait: the core itself must send no frame that reveals unsaved state, and
`check.rules.flow_rules` checks this.
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
"""The room in bytes of a wire that never fills up."""


class LateStore(Store):
    """A store whose saves take effect at `flush`. The net postpones what depends on them."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[tuple[str, Any, Any]] = []

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        self.pending += saves

    def after(self, action: Callable[[], None]) -> None:
        """Do nothing: the net itself notifies the core at a flush."""

    def flush(self) -> None:
        super().save(self.pending)
        self.pending.clear()

    def snapshot(self) -> tuple[Any, ...]:
        """Return the rows, and the saves that were not flushed."""
        return super().snapshot(), tuple(self.pending)

    def set_back(self, snapshot: tuple[Any, ...]) -> None:
        """Return to the state of a `snapshot`."""
        rows, pending = snapshot
        super().set_back(rows)
        self.pending = list(pending)

    def drop(self) -> None:
        """Discard the saves that were not flushed, as a crash does."""
        self.pending.clear()


class Pacing(ABC):
    """A mixin of `Net`. Its moves are impossible for families whose cores have no flow control."""

    case: Case
    family: Family
    drivers: list[Driver[Any]]
    flights: dict[Any, Any]
    notices: list[tuple[int, int, bool, int]]
    contacts: set[tuple[int, int]]
    sights: set[str]
    problem: str | None
    unsaved: dict[int, list[tuple[str, tuple[Any, ...]]]]
    """node -> the effects that wait for its disk: the port's method and its arguments."""
    closed: set[int]
    """The nodes whose application does not read."""

    def cut(self, node: NodeId, peer: NodeId, reason: CutReason) -> None:
        """End the contact between a node and its peer at the node's request, and notify both."""
        assert isinstance(node, int)
        assert isinstance(peer, int)
        self.sights.add(reason)
        if reason == "slow" and peer not in self.family.hostile(self.case):
            self.problem = self.problem or f"node {node} cut off {peer}, which did nothing wrong"
        self._disconnect(node, peer)

    def saved(self, node: NodeId, step: int) -> None:
        """Notify the core at once that its saves are on disk: this store is not late."""
        assert isinstance(node, int)
        driver = self.drivers[node]
        if driver.is_up and isinstance(driver, PacedDriver):
            driver.on_saved(self.local_us(node), step)

    def postpone(self, node: Any, name: str, *arguments: Any) -> bool:
        """If the node's disk is late, postpone the effect to the next flush and return True."""
        if not isinstance(self.drivers[node].store, LateStore):
            return False
        frozen = tuple(tuple(a) if isinstance(a, Sequence) else a for a in arguments)
        self.unsaved.setdefault(node, []).append((name, frozen))
        return True

    def is_flush_due(self, node: int) -> bool:
        store = self.drivers[node].store
        return isinstance(store, LateStore) and bool(store.pending or self.unsaved.get(node))

    def is_silent(self) -> bool:
        """Return whether nothing is pending: no frame, no link notification, and no disk or wire
        that a node waits for. Most timers handle silence."""
        if self.flights or self.notices:
            return False
        if self.case.room_bytes is not None and any(self.rooms()):
            return False
        return not self.case.is_disk_late or not any(map(self.is_flush_due, self._nodes_up()))

    def _nodes_up(self) -> Iterable[int]:
        return (node for node, driver in enumerate(self.drivers) if driver.is_up)

    def rooms(self) -> Iterable[tuple[int, int]]:
        """Yield (node, peer) where the wire to the peer is empty and the node does not know it."""
        for pair in sorted(self.contacts):
            for node, peer in (pair, pair[::-1]):
                driver = self.drivers[node]
                if not isinstance(driver, PacedDriver) or self.case.room_bytes is None:
                    continue
                is_known = driver.core.room_left(peer) >= self.case.room_bytes
                if not is_known and not any(f[:2] == (node, peer) for f in self.flights):
                    yield node, peer

    def _do_flush(self, node: int) -> bool:
        """Write everything that the node saved to its disk."""
        driver = self.drivers[node]
        if not driver.is_up or not self.is_flush_due(node):
            return False
        assert isinstance(driver, PacedDriver)
        assert isinstance(driver.store, LateStore)
        step = driver.core.saving_step()
        driver.store.flush()
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
        """Discard the unsaved state of a node that crashed."""
        store = self.drivers[node].store
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
