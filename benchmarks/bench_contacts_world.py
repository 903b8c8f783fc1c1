"""Measure the cost of causal delivery in a crowd of short-lived nodes, and how the cost grows.

2,000 nodes that stay five minutes, about 15,000 contacts, 10,500 messages that live 20 minutes:
about 1.5 million receptions. Each line is one JSON object. Each run has its own process, so that
its peak memory can be measured. CPU seconds include the run and its event log, not the trace.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import time

from beforehand.mobility.generators import crowd
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.traffic import Traffic

MINUTE_US = 60_000_000
# Contacts are a little rarer than in the default crowd, so that about 10,500 messages make about
# 1.5 million receptions. One broadcast per 64 s gives that many messages.
PERIOD_US = 64_000_000


def measure(protocol: str, period_us: int) -> dict[str, float]:
    trace = crowd.generate(1)
    started = time.process_time()
    result = run_one(
        trace,
        Spec(protocol, seed=1, lifetime_us=20 * MINUTE_US, traffic=Traffic(period_us=period_us)),
    )
    cpu_s = time.process_time() - started
    counters = result.counters
    return {
        "nodes": trace.nodes_count,
        "contacts": len(trace.contacts),
        "messages": counters.broadcast,
        "receptions": counters.received,
        "deliveries": counters.delivered,
        "cpu_s": round(cpu_s, 2),
        "receptions_per_cpu_s": round(counters.received / cpu_s),
        "us_per_reception": round(1e6 * cpu_s / counters.received, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def measure_apart(protocol: str, period_us: int) -> dict[str, float]:
    command = [sys.executable, __file__, protocol, str(period_us)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    causal = measure_apart("delta", PERIOD_US)
    plain = measure_apart("none", PERIOD_US)
    double = measure_apart("delta", PERIOD_US // 2)
    price = causal["us_per_reception"] / plain["us_per_reception"]
    growth = double["us_per_reception"] / causal["us_per_reception"]
    print(
        json.dumps(
            {
                "bench": "contacts_world/crowd",
                "causal": causal,
                "no_order": plain,
                "twice_the_messages": double,
                "price_of_causality": round(price, 2),
                "growth_of_cost_per_reception": round(growth, 2),
                "python": platform.python_version(),
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
