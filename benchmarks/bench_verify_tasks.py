"""Claim: tasks that map one index cost less CPU and memory than tasks that each read the log.

A log of 20 million deliveries of 10,000 nodes (`bench_verify_scale.py`) is judged in blocks of
senders, as the tasks of Spark do it, two processes at a time. `own` is each task with an index of
its own, as before; `mapped` is one process that writes the index, and tasks that map it into
memory. CPU seconds are those of all processes together. `pss_gb` is the highest sum of the memory
of two tasks that ran side by side, where a page that both map counts once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from scale_log import write_log

TASK = """
import sys
from pathlib import Path
from beforehand.kernels.verify.causality import find_violations
from beforehand.verify.event_log import read_logs
from beforehand.verify.stored_index import open_index
file, index, low, high = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
(log,) = read_logs(file) if index == "-" else (open_index(file, Path(index)),)
found = find_violations(log.history(), low, high)
print(len(found.row))
"""
INDEX = """
import sys
from pathlib import Path
from beforehand.verify.stored_index import write_index
assert write_index(Path(sys.argv[1]), Path(sys.argv[2]))
"""
WAIT_S = 0.1


def pss_gb(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line[:4] == "Pss:")
    return total / 2**20


def run_all(commands: list[list[str]]) -> dict[str, Any]:
    """Run processes, two at a time; return their CPU seconds, their memory and what they print."""
    waiting, running = list(commands), list[subprocess.Popen[str]]()
    peak, cpu, found = 0.0, 0.0, 0
    while waiting or running:
        while waiting and len(running) < 2:
            running.append(subprocess.Popen(waiting.pop(0), stdout=subprocess.PIPE, text=True))
        peak = max(peak, pss_gb([child.pid for child in running]))
        for child in list(running):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                running.remove(child)
                assert status == 0
                assert child.stdout
                found += int(child.stdout.read() or 0)
                cpu += usage.ru_utime + usage.ru_stime
        time.sleep(WAIT_S)
    return {"cpu_s": round(cpu, 1), "pss_gb": round(peak, 2), "violations": found}


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--nodes", type=int, default=10_000)
parser.add_argument("--messages", type=int, default=2_000)
parser.add_argument("--tasks", type=int, default=10)
args = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    file, index = Path(folder) / "events.parquet", Path(folder) / "index"
    write_log(file, args.nodes, args.messages, (1, 200))
    edges = [args.nodes * at // args.tasks for at in range(args.tasks + 1)]

    def tasks(index: str) -> list[list[str]]:
        command = [sys.executable, "-c", TASK, str(file), index]
        return [[*command, str(low), str(high)] for low, high in pairwise(edges)]

    load = [round(load, 1) for load in os.getloadavg()]
    own = run_all(tasks("-"))
    write = run_all([[sys.executable, "-c", INDEX, str(file), str(index)]])
    mapped = run_all(tasks(str(index)))
    told = {
        "bench": "verify/tasks",
        "nodes": args.nodes,
        "messages": args.messages,
        "tasks": args.tasks,
        "load": load,
        "own": own,
        "index": {key: write[key] for key in ("cpu_s", "pss_gb")},
        "mapped": mapped,
    }
    assert own["violations"] == mapped["violations"]
print(json.dumps(told))
