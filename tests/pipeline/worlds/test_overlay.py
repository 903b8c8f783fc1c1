"""The sweep of the overlay world: its tasks, each computed once, its verdict and its files."""

import json
import tomllib
from contextlib import nullcontext
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError, InputErrors
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.sweep import sweep_stage
from beforehand.pipeline.worlds import overlay
from beforehand.scenario.shipped import FOLDER
from beforehand.sim.overlay.world import OverlaySpec
from beforehand.verify.verdict import verify_events
from tests.pipeline.in_process import InProcess

SCENARIOS = FOLDER
SMALL = """
[scenario]
world = "overlay"
[sweep]
seeds = 2
[overlay]
nodes = [8, 16]
single_seeds = 1
small_seeds = 1
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def without_spark(monkeypatch):
    """The same tasks, one after the other in this process."""
    monkeypatch.setattr("beforehand.spark.session.open_session", InProcess().open)


@pytest.mark.usefixtures("without_spark")
def test_each_size_and_seed_has_all_systems_asked_for(scenario, tmp_path):
    summary = run_scenario(scenario, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "overlay_runs.parquet").to_pylist()
    found = [(row["nodes"], row["seed"], row["system"], row["payload_bytes"]) for row in rows]
    both = [("aggregated", 50), ("plain", 50)]
    single, small = ("single", 50), ("aggregated", 5)
    assert found == [
        (nodes, seed, *run)
        for nodes, seed, runs in (
            (8, 1, [*both, single]),
            (8, 2, both),
            (16, 1, [*both, single, small]),
            (16, 2, both),
        )
        for run in runs
    ]
    assert (summary.state, summary.computed) == ("valid", {"overlay": 4})
    bars = pq.read_table(tmp_path / "out" / "overlay_histograms.parquet").to_pylist()
    packets = sum(bar["count"] for bar in bars if bar["histogram"] == "per_packet")
    assert packets == sum(row["packets"] for row in rows)
    about = json.loads((tmp_path / "out" / "scenario.json").read_text())
    assert about["world"] == "overlay"


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("fault", ["violations", "missing"])
def test_one_bad_run_makes_the_whole_invalid(scenario, tmp_path, monkeypatch, fault):
    def spoiled(job):
        for row in overlay.measure_rows(job):
            is_bad = (row["nodes"], row["seed"], row["system"]) == (16, 2, "plain")
            yield {**row, fault: 1} if is_bad else row

    stage = sweep_stage(overlay.STAGE, overlay.SOURCES, overlay._tasks, spoiled)
    changed = replace(overlay.EXPERIMENT, stages=lambda: (stage,))
    monkeypatch.setattr(overlay, "EXPERIMENT", changed)
    assert run_scenario(scenario, tmp_path / "out").state == "invalid"


@pytest.mark.usefixtures("without_spark")
def test_events_are_kept_on_request_and_verify_with_the_verdict_of_the_sweep(
    scenario, tmp_path, capsys
):
    out = tmp_path / "out"
    plain = run_scenario(scenario, out)
    assert not list(out.rglob("events.parquet"))
    kept = run_scenario(scenario, out, overrides=["sweep.events=true"])
    assert (kept.state, kept.computed) == ("valid", {"overlay": 4})
    assert kept.rows == plain.rows
    verdict = verify_events(out)
    assert verdict.state == kept.state
    assert len(verdict.runs) == len(kept.rows) == 11
    found = sorted((run.broadcasts, run.deliveries) for run in verdict.runs)
    assert found == sorted((row["broadcasts"], row["deliveries"]) for row in kept.rows)
    assert sum(sum(run.counts.values()) for run in verdict.runs) == 0
    assert main(["verify", str(out)]) == 0
    assert "valid" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("overlay.starts=['zipf', 3]", "not a law"),
        ("overlay.propagation=['normal', 100]", "not the numbers of a normal law"),
        ("overlay.propagation=['normal', 100, -5]", "not times from 0 to"),
        ("overlay.nodes=[1]", "from 2 on"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(scenario, tmp_path, setting, problem):
    with pytest.raises((InputError, InputErrors)) as refused:
        run_scenario(scenario, tmp_path / "out", overrides=[setting])
    assert problem in refused.value.render()
    assert not (tmp_path / "out").exists()


def test_the_shipped_scenario_is_run_with_the_fitted_laws():
    written = tomllib.loads((SCENARIOS / "vcube-tables.toml").read_text())["overlay"]
    options = overlay.EXPERIMENT.tables()["overlay"]
    for key in ("starts", "propagation"):
        assert options[key].parse(written[key]) == getattr(OverlaySpec(8), key)
    assert written["nodes"] == [2**k for k in range(3, 11)]


@pytest.mark.spark
def test_a_second_run_reuses_the_results_of_spark(spark, scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "beforehand.spark.session.open_session", lambda *_, **__: nullcontext(spark)
    )
    first = run_scenario(scenario, tmp_path / "out")
    assert (first.state, first.computed) == ("valid", {"overlay": 4})
    more = run_scenario(scenario, tmp_path / "out", seeds=3)
    assert more.computed == {"overlay": 2}
    assert [row for row in more.rows if row["seed"] < 3] == first.rows
