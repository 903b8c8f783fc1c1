"""The figures by which the paper describes a mobility trace (OPP, Tables I and IV)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.mobility.trace import Ints, Trace

HOUR_US = 3_600_000_000
POINTS_PER_DECADE = 40
"""Points of a distribution per factor of ten, on both axes: more cannot be distinguished in
print."""


def describe(trace: Trace) -> dict[str, float]:
    """Return counts, and min, max, avg, stdev in seconds of node activity and of contacts.

    The activity of a node is the sum of its presence. An encounter is a pair that meets at least
    once. `between` is the time from the end of a contact to the next one of the same pair. Without
    contacts their figures are zero.
    """
    up_us, down_us = trace.presence[:, 1], trace.presence[:, 2]
    activity = np.zeros(trace.nodes_count)
    np.add.at(activity, trace.presence[:, 0], (down_us - up_us) / 1e6)
    durations_us, between_us = contact_times(trace.contacts)
    hours = max(trace.end_us - trace.start_us, 1) / HOUR_US
    return {
        "nodes": trace.nodes_count,
        "at_once_max": at_once_max(up_us, down_us),
        "start_s": trace.start_us / 1e6,
        "end_s": trace.end_us / 1e6,
        **_spread("activity_s", activity),
        "contacts": len(trace.contacts),
        "encounters": len(np.unique(trace.contacts[:, :2], axis=0)),
        "contacts_per_hour": len(trace.contacts) / hours,
        **_spread("contact_s", durations_us / 1e6),
        **_spread("between_s", between_us / 1e6),
    }


def contact_times(contacts: Ints) -> tuple[Ints, Ints]:
    """Return the durations of the contacts, and the inter-contact times of pairs that meet again.

    contacts: rows of a, b, up_us, down_us; the contacts of one pair do not overlap.
    """
    a, b, up_us, down_us = contacts[np.lexsort(contacts.T[2::-1])].T
    is_again = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    return down_us - up_us, (up_us[1:] - down_us[:-1])[is_again]


def survival(values: Ints) -> list[tuple[int, float]]:
    """Return the complementary distribution: (value, share of the values that are larger).

    The points are exact. Where points are closer than a log-log plot can show, some are left out.
    The largest value, whose share is zero, is not in it.
    """
    distinct, counts = np.unique(values, return_counts=True)
    larger = len(values) - np.cumsum(counts)
    kept: list[tuple[int, float]] = []
    last = (-np.inf, np.inf)
    for value, count in zip(distinct.tolist(), larger.tolist(), strict=True):
        if not count:
            break
        here = (float(np.log10(max(value, 1))), float(np.log10(count)))
        step = max(here[0] - last[0], last[1] - here[1])
        if step * POINTS_PER_DECADE >= 1:
            kept.append((value, count / len(values)))
            last = here
    return kept


def by_hour(trace: Trace) -> list[tuple[int, int, int]]:
    """Return for each hour from the start: its begin, contacts that begin in it, first encounters.

    A first encounter is the first contact of a pair. Hours without contacts are in it.
    """
    up_us = trace.contacts[:, 2]
    hours = (trace.end_us - trace.start_us - 1) // HOUR_US + 1
    _, first = np.unique(
        trace.contacts[np.argsort(up_us, kind="stable")][:, :2], axis=0, return_index=True
    )
    of_first = np.sort(up_us)[first]
    counts = [
        np.bincount((times - trace.start_us) // HOUR_US, minlength=max(hours, 0))
        for times in (up_us, of_first)
    ]
    begins = trace.start_us + HOUR_US * np.arange(len(counts[0]))
    return list(zip(begins.tolist(), counts[0].tolist(), counts[1].tolist(), strict=True))


def at_once_max(up_us: Ints, down_us: Ints) -> int:
    """Return the largest number of intervals that cover one instant; intervals are half-open."""
    if not len(up_us):
        return 0
    times = np.concatenate([down_us, up_us])
    steps = np.repeat(np.array([-1, 1]), len(up_us))
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max())


def _spread(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    if not len(values):
        return {f"{name}_{kind}": 0.0 for kind in ("min", "max", "avg", "stdev")}
    return {
        f"{name}_min": float(values.min()),
        f"{name}_max": float(values.max()),
        f"{name}_avg": float(values.mean()),
        f"{name}_stdev": float(values.std()),
    }
