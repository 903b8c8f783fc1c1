"""Compare the mobility generators with the published tables: one JSON line each.

Besides the statistics of the trace it prints the receptions of an ideal flood: no loss, no delay,
no limit but the contacts. That is the upper bound for every protocol of the papers.

    PYTHONPATH=src python benchmarks/fit_mobility.py [buses|walkers|crowd] [seed ...]
"""

from __future__ import annotations

import heapq
import json
import sys

import numba
import numpy as np

from beforehand.mobility import statistics
from beforehand.mobility.generators import buses, crowd, walkers
from beforehand.mobility.trace import Ints, Trace

MINUTE_US = 60_000_000

# OPP, Tables I to VI.
VANNES: dict[str, float] = {
    "nodes": 60, "at_once_max": 56, "start_s": 19800, "end_s": 71100, "contacts": 8892,
    "activity_s_min": 1560, "activity_s_max": 50880, "activity_s_avg": 39480,
    "activity_s_stdev": 12360, "contact_s_min": 1, "contact_s_max": 249, "contact_s_avg": 84,
    "contact_s_stdev": 65, "messages": 2004, "received": 106580, "received_120min": 98610,
    "received_60min": 94329, "received_40min": 85301, "received_20min": 50365,
    "received_10min": 21571, "tdelay_s_avg": 2630,
}  # fmt: skip
OSTERMALM = {
    "nodes": 2092, "at_once_max": 57, "start_s": 0, "end_s": 18000, "contacts": 14807,
    "activity_s_min": 7.8, "activity_s_max": 1936, "activity_s_avg": 325, "activity_s_stdev": 249,
    "contact_s_min": 0.6, "contact_s_max": 492, "contact_s_avg": 45, "contact_s_stdev": 39,
    "messages": 10557, "received_20min": 1475328, "received_15min": 1192205,
    "received_10min": 884810, "received_5min": 539652,
}  # fmt: skip


def broadcasts(trace: Trace, first_us: int, period_us: int) -> Ints:
    """Return (node, time_us) of every message: `first_us` after each arrival, then every
    `period_us`."""
    rows = [
        (node, time_us)
        for node, up_us, down_us in trace.presence.tolist()
        for time_us in range(up_us + first_us, down_us, period_us)
    ]
    return np.array(rows, dtype=np.int64)


def flood_delays(trace: Trace, messages: Ints, lifetime_us: int) -> Ints:
    """Return the delay of every reception: the earliest arrival over contacts, for each message."""
    a, b, up_us, down_us = trace.contacts.T
    source, target = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(trace.nodes_count + 1))
    columns = (target[order], np.tile(up_us, 2)[order], np.tile(down_us, 2)[order])
    delays: Ints = _earliest(messages, first, *columns, lifetime_us)
    return delays


@numba.njit(cache=True)
def _earliest(messages, first, target, up_us, down_us, lifetime_us):  # type: ignore[no-untyped-def]
    never = np.int64(2**62)
    delays = [np.int64(0) for _ in range(0)]
    for origin, start_us in messages:
        arrival = np.full(len(first) - 1, never)
        arrival[origin] = start_us
        queue = [(start_us, origin)]
        while queue:
            now_us, node = heapq.heappop(queue)
            if now_us > arrival[node]:
                continue
            if node != origin:
                delays.append(now_us - start_us)
            for row in range(first[node], first[node + 1]):
                time_us = max(now_us, up_us[row])
                is_in_time = time_us < down_us[row] and time_us - start_us <= lifetime_us
                if is_in_time and time_us < arrival[target[row]]:
                    arrival[target[row]] = time_us
                    heapq.heappush(queue, (time_us, target[row]))
    return np.array(delays)


def fit(name: str, trace: Trace, published: dict[str, float], period_us: int) -> dict[str, object]:
    measured = statistics.describe(trace)
    messages = broadcasts(trace, 20_000_000, period_us)
    minutes = [int(k[9:-3]) for k in published if k.startswith("received_")]
    whole = "received" in published
    limit_us = 2**61 if whole else max(minutes) * MINUTE_US
    delays = flood_delays(trace, messages, limit_us)
    measured["messages"] = len(messages)
    if whole:
        measured["received"] = len(delays)
        measured["tdelay_s_avg"] = float(delays.mean()) / 1e6
    for limit in minutes:
        measured[f"received_{limit}min"] = int((delays <= limit * MINUTE_US).sum())
    rows = {
        key: [round(measured[key], 1), value, round(measured[key] / value, 2) if value else None]
        for key, value in published.items()
    }
    return {"fit": name, "measured, published, ratio": rows}


def main(names: list[str], seeds: list[int]) -> None:
    for seed in seeds:
        for name in names:
            if name == "buses":
                trace = buses.generate(seed).contacts_within(200.0)
                result = fit(name, trace, VANNES, 20 * MINUTE_US)
            else:
                trace = (
                    walkers.generate(seed).contacts_within(50.0)
                    if name == "walkers"
                    else crowd.generate(seed)
                )
                result = fit(name, trace, OSTERMALM, MINUTE_US)
            print(json.dumps(result | {"seed": seed}))


if __name__ == "__main__":
    main(
        [a for a in sys.argv[1:] if not a.isdigit()] or ["buses", "walkers", "crowd"],
        [int(a) for a in sys.argv[1:] if a.isdigit()] or [1],
    )
