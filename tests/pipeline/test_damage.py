"""A finished dataset that was damaged later is reported, rebuilt and never taken for valid."""

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


def spoiled(content, how):
    if how == "flip":
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return {"truncate": content[:-50], "grow": content + content, "zero": bytes(len(content))}[how]


@pytest.mark.parametrize("spoil", ["truncate", "remove", "grow", "flip", "zero"])
def test_a_truncated_or_changed_events_file_is_not_2_of_2(scenario, finished, capsys, spoil):
    path = some_log(finished)
    whole = path.read_bytes()
    if spoil == "remove":
        path.unlink()
    else:
        path.write_bytes(spoiled(whole, spoil))
    (progress,) = read_progress(finished)
    assert (progress.there, progress.wanted) == (1, 2)
    assert main(["status", str(finished)]) == 3
    assert f"{path.parent.name}/events.parquet: " in capsys.readouterr().err
    assert main(["verify", str(finished)]) == 3
    shown = capsys.readouterr().out
    told = {"remove": "its event log is missing", "truncate": "in its manifest"}
    told["grow"] = told["truncate"]
    assert told.get(spoil, "of the length in its manifest, but with other bytes") in shown
    assert run_scenario(scenario, finished).computed == {"overlay": 1}
    assert path.read_bytes() == whole
    assert main(["status", str(finished)]) == 0
    assert main(["verify", str(finished)]) == 0


def test_a_run_that_is_not_finished_is_not_valid_for_the_part_that_is(finished, capsys):
    (folder, _) = sorted(path.parent for path in finished.rglob("manifest.json"))
    shutil.rmtree(folder)
    assert main(["verify", str(finished)]) == 3
    assert f"{folder.name}: unknown: its event log is missing" in capsys.readouterr().out
    assert main(["verify", str(finished), "--json"]) == 3
    (lost,) = json.loads(capsys.readouterr().out)["lost"]
    assert lost.endswith(folder.name)


def test_a_broken_manifest_is_reported_and_rebuilt(scenario, finished, capsys):
    path = sorted(finished.rglob("manifest.json"))[0]
    path.write_text(path.read_text()[:40])
    assert main(["status", str(finished)]) == 3
    assert "not a manifest" in capsys.readouterr().err
    assert run_scenario(scenario, finished).computed == {"overlay": 1}


def test_a_log_of_the_same_length_from_another_run_is_not_taken_for_the_one_that_was_made(
    scenario, finished, capsys
):
    """Checksums of pages do not show it: the file is as intact as the other."""
    folders = sorted(path.parent for path in finished.rglob("manifest.json"))
    first, second = (sorted(folder.rglob("events.parquet"))[0] for folder in folders)
    whole = second.read_bytes()
    second.write_bytes(first.read_bytes())
    manifest = json.loads((folders[1] / "manifest.json").read_text())
    name = str(second.relative_to(folders[1]))
    manifest["files"][name]["bytes"] = first.stat().st_size  # the lengths agree
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    assert main(["status", str(finished)]) == 3
    assert "with other bytes" in capsys.readouterr().err
    assert main(["verify", str(finished)]) == 3
    assert "with other bytes" in capsys.readouterr().out
    assert run_scenario(scenario, finished).computed == {"overlay": 1}
    assert second.read_bytes() == whole


def test_a_manifest_of_an_earlier_version_without_digests_is_reported_and_rebuilt(
    scenario, finished, capsys
):
    path = sorted(finished.rglob("manifest.json"))[0]
    manifest = json.loads(path.read_text())
    manifest["files"] = {name: mark["bytes"] for name, mark in manifest["files"].items()}
    path.write_text(json.dumps(manifest))
    assert main(["status", str(finished)]) == 3
    assert "of an earlier version, without a digest of `" in capsys.readouterr().err
    assert main(["verify", str(finished)]) == 0  # which reads the log itself, and its checksums
    capsys.readouterr()
    assert run_scenario(scenario, finished).computed == {"overlay": 1}
    assert main(["status", str(finished)]) == 0


def test_existing_datasets_are_read_once_in_a_run(scenario, finished, monkeypatch):
    read = []
    monkeypatch.setattr("beforehand.files._digest", lambda path: read.append(path) or "other")
    assert len(run_scenario(scenario, finished).computed) == 1
    logs = [path for path in read if path.name == "events.parquet"]
    # Once to see whether it is what it was, and once when it is made again.
    assert sorted(logs) == sorted([*finished.rglob("events.parquet")] * 2)


def test_a_dry_run_lists_missing_datasets_and_writes_nothing(scenario, finished, session, capsys):
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


def test_a_disk_that_fills_up_in_a_task_is_reported_with_its_path(
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
