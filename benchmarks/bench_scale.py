"""Measure CPU seconds, peak memory and the log of large runs of the overlay and the cells world.

    python benchmarks/bench_scale.py [vcube] [cells] [--large]

One JSON line per run, each in a process of its own. `digest` is one of the whole result, so two
trees that are compared (with PYTHONPATH) show that they computed the same. Compilation is not
counted.

- `vcube`: one run with aggregation. `log_bytes_per_row` counts what the columns take in memory.
- `cells`: 20 hosts per station as in MOB's largest run, 1 Mb/s, 60 s simulated, 5 of them warm-up.
  All hosts together broadcast twice a second: a run of H hosts has about 110 broadcasts and 110 H
  deliveries. At that rate every host has a message to acknowledge in each interval of
  acknowledgements, and nothing is lost in queues.

`--large` adds the sizes of the claims: 4,096 nodes, and 500 stations with 10,000 hosts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import resource
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec
import numpy as np

from beforehand.sim.cells.measure import measure_cells
from beforehand.sim.cells.spec import SECOND_US, CellsSpec
from beforehand.sim.cells.world import run
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec

Size = tuple[int, ...]
SLOW = msgspec.structs.replace(CellsSpec().radio, bits_per_s=1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(BENCHES))
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    if not BENCHES.keys() >= set(args.names):
        parser.error(f"known are {', '.join(BENCHES)}")
    for name in args.names or BENCHES:
        measure, sizes, large = BENCHES[name]
        for size in sizes + (large if args.large else ()):
            # In a separate process, because peak memory is counted per process.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                found = pool.submit(measure, *size).result()
            found = {"bench": f"scale/{name}", "python": platform.python_version(), **found}
            print(json.dumps(found), flush=True)


def vcube(nodes: int) -> dict[str, Any]:
    run_compiled(OverlaySpec(8), 1)  # compile, or load from the cache
    before_mb, started_s = peak_mb(), time.process_time()
    result = run_compiled(OverlaySpec(nodes), 1)
    cpu_s, after_mb = time.process_time() - started_s, peak_mb()
    events, size = result.events, len(result.events["t_us"])
    return {
        "nodes": nodes,
        "cpu_s": round(cpu_s, 2),
        "peak_mb": after_mb,
        "peak_mb_before": before_mb,
        "rows": size,
        "packets": len(result.packets["source"]),
        "log_bytes_per_row": sum(array.strides[0] for array in events.values()),
        "digest": digest([*events.values(), *result.packets.values(), result.past.origin]),
    }


def cells(stations: int, hosts: int) -> dict[str, Any]:
    spec = CellsSpec(
        stations=stations, hosts=hosts, radio=SLOW, rate_per_s=2.0, duration_us=60 * SECOND_US
    )
    warm = msgspec.structs.replace(spec, stations=3, hosts=9, duration_us=6 * SECOND_US)
    measure_cells(warm, 1, run(warm, 1))
    before_mb, started_s = peak_mb(), time.process_time()
    result = run(spec, 1)
    ran_s, ran_mb = time.process_time(), peak_mb()
    found = measure_cells(spec, 1, result)
    ended_s = time.process_time()
    return {
        "stations": stations,
        "hosts": hosts,
        "cpu_s": round(ended_s - started_s, 1),
        "world_cpu_s": round(ran_s - started_s, 1),
        "measure_cpu_s": round(ended_s - ran_s, 1),
        "peak_mb": peak_mb(),
        "peak_mb_world": ran_mb,
        "peak_mb_before": before_mb,
        "broadcasts": found.broadcasts,
        "receptions": found.receptions,
        "deliveries": found.deliveries,
        "radio_frames": sum(flow.frames for flow in found.flows if flow.network == "radio"),
        "us_per_reception": round(1e6 * (ended_s - started_s) / found.receptions, 1),
        "broken": found.violations + found.duplicates + found.missing,
        "digest": digest([*result.events.values(), result.senders, *samples_of(result)]),
    }


def samples_of(result: Any) -> Iterable[Any]:
    for sample in result.samples:
        yield from (sample.kept, sample.early, sample.unacked)
        yield from (sample.sent, sample.outcomes, sample.air_outcomes)


def digest(arrays: Iterable[Any]) -> str:
    """Return a digest of the numbers, whatever type an array keeps them in."""
    found = hashlib.sha256()
    for array in arrays:
        flat = np.asarray(array).ravel()
        for first in range(0, len(flat), 1 << 20):
            found.update(flat[first : first + (1 << 20)].astype(np.int64).tobytes())
    return found.hexdigest()[:16]


def peak_mb() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000_000


Bench = tuple[Callable[..., dict[str, Any]], tuple[Size, ...], tuple[Size, ...]]
BENCHES: dict[str, Bench] = {
    "vcube": (vcube, ((1024,), (2048,)), ((4096,),)),
    "cells": (cells, ((10, 200), (50, 1000)), ((500, 10_000),)),
}


if __name__ == "__main__":
    main()
