"""Small logs are answered at once: one process, without Spark and Java."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow.parquet as pq

SECONDS_MAX = 1.5
"""It takes 0.8 CPU seconds on an idle machine, most of them imports; a loaded one needs more."""
CODE = """
import sys
from beforehand.cli import main
code = main(["verify", *sys.argv[1:]])
assert "pyspark" not in sys.modules and "py4j" not in sys.modules
sys.exit(code)
"""


def cpu_seconds(path):
    """The CPU time of a process that verifies a log, with all that it starts."""
    command = [sys.executable, "-c", CODE, str(path)]
    # Without Java at hand, whoever starts it fails.
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_a_small_log_is_answered_in_a_second_without_java(tmp_path):
    from tests.verify.test_verdict import CHAIN, table_of

    (tmp_path / "log.csv").write_text("node,kind,message\na,broadcast,1\nb,deliver,1\n")
    pq.write_table(table_of(CHAIN[:10]), tmp_path / "events.parquet")
    for name in ("log.csv", "events.parquet"):
        assert any(cpu_seconds(tmp_path / name) < SECONDS_MAX for _ in range(10))
