from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.waiting import SECONDS_MAX, wait_until

from beforehand.errors import InputError
from beforehand.spark import session
from beforehand.spark.progress import progress_bar, watch_tasks
from beforehand.spark.session import _end_launcher, _environment, open_session
from beforehand.temporary import scratch_folder

SERVER = """
import sys
from beforehand.spark.session import open_session

with open_session("local[2]", small=True):
    print("ready", flush=True)
    sys.stdin.read()
"""
SERVER_OPTIONS = (
    "--conf spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin"
    " --conf spark.connect.grpc.binding.address=127.0.0.1"
    " --conf spark.connect.progress.reportInterval=100ms"
    " --conf spark.connect.grpc.binding.port={port} pyspark-shell"
)
CLIENT = """
import sys
from pathlib import Path
from beforehand.spark import session
from beforehand.spark.progress import watch_tasks
from beforehand.spark.session import open_session

seen, seconds = Path("seen").resolve(), float(sys.argv[2])


def until_seen(batches):
    import time  # the progress is shown only while a job runs

    ends = time.monotonic() + seconds
    while not seen.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    yield from batches


def show(done, total):
    if total == 6:
        seen.touch()


with open_session(remote=sys.argv[1]) as spark, watch_tasks(spark, show):
    rows = spark.range(0, 6, 1, 6).mapInArrow(until_seen, "id long").count()
    zone = spark.conf.get("spark.sql.session.timeZone")
    print(type(spark).__module__, zone, rows, seen.exists())

from beforehand.cli import main

remote = ["--remote", sys.argv[1]]
print(main(["-q", "run", "small.toml", "--out", "run", "--no-report", *remote]))
bounds = ["--epsilon", "1ms", "--delta", "1ms"]
print(main(["-q", "observe", "in", *bounds, "--out", "once", "--json", *remote]))

from beforehand.errors import InputError

try:
    with open_session(remote=sys.argv[1], conf={"spark.driver.memory": "1g"}):
        pass
except InputError as error:
    print("refused:", error.render())
"""
SCENARIO = '[scenario]\nworld = "overlay"\n[sweep]\nseeds = 2\n[overlay]\nnodes = [8]\n'


def slowly(batches):
    for batch in batches:
        time.sleep(0.3)
        yield batch


@pytest.fixture
def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@pytest.mark.spark
def test_workers_run_this_python_with_its_packages(spark):
    def report(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(report, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


@pytest.mark.spark
def test_sessions_use_utc_and_few_shuffle_partitions(spark):
    assert spark.sql("select string(timestamp_micros(0))").first()[0] == "1970-01-01 00:00:00"
    assert spark.range(100).repartition("id").rdd.getNumPartitions() == 1


@pytest.mark.spark
def test_tables_go_to_a_scratch_folder(spark):
    scratch = str(scratch_folder())
    assert scratch in spark.conf.get("spark.sql.warehouse.dir")
    assert spark.sparkContext.getConf().get("spark.local.dir") == scratch


@pytest.mark.spark
def test_progress_counts_tasks_up_to_all_of_them(spark):
    seen = []
    with watch_tasks(spark, lambda done, total: seen.append((done, total))):
        spark.range(0, 6, 1, 6).mapInArrow(slowly, "id long").collect()
    assert {total for _, total in seen} == {6}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] > 0


@pytest.mark.spark
def test_progress_is_silent_where_there_is_no_terminal(spark, capfd):
    with progress_bar(spark, "counting"):
        assert spark.range(3).count() == 3
    printed, said = capfd.readouterr()
    assert printed == ""
    assert "counting" not in said  # the session's JVM may log a line of its own meanwhile


@pytest.mark.spark
def test_progress_is_drawn_on_a_terminal(spark, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar(spark, "counting"):
        spark.range(0, 6, 1, 6).mapInArrow(slowly, "id long").collect()
    assert "counting" in terminal.getvalue()
    assert "/6" in terminal.getvalue()


@pytest.mark.slow
@pytest.mark.spark
def test_a_connect_server_serves_commands_and_neither_side_prints_a_traceback(free_port, tmp_path):
    # Two processes of their own: one Python process has Spark or Connect, never both.
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "in").mkdir()
    rows = [{"process": n % 3, "time": 10**15 + 100 * n} for n in range(30)]
    (tmp_path / "in" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = SERVER_OPTIONS.format(port=free_port)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": options},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout.readline() == "ready\n", server.stderr.read()
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{free_port}", str(SECONDS_MAX)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        server_printed, server_said = server.communicate()
    assert (client.returncode, server.returncode) == (0, 0), client.stderr + server_said
    # Spark and gRPC may log. This project sets the level and one line for each record, and lets no
    # exception of its own escape.
    assert server_printed == ""
    for text in (client.stderr, server_said):
        assert "Traceback" not in text
        assert not re.search(r"^\s+at [\w.$]+\(", text, re.MULTILINE), "a Java stack trace"
        assert not re.search(r"^spark: (?!ERROR|FATAL)", text, re.MULTILINE), "below level error"
    first, *lines = client.stdout.splitlines()
    assert first.split() == ["pyspark.sql.connect.session", "UTC", "6", "True"]
    assert [line for line in lines if line.isdigit()] == ["0", "0"]  # exit codes
    assert '"delivered": 30,' in client.stdout
    told = client.stdout.partition("refused: ")[2]
    assert "Cannot modify" in told.splitlines()[0]
    assert "stacktrace" not in told
    assert "where the server is started" in told
    assert len(pq.read_table(tmp_path / "once")) == 30


def test_environment_variables_for_spark_are_restored_after_the_start(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "before")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with _environment({"JAVA_HOME": "ours", "SPARK_LOCAL_IP": "127.0.0.1"}):
        assert os.environ["JAVA_HOME"] == "ours"
    assert os.environ["JAVA_HOME"] == "before"
    assert "SPARK_LOCAL_IP" not in os.environ


@pytest.mark.parametrize("master", ["nonsense", "http://localhost", "locally", " "])
def test_an_unknown_spark_master_is_refused_at_once(master):
    with pytest.raises(InputError, match="not a Spark master"), open_session(master):
        pass


def test_an_address_without_a_listener_is_refused_at_once(free_port):
    with (
        pytest.raises(InputError, match="refused"),
        open_session(f"spark://127.0.0.1:{free_port},127.0.0.1:{free_port}"),
    ):
        pass
    with (
        pytest.raises(InputError, match="refused"),
        open_session(remote=f"sc://127.0.0.1:{free_port}"),
    ):
        pass


@pytest.mark.parametrize("remote", ["local[2]", "http://host", "sc://", "sc://host:port"])
def test_an_address_of_another_service_than_a_connect_server_is_refused(remote):
    with (
        pytest.raises(InputError, match=r"Connect server|could not be cast"),
        open_session(remote=remote),
    ):
        pass


def test_a_master_and_a_connect_server_together_are_refused():
    with (
        pytest.raises(InputError, match="both a master and a Connect server"),
        open_session("local[1]", "sc://localhost"),
    ):
        pass


@pytest.mark.spark
def test_a_setting_that_spark_refuses_is_not_an_internal_error(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    words = ["run", "small.toml", "--conf", "spark.sql.shuffle.partitions=-4", "--master", "local"]
    command = [sys.executable, "-m", "beforehand.cli", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "must be positive" in done.stderr
    assert "check the settings of `--conf`" in done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="children are listed by Linux")
@pytest.mark.parametrize("is_known", [True, False])
def test_ctrl_c_during_the_start_of_java_left_a_shell_with_an_error(tmp_path, is_known):
    """Of a folder that was gone by then. is_known: whether Spark had the process in hand."""

    launched = []
    inner = tmp_path / "inner"

    def launch():
        nested = f"echo $$ > {inner}.new; mv {inner}.new {inner}; sleep 600; touch {inner}.goes_on"
        started = subprocess.Popen(["sh", "-c", f"(sh -c '{nested}') & wait"])
        launched.append(started)
        wait_until(inner.exists)
        if is_known:
            proc = started  # noqa: F841
            raise KeyboardInterrupt
        come_up(started)

    def come_up(self):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        launch()
    _end_launcher(traceback.walk_tb(interrupted.value.__traceback__))
    assert launched[0].wait() == -signal.SIGKILL
    wait_until(lambda: is_gone(int(inner.read_text())))


def test_logging_of_java_is_off_before_java_is_ended(monkeypatch):
    """Otherwise Spark logs every task that an interruption breaks off."""
    told = []
    process = SimpleNamespace(
        terminate=lambda: told.append("terminate"), kill=lambda: told.append("kill")
    )
    context = SimpleNamespace(_jsc=object(), setLogLevel=told.append)
    monkeypatch.setattr(session.SparkContext, "_gateway", SimpleNamespace(proc=process))
    monkeypatch.setattr(session.SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(session, "_ended", [])
    monkeypatch.setattr(session, "SILENCE_SECONDS_MAX", 60)
    monkeypatch.setattr(session, "GOODBYE_SECONDS_MAX", 0)
    session.end_java(at_once=False)
    assert told[:2] == ["OFF", "terminate"]
    wait_until(lambda: told[2:] == ["kill"])  # it did not end by itself


def is_gone(number):
    """Return whether no process has this id, or only a zombie."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
