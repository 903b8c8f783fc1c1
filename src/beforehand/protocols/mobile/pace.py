"""Retransmission and acknowledgement intervals of hosts and stations."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from beforehand.protocols.mobile.was.frames import Ranges


class Pace(msgspec.Struct, frozen=True):
    """The parameters of MOB section 5. All hosts and stations must use the same."""

    retry_us_max: int = 1_000_000
    """Retransmission interval of unacknowledged messages if few are pending."""
    retry_us_min: int = 200_000
    """Retransmission interval if `retry_full_at` messages are pending."""
    retry_full_at: int | None = None
    """Number of pending messages from which on the interval is the shortest; None: `inflight_max`.
    MOB-TR gives both ends of the interval and not the slope between them."""
    rounds: int = 1
    """Resolution of the retransmission timer. A station has one timer for all its messages, which
    fires this often per interval. So it repeats a new message after 1 to 1 + 1/`rounds`
    intervals."""
    inflight_max: int = 150
    """Size of the send window, counted from the oldest pending message."""
    ack_us: int = 500_000
    """Delay of an acknowledgement."""
    ack_ranges: bool = True
    """Whether an acknowledgement names messages behind a gap, as in MOB. Without it, it is
    cumulative, as in MOB-TR."""
    silence_us: int | None = None
    """A station unregisters a host that owes acknowledgements and was silent for this long; None:
    never."""
    repeats_max: float | None = None
    """Maximum share of retransmissions among a station's transmissions. Above it, the station
    unregisters the host that owes the most acknowledgements; None: never."""
    repeats_window: int = 100
    """How many of the last transmissions `repeats_max` refers to."""
    quiet_us: int = 1_500_000
    """For `repeats_max`, a station unregisters only a host that was silent for this long: three
    acknowledgement intervals in a row."""

    @property
    def patience_us(self) -> int | None:
        """Return the shortest silence after which a host may be unregistered; None: never."""
        limits_us = [] if self.silence_us is None else [self.silence_us]
        if self.repeats_max is not None:
            limits_us.append(self.quiet_us)
        return min(limits_us, default=None)

    def round_us(self, pending: int) -> int:
        """Return the time until a station next checks which messages to retransmit."""
        return self.retry_us(pending) // self.rounds

    def retry_us(self, pending: int) -> int:
        """Return the retransmission interval: the more messages are pending, the shorter."""
        span_us = self.retry_us_max - self.retry_us_min
        full = self.retry_full_at or self.inflight_max
        return self.retry_us_max - span_us * min(pending, full) // full

    def ranges(self, early: Iterable[int]) -> Ranges:
        """Return what an acknowledgement says about messages behind a gap."""
        return ranges_of(sorted(early)) if self.ack_ranges else ()


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Return ascending numbers as ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)
