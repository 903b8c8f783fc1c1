"""How often hosts and stations repeat themselves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from beforehand.protocols.mobile.was.frames import Ranges


class Pace(msgspec.Struct, frozen=True):
    """The values of MOB section 5, agreed by all hosts and stations."""

    retry_us_max: int = 1_000_000
    """Between two transmissions of what nobody acknowledged, if little of it is pending,"""
    retry_us_min: int = 200_000
    """and if as much is pending as may be in flight."""
    rounds: int = 1
    """How finely that is kept: one timer comes so often in an interval, for all messages of a
    station. What is new is repeated after one interval to one and a `rounds`-th."""
    inflight_max: int = 150
    """What is further ahead of the oldest pending message than this is not transmitted yet."""
    ack_us: int = 500_000
    silence_us: int | None = None
    """A host that owes acknowledgements and is not heard for so long is unregistered."""
    repeats_max: float | None = None
    """If more than this share of what a station transmits are repetitions, it unregisters the host
    that holds up most,"""
    repeats_window: int = 100
    """as far as the last so many transmissions show,"""
    quiet_us: int = 1_500_000
    """and only if it was not heard for so long: three acknowledgements in a row."""

    @property
    def patience_us(self) -> int | None:
        """Who is not heard for so long may be unregistered; None: nobody ever is."""
        limits_us = [] if self.silence_us is None else [self.silence_us]
        if self.repeats_max is not None:
            limits_us.append(self.quiet_us)
        return min(limits_us, default=None)

    def round_us(self, pending: int) -> int:
        """Until a station looks again at what is to be repeated."""
        return self.retry_us(pending) // self.rounds

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
