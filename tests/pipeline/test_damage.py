"""What was damaged after it was finished is made again, told, and never taken for whole."""

from __future__ import annotations

import errno
import json
import os
import shutil

import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.pipeline import datasets
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.work import read_progress
from tests.pipeline.in_process import InProcess

SMALL = '[scenario]\nworld = "overlay"\n[sweep]\nseeds = 2\nevents = true\n[overlay]\nnodes = [8]\n'


@pytest.fixture
def session(monkeypatch):
    session = InProcess()
    monkeypatch.setattr("beforehand.spark.session.open_session", session.open)
    return session


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def finished(scenario, session, tmp_path):
    out = tmp_path / "out"
    assert run_scenario(scenario, out).computed == {"overlay": 2}
    assert run_scenario(scenario, out).computed == {"overlay": 0}
    return out


def some_log(out):
    return sorted(out.rglob("events.parquet"))[0]


@pytest.mark.parametrize("spoil", ["truncate", "remove", "grow"])
def test_a_truncated_events_file_is_not_2_of_2(scenario, finished, capsys, spoil):
    path = some_log(finished)
    whole = path.read_bytes()
    if spoil == "remove":
        path.unlink()
    else:
        path.write_bytes(whole[:-50] if spoil == "truncate" else whole + whole)
    (progress,) = read_progress(finished)
    assert (progress.there, progress.wanted) == (1, 2)
    assert main(["status", str(finished)]) == 3
    assert f"{path.parent.name}/events.parquet: " in capsys.readouterr().err
    assert main(["verify", str(finished)]) == 3
    shown = capsys.readouterr().out
    assert ("its events are not there" if spoil == "remove" else "in its manifest") in shown
    assert run_scenario(scenario, finished).computed == {"overlay": 1}
    assert path.read_bytes() == whole
    assert main(["status", str(finished)]) == 0
    assert main(["verify", str(finished)]) == 0


def test_a_run_that_is_not_finished_is_not_valid_for_the_part_that_is(finished, capsys):
    (folder, _) = sorted(path.parent for path in finished.rglob("manifest.json"))
    shutil.rmtree(folder)
    assert main(["verify", str(finished)]) == 3
    assert f"{folder.name}: unknown: its events are not there" in capsys.readouterr().out
    assert main(["verify", str(finished), "--json"]) == 3
    (lost,) = json.loads(capsys.readouterr().out)["lost"]
    assert lost.endswith(folder.name)


def test_a_broken_manifest_is_told_and_made_again(scenario, finished, capsys):
    path = sorted(finished.rglob("manifest.json"))[0]
    path.write_text(path.read_text()[:40])
    assert main(["status", str(finished)]) == 3
    assert "not a manifest" in capsys.readouterr().err
    assert run_scenario(scenario, finished).computed == {"overlay": 1}


def test_a_dry_run_says_what_is_missing_and_writes_nothing(scenario, finished, session, capsys):
    some_log(finished).unlink()
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    opened = session.opened
    command = ["run", str(scenario), "--out", str(finished), "--dry-run", "--json"]
    assert main(command) == 0
    (stage,) = json.loads(capsys.readouterr().out)
    assert (stage["stage"], stage["there"], stage["wanted"]) == ("overlay", 1, 2)
    assert main([*command[:-1]]) == 0
    assert "to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before
    assert session.opened == opened


def test_a_disk_that_fills_up_in_a_task_is_told_with_its_place(
    scenario, session, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(datasets.pq, "write_table", full)
    with pytest.raises(InputError) as told:
        run_scenario(scenario, tmp_path / "out")
    assert "cannot write it: No space left on device" in told.value.render()
    assert "events.parquet" in told.value.render()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [
        scenario,
        tmp_path / "out" / "plan.json",
    ]
