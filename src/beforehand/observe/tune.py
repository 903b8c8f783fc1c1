"""Find the dial that keeps a violation budget, on a sample whose true order is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.observer.reorder import FOREVER, Stamps, empty_queue, reorder
from beforehand.kernels.verify.violations import count_violations
from beforehand.protocols.observer.observer import Dial
from beforehand.protocols.observer.timestamp import Guarantees, StampCodec
from beforehand.sim.drift import rule_of

Ints = NDArray[np.int64]

WAITS = tuple(range(0, 101, 5))


class Sample(NamedTuple):
    """Messages of one observer, in order of arrival."""

    arrival: Ints
    """The observer's clock on arrival, in ticks."""
    stamps: Stamps
    """The stamps; a process is a number from 0 on."""
    seq: Ints
    past: Ints
    """The vector clock of each sending: the number of messages seen from each process."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one dial on one part of a sample."""

    wait_percent: int
    elements: int
    uses_c: bool
    size_bytes: int
    """The size of a timestamp with only the parts that this dial uses."""
    violations_percent: float
    """The mean of two shares: messages delivered before a cause, and messages after an effect."""
    suspects_percent: float
    """The share of suspects, which an observer can count without ground truth."""
    waited_mean: float
    """The mean wait at the observer, in ticks."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    waits: tuple[Point, ...]
    """Results with the whole timestamp, from no wait to the full wait."""
    stamps: tuple[Point, ...]
    """Results with the chosen wait, from the physical clock alone to the whole timestamp."""
    chosen: Point | None
    """The chosen dial; None if even the full wait exceeds the budget in a half of the sample."""
    confirmed: Point | None
    """The result of the chosen dial on the other half of the sample, within the budget too."""


def tune(
    sample: Sample, guarantees: Guarantees, *, budget_percent: float, checks_queue: bool = True
) -> Tuning:
    """Find the smallest wait within the budget, and then the smallest timestamp.

    Both must keep the budget in each half of the sample: in one half alone it may be by chance. The
    wait comes first because every message pays for it; a timestamp costs only bytes.
    """
    half = len(sample.arrival) // 2
    first, second = slice(0, half), slice(half, None)
    sent = min(sample.stamps.kn.shape[1], guarantees.elements_full)

    def measure_all(dials: Iterable[Dial]) -> tuple[Point, ...]:
        return tuple(measure(sample, first, guarantees, dial) for dial in dials)

    def choose(points: Iterable[Point]) -> tuple[Point, Point] | None:
        """Return the first point within the budget in both halves, with its result in each."""
        for point in points:
            if point.violations_percent <= budget_percent:
                dial = Dial(point.wait_percent, checks_queue, point.elements, point.uses_c)
                other = measure(sample, second, guarantees, dial)
                if other.violations_percent <= budget_percent:
                    return point, other
        return None

    waits = measure_all(Dial(wait, checks_queue, sent) for wait in WAITS)
    kept = choose(waits)
    if kept is None:
        return Tuning(waits=waits, stamps=(), chosen=None, confirmed=None)
    wait = kept[0].wait_percent
    stamps = measure_all(
        [
            Dial(wait, checks_queue, 0, uses_c=False),
            *(Dial(wait, checks_queue, elements) for elements in range(sent + 1)),
        ]
    )
    chosen, confirmed = choose(stamps) or kept
    return Tuning(waits=waits, stamps=stamps, chosen=chosen, confirmed=confirmed)


def measure(sample: Sample, part: slice, guarantees: Guarantees, dial: Dial) -> Point:
    rule = rule_of(dial, guarantees)
    label = np.arange(len(sample.arrival))[part]
    stamps = Stamps(*(column[part] for column in sample.stamps))
    arrival = sample.arrival[part]
    _, delivered, _ = reorder(empty_queue(rule), arrival, label, stamps, rule, FOREVER)
    counts = count_violations(delivered.label, sample.stamps.process, sample.seq, sample.past)
    waited = delivered.tick - sample.arrival[delivered.label]
    return Point(
        wait_percent=dial.wait_percent,
        elements=rule.elements,
        uses_c=dial.uses_c,
        size_bytes=_size_bytes(dial, guarantees),
        violations_percent=counts.messages_percent,
        suspects_percent=100.0 * float(delivered.is_overtaken.mean()) if len(label) else 0.0,
        waited_mean=float(waited.mean()) if len(label) else 0.0,
    )


def _size_bytes(dial: Dial, guarantees: Guarantees) -> int:
    if dial.uses_c:
        return StampCodec(guarantees, elements=dial.elements).size_bytes
    return (guarantees.horizon.bit_length() + 7) // 8
