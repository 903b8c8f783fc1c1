"""Ctrl-C in a stream, as a terminal sends it: to the command and to all that it started."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import quick_java
from tests.waiting import wait_until

GOES_ON = "stopping; the same command goes on from here"
SECONDS_MAX = 240
ROWS = 300


class Job:
    """A process in its own session, and the lines that it writes to stderr."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A background job of a shell ignores Ctrl-C, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.said: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self._lines.put(line)

    def wait_for(self, text: str, seconds: float = SECONDS_MAX) -> None:
        ends = time.monotonic() + seconds
        while not (self.said and text in self.said[-1]):
            self.said.append(self._lines.get(timeout=max(ends - time.monotonic(), 0.001)))

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float) -> tuple[int, str]:
        """Wait for the end; return the exit code and the output."""
        code = self.process.wait(seconds)
        out = self.process.stdout.read()
        self._reader.join()
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return code, out


@contextmanager
def started(*arguments: str) -> Iterator[Job]:
    job = Job(*arguments)
    try:
        yield job
    finally:
        if job.process.poll() is None:
            os.killpg(job.process.pid, signal.SIGKILL)
        job.process.wait()
        job._reader.join()
        job.process.stdout.close()
        job.process.stderr.close()


def write_lines(path: Path, first: int, count: int) -> None:
    rows = (
        {"process": n % 3, "time": 10**15 + 1000 * n, "id": n} for n in range(first, first + count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (first, first))  # files are read in the order of their age


@pytest.mark.slow
@pytest.mark.spark
def test_ctrl_c_in_observe_left_tracebacks(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(3):
        write_lines(folder / f"{number}.jsonl", number * ROWS // 3, ROWS // 3)
    command = ("-m", "beforehand.cli", "observe", str(folder), "--epsilon", "5ms", "--delta", "9ms")
    command += ("--checkpoint", str(tmp_path / "state"), "--out", str(out))
    command += quick_java.ONE_PARTITION

    def stop(job: Job) -> None:
        job.interrupt()
        job.wait_for(GOES_ON)
        assert job.end(SECONDS_MAX)[0] == 130
        # Spark may log until its log level is set.
        noise = ("Traceback", "py4j", "KeyboardInterrupt")
        assert not any(word in line for line in job.said for word in noise), "".join(job.said)

    with started(*command) as job:  # while it starts
        job.wait_for("waiting for files")
        stop(job)
    with started(*command, "--files-per-batch", "1") as job:  # busy: there are more batches
        job.wait_for("delivered")
        stop(job)
    with started(*command, "--idle", "1s") as job:  # idle: all is out
        job.wait_for("delivered")
        wait_until(lambda: len(read_ids(out)) == ROWS, SECONDS_MAX)
        stop(job)
    assert read_ids(out) == list(range(ROWS))


def read_ids(out: Path) -> list[int]:
    """In order of delivery, of the files that Spark has committed."""
    files = []
    for log in (out / "_spark_metadata").glob("[0-9]*"):
        entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
        files += [Path(entry["path"].removeprefix("file://")) for entry in entries]
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return [row["id"] for row in sorted(rows, key=lambda row: row["delivered_seq"])]
