"""Whole scenarios: computed once, continued after a kill, the same on a cluster, on real data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError, LocalError
from beforehand.mobility.read import read
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.work import read_progress
from beforehand.scenario.shipped import FOLDER
from beforehand.spark.session import open_session
from beforehand.verify.verdict import verify_events
from tests import quick_java
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

QUICK = FOLDER / "quick.toml"
SMALL = ("mobility.hours=0.1",)
PUBLISHED = (
    *("runs", "quantiles", "scatter", "gauges", "presence", "trace"),
    *("nodes", "messages", "meetings", "survival", "hours", "hops"),
)

# Six runs of about a second each: a sweep with a middle.
SWEEP = """\
[mobility]
generator = "walkers"
range = "50m"
hours = 0.4

[[protocols]]
name = "delta"
lifetimes = ["20m", "10m", "5m"]

[[protocols]]
name = "causal"

[[protocols]]
name = "vector"

[[protocols]]
name = "none"

[gauges]
period = "1m"
"""

HOW = ["cpu_s", "engine", "engine_why"]
"""Columns that tell how a run was computed. An executor may lack the machine code of the twin: it
then plays a small run with the cores, and the results must not depend on that."""

DRIVER = """
import json
import sys
from pathlib import Path
from beforehand.pipeline.jobs import run_scenario

path, out, master, conf, *overrides = sys.argv[1:]
place = {"master": master, "conf": json.loads(conf), "ship": "cluster" in master}
run_scenario(Path(path), Path(out), overrides=overrides, **place)
"""

ELSEWHERE = """\
import os, sys
sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, "beforehand"))]
"""
"""A `sitecustomize` with which Python does not find this package, unless it is in a zip file."""


@pytest.fixture
def run(spark, monkeypatch):
    """`run_scenario` in the session of the tests, which it must not stop."""
    opened = []

    def open_session(*_, **options):
        opened.append(options)
        return nullcontext(spark)

    monkeypatch.setattr("beforehand.spark.session.open_session", open_session)

    def run_here(path, out, **options):
        opened.clear()
        return run_scenario(path, out, **options), bool(opened)

    return run_here


def start(path, out, master, *overrides, **others):
    conf = json.dumps(quick_java.EXECUTORS | others)
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(path), str(out), master, conf, *overrides],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def labels_of(table):
    return pa.array([run.rpartition("-")[0] for run in table["run"].to_pylist()])


def assert_same_results(one, other):
    for name in PUBLISHED:
        tables = [pq.read_table(folder / f"{name}.parquet") for folder in (one, other)]
        if name == "runs":
            tables = [table.drop_columns(HOW) for table in tables]
        if "run" in tables[0].column_names:
            # The hash stands for the source code too, which somebody may just be editing.
            tables = [table.set_column(0, "run", labels_of(table)) for table in tables]
        assert tables[0].equals(tables[1]), name
        assert tables[0].num_rows > 0, name


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return tmp_path_factory.mktemp("quick")


def test_a_scenario_writes_every_dataset_that_a_report_reads(run, quick):
    summary, has_started = run(QUICK, quick, overrides=SMALL)
    assert has_started
    assert summary.state == "valid"
    verdicts = {row["protocol"]: row["verdict"] for row in summary.rows}
    assert set(verdicts.values()) == {"valid"}  # each on what its protocol promises
    promises = {row["protocol"]: row["promise"] for row in summary.rows}
    assert promises == {"causal": "causal", "delta": "causal", "vector": "causal", "none": "none"}
    assert all(0 < row["reach"] <= 1 for row in summary.rows)
    (loose,) = [row for row in summary.rows if row["protocol"] == "none"]
    assert loose["violations"] > 0
    assert {row["transfer_model"][:12] for row in summary.rows} == {"latency 2 ms"}
    for name in PUBLISHED:
        assert pq.read_table(quick / f"{name}.parquet").num_rows > 0, name
    about = json.loads((quick / "scenario.json").read_text())
    assert about["name"] == "quick"
    assert about["parameters"]["mobility"]["hours"] == 0.1
    assert about["versions"]["beforehand"]
    (trace,) = pq.read_table(quick / "trace.parquet").to_pylist()
    assert trace["contacts"] == summary.rows[0]["contacts"]
    assert 1e6 < trace["duration_avg"] < 3600e6
    assert [p.there for p in read_progress(quick)] == [p.wanted for p in read_progress(quick)]


def test_the_logs_of_a_scenario_verify_with_its_verdict(run, quick):
    summary, _ = run(QUICK, quick, overrides=SMALL)
    states = {row["run"]: row["verdict"] for row in summary.rows}
    violations = {row["run"]: row["violations"] for row in summary.rows}
    for judged in verify_events(quick).runs:
        assert judged.state == states[judged.run]
        assert sum(judged.counts.values()) == violations[judged.run]


def test_a_repeated_run_computes_nothing_and_starts_no_spark(run, quick):
    run(QUICK, quick, overrides=SMALL)
    files = {path: path.stat().st_mtime_ns for path in (quick / "data").rglob("*.*")}
    summary, has_started = run(QUICK, quick, overrides=SMALL)
    assert not has_started
    assert set(summary.computed.values()) == {0}
    assert files == {path: path.stat().st_mtime_ns for path in (quick / "data").rglob("*.*")}


def test_removed_datasets_are_rebuilt_identically_in_the_users_unchanged_session(run, spark, quick):
    first, _ = run(QUICK, quick, overrides=SMALL)
    before = {name: pq.read_table(quick / f"{name}.parquet") for name in PUBLISHED}
    lost = first.rows[1]["run"]
    (quick / "data" / "events" / lost / "manifest.json").unlink()
    (measured, *_) = (quick / "data" / "metrics").iterdir()
    (measured / "manifest.json").unlink()
    kept = {path: path.stat().st_mtime_ns for path in (quick / "data").rglob("manifest.json")}
    settings = spark.conf.getAll
    spark.sparkContext.setJobDescription("theirs")
    try:
        summary, has_started = run(QUICK, quick, overrides=SMALL, spark=spark)
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "theirs"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert not has_started
    assert spark.conf.getAll == settings
    assert spark.range(3).count() == 3
    assert summary.computed["events"] == 1
    assert (summary.computed["verdicts"], summary.computed["metrics"]) == (0, 1)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    for name in PUBLISHED:
        table = pq.read_table(quick / f"{name}.parquet")
        if name == "runs":
            table, before[name] = (t.drop_columns(["cpu_s"]) for t in (table, before[name]))
        assert table.equals(before[name]), name


def test_an_active_session_is_not_taken_over_silently(spark):
    with (
        pytest.raises(InputError, match="another Spark session is active") as refused,
        open_session("local[1]"),
    ):
        pass
    assert "spark=" in refused.value.hint
    with pytest.raises(LocalError, match="an existing session cannot be moved"):
        run_scenario(QUICK, Path("nowhere"), spark=spark, master="local[2]")
    assert spark.range(3).count() == 3


def test_an_unknown_node_is_refused_before_anything_is_simulated(run, tmp_path):
    overrides = (*SMALL, "gauges.node=nobody")
    with pytest.raises(InputError, match="no node to watch: `nobody`"):
        run(QUICK, tmp_path, overrides=overrides)
    assert not (tmp_path / "data" / "events").exists()


def run_and_kill(path, out):
    """Start a sweep and kill it once a task is done: the manifests of the tasks that are done."""
    driver = start(path, out, "local[2]")
    manifests = (out / "data" / "events").glob
    try:
        wait_until(lambda: list(manifests("*/manifest.json")) or driver.poll() is not None)
        assert driver.poll() is None, driver.communicate()[1]
    finally:
        os.kill(driver.pid, signal.SIGKILL)
        driver.communicate()
    return list(manifests("*/manifest.json"))


@pytest.mark.slow
def test_a_killed_sweep_resumes_and_ends_with_the_same_result(run, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    whole = tmp_path / "whole"
    for attempt in range(5):  # a machine that stands still may be done before it is killed
        killed = tmp_path / f"killed-{attempt}"
        done = run_and_kill(path, killed)
        if len(done) < 6:
            break
    assert 0 < len(done) < 6
    kept = {manifest: manifest.stat().st_mtime_ns for manifest in done}
    summary, _ = run(path, killed)
    assert 0 < summary.computed["events"] < 6
    assert kept == {manifest: manifest.stat().st_mtime_ns for manifest in done}
    again, _ = run(path, whole)
    assert again.computed["events"] == 6
    assert_same_results(killed, whole)


def executors_of(driver):
    """Return the ids of the Java processes in which a driver's executors run."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family = {driver.pid}
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    name = b"CoarseGrainedExecutorBackend"
    return [pid for pid in family if name in Path(f"/proc/{pid}/cmdline").read_bytes()]


def python_without_this_package(folder):
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "sitecustomize.py").write_text(ELSEWHERE)
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}/elsewhere:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return python


@pytest.mark.slow
def test_a_cluster_that_lacks_the_package_and_loses_a_worker_gives_identical_results(
    run, quick, tmp_path
):
    run(QUICK, quick, overrides=SMALL)
    others = {"spark.pyspark.python": str(python_without_this_package(tmp_path))}
    out = tmp_path / "out"
    driver = start(QUICK, out, "local-cluster[2,1,1024]", *SMALL, **others)
    wait_until(
        lambda: list((out / "data" / "events").glob("*/manifest.json")) or driver.poll() is not None
    )
    if driver.poll() is None:
        os.kill(executors_of(driver)[0], signal.SIGKILL)
    _, errors = driver.communicate()
    assert driver.returncode == 0, errors
    assert_same_results(quick, out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "settings", "nodes"),
    [
        ("gtfs_cairns/cairns_gtfs.zip", 'range = "200m"', 30),
        ("haggle_cambridge_students/haggle-one-cambridge-city-students.tsv", "", 36),
        ("infectious_dublin/listcontacts_2009_07_15.txt", 'presence = "seen"', 410),
    ],
)
def test_real_data_runs_unmodified(run, shared_data, tmp_path, file, settings, nodes):
    path = tmp_path / "real.toml"
    protocols = '[[protocols]]\nname = "delta"\nlifetimes = ["1h"]\n'
    traffic = '[traffic]\nperiod = "2h"\n'
    source = f'[mobility]\ninput = "{shared_data / file}"\n{settings}\n'
    path.write_text(source + traffic + protocols)
    summary, _ = run(path, tmp_path / "out")
    (row,) = summary.rows
    assert (row["verdict"], row["violations"]) == ("valid", 0)
    assert row["nodes"] >= nodes
    assert row["receptions"] > 100


@pytest.mark.parametrize(
    ("file", "options", "contacts"),
    [
        ("gtfs_cairns/cairns_gtfs.zip", ["--range", "200m"], 1000),
        ("haggle_cambridge_students/haggle-one-cambridge-city-students.tsv", [], 4000),
        ("infectious_dublin/listcontacts_2009_07_15.txt", [], 5000),
    ],
)
def test_contacts_of_real_data(shared_data, tmp_path, capsys, file, options, contacts):
    out = tmp_path / "contacts.csv"
    assert main(["contacts", str(shared_data / file), *options, "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["contacts"] == len(read(out, "contacts").contacts) > contacts
