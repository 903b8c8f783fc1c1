"""Frames per CPU second of the radio channel by number of nodes; prints one JSON line.

Hosts stand in a square that grows with their number, so that each has about the same number of
neighbours. The cost of a frame must therefore not grow with the number of nodes. Compilation is not
counted.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.sim.radio_play import Traffic, play_compiled

from beforehand.sim.grid_index import GridIndex
from beforehand.sim.radio import Air, Radio

NODES = (50, 100, 200, 400)
RANGE_M = 120.0
AREA_M2_PER_NODE = 3000.0
FRAMES_PER_NODE_S = 3.0
FRAME_BYTES = 148
SECONDS = {"driven": 10, "twin": 120}
REPEATS = 5


def main() -> None:
    found: dict[str, Any] = {"bench": "radio", "python": platform.python_version()}
    for name, runner in RUNNERS.items():
        runner(Radio(), traffic(NODES[0], 1), 1)
        for nodes in NODES:
            given = traffic(nodes, SECONDS[name])
            rates = [len(given.requests) / cpu_s(runner, given, seed) for seed in range(REPEATS)]
            found[f"{name}_{nodes}_frames_per_cpu_s"] = round(statistics.median(rates))
            found[f"{name}_{nodes}_spread"] = round(max(rates) / min(rates), 2)
            found[f"in_range_{nodes}"] = round(statistics.mean(map(len, given.neighbours)), 1)
    print(json.dumps(found))


def traffic(nodes: int, seconds: int) -> Traffic:
    draws = np.random.default_rng(1)
    places = GridIndex(nodes, RANGE_M)
    side_m = (nodes * AREA_M2_PER_NODE) ** 0.5
    for node, (x_m, y_m) in enumerate(draws.uniform(0, side_m, (nodes, 2)).tolist()):
        places.move(node, x_m, y_m)
    until_us = seconds * 1_000_000
    count = int(nodes * FRAMES_PER_NODE_S * seconds)
    at_us = np.sort(draws.integers(0, until_us, count))
    sizes = np.full(count, FRAME_BYTES)
    requests = np.column_stack((at_us, draws.integers(0, nodes, count), sizes))
    return Traffic(places.neighbours, requests, until_us + 1_000_000)


def drive(radio: Radio, given: Traffic, seed: int) -> None:
    """Drive the channel like a world: one request or event after the other, without keeping
    results."""
    air = Air(radio, given.neighbours, seed)
    for now_us, node, size_bytes in given.requests.tolist():
        while air.due_us <= now_us:
            air.step()
        air.transmit(now_us, node, size_bytes)
    while air.due_us < given.until_us:
        air.step()


RUNNERS: dict[str, Callable[[Radio, Traffic, int], object]] = {
    "driven": drive,
    "twin": play_compiled,
}


def cpu_s(runner: Callable[[Radio, Traffic, int], object], given: Traffic, seed: int) -> float:
    started = time.process_time()
    runner(Radio(), given, seed)
    return time.process_time() - started


if __name__ == "__main__":
    main()
