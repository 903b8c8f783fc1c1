"""Watch three processes with wrong clocks whose reports arrive late and out of order.

    python examples/observer_live/watch.py --seconds 20

The program starts process.py three times, puts the reports in causal order with Spark, and prints
them as they are delivered. It ends some seconds after the processes. It then prints how many
answers came before their question: as shown, and as sorted by the clocks of the processes.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from process import SYSTEM, TICK_US
from pyspark.sql import Row, SparkSession
from rich.console import Console

from beforehand.observe.stream import observe
from beforehand.spark.session import open_session

SKEWS_MS = (-45, 0, 45)
COLOURS = ("cyan", "magenta", "yellow")
VERBS = ("asks", "answers", "thanks")
SCHEMA = (
    "observer string, process int, stamp struct<r: bigint, c: int, kn: array<int>>,"
    " verb string, question string, target int, arrived bigint"
)
IDLE_US = 3_000_000
PATIENCE_S = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20, help="how long the processes talk")
    seconds = parser.parse_args().seconds
    console = Console()
    console.print("starting Spark ...")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "reports")
        folder.mkdir()
        with open_session("local[2]", app="observer-live", small=True) as spark:
            shown = watch(spark, folder, Path(scratch, "observers"), seconds, console)
        print_verdict(shown, count_reports(folder), console)
    return 0


def watch(
    spark: SparkSession, folder: Path, state: Path, seconds: float, console: Console
) -> list[Row]:
    """Return all rows, in the order in which they were shown."""
    reports = spark.readStream.schema(SCHEMA).json(str(folder))
    ordered = observe(reports, SYSTEM, tick_us=TICK_US, idle_us=IDLE_US, state=state)
    query = ordered.writeStream.format("memory").queryName("shown").start()
    processes = start_processes(folder, seconds)
    shown: list[Row] = []
    gives_up = time.monotonic() + seconds + PATIENCE_S
    try:
        while not is_over(processes, folder, len(shown)) and time.monotonic() < gives_up:
            query.awaitTermination(1)
            fresh = spark.table("shown").where(f"delivered_seq >= {len(shown)}")
            for row in fresh.orderBy("delivered_seq").collect():
                shown.append(row)
                print_row(row, console)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        query.stop()
    return shown


def is_over(processes: list[subprocess.Popen[bytes]], folder: Path, shown: int) -> bool:
    return all(p.poll() is not None for p in processes) and shown == count_reports(folder)


def start_processes(folder: Path, seconds: float) -> list[subprocess.Popen[bytes]]:
    program = str(Path(__file__).with_name("process.py"))
    ports = [str(port) for port in free_ports(len(SKEWS_MS))]
    return [
        subprocess.Popen([sys.executable, program, str(n), str(skew), str(seconds), folder, *ports])
        for n, skew in enumerate(SKEWS_MS)
    ]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for unused in sockets:
        unused.bind(("127.0.0.1", 0))
    ports = [unused.getsockname()[1] for unused in sockets]
    for unused in sockets:
        unused.close()
    return ports


def count_reports(folder: Path) -> int:
    return sum(file.read_text().count("\n") for file in folder.glob("*.jsonl"))


def print_row(row: Row, console: Console) -> None:
    said = f"{row.process} {row.verb} {row.target} about {row.question}"
    marks = [name for name in ("moved", "late", "suspect") if row[name]]
    console.print(
        f"{row.delivered_seq:4} {row.delivered_at:%H:%M:%S.%f}"[:-4],
        f"[{COLOURS[row.process]}]{'':<{8 * row.process}}{said:<{38 - 8 * row.process}}[/]",
        f"[dim]{' '.join(marks)}[/]",
        highlight=False,
    )


def print_verdict(shown: list[Row], reported: int, console: Console) -> None:
    moved = sum(row.moved for row in shown)
    console.print(f"{len(shown)} of {reported} reports shown, {moved} of them moved")
    by_clock = sorted(shown, key=lambda row: row.stamp.r)
    console.print(f"too early, as shown: {count_early(shown)}")
    console.print(f"too early, if sorted by their clocks: {count_early(by_clock)}")


def count_early(rows: Iterable[Row]) -> int:
    """Count answers before their question, and thanks before their answer."""
    said = set()
    early = 0
    for row in rows:
        said.add((row.question, row.verb))
        before = VERBS.index(row.verb) - 1
        early += before >= 0 and (row.question, VERBS[before]) not in said
    return early


if __name__ == "__main__":
    sys.exit(main())
