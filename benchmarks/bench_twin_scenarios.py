"""Play shipped scenarios of contacts with both engines: equal logs, and the CPU seconds of each.

`python benchmarks/bench_twin_scenarios.py [city-bus ostermalm quick]`; one JSON line for each. The
seconds are those of the runs with their logs, and those of the verdict and the summary of the log.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from beforehand.mobility.trace import Trace
from beforehand.pipeline.contacts.plan import specs_of
from beforehand.pipeline.experiment import read_scenario
from beforehand.scenario.shipped import find_scenario
from beforehand.sim.contacts.engines import play_run
from beforehand.sim.contacts.run import Result, Spec
from beforehand.sim.contacts.summary import count_violations, summarise
from beforehand.sim.contacts.twin import refusal


def traces_of(name: str) -> list[tuple[Trace, Spec]]:
    scenario = read_scenario(find_scenario(name))
    runs = []
    for seed in scenario.seeds:
        source = scenario.options["mobility"]
        loaded = source.load(seed)
        trace = loaded if isinstance(loaded, Trace) else loaded.contacts_within(source.range_m)
        runs += [(trace, spec) for spec in specs_of(scenario, seed)]
    return runs


def is_same(one: Result, other: Result) -> bool:
    columns = (np.array_equal(one.columns[name], other.columns[name]) for name in one.columns)
    rest = (
        (r.gauges, r.counters, r.frames_sent, r.frames_lost, r.bytes_sent) for r in (one, other)
    )
    is_equal = next(rest) == next(rest)
    return all(columns) and is_equal and np.array_equal(one.senders, other.senders)


def measure(name: str) -> dict[str, Any]:
    every = traces_of(name)
    runs = [(trace, spec) for trace, spec in every if refusal(trace, spec) is None]
    play_run(*runs[0], "twin")
    spent = {"twin": 0.0, "verdict_and_summary": 0.0, "cores": 0.0}
    receptions = rows = different = 0
    for trace, spec in runs:
        played: dict[str, Result] = {}
        for engine in ("twin", "cores"):
            started_s = time.process_time()
            played[engine] = play_run(trace, spec, engine).result
            spent[engine] += time.process_time() - started_s
        twin, started_s = played["twin"], time.process_time()
        count_violations(twin.columns)
        summarise(twin.columns, life_us=spec.life_us)
        spent["verdict_and_summary"] += time.process_time() - started_s
        receptions += len(twin.senders)
        rows += len(twin.columns["kind"])
        different += not is_same(twin, played["cores"])
    return {
        "runs": len(runs),
        "refused": sorted({str(refusal(*run)) for run in every} - {"None"}),
        "receptions": receptions,
        "rows": rows,
        "different": different,
        "cpu_s": {key: round(value, 2) for key, value in spent.items()},
    }


def main() -> None:
    for name in sys.argv[1:] or ["quick", "city-bus", "ostermalm"]:
        about = {"bench": "contacts_world/scenarios", "scenario": name}
        print(json.dumps({**about, **measure(name)}), flush=True)


if __name__ == "__main__":
    main()
