"""Measure how fast a stream is put in causal order. Claim: 1 million events per CPU second
(kernel).

`python benchmarks/bench_stream.py [alone] [files] [streams]`; by default all three. *alone* is
the kernel, and the rows and the state around it. *files* is the command on a folder, and a plain
sort by Spark. *streams* is `observe` on a streaming DataFrame beside the same stream without
observers (shuffle, Python, output), in turns: with 4 observers, with 2,000, and with batches of
few rows, which show the cost of a batch. Spark's values are warm. CPU seconds are those of the
whole process tree, because the machine may be shared.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from beforehand.kernels.observer.reorder import FOREVER, Stamps, empty_queue, reorder
from beforehand.observe.files import Stream, order_stream, order_table
from beforehand.observe.saved import decode_state, encode_state
from beforehand.observe.settings import Plan, Settings, settle
from beforehand.observe.stamps import ARRIVED_US, ENDS, KEY, PROCESS, TIE, Reordering
from beforehand.observe.state import BatchMoment, new_state, take
from beforehand.observe.stream import observe
from beforehand.protocols.observer.observer import cbd
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import Drift, Run, rule_of, simulate
from beforehand.spark.session import open_session

OBSERVERS, MESSAGES, FILES, FILES_PER_BATCH = 4, 100_000, 20, 5
REPEATS = 3
BATCH = MESSAGES // (FILES // FILES_PER_BATCH)
TICK_US = 1000
DIAL = cbd(60, 2)
PLAN = Plan(epsilon_us=10_000, delta_us=10_000, wait_percent=60, elements=2)
SYSTEM = Guarantees(10, epsilon=10, delta=10, events_per_tick=10**6)
PARTITIONS = 4
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def rows_of(run: Run, observer: int) -> pa.Table:
    at = run.arrived
    kn = run.stamps.kn[at, :2]  # send only the elements that the dial uses
    ends: Any = pa.array(np.arange(len(at) + 1, dtype=np.int32) * 2)
    lists = pa.ListArray.from_arrays(ends, pa.array(kn.ravel()))
    parts = [pa.array(run.stamps.r[at]), pa.array(run.stamps.c[at]), lists]
    return pa.table(
        {
            "observer": pa.array([f"observer {observer}"] * len(at)),
            "process": pa.array(run.stamps.process[at]),
            "stamp": pa.StructArray.from_arrays(parts, names=["r", "c", "kn"]),
            "arrived": pa.array(run.arrival[at] * TICK_US),
            "payload": pa.array([f"message {number} of {observer}" for number in at]),
        }
    )


def write_files(folder: Path, runs: list[Run]) -> int:
    rows = pa.concat_tables([rows_of(run, n) for n, run in enumerate(runs)]).sort_by("arrived")
    step = -(-len(rows) // FILES)
    for number in range(FILES):
        pq.write_table(rows.slice(number * step, step), folder / f"{number:03}.parquet")
    return len(rows)


def order_in_kernel(run: Run) -> int:
    rule = rule_of(DIAL, Drift().guarantees)
    at, queue, delivered = run.arrived, empty_queue(rule), 0
    for start in range(0, len(at), BATCH):
        part = at[start : start + BATCH]
        stamps = Stamps(*(column[part] for column in run.stamps))
        queue, out, _ = reorder(queue, run.arrival[part], part, stamps, rule)
        delivered += len(out.label)
    nothing = Stamps(*(column[:0] for column in run.stamps))
    return delivered + len(reorder(queue, at[:0], at[:0], nothing, rule, FOREVER)[1].label)


def order_rows(rows: pa.Table) -> int:
    """Order the rows of one observer as a Spark worker does."""
    order, delivered = Reordering(rule_of(DIAL, Drift().guarantees), TICK_US, "arrival"), 0
    state = new_state(order)
    for start in range(0, len(rows), BATCH):
        state, out = take(state, rows.slice(start, BATCH), order, BatchMoment())
        state = decode_state(encode_state(state, order, 1), order, 1)
        delivered += len(out)
    return delivered + len(take(state, rows.slice(0, 0), order, BatchMoment(is_last=True))[1])


def with_marks(rows: pa.Table) -> pa.Table:
    count = len(rows)
    marks: dict[str, Any] = {
        KEY: rows["observer"],
        PROCESS: rows["process"],
        ARRIVED_US: rows["arrived"],
    }
    marks |= {TIE: pa.array(np.arange(count)), ENDS: pa.array(np.zeros(count, np.bool_))}
    for name, column in marks.items():
        rows = rows.append_column(name, column)
    return rows


def sort_table(spark: SparkSession, folder: Path, out: Path, settings: Settings) -> None:
    """Sort by logical time only: no wait, no marks, no counts."""
    events = spark.read.schema(settings.columns).parquet(str(folder))
    keys: list[Any] = ["observer", F.expr("stamp.r + stamp.c"), "stamp.kn", "process"]
    events.repartition("observer").sortWithinPartitions(*keys).write.parquet(str(out))


def stream_files(spark: SparkSession, folder: Path, out: Path) -> None:
    checkpoint = out.with_name("checkpoint")
    stream = Stream(folder=folder, out=out, checkpoint=checkpoint, files_per_batch=FILES_PER_BATCH)
    order_stream(spark, stream, PLAN, until="read")
    shutil.rmtree(checkpoint)


def tree_cpu_s() -> float:
    """Return the CPU seconds of this process and its descendants, including ended ones; Linux
    only."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    family, used = {os.getpid()}, 0
    while new := {pid for pid, (parent, _) in stats.items() if parent in family} - family:
        family |= new
    used = sum(ticks for pid, (_, ticks) in stats.items() if pid in family)
    return used / CLOCK_TICKS


def report(bench: str, rates: list[float], unit: str, **facts: float) -> None:
    line = {
        "bench": f"stream/{bench}",
        unit: round(statistics.median(rates)),
        "spread": round(max(rates) / min(rates), 2),
        "repeats": len(rates),
        **facts,
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }
    print(json.dumps(line), flush=True)


def bench_alone(runs: list[Run]) -> None:
    rows = with_marks(rows_of(runs[0], 0))
    for name, work in (
        ("kernel", partial(order_in_kernel, runs[0])),
        ("worker", partial(order_rows, rows)),
    ):
        work()  # compile, or load from the cache
        rates = []
        for _ in range(2 * REPEATS):
            started = time.process_time()
            assert work() == len(rows)
            rates.append(len(rows) / (time.process_time() - started))
        report(name, rates, "events_per_cpu_s")


def bench_spark(spark: SparkSession, folder: Path, events: int) -> None:
    out = folder.with_name("out")
    settings = settle(spark, folder, PLAN)
    works: dict[str, Callable[[], object]] = {
        "spark-sort": lambda: sort_table(spark, folder, out, settings),
        "spark-table": lambda: order_table(spark, folder, out, PLAN),
        "spark-stream": lambda: stream_files(spark, folder, out),
    }
    for name, work in works.items():
        rates, cpu = [], []
        for _ in range(REPEATS + 1):
            before, started = tree_cpu_s(), time.perf_counter()
            work()
            rates.append(events / (time.perf_counter() - started))
            cpu.append(events / (tree_cpu_s() - before))
            shutil.rmtree(out)
        facts = {"cold": round(rates[0]), "events_per_cpu_s": round(statistics.median(cpu[1:]))}
        report(name, rates[1:], "events_per_s", **facts)


def follow(
    spark: SparkSession, folder: Path, top: Path, observers: int | None
) -> list[dict[str, int]]:
    """Run a stream over the files, with so many observers; None: pass the rows on. Return the
    durations of its batches."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH)
    events = reader.parquet(str(folder))
    if observers is None:
        done = events.repartition(PARTITIONS, "observer").mapInArrow(lambda rows: rows, schema)
    else:
        if observers != OBSERVERS:
            name = F.pmod(F.xxhash64("payload"), F.lit(observers)).cast("string")
            events = events.withColumn("observer", name)
        done = observe(
            events,
            SYSTEM,
            DIAL,
            tick_us=TICK_US,
            idle_us=None,
            state=top / "observers",
            partitions=PARTITIONS,
        )
    writer = done.writeStream.option("checkpointLocation", str(top / "spark"))
    query = writer.trigger(availableNow=True).start(str(top / "out"))
    query.awaitTermination()
    return [dict(progress.durationMs) for progress in query.recentProgress]


def bench_streams(spark: SparkSession, folder: Path, events: int) -> None:
    small = folder.with_name("small")
    small.mkdir()
    rows = pq.read_table(folder / "000.parquet")
    for number in range(FILES):
        pq.write_table(rows.slice(number * OBSERVERS, OBSERVERS), small / f"{number:03}.parquet")
    cases: dict[str, tuple[Path, int | None]] = {
        "no observers": (folder, None),
        "4 observers": (folder, OBSERVERS),
        "2,000 observers": (folder, 2000),
        "no observers, few rows": (small, None),
        "4 observers, few rows": (small, OBSERVERS),
    }
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(REPEATS + 1):
        for name, (source, observers) in cases.items():
            with tempfile.TemporaryDirectory(dir=folder.parent) as top:
                before = tree_cpu_s()
                batches = follow(spark, source, Path(top), observers)
                cpu_s = tree_cpu_s() - before
            longest = statistics.median(batch["triggerExecution"] for batch in batches)
            measured[name].append((cpu_s, longest))
    batches_made = FILES // FILES_PER_BATCH
    for name, found in measured.items():
        cpu = [cpu_s for cpu_s, _ in found[1:]]
        facts = {"batch_ms": round(statistics.median(ms for _, ms in found[1:]))}
        if "few" in name:
            report(
                name, [1000 * cpu_s / batches_made for cpu_s in cpu], "cpu_ms_per_batch", **facts
            )
        else:
            report(name, [events / cpu_s for cpu_s in cpu], "events_per_cpu_s", **facts)


def main() -> None:
    words = set(sys.argv[1:]) or {"alone", "files", "streams"}
    runs = [simulate(Drift(messages=MESSAGES, seed=seed)) for seed in range(OBSERVERS)]
    if "alone" in words:
        bench_alone(runs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "in")
        folder.mkdir()
        events = write_files(folder, runs)
        with open_session("local[2]", app="bench-stream") as spark:
            if "files" in words:
                bench_spark(spark, folder, events)
            if "streams" in words:
                bench_streams(spark, folder, events)


if __name__ == "__main__":
    main()
