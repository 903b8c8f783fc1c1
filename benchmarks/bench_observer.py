"""Benchmark the observer's kernels.

Claims: they order 1 million events per CPU second, and the sweep of figures 2 to 7 (3 seeds, 10,000
messages) takes at most 10 minutes on 2 cores.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from beforehand.kernels.observer.reorder import FOREVER, Ints, Stamps, empty_queue, reorder
from beforehand.protocols.observer.observer import Dial, cbd, dapw
from beforehand.sim.drift import Drift, measure, rule_of, simulate
from beforehand.sim.drift_figures import figure_dials, figure_specs

REPEATS = 5
BATCH = 50_000
SPEC = Drift(messages=400_000)
SEEDS = (1, 2, 3)


class Stream(NamedTuple):
    arrival: Ints
    stamps: Stamps


def simulated_stream() -> Stream:
    """Return the stream that an observer of ten processes sees; about twenty messages wait at a
    time."""
    run = simulate(SPEC)
    at = run.arrived
    return Stream(run.arrival[at], Stamps(*(column[at] for column in run.stamps)))


def crowded_stream(per_tick: int) -> Stream:
    """Return random stamps within the guarantees with `per_tick` arrivals per tick.

    The queue then holds about 15 times that many messages.
    """
    rng = np.random.default_rng(1)
    count, epsilon, delta = SPEC.messages, SPEC.epsilon, SPEC.delta
    arrival = np.arange(count) // per_tick
    r = arrival - rng.integers(-epsilon // 2, delta, count)
    c = rng.integers(0, epsilon // 2, count)
    kn = rng.integers(0, 30, (count, epsilon + 1))
    return Stream(arrival, Stamps(rng.integers(0, SPEC.processes, count), r, c, kn))


def order(stream: Stream, dial: Dial) -> None:
    """Pass all arrivals through the queue, in batches like those of a stream."""
    rule = rule_of(dial, SPEC.guarantees)
    label = np.arange(len(stream.arrival))
    queue = empty_queue(rule)
    delivered = 0
    for start in range(0, len(label), BATCH):
        part = slice(start, start + BATCH)
        batch = Stamps(*(column[part] for column in stream.stamps))
        queue, out, _ = reorder(queue, stream.arrival[part], label[part], batch, rule)
        delivered += len(out.label)
    nothing = Stamps(*(column[:0] for column in stream.stamps))
    delivered += len(reorder(queue, label[:0], label[:0], nothing, rule, FOREVER)[1].label)
    assert delivered == len(label)


def sweep() -> None:
    for spec in figure_specs(SEEDS):
        for _ in measure(spec, figure_dials(spec)):
            pass


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def report(bench: str, unit: str, values: list[float]) -> None:
    line = {
        "bench": f"observer/{bench}",
        unit: round(statistics.median(values), 1),
        "spread": round(max(values) / min(values), 2),
        "repeats": len(values),
        "python": platform.python_version(),
    }
    print(json.dumps(line))


def main() -> None:
    stream, crowd = simulated_stream(), crowded_stream(per_tick=1000)
    order(stream, cbd(60))  # compile, or load from the cache
    for name, seen, dial in (
        ("cbd", stream, cbd(60)),
        ("dapw", stream, dapw(60)),
        ("cbd-2", stream, cbd(60, 2)),
        ("crowd/cbd", crowd, cbd(100)),
        ("crowd/dapw", crowd, dapw(100)),
    ):
        work = partial(order, seen, dial)
        rates = [len(seen.arrival) / cpu_seconds(work) for _ in range(REPEATS)]
        report(f"order/{name}", "events_per_cpu_s", rates)
    small = Drift(messages=50_000)
    rates = [small.messages / cpu_seconds(partial(simulate, small)) for _ in range(REPEATS)]
    report("simulate", "messages_per_cpu_s", rates)
    report("figures-2-to-7", "cpu_s", [cpu_seconds(sweep)])


if __name__ == "__main__":
    main()
