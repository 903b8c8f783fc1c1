"""A page plays a run of a sweep that kept no logs: it is the same run again."""

import json
from pkgutil import iter_modules

import pyarrow.parquet as pq
import pytest

from beforehand.commands.event_logs.played import gather_results, is_playable
from beforehand.errors import InputError
from beforehand.events import BROADCAST, DELIVER
from beforehand.files import MANIFEST
from beforehand.pipeline import worlds
from beforehand.pipeline.experiment import load_experiment
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.replay import replay_run
from beforehand.play.gather import CONTACTS_WORLD
from tests.pipeline.in_process import InProcess

HEAD = '[scenario]\nworld = "{}"\n[sweep]\nseeds = 1\n'
CELLS = """[cells]
sizes = [[2, 6]]
radio_mbit_s = 1
rates = [4]
duration = "9s"
settle = "3s"
"""


@pytest.fixture
def finish(monkeypatch, tmp_path):
    """Return a function that runs a scenario in this process and returns its folder."""
    monkeypatch.setattr("beforehand.spark.session.open_session", InProcess().open)

    def run(world, tables):
        path = tmp_path / f"{world}.toml"
        path.write_text(HEAD.format(world) + tables)
        return run_scenario(path, tmp_path / world)

    return run


@pytest.mark.parametrize("world", [module.name for module in iter_modules(worlds.__path__)])
def test_every_world_has_runs_that_a_page_can_play(world):
    assert world == CONTACTS_WORLD or load_experiment(world, where="").replay is not None


def test_a_run_of_cells_is_replayed_with_the_counts_of_its_row(finish):
    summary = finish("cells", CELLS)
    assert not list(summary.out.rglob("events.parquet"))
    assert is_playable(summary.out)
    run = gather_results(summary.out)
    (row,) = summary.rows
    assert run.details.kind == "cells"
    assert int((run.events.kind == BROADCAST).sum()) == row["broadcasts"] > 0
    assert int((run.events.kind == DELIVER).sum()) == row["deliveries"]
    assert run.name == row["run"]
    assert "same run again" in run.notes[0]


def test_a_run_of_vcube_is_replayed_with_the_counts_of_its_row(finish):
    summary = finish("overlay", "[overlay]\nnodes = [8, 16]\n")
    run = gather_results(summary.out, "n16")
    row = next(r for r in summary.rows if (r["nodes"], r["system"]) == (16, "aggregated"))
    assert len(run.names) == 16
    assert len(run.details.t_us) == row["packets"]
    # The row also counts the delivery of each message at its own origin.
    assert int((run.events.kind == DELIVER).sum()) == row["deliveries"]


def test_an_observer_of_the_sweep_is_replayed_with_its_measures(finish):
    summary = finish("drift", '[drift]\nmessages = 300\nreadings = ["all"]\n')
    run = gather_results(summary.out)
    row = next(
        r
        for r in pq.read_table(summary.out / "measures.parquet").to_pylist()
        if (r["observer"], r["wait_percent"]) == ("cbd", 40)
    )
    assert run.details.kind == "observer"
    assert int((run.events.kind == BROADCAST).sum()) == row["received"]
    assert bool(len(run.violations.t_us)) == bool(row["inverted"])


def test_a_run_that_is_not_there_and_a_damaged_manifest_are_refused(finish, tmp_path):
    out = finish("cells", CELLS).out
    with pytest.raises(InputError, match="no run is named `x`"):
        replay_run(out, "x", tmp_path)
    manifest = next((out / "data").rglob(MANIFEST))
    made = json.loads(manifest.read_text())
    del made["parameters"]["radio"]
    manifest.write_text(json.dumps(made))
    with pytest.raises(InputError, match="not the parameters of a run"):
        replay_run(out, None, tmp_path)
