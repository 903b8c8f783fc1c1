"""Benchmark the world of cells: CPU of MOB's largest run, its growth, and the metadata carried.

Prints one JSON line:

- `run`: 10 stations, 200 hosts, 35 broadcasts/s, 1 Mb/s, 300 s simulated, with the event log and
  its verification.
- `growth`: 100 to 400 hosts at a fixed rate.
- `metadata`: for each system and size, the control bytes per broadcast on each network (without
  headers), and the bytes that a node keeps besides payloads, at 4 bytes per number.

Compilation is not counted.

    python benchmarks/bench_cells.py [SECONDS]   # of the first run; 300 if not given
"""

from __future__ import annotations

import json
import platform
import resource
import sys
import time
from collections import deque
from statistics import fmean
from typing import Any

import msgspec

from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.sim.cells.measure import CellsMeasure, measure_cells
from beforehand.sim.cells.spec import SECOND_US, CellsSpec, Walk
from beforehand.sim.cells.world import World, run
from beforehand.sim.collector import no_collection

HOSTS = (100, 200, 300, 400)
SLOW = msgspec.structs.replace(CellsSpec().radio, bits_per_s=1_000_000)
FULL = CellsSpec(radio=SLOW)
SHORT = msgspec.structs.replace(
    FULL, rate_per_s=15.0, duration_us=25 * SECOND_US, settle_us=8 * SECOND_US
)
NUMBER_BYTES = 4
NOT_KEPT = ("node", "needs", "tables", "counters", "pace", "_pace")
"""Attributes that are configuration or counters, and not protocol state."""


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    warm = msgspec.structs.replace(SHORT, hosts=20, duration_us=10 * SECOND_US, settle_us=1)
    measure_cells(warm, 1, run(warm, 1))
    found: dict[str, Any] = {"bench": "cells", "python": platform.python_version()}
    found["run"] = full_run(msgspec.structs.replace(FULL, duration_us=seconds * SECOND_US))
    found["growth"] = [growth(hosts) for hosts in HOSTS]
    found["metadata"] = [metadata(name, hosts) for name in SYSTEMS for hosts in HOSTS]
    print(json.dumps(found))


def full_run(spec: CellsSpec) -> dict[str, Any]:
    started_s = time.process_time()
    result = run(spec, 1)
    ran_s = time.process_time()
    ran_mb = peak_mb()
    measure = measure_cells(spec, 1, result)
    ended_s = time.process_time()
    frames, receptions = radio_frames(measure), taken(measure)
    return {
        "simulated_s": spec.duration_us // SECOND_US,
        "cpu_s": round(ended_s - started_s, 2),
        "world_cpu_s": round(ran_s - started_s, 2),
        "measure_cpu_s": round(ended_s - ran_s, 2),
        "radio_frames": frames,
        "frames_per_cpu_s": round(frames / (ran_s - started_s)),
        "receptions": receptions,
        "receptions_per_cpu_s": round(receptions / (ran_s - started_s)),
        "deliveries": measure.deliveries,
        "broken": measure.violations + measure.duplicates + measure.missing,
        "peak_mb_world": ran_mb,
        "peak_mb": peak_mb(),
    }


def growth(hosts: int) -> dict[str, Any]:
    spec = msgspec.structs.replace(SHORT, hosts=hosts)
    started_s = time.process_time()
    measure = measure_cells(spec, 1, run(spec, 1))
    cpu_s = time.process_time() - started_s
    return {
        "hosts": hosts,
        "cpu_s": round(cpu_s, 2),
        "us_per_reception": round(1e6 * cpu_s / taken(measure), 2),
        "broken": measure.violations + measure.duplicates + measure.missing,
    }


def metadata(system: str, hosts: int) -> dict[str, Any]:
    # 20 Mb/s, because at 1 Mb/s some systems fall behind and then carry other traffic.
    fast = msgspec.structs.replace(SLOW, bits_per_s=20_000_000)
    spec = msgspec.structs.replace(SHORT, system=system, hosts=hosts, rate_per_s=5.0, radio=fast)
    if not SYSTEMS[system].is_mobile:
        spec = msgspec.structs.replace(spec, walk=Walk(speed_m_s=0.0))
    world = World(spec, 1, SYSTEMS[system])
    with no_collection():
        world.run()
    stations = [kept_bytes(core) for core in world.cores(spec.stations)]
    nodes = [kept_bytes(core) for core in world.cores(spec.nodes)]
    measure = measure_cells(spec, 1, world.result())
    control = {name: control_bytes(measure, name) for name in ("radio", "wire")}
    return {
        "system": system,
        "hosts": hosts,
        "violations": measure.violations + measure.duplicates,
        "missing": measure.missing,
        **{f"{name}_control_bytes_per_broadcast": round(size) for name, size in control.items()},
        "station_kept_bytes": round(fmean(stations)),
        "host_kept_bytes": round(fmean(nodes[len(stations) :])),
    }


def control_bytes(measure: CellsMeasure, network: str) -> float:
    flows = [flow.control_bytes for flow in measure.flows if flow.network == network]
    return sum(flows) / measure.broadcasts


def kept_bytes(core: Any) -> int:
    """Return the bytes of all numbers, names and flags that a core keeps, at any depth."""
    seen: set[int] = set()

    def count(value: Any) -> int:
        if value is None or isinstance(value, bytes):
            return 0
        if isinstance(value, int | str | float):
            return 1
        if id(value) in seen:
            return 0
        seen.add(id(value))
        if isinstance(value, dict):
            return sum(count(key) + count(inside) for key, inside in value.items())
        if isinstance(value, list | tuple | set | frozenset | deque):
            return sum(map(count, value))
        if callable(value):
            return 0
        names = getattr(value, "__struct_fields__", None) or vars(value)
        return sum(count(getattr(value, name)) for name in names if name not in NOT_KEPT)

    return NUMBER_BYTES * count(core)


def radio_frames(measure: CellsMeasure) -> int:
    return sum(flow.frames for flow in measure.flows if flow.network == "radio")


def taken(measure: CellsMeasure) -> int:
    """Return the radio receptions that were passed to a core."""
    return sum(flow.to_station[0] + flow.to_host[0] for flow in measure.flows)


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


if __name__ == "__main__":
    main()
