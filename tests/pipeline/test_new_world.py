"""A new world by the steps of CONTRIBUTING.md: two new files, and no changed one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

REPO = Path(__file__).parents[2]

# Steps 1 to 5. Dice that are thrown: a sum outside of what dice can show is a broken run.
WORLD = """
import pyarrow as pa

from beforehand.pipeline.experiment import Compared, Conclusion, Experiment
from beforehand.pipeline.stages import Task
from beforehand.pipeline.sweep import read_rows, sweep_stage
from beforehand.scenario import values
from beforehand.scenario.options import Option


def tables():
    return {"dice": {"throws": Option(values.whole(1), 10), "sides": Option(values.whole(2), 6)}}


def tasks(scenario):
    dice = scenario.options["dice"]
    for seed in scenario.seeds:
        yield Task(f"s{seed}", {**dice, "seed": seed}, {**dice, "seed": seed}, cost=dice["throws"])


def throw(job):
    import random

    rng, sides = random.Random(job.spec["seed"]), job.spec["sides"]
    yield {**job.spec, "sum": sum(rng.randint(1, sides) for _ in range(job.spec["throws"]))}


def conclude(scenario, work):
    rows = read_rows(work["throws"])
    is_possible = all(row["throws"] <= row["sum"] <= row["throws"] * row["sides"] for row in rows)
    table = pa.Table.from_pylist(rows)
    return Conclusion({"dice_throws": table}, "valid" if is_possible else "invalid", rows)


def table(rows):
    return ("seed", "sum"), [(str(row["seed"]), str(row["sum"])) for row in rows]


def page(directory):
    from beforehand.report.dice.page import build_dice_page

    return build_dice_page(directory)


SOURCES = ("pipeline/worlds/dice.py",)
EXPERIMENT = Experiment(
    tables=tables,
    seeds=2,
    stages=lambda: (sweep_stage("throws", SOURCES, tasks, throw),),
    conclude=conclude,
    noun="throws",
    table=table,
    page=page,
    compared=Compared(table="dice_throws", keys=("sides", "throws"), figures=("sum",)),
)
"""
PAGE = """
import pyarrow.parquet as pq

from beforehand.report.content import Cell, Page, Section, Table, Tile
from beforehand.report.datasets import read_scenario


def build_dice_page(directory):
    scenario = read_scenario(directory)
    found = pq.read_table(directory / "dice_throws.parquet").to_pandas()
    rows = tuple((Cell(str(seed)), Cell(str(n))) for seed, n in zip(found["seed"], found["sum"]))
    table = Table("sums", "Sums", ("Seed", "Sum"), rows, found)
    return Page(
        title=scenario.title,
        subtitle=f"Scenario {scenario.name}",
        verdict="valid",
        headline="Dice are dice.",
        summary="",
        tiles=(Tile(str(len(found)), "runs"),),
        sections=(Section("Sums", tables=(table,)),),
        footer="",
    )
"""
SCENARIO = """
[scenario]
title = "Four seeds of dice"
world = "dice"

[sweep]
seeds = 4

[dice]
throws = 100
"""


@pytest.fixture
def package(tmp_path):
    """The package as it is, and what the steps add to it."""
    source = tmp_path / "src"
    # Bytecode and machine code go along: seven processes would compile the package otherwise.
    shutil.copytree(REPO / "src", source, ignore=shutil.ignore_patterns("*.egg-info"))
    added = {
        "pipeline/worlds/dice.py": WORLD,
        "report/dice/__init__.py": "",
        "report/dice/page.py": PAGE,
    }
    for name, text in added.items():
        path = source / "beforehand" / name
        assert not path.exists(), "nothing that is there is touched"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return source


@pytest.fixture
def beforehand(package):
    """The command with the new world in it."""

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "beforehand.cli", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
        )

    return call


@pytest.mark.spark
def test_a_new_world_is_a_file_and_a_page(beforehand, tmp_path):
    scenario, out = tmp_path / "four.toml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    done = beforehand("run", scenario, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["scenario"], told["verdict"], told["computed"]) == ("four", "valid", {"throws": 4})
    assert told["throws"] == pq.read_table(out / "dice_throws.parquet").to_pylist()
    assert [row["seed"] for row in told["throws"]] == [1, 2, 3, 4]

    again = beforehand("run", scenario, "--out", out, "--no-report")
    assert "sum" in again.stdout
    assert "to do" not in again.stderr
    status = beforehand("status", out, "--json")
    assert json.loads(status.stdout) == [
        {"stage": "throws", "there": 4, "wanted": 4, "damaged": []}
    ]

    beside = json.loads(beforehand("diff", out, out, "--json").stdout)
    assert [(row["figure"], row["difference"]) for row in beside["rows"]] == [("sum", 0)]

    page = out / "report.html"
    page.unlink()
    assert beforehand("report", out).stdout.strip() == str(page)
    assert "Four seeds of dice" in page.read_text()


def test_its_scenario_is_read_like_any_other(beforehand, tmp_path):
    scenario = tmp_path / "wrong.toml"
    scenario.write_text(SCENARIO.replace("throws = 100", "throws = 0\ncolour = 'red'"))
    refused = beforehand("run", scenario, "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert "no such key: `colour`" in refused.stderr
    assert "`throws`: not a whole number from 1 on: `0`" in refused.stderr
    scenario.write_text('[scenario]\nworld = "cards"\n')
    refused = beforehand("run", scenario, "--out", tmp_path / "out")
    assert "choose one of `cells`, `contacts`, `dice`, `drift`, `overlay`" in refused.stderr
