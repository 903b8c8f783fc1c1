"""Run the same simulations with the code of two source trees in turns, and compare them.

`python benchmarks/compare.py --before DIR --after DIR [--runs 8] [NAME ...]`, all of them without a
name. Each run has its own process, which imports the package from `DIR/src`. One JSON line per
name: the CPU seconds of every run in order, the medians, and after / before. `same` is true if all
runs of both trees produced the same log, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
Work = Callable[[], Iterable[Any]]
"""The timed function; returns arrays that describe the result."""


class Once(TypedDict):
    cpu_s: float
    log: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(WORKS))
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument("--runs", type=int, default=8, help="of each tree")
    parser.add_argument("--once", choices=WORKS, help="time one run of the tree on PYTHONPATH")
    args = parser.parse_args()
    if args.once:
        print(json.dumps(once(args.once)))
        return
    if args.before is None or args.after is None or not WORKS.keys() >= set(args.names):
        parser.error(f"two trees, and of the names {', '.join(WORKS)} any")
    for name in args.names or WORKS:
        print(json.dumps(compare(name, args.before, args.after, args.runs)), flush=True)


def compare(name: str, before: Path, after: Path, runs: int) -> dict[str, Any]:
    # Alternate before and after, so that other load on the machine affects both.
    pairs = [(run_apart(name, before), run_apart(name, after)) for _ in range(runs)]
    olds, news = ([run["cpu_s"] for run in column] for column in zip(*pairs, strict=True))
    old, new = statistics.median(olds), statistics.median(news)
    return {
        "bench": f"compare/{name}",
        "before_cpu_s": round(old, 3),
        "after_cpu_s": round(new, 3),
        "ratio": round(new / old, 3),
        "best_ratio": round(min(news) / min(olds), 3),
        "same": len({run["log"] for pair in pairs for run in pair}) == 1,
        "before_runs": olds,
        "after_runs": news,
        "python": platform.python_version(),
    }


def run_apart(name: str, tree: Path) -> Once:
    source = (tree / "src").resolve(strict=True)
    command = [sys.executable, __file__, "--once", name]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: Once = json.loads(done.stdout)
    return found


def once(name: str) -> Once:
    import beforehand

    tree = os.environ["PYTHONPATH"]
    assert str(beforehand.__file__).startswith(tree), "an installed package stands before the tree"
    work = WORKS[name]()
    started = time.process_time()
    arrays = work()
    cpu_s = time.process_time() - started
    log = hashlib.sha256()
    for array in map(np.asarray, arrays):
        is_whole = array.dtype.kind in "iu"  # of whatever width
        log.update(np.ascontiguousarray(array, np.int64 if is_whole else None).tobytes())
    return {"cpu_s": round(cpu_s, 4), "log": log.hexdigest()}


# ---- timed functions: names that exist in both trees; without compilation and traces ------------


def find(*places: str) -> Any:
    """Return the first module that the tree has: modules have moved."""
    for place in places:
        try:
            return import_module(f"beforehand.{place}")
        except ModuleNotFoundError:
            continue
    raise LookupError(f"this tree has none of {places}")


def overlay(runner: str, nodes: int) -> Work:
    overlay = find("sim.overlay.world", "sim.overlay")
    owner = overlay if hasattr(overlay, runner) else find("sim.overlay.twin")
    run = getattr(owner, runner)
    run(overlay.OverlaySpec(8), 1)  # compile, or load from the cache

    def work() -> Iterable[Any]:
        result = run(overlay.OverlaySpec(nodes), 1)
        return (*result.events.values(), *result.packets.values(), result.past.origin)

    return work


def crowd() -> Work:
    """Return the run of `bench_contacts_world.py`."""
    crowd = find("mobility.generators.crowd", "mobility.crowd")
    spec = contacts_spec("delta", lifetime_us=20 * MINUTE_US, traffic={"period_us": 64 * SECOND_US})
    return partial(contacts_run, crowd.generate(1), spec)


def buses(order: str) -> Work:
    """Return the first seed of the scenario `city-bus`, without lifetimes."""
    buses = find("mobility.generators.buses", "mobility.buses")
    spec = contacts_spec(
        order,
        traffic={"period_us": 20 * MINUTE_US},
        links={"latency_us": 2_000, "bytes_per_s": 4_000},
        layer={"announce_us": 5 * SECOND_US, "frame_bytes_max": 1_000_000, "frame_messages_max": 1},
    )
    return partial(contacts_run, buses.generate(0).contacts_within(200), spec)


def contacts_run(trace: Any, spec: Any) -> Iterable[Any]:
    columns: dict[str, Any] = find("sim.contacts.run", "sim.run").run_one(trace, spec).columns
    return columns.values()


def contacts_spec(protocol: str, lifetime_us: int | None = None, **parts: dict[str, int]) -> Any:
    """Return the spec for either tree: its parts are structs now, and were fields of the spec
    before."""
    make = find("sim.contacts.run", "sim.run").Spec
    default = make("none")
    if hasattr(default, "layer"):
        made = {name: type(getattr(default, name))(**values) for name, values in parts.items()}
        return make(protocol, 1, lifetime_us, **made)
    flat = {name: value for values in parts.values() for name, value in values.items()}
    if flat.pop("frame_messages_max", None) == 1:
        flat["frame_bytes_max"] = 1  # in the old tree, a frame always took one message of any size
    return make(protocol, 1, lifetime_us, **flat)


def observer_kernel() -> Work:
    """Return the run of `bench_observer.py`, in one batch."""
    from beforehand.sim.drift import Drift, deliver, simulate

    cbd = find("protocols.observer.observer", "core.observer").cbd
    small, spec = Drift(messages=100), Drift(messages=400_000)
    deliver(simulate(small), small, cbd(60))  # compile, or load from the cache
    return partial(deliver, simulate(spec), spec, cbd(60))


def observer_cores() -> Work:
    from beforehand.sim.drift import Drift, run_slowly

    methods = find("protocols.observer.observer", "core.observer")
    dials = [
        make(percent)
        for make in (methods.cbd, methods.dapw)
        for percent in (0, 20, 40, 60, 80, 100)
    ]

    def work() -> Iterable[Any]:
        return run_slowly(Drift(messages=1_500), dials)[1]

    return work


WORKS: dict[str, Callable[[], Work]] = {
    "overlay-cores-256": partial(overlay, "run", 256),
    "overlay-cores-1024": partial(overlay, "run", 1024),
    "overlay-twin-1024": partial(overlay, "run_compiled", 1024),
    "crowd": crowd,
    "buses": partial(buses, "causal"),
    "buses-vector": partial(buses, "vector"),
    "buses-none": partial(buses, "none"),
    "observer-kernel": observer_kernel,
    "observer-cores": observer_cores,
}


if __name__ == "__main__":
    main()
