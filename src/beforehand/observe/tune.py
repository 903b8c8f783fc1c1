"""Which dial keeps a budget of violations, found on a sample whose true order is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.reorder import FOREVER, Stamps, empty_queue, reorder
from beforehand.kernels.violations import count_violations
from beforehand.protocols.observer.observer import Dial
from beforehand.protocols.observer.timestamp import Guarantees, StampCodec
from beforehand.sim.drift import rule_of

Ints = NDArray[np.int64]

WAITS = tuple(range(0, 101, 5))


class Sample(NamedTuple):
    """Messages of one observer, in order of arrival."""

    arrival: Ints
    """The observer's clock, in ticks."""
    stamps: Stamps
    """The process is a number from 0 on."""
    seq: Ints
    past: Ints
    """The vector clock of each sending: how many messages of each process it had seen."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One dial on one part of a sample."""

    wait_percent: int
    elements: int
    uses_c: bool
    size_bytes: int
    """Of a timestamp with no more than this dial uses."""
    violations_percent: float
    """The mean of the shares of messages delivered before a cause, and after an effect."""
    suspects_percent: float
    """What the observer itself could count."""
    waited_mean: float
    """At the observer, in ticks."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    waits: tuple[Point, ...]
    """The whole timestamp, from no wait to the full one."""
    stamps: tuple[Point, ...]
    """The wait that was chosen, from the physical clock alone to the whole timestamp."""
    chosen: Point | None
    """None if even the full wait breaks the budget, on one half of the sample or on the other."""
    confirmed: Point | None
    """The chosen dial on the other half of the sample, where it keeps the budget too."""


def tune(
    sample: Sample, guarantees: Guarantees, *, budget_percent: float, checks_queue: bool = True
) -> Tuning:
    """The smallest wait that keeps the budget, and then the smallest timestamp that does: in each
    half of the sample, as what does in one of them only did so by chance.

    In this order, as a wait is paid for by every message, a timestamp only where its bytes matter.
    """
    half = len(sample.arrival) // 2
    first, second = slice(0, half), slice(half, None)
    sent = min(sample.stamps.kn.shape[1], guarantees.elements_full)

    def measure_all(dials: Iterable[Dial]) -> tuple[Point, ...]:
        return tuple(measure(sample, first, guarantees, dial) for dial in dials)

    def choose(points: Iterable[Point]) -> tuple[Point, Point] | None:
        """The first that keeps the budget in both halves, as it is in each."""
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
