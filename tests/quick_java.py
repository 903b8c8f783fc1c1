"""Options for the short-lived Java processes of tests."""

from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / ".venv" / "spark.jsa"
"""Spark's classes as the JVM has parsed and verified them, which takes more than half of a start.
`tests/archive_java.py` writes it. A JVM or a Spark that it does not fit ignores it."""
IS_THERE = ARCHIVE.exists() and ARCHIVE.stat().st_size > 0
NO_WORD = "-Xlog:cds=off -Xlog:cds+dynamic=off"
SHARED = f'"-XX:SharedArchiveFile={ARCHIVE}" {NO_WORD}' if IS_THERE else ""

OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {SHARED}".rstrip()
"""One compiler and one collector. The second compiler finishes too late for a short test."""

SHARED_CONF = {"spark.driver.extraJavaOptions": SHARED} if SHARED else {}
"""For a session with `small=True`, which has the other options already."""
CONF = {
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.executor.extraJavaOptions": OPTIONS,
}
FLAGS = tuple(word for key, value in CONF.items() for word in ("--conf", f"{key}={value}"))
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")
