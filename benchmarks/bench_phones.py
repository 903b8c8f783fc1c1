"""Simulate 100,000 phones for a day with the compiled twin, judged and measured while it runs.

`python benchmarks/bench_phones.py [--phones 100000] [--events FILE.parquet]`; one JSON line. Phones
are in communities of 500: nine of ten contacts are within one, and last from 0.6 s to 3 minutes.
Each phone broadcasts every 2.4 hours; messages live for one hour. With --events the log is written.
CPU seconds are those of the whole run, without the trace and without the compilation.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from beforehand.events import About
from beforehand.mobility.generators import crowd
from beforehand.mobility.trace import Trace, make_trace
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.engines import play_measured
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.run import Spec
from beforehand.sim.contacts.traffic import Traffic
from beforehand.sim.log_writer import EventWriter, event_writer

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
COMMUNITY = 500
CONTACTS_PER_PHONE = 97


def make_phones(phones: int) -> Trace:
    rng = np.random.default_rng(1)
    count = phones * CONTACTS_PER_PHONE // 2
    a = rng.integers(0, phones, count)
    near = np.minimum(a // COMMUNITY * COMMUNITY + rng.integers(0, COMMUNITY, count), phones - 1)
    b = np.where(rng.random(count) < 0.9, near, rng.integers(0, phones, count))
    up_us = rng.integers(0, DAY_US - 200_000_000, count)
    long_us = np.clip(rng.gamma(1.5, 60e6, count), 600_000, 180e6).astype(np.int64)
    first_us = rng.integers(0, HOUR_US, phones)
    presence = np.column_stack([np.arange(phones), first_us, np.full(phones, DAY_US)])
    contacts = np.column_stack([a, b, up_us, up_us + long_us])
    return make_trace([str(phone) for phone in range(phones)], contacts, presence)


def make_writer(target: Path | None, trace: Trace) -> AbstractContextManager[EventWriter | None]:
    if target is None:
        return nullcontext()
    return event_writer(target, "phones", promise="causal", names=trace.names, about=About())


def memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phones", type=int, default=100_000)
    parser.add_argument("--events", type=Path)
    args = parser.parse_args()
    spec = Spec(
        "delta",
        seed=1,
        lifetime_us=HOUR_US,
        traffic=Traffic(period_us=DAY_US // 10, phase=True),
        links=LinkModel(latency_us=2000, bytes_per_s=100_000),
        layer=Options(announce_us=5_000_000),
    )
    play_measured(crowd.generate(2, nodes_mean=10, hours=0.1), spec, "twin")
    started_s = time.process_time()
    trace = make_phones(args.phones)
    trace_cpu_s, before_mb = time.process_time() - started_s, memory_mb()
    started_s, begun_s = time.process_time(), time.perf_counter()
    found = play_measured(trace, spec, "twin", open_writer=lambda: make_writer(args.events, trace))
    cpu_s = time.process_time() - started_s
    receptions = found.summary["receptions"]
    print(
        json.dumps(
            {
                "bench": "contacts_world/phones",
                "phones": args.phones,
                "contacts": len(trace.contacts),
                "broadcasts": found.summary["broadcasts"],
                "receptions": receptions,
                "rows": found.rows,
                "violations": sum(found.violations.values()),
                "trace_cpu_s": round(trace_cpu_s, 1),
                "cpu_s": round(cpu_s, 1),
                "wall_s": round(time.perf_counter() - begun_s, 1),
                "us_per_reception": round(1e6 * cpu_s / receptions, 2),
                "mb_before": before_mb,
                "peak_mb": memory_mb(),
                "log_mb": args.events.stat().st_size >> 20 if args.events else None,
            }
        )
    )


if __name__ == "__main__":
    main()
