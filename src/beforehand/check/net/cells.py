"""The part of a net for cells and wires: hosts that move, and wires that preserve order (FIFO).

The first nodes of such a net are stations. A contact links a station and a host in its cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from beforehand.protocols.contract.driver import Driver, LeaverDriver

if TYPE_CHECKING:
    from beforehand.check.net.case import Case, Family
    from beforehand.check.net.net import Net

Flight = tuple[int, int, int]
"""A frame in transit: source, target, and its number among the frames from source to target."""


class Cells(ABC):
    """A mixin of `Net`. Without stations there are no wires and no cells."""

    case: Case
    family: Family
    flights: dict[Flight, tuple[Any, int]]
    contacts: set[tuple[int, int]]
    sights: set[str]
    drivers: list[Driver[Any]]
    broadcasts: list[int]

    def is_wire(self, source: int, target: int) -> bool:
        return source < self.case.stations and target < self.case.stations

    def queued(self, flight: Flight) -> int:
        """Return how many frames must arrive before this one: 0, unless it is on a FIFO wire."""
        source, target, ticket = flight
        if not self.is_wire(source, target):
            return 0
        return sum(f[:2] == (source, target) and f[2] < ticket for f in self.flights)

    def cell_of(self, host: int) -> int | None:
        """Return the station in whose cell the host is, or None."""
        if self.family.kind != "cell":
            return None
        return next((station for station, node in self.contacts if node == host), None)

    def _do_enter(self, host: int, station: int) -> bool:
        """Move a host into the cell of a station. A number that is no station means: out of all
        cells. The host may be up or down."""
        before = self.cell_of(host)
        if station == before or (before is not None and not self._take("flaps")):
            return False
        if before is not None:
            self._part(before, host)
            self.sights.add("moved")
            self._notify(host, before, False)
        if station < self.case.stations:
            self.contacts.add((station, host))
            self._notify(host, station, True)
        return True

    def _do_leave(self, host: int) -> bool:
        """Let a host leave the system permanently."""
        driver = self.drivers[host]
        if not isinstance(driver, LeaverDriver) or not driver.is_up or not self._take("leaves"):
            return False
        driver.on_leave(self.local_us(host))
        self.broadcasts[host] = 0
        self._after(host)
        return True

    @abstractmethod
    def _take(self, trouble: str) -> bool: ...

    @abstractmethod
    def _part(self, a: int, b: int) -> None: ...

    @abstractmethod
    def _notify(self, node: int, peer: int, up: bool) -> None: ...

    @abstractmethod
    def _after(self, node: int) -> None: ...

    @abstractmethod
    def local_us(self, node: int) -> int: ...


def settle(net: Net) -> None:
    """Put every host into a cell, then let frames arrive until none is in transit."""
    stations = net.case.stations
    for host in range(stations, net.case.nodes):
        net.do(("enter", host, host % stations))
    while net.flights:
        net.do(("arrive", *next(iter(net.flights))))
