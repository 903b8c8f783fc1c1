"""Where the time of `beforehand run NAME` goes: wall and CPU seconds per stage and kind of process.

`python benchmarks/bench_run.py [--runs 3] [--scenario city-bus] [WORD ...]` passes the words on.
Each run starts in an empty folder with the environment as `make run` leaves it. A stage lasts until
the command tells of the next one. CPU seconds are those of the command, of Java and of its Python
workers, sampled ten times a second: a process that ends between two samples loses up to 0.1 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.1
KINDS = ("python", "java", "workers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scenario", default="city-bus")
    args, words = parser.parse_known_args()
    for _ in range(args.runs):
        print(json.dumps(run_once(args.scenario, words)), flush=True)


def run_once(scenario: str, words: list[str]) -> dict[str, Any]:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "beforehand", "run", scenario]
        began_s = time.monotonic()
        process = subprocess.Popen(
            [*command, "--out", f"{folder}/out", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        watch = Watch(process.pid)
        stages = [_mark("start", began_s)]
        assert process.stderr is not None
        for line in process.stderr:
            name = line.partition(":")[0].strip()
            if name != stages[-1]["stage"]:
                stages.append(_mark(name, began_s))
        code = process.wait()
        wall_s = time.monotonic() - began_s
        seconds = watch.stop()
    ends = [*(stage["at_s"] for stage in stages[1:]), round(wall_s, 2)]
    return {
        "bench": f"run/{scenario}",
        "exit": code,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(sum(seconds.values()), 2),
        **{f"{kind}_cpu_s": round(seconds[kind], 2) for kind in KINDS},
        "load": round(load, 1),
        "stages": [
            {"stage": stage["stage"], "wall_s": round(end - stage["at_s"], 2)}
            for stage, end in zip(stages, ends, strict=True)
        ],
    }


def _mark(name: str, began_s: float) -> dict[str, Any]:
    return {"stage": name, "at_s": round(time.monotonic() - began_s, 2)}


class Watch:
    """Samples the CPU seconds of a process and of all its descendants."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._of: dict[int, tuple[str, float]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        self._ended.set()
        self._thread.join()
        sums = dict.fromkeys(KINDS, 0.0)
        for kind, seconds in self._of.values():
            sums[kind] += seconds
        return sums

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self._look(self._root, "python")

    def _look(self, pid: int, above: str) -> None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for task in Path(f"/proc/{pid}/task").iterdir():
                if task.name != str(pid):
                    children += (task / "children").read_text().split()
        except OSError:
            return
        name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat.rpartition(")")[2].split()
        kind = "java" if name == "java" else "workers" if above != "python" else "python"
        self._of[pid] = (kind, (int(fields[11]) + int(fields[12])) * TICK_S)
        for child in children:
            self._look(int(child), kind)


if __name__ == "__main__":
    main()
