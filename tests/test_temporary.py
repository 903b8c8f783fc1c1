"""Temporary names contain the process; the next process removes files of killed ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from beforehand import temporary
from beforehand.files import replaced
from beforehand.pipeline.datasets import plan_dataset
from beforehand.temporary import own_name, remove_left_behind

SLEEPER = """
import time
from beforehand.temporary import scratch_folder
(scratch_folder() / "half").write_text("of it")
print(scratch_folder(), flush=True)
time.sleep(600)
"""
FINISHER = "from beforehand.temporary import scratch_folder; print(scratch_folder())"


def run(script, folder):
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_temporary_folders_of_killed_processes_are_removed_at_the_next_start(tmp_path):
    with run(SLEEPER, tmp_path) as killed, run(SLEEPER, tmp_path) as alive:
        left, kept = (Path(process.stdout.readline().strip()) for process in (killed, alive))
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        try:
            assert left.is_dir()
            with run(FINISHER, tmp_path) as finished:
                own = Path(finished.stdout.read().strip())
            assert not left.exists()
            assert (kept / "half").is_file()  # of a process that is still there
            assert not own.exists()  # it ended as it should
        finally:
            alive.kill()


def test_names_are_unique_across_machines(monkeypatch):
    names = {own_name(), own_name()}
    temporary._host.cache_clear()
    monkeypatch.setattr("socket.gethostname", lambda: "another.example.org")
    try:
        names.add(own_name())
        assert f"another-example-org-{os.getpid()}-" in own_name()
    finally:
        temporary._host.cache_clear()
    assert len(names) == 3


@pytest.mark.parametrize(
    ("name", "age_days", "stays"),
    [
        (f".x.parquet.{own_name()}", 0, True),
        (f".x.parquet.{own_name().replace(str(os.getpid()), '999999999')}", 0, False),
        (".x.parquet.elsewhere-12-0123abcd", 0, True),  # the owner is unknown
        (".x.parquet.elsewhere-12-0123abcd", 30, False),
        (".hidden", 30, True),
        (".x.parquet.elsewhere-12", 30, True),  # not a temporary name of this package
    ],
    # Else each worker of the suite would have names of its own.
    ids=("ours", "ended", "elsewhere", "old", "hidden", "no-name"),
)
def test_only_abandoned_partial_files_are_removed(tmp_path, name, age_days, stays):
    path = tmp_path / name
    path.write_text("half")
    os.utime(path, (time.time() - age_days * 86_400,) * 2)
    remove_left_behind(tmp_path, ".*")
    assert path.exists() == stays


def test_a_finished_dataset_has_no_partial_files_of_killed_tasks(tmp_path):
    dataset = plan_dataset(tmp_path, "events", "a", inputs=(), parameters={}, sources=())
    with replaced(dataset.file("events.parquet")) as partial:
        partial.write_text("whole")
    left = dataset.file(partial.name.replace(str(os.getpid()), "999999999"))
    left.write_text("half")
    dataset.commit()
    assert sorted(path.name for path in dataset.folder.iterdir()) == [
        "events.parquet",
        "manifest.json",
    ]
