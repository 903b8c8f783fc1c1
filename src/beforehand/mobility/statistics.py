"""The figures by which the paper describes a mobility trace (OPP, Tables I and IV)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.mobility.trace import Ints, Trace


def describe(trace: Trace) -> dict[str, float]:
    """Return counts, and min, max, avg, stdev in seconds of node activity and of contacts.

    The activity of a node is the sum of its presence. Without contacts their figures are zero.
    """
    up_us, down_us = trace.presence[:, 1], trace.presence[:, 2]
    activity = np.zeros(trace.nodes_count)
    np.add.at(activity, trace.presence[:, 0], (down_us - up_us) / 1e6)
    durations = (trace.contacts[:, 3] - trace.contacts[:, 2]) / 1e6
    return {
        "nodes": trace.nodes_count,
        "at_once_max": at_once_max(up_us, down_us),
        "start_s": trace.start_us / 1e6,
        "end_s": trace.end_us / 1e6,
        **_spread("activity_s", activity),
        "contacts": len(trace.contacts),
        **_spread("contact_s", durations),
    }


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
