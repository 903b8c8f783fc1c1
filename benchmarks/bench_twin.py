"""Measure the compiled twin of the contact world: a crowd, its growth, and the cores beside it.

The crowd is that of `bench_contacts_world.py`. Each line is one JSON object. Each run has its own
process, so that its peak memory can be measured. CPU seconds include the run and its event log, not
the trace and not the compilation. Of a streamed run they also include verdict and summary, and the
log goes to a Parquet file.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from beforehand.mobility.generators import crowd
from beforehand.mobility.trace import Trace
from beforehand.protocols.contract.base import Counters
from beforehand.sim.contacts.engines import play_measured, play_run
from beforehand.sim.contacts.run import Spec
from beforehand.sim.contacts.traffic import Traffic
from beforehand.sim.log_writer import event_writer

MINUTE_US = 60_000_000
CASES = (
    ("crowd", "twin", "delta", 64.0),
    ("crowd, streamed", "streamed", "delta", 64.0),
    ("crowd", "cores", "delta", 64.0),
    ("crowd, no order", "twin", "none", 64.0),
    ("crowd, twice the messages, streamed", "streamed", "delta", 32.0),
    ("crowd, five times the messages, streamed", "streamed", "delta", 12.8),
    ("crowd, ten times the messages, streamed", "streamed", "delta", 6.4),
)


def play(trace: Trace, spec: Spec, engine: str) -> Counters:
    if engine != "streamed":
        return play_run(trace, spec, engine).result.counters
    with tempfile.TemporaryDirectory() as folder:
        target, about = Path(folder) / "events.parquet", spec.about()
        found = play_measured(
            trace,
            spec,
            "twin",
            open_writer=lambda: event_writer(
                target, "crowd", promise="causal", names=(), about=about
            ),
        )
    if any(found.violations.values()):
        raise SystemExit(f"the run is not in causal order: {found.violations}")
    return found.totals.counters


def measure(engine: str, protocol: str, period_s: float) -> dict[str, Any]:
    trace = crowd.generate(1)
    traffic = Traffic(period_us=int(1e6 * period_s))
    spec = Spec(protocol, seed=1, lifetime_us=20 * MINUTE_US, traffic=traffic)
    # The first run of a process compiles, or loads what is compiled.
    play(crowd.generate(2, nodes_mean=10, hours=0.1), spec, engine)
    before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    started_s = time.process_time()
    counters = play(trace, spec, engine)
    cpu_s = time.process_time() - started_s
    return {
        "receptions": counters.received,
        "deliveries": counters.delivered,
        "cpu_s": round(cpu_s, 2),
        "us_per_reception": round(1e6 * cpu_s / counters.received, 3),
        "mb_before": before_mb,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    for name, engine, protocol, period_s in CASES:
        command = [sys.executable, __file__, engine, protocol, str(period_s)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        about = {"bench": "contacts_world/twin", "case": name, "engine": engine}
        print(json.dumps({**about, "protocol": protocol, **json.loads(done.stdout)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
    else:
        main()
