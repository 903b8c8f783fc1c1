"""Executors with other code, without the package or the folder: refused before any stage."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipeline.in_process import InProcess

import beforehand
from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.pipeline.jobs import run_scenario
from beforehand.spark import executors, tasks
from beforehand.spark.executors import (
    _probe,
    check_executors,
    code_here,
    has_executors,
    is_local,
    same_code,
)
from beforehand.spark.tasks import run_tasks

SCENARIO = '[scenario]\nworld = "overlay"\n[sweep]\nseeds = 1\n[overlay]\nnodes = [8]\n'
FOUND = {"host": "node7", "code": "", "problem": "", "unshared": []}
OTHER = "sources 0123456789ab, numpy 2.0.0, numba 0.61.0"


def look(marks, sizes):
    batch = pa.record_batch({"id": pa.array([0], pa.int64())})
    ((row,),) = (out.to_pylist() for out in _probe(marks, sizes)(iter([batch])))
    return json.loads(row["seen"])


@pytest.fixture
def cluster(monkeypatch):
    """A stand-in for a session on a cluster. The test sets what its executors find."""
    session = InProcess()
    session.sparkContext.master = "spark://host:7077"
    session.sparkContext.defaultParallelism = 2
    monkeypatch.setattr("beforehand.spark.session.open_session", session.open)

    def finds(**found):
        text = json.dumps(FOUND | {"code": code_here()} | found)
        rows = pa.RecordBatch.from_pydict({"seen": [text]})
        monkeypatch.setattr(executors, "_probe", lambda *_: lambda batches: [rows for _ in batches])
        return session

    return finds


@pytest.mark.parametrize(
    ("found", "fragments"),
    [
        (
            {"code": OTHER},
            ["runs other code: sources 0123456789ab", "at node7", "install this version"],
        ),
        (
            {"code": "", "problem": "No module named 'beforehand'"},
            ["does not have this package, or what it needs: No module", "at node7", "install"],
        ),
        (
            {"unshared": [("/results", "No such file or directory")]},
            ["does not share the folder: No such", "node7: /results", "share"],
        ),
    ],
)
def test_executors_with_other_code_are_refused_before_any_stage(
    cluster, tmp_path, capsys, found, fragments
):
    cluster(**found)
    path, out = tmp_path / "small.toml", tmp_path / "out"
    path.write_text(SCENARIO)
    master = ["--master", "spark://host:7077"]
    assert main(["run", str(path), "--out", str(out), "--no-report", *master]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: an executor ")
    assert all(fragment in said for fragment in fragments)
    assert "Traceback" not in said
    assert [file.name for file in out.iterdir()] == ["plan.json"]


def test_executors_with_the_same_code_are_accepted(cluster, tmp_path):
    session = cluster()
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    assert run_scenario(path, tmp_path / "out", master="spark://host:7077").computed
    assert "beforehand overlay" in session.sparkContext.descriptions


def test_a_task_reads_code_and_folder_of_its_executor(tmp_path, monkeypatch):
    mark, events = tmp_path / "mark", tmp_path / "in" / "events"
    mark.write_text("said")
    events.parent.mkdir()
    events.write_text("abc")
    found = look({str(mark): "said"}, {str(events): 3})
    assert (found["code"], found["unshared"]) == (code_here(), [])
    monkeypatch.setattr("time.sleep", lambda _: None)
    other = [[str(tmp_path), "it has another file"]]
    assert look({str(mark): "other"}, {str(events): 3})["unshared"] == other
    missing = look({str(tmp_path / "nothing"): "said"}, {})["unshared"]
    assert missing == [[str(tmp_path), "No such file or directory"]]


def test_input_missing_at_an_executor_was_silently_skipped_by_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    events = tmp_path / "in" / "1.jsonl"
    assert look({}, {str(events): 3})["unshared"] == [
        [str(events.parent), "No such file or directory"]
    ]
    events.parent.mkdir()
    events.write_text("something else")
    assert look({}, {str(events): 3})["unshared"] == [[str(events.parent), "it has another file"]]


def test_a_late_executor_with_other_code_reports_it_and_runs_no_task(monkeypatch):
    done = []
    monkeypatch.setattr(tasks, "code_here", iter([OTHER, code_here(), code_here()]).__next__)
    with pytest.raises(InputError, match=f"runs other code: .* here it is {OTHER}") as refused:
        run_tasks(InProcess(), "work", [1], done.append)
    assert refused.value.where
    assert not done
    kernel = same_code(done.append)
    monkeypatch.setattr(executors, "code_here", lambda: OTHER)
    with pytest.raises(InputError, match="runs other code"):
        kernel(1)


def test_only_a_master_without_executors_is_local():
    masters = ("local", "local[*]", "local[2]", "local-cluster[2,1,1024]", "spark://host:7077")
    assert [is_local(master) for master in masters] == [True, True, True, False, False]
    assert not has_executors(InProcess())


@pytest.mark.spark
def test_executors_with_other_code_or_without_the_package_are_detected_by_an_import(
    spark, tmp_path
):
    other, missing = tmp_path / "other", tmp_path / "missing"
    for folder in (other, missing):
        (folder / "beforehand").mkdir(parents=True)
    for path in Path(beforehand.__file__).parent.iterdir():  # what is linked is compiled already
        (other / "beforehand" / path.name).symlink_to(path)
    (other / "beforehand" / "added.py").write_text("# one more file\n")
    absent = """raise ModuleNotFoundError("No module named 'beforehand'")\n"""
    (missing / "beforehand" / "__init__.py").write_text(absent)
    environment = spark.sparkContext.environment
    try:
        environment["PYTHONPATH"] = str(other)
        with pytest.raises(InputError, match="runs other code"):
            check_executors(spark, tmp_path)
        with pytest.raises(InputError, match="runs other code"):
            run_tasks(spark, "work", [1, 2], abs)
        environment["PYTHONPATH"] = str(missing)
        with pytest.raises(
            InputError, match="does not have this package, or what it needs: No module named"
        ):
            check_executors(spark, tmp_path)
        with pytest.raises(InputError, match="does not have this package"):
            run_tasks(spark, "work", [1, 2], abs)
    finally:
        del environment["PYTHONPATH"]
    check_executors(spark, tmp_path)
    assert not list(tmp_path.glob(".shared*"))


@pytest.mark.spark
def test_a_missing_python_was_reported_as_an_internal_error(spark, tmp_path, capfd):
    before = spark.sparkContext.pythonExec
    try:
        spark.sparkContext.pythonExec = "/nowhere/python"
        with pytest.raises(InputError, match="there is no Python at `/nowhere/python`"):
            check_executors(spark, tmp_path)
        with pytest.raises(InputError, match="there is no Python at `/nowhere/python`"):
            run_tasks(spark, "work", [1, 2], abs)
    finally:
        spark.sparkContext.pythonExec = before
    capfd.readouterr()  # what Spark has to say about its tasks
