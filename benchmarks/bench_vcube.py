"""Check the performance claims about the overlay worlds, one JSON line each.

CPU seconds are without compilation.

`python benchmarks/bench_vcube.py [twin] [driven] [growth] [sweep]`, all of them without a name.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from beforehand.events import RECEIVE
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec, run

SWEEP_NODES = (16, 32, 64, 128, 256, 512, 1024)
SWEEP_SEEDS = 30
RUNNERS: dict[str, Callable[..., Any]] = {"twin": run_compiled, "driven": run}


def main() -> None:
    wanted = sys.argv[1:] or ["twin", "driven", "growth", "sweep"]
    for name in wanted:
        print(json.dumps({"bench": f"vcube/{name}", **BENCHES[name]()}), flush=True)


def bench_twin() -> dict[str, Any]:
    """Measure one run of 1024 nodes with aggregation: at most 1.5 s and 300 MB."""
    return _alone("twin", 1024, 3)


def bench_driven() -> dict[str, Any]:
    """Measure the same run through the cores: at most 25 s."""
    return _alone("driven", 1024, 1)


def bench_growth() -> dict[str, Any]:
    """Measure the growth from 256 to 1024 nodes: at most 20 times the time.

    The result also gives the minimum number of cause checks: one per reception and cause.
    """
    found: dict[str, Any] = {}
    for world, repeats in (("twin", 3), ("driven", 1)):
        # Alternate, and take the best of each: other load on the machine only adds time.
        rounds = [(_alone(world, 256, 3), _alone(world, 1024, repeats)) for _ in range(4)]
        found[f"{world}_rounds_times"] = [
            round(large["best_s"] / small["best_s"], 1) for small, large in rounds
        ]
        columns = zip(*rounds, strict=True)
        small, large = (min(column, key=lambda m: m["best_s"]) for column in columns)
        for name in ("best_s", "received", "looks"):
            found[f"{world}_{name}_times"] = round(large[name] / small[name], 1)
    return found


def bench_sweep() -> dict[str, Any]:
    """Measure all of Table 1, 30 seeds, both systems, on two cores: at most 6 minutes."""
    jobs = [
        (nodes, system, seed)
        for nodes in reversed(SWEEP_NODES)
        for system in ("aggregated", "plain")
        for seed in range(SWEEP_SEEDS)
    ]
    started = time.perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        spent = list(pool.map(_sweep_job, jobs))
    wall_s = time.perf_counter() - started
    return {"runs": len(jobs), "wall_s": round(wall_s, 1), "cpu_s": round(sum(spent), 1)}


BENCHES = {
    "twin": bench_twin,
    "driven": bench_driven,
    "growth": bench_growth,
    "sweep": bench_sweep,
}


def _sweep_job(job: tuple[int, Any, int]) -> float:
    nodes, system, seed = job
    started = time.process_time()
    run_compiled(OverlaySpec(nodes, system), seed)
    return time.process_time() - started


def _alone(world: str, nodes: int, repeats: int) -> dict[str, Any]:
    """Measure in a separate process, because peak memory is counted per process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measure, world, nodes, repeats).result()


def _measure(world: str, nodes: int, repeats: int) -> dict[str, Any]:
    runner = RUNNERS[world]
    runner(OverlaySpec(8), 1)  # compile, or load from the cache
    spent = []
    peak_mb = 0
    for _ in range(repeats):
        started = time.process_time()
        result = runner(OverlaySpec(nodes), 1)
        spent.append(time.process_time() - started)
        # Only of the first run: the allocator does not return all memory before the next.
        peak_mb = peak_mb or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    received = int((result.events["kind"] == RECEIVE).sum())
    causes = len(result.past.origin) / nodes
    return {
        "nodes": nodes,
        "received": received,
        "cpu_s": round(statistics.median(spent), 3),
        "best_s": round(min(spent), 4),
        "looks": round(received * causes),
        "peak_mb": peak_mb,
    }


if __name__ == "__main__":
    main()
