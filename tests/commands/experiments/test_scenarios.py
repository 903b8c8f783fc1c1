"""Scenarios of the package are listed, run by name, and copied to be changed."""

import json
import tomllib
from pathlib import Path

import pytest

from beforehand.cli import main
from beforehand.scenario.shipped import FOLDER, find_scenario, shipped


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_of_the_package_is_listed_with_its_title(capsys):
    assert main(["scenarios", "--json"]) == 0
    listed = {row["name"]: row["title"] for row in json.loads(capsys.readouterr().out)}
    assert set(listed) == {path.stem for path in FOLDER.glob("*.toml")}
    assert "city-bus" in listed
    assert all(listed.values())


def test_the_name_of_a_scenario_is_that_of_its_file():
    for one in shipped():
        assert tomllib.loads(one.path.read_text())["scenario"]["name"] == one.name


@pytest.mark.parametrize("command", [["run"], ["scenarios"]])
def test_run_without_a_scenario_lists_them(command, capsys):
    assert main(command) == 0
    assert "city-bus" in capsys.readouterr().out


def test_a_scenario_runs_by_name_in_any_folder(capsys):
    assert main(["run", "quick", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_file_goes_before_a_scenario_of_that_name(folder):
    (folder / "quick").write_text("")
    assert find_scenario("quick") == Path("quick")
    assert find_scenario("city-bus") == FOLDER / "city-bus.toml"


def test_an_unknown_scenario_is_refused_with_a_guess(capsys):
    assert main(["run", "citybus"]) == 2
    told = capsys.readouterr().err
    assert "at citybus" in told
    assert "did you mean `city-bus`?" in told


def test_a_copy_is_made_once_and_is_a_scenario(folder, capsys):
    assert main(["scenarios", "--copy", "my-gtfs"]) == 0
    assert capsys.readouterr().out == "my-gtfs.toml\n"
    assert (folder / "my-gtfs.toml").read_text() == (FOLDER / "my-gtfs.toml").read_text()
    assert main(["scenarios", "--copy", "my-gtfs"]) == 2
    assert "there is a file of that name" in capsys.readouterr().err


def test_a_copy_of_an_unknown_scenario_is_refused(capsys):
    assert main(["scenarios", "--copy", "my-gtf"]) == 2
    assert "did you mean `my-gtfs`?" in capsys.readouterr().err


def test_a_path_of_no_file_is_refused_with_a_guess_among_the_shipped_ones(capsys):
    assert main(["run", "scenarios/city-buss.toml"]) == 2
    assert "did you mean `city-bus`?" in capsys.readouterr().err
