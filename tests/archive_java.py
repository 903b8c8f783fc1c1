"""Write the archive of Spark's classes with which every session of this environment starts.

A JVM that maps it takes half of the CPU time to its first query.
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

from pyspark import SparkContext

from beforehand.cli import main as command
from beforehand.spark.java import ARCHIVE, NO_WARNING
from beforehand.spark.session import open_session

SECONDS_MAX = 300


def main() -> None:
    ARCHIVE.unlink(missing_ok=True)  # a JVM that maps one cannot write another
    written = ARCHIVE.with_suffix(f".{os.getpid()}")
    options = (f"-XX:ArchiveClassesAtExit={written}", *NO_WARNING)
    conf = {"spark.driver.extraJavaOptions": " ".join(options)}
    with tempfile.TemporaryDirectory() as scratch:
        with open_session("local[2]", small=True, conf=conf) as spark:
            rows = spark.range(0, 6, 1, 2).mapInArrow(lambda batches: batches, "id long")
            rows.write.parquet(f"{scratch}/rows")
            spark.read.parquet(f"{scratch}/rows").groupBy("id").count().collect()
        _observe(Path(scratch))  # the same Java process serves the next session
    _end_java()
    if written.exists():
        written.replace(ARCHIVE)
    else:
        ARCHIVE.write_bytes(b"")  # this JVM cannot write one, and need not be asked again


def _observe(scratch: Path) -> None:
    (scratch / "in").mkdir()
    rows = [{"process": n % 3, "time": 10**15 + 100 * n} for n in range(30)]
    (scratch / "in" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bounds = ["--epsilon", "1ms", "--delta", "1ms"]
    paths = ["--checkpoint", str(scratch / "state"), "--out", str(scratch / "out")]
    words = ["-q", "observe", str(scratch / "in"), *bounds, *paths, "--once"]
    with contextlib.redirect_stdout(io.StringIO()):
        command(words)


def _end_java() -> None:
    """Close the input of the JVM, so that it exits; it then writes the archive."""
    process = SparkContext._gateway.proc
    process.stdin.close()
    process.wait(SECONDS_MAX)


if __name__ == "__main__":
    main()
