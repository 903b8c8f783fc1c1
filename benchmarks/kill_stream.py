"""Kill a stream with `kill -9` at drawn points, and compare what it delivered with a batch run.

`python benchmarks/kill_stream.py [--kills 20] [--observers 2000] [--seed 1]`. Each run of the
stream is killed some time after it has committed one or two more batches: while it reads, orders,
writes or commits. The last run goes on to the end. Every event must be there once, with the order
and the marks of a batch run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.settings import Plan
from beforehand.sim.drift import Drift, simulate
from beforehand.spark.session import open_session

PLAN = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=60, elements=2, partitions=4)
EVENTS, TICK_US = 60_000, 1000
BATCH_SECONDS_MAX = 3.0
SECONDS_MAX = 600


def write_events(folder: Path, observers: int, files: int) -> int:
    run = simulate(Drift(messages=EVENTS, seed=1))
    at = run.arrived
    kn, eyes = run.stamps.kn[at, :2], np.random.default_rng(1).integers(0, observers, len(at))
    starts: Any = pa.array(np.arange(len(at) + 1, dtype=np.int32) * 2)
    lists = pa.ListArray.from_arrays(starts, pa.array(kn.ravel()))
    parts = [pa.array(run.stamps.r[at]), pa.array(run.stamps.c[at]), lists]
    rows = pa.table(
        {
            "observer": pa.array(eyes),
            "process": pa.array(run.stamps.process[at]),
            "stamp": pa.StructArray.from_arrays(parts, names=["r", "c", "kn"]),
            "arrived": pa.array(run.arrival[at] * TICK_US),
            "id": pa.array(at),
        }
    )
    step = -(-len(rows) // files)
    for number in range(files):
        pq.write_table(rows.slice(number * step, step), folder / f"{number:03}.parquet")
    return len(rows)


def follow(top: Path) -> None:
    """Run the stream to its end, unless this process is killed."""
    with open_session("local[2]", small=True) as spark:
        order_stream(spark, stream_of(top), PLAN, until="empty")


def stream_of(top: Path) -> Stream:
    return Stream(folder=top / "in", out=top / "out", checkpoint=top / "state", files_per_batch=1)


def commits(top: Path) -> int:
    return len(list((top / "state/spark/commits").glob("[0-9]*")))


def run_and_kill(top: Path, draw: random.Random) -> bool:
    """Return whether the stream was killed before its end."""
    command = [sys.executable, __file__, "--follow", str(top)]
    scratch = os.environ | {"TMPDIR": str(top), "SPARK_LOCAL_DIRS": str(top)}
    before, more = commits(top), draw.randint(1, 2)
    with subprocess.Popen(command, env=scratch, start_new_session=True) as job:
        ends = time.monotonic() + SECONDS_MAX
        while commits(top) < before + more and job.poll() is None and time.monotonic() < ends:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, BATCH_SECONDS_MAX))
        was_killed = job.poll() is None
        if was_killed:
            os.killpg(job.pid, signal.SIGKILL)
    return was_killed


def compare(top: Path, events: int) -> dict[str, int]:
    with open_session("local[2]", small=True) as spark:
        order_stream(spark, stream_of(top), PLAN, until="empty")
        order_table(spark, top / "in", top / "table", PLAN)
        found, table = (spark.read.parquet(str(top / name)) for name in ("out", "table"))
        return {
            "events": events,
            "delivered": found.count(),
            "distinct": found.select("id").distinct().count(),
            "not_as_in_batch": table.exceptAll(found).count() + found.exceptAll(table).count(),
            "batches": commits(top),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--observers", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--follow", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.follow is not None:
        follow(args.follow)
        return
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        (top / "in").mkdir()
        events = write_events(top / "in", args.observers, files=3 * args.kills)
        kills = sum(run_and_kill(top, draw) for _ in range(args.kills))
        found = compare(top, events)
    line = {"kills": kills, "observers": args.observers, **found, "load": os.getloadavg()[0]}
    print(json.dumps(line))
    if found["not_as_in_batch"] or not found["delivered"] == found["distinct"] == events:
        raise SystemExit("the stream is not what the batch is")


if __name__ == "__main__":
    main()
