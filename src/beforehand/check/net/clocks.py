"""The part of a net for time: the clocks of its nodes, which may be set singly or all at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beforehand.check.net.case import Case
    from beforehand.check.net.cells import Flight

FOREVER_US = 1 << 62


class Clocks(ABC):
    """A mixin of `Net`. The clock of a node shows `now_us + shift_us + offsets_us[node]`."""

    case: Case
    now_us: int
    shift_us: int
    offsets_us: list[int]
    highest_us: int
    sights: set[str]
    flights: dict[Flight, tuple[Any, int]]
    notices: list[tuple[int, int, bool, int]]

    def local_us(self, node: int) -> int:
        return self.now_us + self.shift_us + self.offsets_us[node]

    def latest_reading_us(self) -> int:
        """Return the highest reading that any clock has shown so far."""
        return max(self.highest_us, self.now_us + self.shift_us + max(self.offsets_us))

    def _do_pass(self, us: int) -> bool:
        """Advance time by `us`, or by less if the maximum delay of a pending frame or notification
        ends before that."""
        us = min(us, self._latest_us() - self.now_us)
        self.now_us += us
        return us > 0

    def _do_set(self, node: int, offset_us: int) -> bool:
        """Set the clock of one node, relative to the others."""
        if not self._take("settings"):
            return False
        if offset_us < self.offsets_us[node]:
            self.sights.add("set back")
            self.highest_us = self.latest_reading_us()
        self.offsets_us[node] = offset_us
        return True

    def _do_shift(self, shift_us: int) -> bool:
        """Set the clocks of all nodes at once. The differences between them stay the same."""
        if shift_us == self.shift_us or not self._take("shifts"):
            return False
        if shift_us < self.shift_us:
            self.sights.add("all set back")
            self.highest_us = self.latest_reading_us()
        else:
            self.sights.add("all set forward")
        self.shift_us = shift_us
        return True

    def _latest_us(self) -> int:
        """Return the latest instant to which time may advance: by then the oldest pending frame or
        link notification must have arrived."""
        if self.case.delay_us_max is None:
            return FOREVER_US
        since_us = [sent_us for _, sent_us in self.flights.values()] + [n[3] for n in self.notices]
        return min(since_us) + self.case.delay_us_max if since_us else FOREVER_US

    @abstractmethod
    def _take(self, trouble: str) -> bool: ...
