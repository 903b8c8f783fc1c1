"""How often hosts and stations repeat themselves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from beforehand.core.mobile.frames import Ranges


class Pace(msgspec.Struct, frozen=True):
    """The values of MOB section 5, agreed by all hosts and stations."""

    retry_us_max: int = 1_000_000
    """Between two transmissions of what nobody acknowledged, if little of it is pending,"""
    retry_us_min: int = 200_000
    """and if as much is pending as may be in flight."""
    inflight_max: int = 150
    """What is further ahead of the oldest pending message than this is not transmitted yet."""
    ack_us: int = 500_000
    silence_us: int | None = None
    """A host that owes acknowledgements and is not heard for so long is unregistered."""

    def retry_us(self, pending: int) -> int:
        """Adaptive: the more is pending, the shorter."""
        span_us = self.retry_us_max - self.retry_us_min
        return self.retry_us_max - span_us * min(pending, self.inflight_max) // self.inflight_max


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Ascending numbers, as ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)
