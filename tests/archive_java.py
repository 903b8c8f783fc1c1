"""Write the archive of Spark's classes that `quick_java` names, which belongs to the environment.

A JVM that maps the archive takes about 5 s of processor time to its first query instead of 10,
and the tests start some twenty of them.
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

from pyspark import SparkContext

from beforehand.cli import main as command
from beforehand.spark.session import open_session
from tests.quick_java import ARCHIVE, NO_WORD

SECONDS_MAX = 300


def main() -> None:
    ARCHIVE.parent.mkdir(exist_ok=True)
    written = ARCHIVE.with_suffix(f".{os.getpid()}")
    conf = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={written} {NO_WORD}"}
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
