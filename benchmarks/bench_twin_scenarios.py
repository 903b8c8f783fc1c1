"""Play shipped scenarios of contacts with both engines: equal logs, and the CPU seconds of each.

`python benchmarks/bench_twin_scenarios.py [NAME ...]`; one JSON line for each, by default for all
shipped scenarios of contacts that need no file of yours. The seconds are those of the runs with
their logs (`twin`, `cores`), of verdict and summary of these logs, and of runs that are judged and
measured while they go on (`streamed`).
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
from beforehand.sim.contacts.engines import play_measured, play_run
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
    play_measured(*runs[0], "twin")
    spent = {"twin": 0.0, "verdict_and_summary": 0.0, "streamed": 0.0, "cores": 0.0}
    receptions = rows = different = 0
    for trace, spec in runs:
        played: dict[str, Result] = {}
        for engine in ("twin", "cores"):
            started_s = time.process_time()
            played[engine] = play_run(trace, spec, engine).result
            spent[engine] += time.process_time() - started_s
        twin, started_s = played["twin"], time.process_time()
        violations = count_violations(twin.columns)
        summary = summarise(twin.columns, life_us=spec.life_us)
        spent["verdict_and_summary"] += time.process_time() - started_s
        started_s = time.process_time()
        streamed = play_measured(trace, spec, "twin")
        spent["streamed"] += time.process_time() - started_s
        different += streamed.violations != violations
        different += streamed.summary["receptions"] != summary["receptions"]
        receptions += len(twin.senders)
        rows += len(twin.columns["kind"])
        different += not is_same(twin, played["cores"])
    return {
        "runs": len(runs),
        "streamed_s_per_run": round(spent["streamed"] / len(runs), 3),
        "refused": sorted({str(refusal(*run)) for run in every} - {"None"}),
        "receptions": receptions,
        "rows": rows,
        "different": different,
        "cpu_s": {key: round(value, 2) for key, value in spent.items()},
    }


def main() -> None:
    for name in sys.argv[1:] or ["quick", "plausible-clocks", "city-bus", "ostermalm"]:
        about = {"bench": "contacts_world/scenarios", "scenario": name}
        print(json.dumps({**about, **measure(name)}), flush=True)


if __name__ == "__main__":
    main()
