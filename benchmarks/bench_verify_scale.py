"""Claim: 100 million deliveries of 10,000 nodes are judged in 300 CPU seconds and 4 GB.

The log (`scale_log.py`) is generated into a temporary folder, judged by a process of its own for
each way to walk through it, and removed. 500 nodes deliver one message late, and 500 deliver one
twice; the verifier must find exactly these. `dense_entry_ns` and `sparse_look_ns` are the constants
of docs/verify.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scale_log import PLANTED, write_log

JUDGE = """
import json, sys, time
from beforehand.kernels.verify import causality
from beforehand.verify.verdict import SENDERS, verify_events
path, way = sys.argv[1:]
if way == "dense":
    causality.DENSE_STEPS_MIN = 1 << 62
if way == "sparse":
    causality.DENSE_STEPS_MIN, causality.LOOK_STEPS = 0, 1e-9
read = []
def on_done(stage, done, of):
    if stage == SENDERS and not read:
        read.append(time.process_time())
wall, began = time.perf_counter(), time.process_time()
(run,) = verify_events(path, on_done=on_done).runs
ended = time.process_time()
history, column = run.history, run.history.sender
plan = None if way == "dense" else causality.sparse_plan(history, column)
print(json.dumps({
    "way": "sparse" if plan else "dense", "verdict": run.state, "counts": run.counts,
    "deliveries": run.deliveries, "senders": len({*column.tolist()}),
    "read_cpu_s": round(read[0] - began, 1), "walk_cpu_s": round(ended - read[0], 1),
    "wall_s": round(time.perf_counter() - wall, 1), "looks": plan.looks if plan else None,
}))
"""


def judge(path: Path, way: str) -> dict[str, Any]:
    command = [sys.executable, "-c", JUDGE, str(path), way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        answer = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, answer
    found: dict[str, Any] = json.loads(answer)
    found["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
    found["peak_gb"] = round(usage.ru_maxrss / 2**20, 2)
    if found["looks"]:
        found["sparse_look_ns"] = round(1e9 * found["walk_cpu_s"] / found["looks"], 2)
    else:
        entries = found["deliveries"] * found["senders"]
        found["dense_entry_ns"] = round(1e9 * found["walk_cpu_s"] / entries, 3)
    expected = {"late": PLANTED, "twice": PLANTED, "unknown": 0}
    found["found_what_was_planted"] = found.pop("counts") == expected
    return found


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--nodes", type=int, default=10_000)
parser.add_argument("--messages", type=int, default=10_000)
parser.add_argument("--lags", type=int, nargs=2, default=(1, 200))
parser.add_argument("--ways", nargs="+", default=["chosen"], choices=("chosen", "dense", "sparse"))
args = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "events.parquet"
    write_log(file, args.nodes, args.messages, tuple(args.lags))
    told = {
        "bench": "verify/scale",
        "nodes": args.nodes,
        "messages": args.messages,
        "lags": args.lags,
        "file_gb": round(file.stat().st_size / 1e9, 2),
        "load": [round(load, 1) for load in os.getloadavg()],
        "runs": [judge(file, way) for way in args.ways],
    }
print(json.dumps(told))
