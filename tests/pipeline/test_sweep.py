"""A sweep computes the missing datasets and no others."""

import shutil
from dataclasses import replace

import pytest

from beforehand.pipeline.experiment import Conclusion
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.stages import AsTasks, Job, Made, Stage, Task
from beforehand.pipeline.sweep import ROWS_FILE, read_rows, sweep_stage
from beforehand.pipeline.work import read_progress
from beforehand.pipeline.worlds import drift
from tests.pipeline.in_process import InProcess

TASKS = [Task(f"n{n}", {"n": n}, n, cost=n) for n in (2, 5, 3)]


class Squares:
    """A function that records its arguments."""

    def __init__(self):
        self.calls = []

    def __call__(self, job):
        n = job.spec
        self.calls.append(n)
        return [{"n": n, "square": n * n}, {"n": n, "square": -n * n}]


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A world of squares in the place of another."""
    path = tmp_path / "squares.toml"
    path.write_text('[scenario]\nworld = "drift"\n')

    def run(function, tasks=TASKS, session=None):
        stage = sweep_stage("squares", ("errors.py",), lambda _: tasks, function)
        squares = replace(
            drift.EXPERIMENT,
            stages=lambda: (stage,),
            conclude=lambda _, work: Conclusion({}, "valid", read_rows(work["squares"])),
        )
        monkeypatch.setattr(drift, "EXPERIMENT", squares)
        session = session or InProcess()
        monkeypatch.setattr("beforehand.spark.session.open_session", session.open)
        return run_scenario(path, tmp_path)

    return run


def folder_of(root, label):
    (found,) = (root / "data" / "squares").glob(f"{label}-*")
    return found


def test_all_rows_come_in_the_order_of_the_tasks_and_the_longest_start_first(sweep, tmp_path):
    squares = Squares()
    swept = sweep(squares)
    assert [row["square"] for row in swept.rows] == [4, -4, 25, -25, 9, -9]
    assert squares.calls == [5, 3, 2]
    assert swept.computed == {"squares": 3}


def test_a_finished_sweep_opens_no_session(sweep, tmp_path):
    first = sweep(Squares())
    session, squares = InProcess(), Squares()
    again = sweep(squares, session=session)
    assert (session.opened, squares.calls, again.computed) == (0, [], {"squares": 0})
    assert again.rows == first.rows


@pytest.mark.parametrize("lost", ["folder", "manifest.json"])
def test_only_missing_results_are_computed(sweep, tmp_path, lost):
    first = sweep(Squares())
    if lost == "folder":
        shutil.rmtree(folder_of(tmp_path, "n5"))
    else:  # a task that was killed after it wrote its rows
        (folder_of(tmp_path, "n5") / lost).unlink()
        (folder_of(tmp_path, "n5") / ROWS_FILE).write_bytes(b"cut off")
    squares = Squares()
    again = sweep(squares)
    assert squares.calls == [5]
    assert again.computed == {"squares": 1}
    assert again.rows == first.rows


def test_other_parameters_are_another_result(sweep, tmp_path):
    sweep(Squares())
    squares = Squares()
    sweep(squares, [Task("n2", {"n": 2, "tries": 9}, 2), *TASKS])
    assert squares.calls == [2]


def test_a_failing_task_keeps_the_finished_results_of_others(sweep, tmp_path):
    def fails_at_3(job):
        if job.spec == 3:
            raise RuntimeError("out of luck")
        return [{"n": job.spec}]

    with pytest.raises(RuntimeError, match="out of luck"):
        sweep(fails_at_3)
    (progress,) = read_progress(tmp_path)
    assert (progress.stage, progress.there, progress.wanted) == ("squares", 1, 3)


def test_a_task_makes_what_follows_from_its_dataset_and_leaves_what_is_too_much(
    tmp_path, monkeypatch
):
    """The sum of a dataset follows from it in the same task, unless it is that of `n3`."""
    path, session, tasks_of = tmp_path / "sums.toml", InProcess(), []
    path.write_text('[scenario]\nworld = "drift"\n')
    squares = sweep_stage("squares", ("errors.py",), lambda _: TASKS, Squares())

    def total(job):
        return Made(sum(row["n"] for row in read_rows([Job(job.task, job.inputs[0])])))

    sums = Stage(
        "sums",
        ("squares",),
        ("errors.py",),
        lambda _, work: [Task(j.task.label, {}, None, (j.dataset,)) for j in work["squares"]],
        AsTasks(total),
        follow=lambda job: None if job.task.label == "n3" else total(job),
    )
    world = replace(
        drift.EXPERIMENT,
        stages=lambda: (squares, sums),
        conclude=lambda _, work: Conclusion(
            {}, "valid", [{"sum": job.dataset.manifest().rows} for job in work["sums"]]
        ),
    )
    monkeypatch.setattr(drift, "EXPERIMENT", world)
    monkeypatch.setattr("beforehand.spark.session.open_session", session.open)
    monkeypatch.setattr(session, "range", counted(session.range, tasks_of))
    assert [row["sum"] for row in run_scenario(path, tmp_path).rows] == [4, 10, 6]
    assert tasks_of == [3, 1], "three tasks with two of the sums, and one for the third"
    shutil.rmtree(next((tmp_path / "data" / "sums").glob("n5-*")))
    assert [row["sum"] for row in run_scenario(path, tmp_path).rows] == [4, 10, 6]
    assert tasks_of == [3, 1, 1], "a missing sum alone is made by its own stage"


def counted(split, sizes):
    def run(start, end, step, partitions):
        sizes.append(partitions)
        return split(start, end, step, partitions)

    return run
