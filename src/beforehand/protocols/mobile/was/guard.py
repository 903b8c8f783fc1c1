"""Unregister hosts that are silent too long or too costly for their cell (MOB section 4.5).

Because of a silent host its station cannot discard messages and retransmits them. Retransmissions
collide with frames for the other hosts. A station cannot observe collisions. It can observe the
share of retransmissions among its transmissions.
"""

from __future__ import annotations

from collections import deque

from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.cell import Cell, Guest


class Guard:
    """The part of a station that unregisters hosts."""

    def __init__(self, cell: Cell, pace: Pace) -> None:
        self._cell = cell
        self._pace = pace
        self.unregistered_costly = 0
        """How many hosts were unregistered because of too many retransmissions."""
        self._recent: deque[bool] = deque(maxlen=pace.repeats_window)
        """For each of the last transmissions, whether it was a retransmission."""

    def note(self, is_repetition: bool) -> None:
        """Record a transmission to the cell."""
        if self._pace.repeats_max is not None:
            self._recent.append(is_repetition)

    def unregister(self, now_us: int) -> None:
        """Unregister silent and costly hosts. A host learns of it when its next frame arrives."""
        pace = self._pace
        if pace.patience_us is None:
            return
        for guest in list(self._cell.guests.values()):
            # Silence counts only while the host owes acknowledgements (correction 17). After the
            # clock was set back, it is measured from now.
            if not self._owed(guest) or guest.last_frame_us > now_us:
                guest.last_frame_us = now_us
            elif pace.silence_us is not None and self._is_silent(guest, now_us, pace.silence_us):
                self._cell.unregister(guest.host)
        if self._is_too_much():
            self._unregister_worst(now_us)

    def _is_too_much(self) -> bool:
        most, recent = self._pace.repeats_max, self._recent
        is_full = len(recent) == recent.maxlen
        return most is not None and is_full and sum(recent) > most * len(recent)

    def _unregister_worst(self, now_us: int) -> None:
        """Unregister, of the hosts silent for `quiet_us`, the one that owes most, and clear the
        window. Retransmissions for this host say nothing about the others."""
        quiet_us = self._pace.quiet_us
        guests = self._cell.guests.values()
        silent = [guest for guest in guests if self._is_silent(guest, now_us, quiet_us)]
        if silent:
            self._cell.unregister(max(silent, key=self._owed).host)
            self._recent.clear()
            self.unregistered_costly += 1

    def _is_silent(self, guest: Guest, now_us: int, at_least_us: int) -> bool:
        return guest.phase == "here" and now_us - guest.last_frame_us >= at_least_us

    def _owed(self, guest: Guest) -> int:
        return len(guest.catch_up) + self._cell.next - guest.next
