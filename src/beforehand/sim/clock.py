"""The clock of a node, with a constant offset and a constant drift."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

MILLION = 1_000_000


@dataclass(frozen=True)
class Clock:
    """Reads `t + offset + t * drift`. Integers throughout, so that a run replays anywhere."""

    offset_us: int = 0
    drift_ppm: int = 0

    def read(self, t_us: int) -> int:
        return t_us + self.offset_us + t_us * self.drift_ppm // MILLION

    def when(self, reading_us: int) -> int:
        """Return the first instant at which the clock shows `reading_us` or more."""
        t_us = (reading_us - self.offset_us) * MILLION // (MILLION + self.drift_ppm)
        while self.read(t_us) < reading_us:
            t_us += 1
        while self.read(t_us - 1) >= reading_us:
            t_us -= 1
        return t_us


TRUE_CLOCK = Clock()


class Clocks(msgspec.Struct, frozen=True):
    """The agreed properties of the clocks of a group."""

    skew_us: int = 0
    """Any two clocks differ by less than this."""
