"""When each host broadcasts. It is drawn by key, so that all systems see the same traffic."""

from __future__ import annotations

from math import log

from beforehand.sim.cells.spec import CellsSpec
from beforehand.sim.streams import stream_key, unit


def broadcasts(spec: CellsSpec, seed: int) -> list[tuple[int, int]]:
    """Return the sorted (t_us, node) of all broadcasts: one Poisson process per host."""
    key, each_per_s = stream_key(seed, "cells/broadcasts"), spec.rate_per_s / spec.hosts
    rows = []
    for host in range(spec.hosts if spec.rate_per_s else 0):
        t_us, count = float(spec.warm_up_us), 0
        while True:
            t_us -= log(1.0 - unit(key, host, count)) / each_per_s * 1e6
            if t_us >= spec.duration_us:
                break
            rows.append((int(t_us), spec.stations + host))
            count += 1
    return sorted(rows)
