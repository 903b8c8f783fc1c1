"""Figures 2 to 7 as a scenario: every run once, the claims checked, and the verdict."""

import json
from contextlib import nullcontext
from dataclasses import replace

import msgspec
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputErrors
from beforehand.papers.claims import read_claims
from beforehand.pipeline.experiment import read_scenario
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.sweep import sweep_stage
from beforehand.pipeline.worlds import drift
from beforehand.scenario.shipped import FOLDER
from beforehand.sim.drift import measure
from beforehand.sim.drift_figures import figure_dials, figure_specs
from tests.pipeline.in_process import InProcess

SCENARIO = FOLDER / "observer-figures.toml"
SMALL = ["drift.messages=150", 'drift.readings=["one"]']
SIMULATIONS = 22


@pytest.fixture
def session(monkeypatch):
    session = InProcess()
    monkeypatch.setattr("beforehand.spark.session.open_session", session.open)
    return session


def test_the_scenario_that_ships_is_the_whole_sweep_of_the_paper():
    scenario = read_scenario(SCENARIO)
    assert (scenario.world, scenario.seeds) == ("drift", (1, 2, 3))
    wanted = {"messages": 10_000, "readings": ("all", "one", "steps")}
    assert scenario.options["drift"] == wanted


def test_measures_are_those_of_the_runs_and_claims_are_checked(tmp_path, session):
    summary = run_scenario(SCENARIO, tmp_path, seeds=1, overrides=SMALL)
    assert summary.state == "valid"
    assert summary.computed == {"measures": SIMULATIONS}
    specs = figure_specs([1], messages=150, sends_to_all=False)
    wanted = [m for spec in specs for m in measure(spec, figure_dials(spec))]
    rows = pq.read_table(tmp_path / "measures.parquet").to_pylist()
    assert rows == [{"reading": "one/sender", **msgspec.structs.asdict(row)} for row in wanted]
    claims = pq.read_table(tmp_path / "claims.parquet").to_pylist()
    assert claims == summary.rows
    assert [claim["claim"] for claim in claims] == [claim.key for claim in read_claims("observer")]
    about = json.loads((tmp_path / "scenario.json").read_text())
    assert (about["world"], about["parameters"]["drift"]["messages"]) == ("drift", 150)


def test_each_reading_has_its_own_runs(tmp_path, session):
    overrides = ["drift.messages=20", 'drift.readings=["steps", "all"]']
    summary = run_scenario(SCENARIO, tmp_path, seeds=2, overrides=overrides)
    assert summary.computed == {"measures": 2 * 2 * SIMULATIONS}
    assert list(dict.fromkeys(row["reading"] for row in summary.rows)) == [
        "all/steps",
        "all/sender",
    ]


def test_other_messages_are_other_runs(tmp_path, session):
    for messages, computed in ((20, SIMULATIONS), (25, SIMULATIONS), (20, 0)):
        overrides = [f"drift.messages={messages}", 'drift.readings=["one"]']
        summary = run_scenario(SCENARIO, tmp_path, seeds=1, overrides=overrides)
        assert summary.computed == {"measures": computed}
        (found,) = set(pq.read_table(tmp_path / "measures.parquet")["messages"].to_pylist())
        assert found == messages


@pytest.fixture
def breaks(monkeypatch):
    """Measures as they are, but for one pair in the wrong order under one observer."""

    def spoil(observer, wait_percent):
        def rows(job):
            for row in drift.measure_rows(job):
                is_it = (row["observer"], row["wait_percent"]) == (observer, wait_percent)
                yield row | {"inverted": int(is_it)}

        stage = sweep_stage(drift.STAGE, drift.SOURCES, drift._tasks, rows)
        monkeypatch.setattr(drift, "EXPERIMENT", replace(drift.EXPERIMENT, stages=lambda: (stage,)))

    return spoil


@pytest.mark.parametrize(
    ("observer", "wait_percent", "state"),
    [
        ("cbd", 100, "invalid"),
        ("dapw", 100, "invalid"),
        ("cbd", 80, "valid"),
        ("dpc1", 100, "valid"),
    ],
)
def test_the_verdict_is_on_the_full_wait_with_the_full_timestamp(
    tmp_path, session, breaks, observer, wait_percent, state
):
    breaks(observer, wait_percent)
    overrides = ["drift.messages=20", 'drift.readings=["one"]']
    assert run_scenario(SCENARIO, tmp_path, seeds=1, overrides=overrides).state == state


def test_a_wrong_scenario_is_refused_before_anything_is_written(tmp_path, session):
    with pytest.raises(InputErrors):
        run_scenario(SCENARIO, tmp_path / "out", overrides=["drift.messages=0", "drift.fan_out=3"])
    assert session.opened == 0
    assert not (tmp_path / "out").exists()


def command(out, *more):
    settings = [part for setting in SMALL for part in ("--set", setting)]
    return ["run", str(SCENARIO), "--out", str(out), "--seeds", "1", *settings, *more]


def test_the_command_prints_the_claims_and_the_verdict(tmp_path, session, capsys):
    assert main(command(tmp_path, "--no-report")) == 0
    shown = capsys.readouterr().out
    assert "fig6-continuum" in shown
    assert "verdict: valid" in shown
    assert main(command(tmp_path, "--no-report", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["computed"]) == ("valid", {"measures": 0})
    assert told["claims"][0]["claim"] == "perfect"


def test_the_command_exits_1_where_the_full_wait_is_not_exact(tmp_path, session, breaks):
    breaks("cbd", 100)
    assert main(command(tmp_path, "--no-report")) == 1


def test_an_unknown_world_is_refused(tmp_path, capsys):
    path = tmp_path / "moon.toml"
    path.write_text('[scenario]\nworld = "moon"\n')
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "no such world: `moon`" in capsys.readouterr().err


@pytest.mark.spark
def test_on_spark_only_lost_results_are_computed_again(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(
        "beforehand.spark.session.open_session", lambda *_, **__: nullcontext(spark)
    )
    first = run_scenario(SCENARIO, tmp_path, seeds=1, overrides=SMALL)
    assert (first.state, first.computed) == ("valid", {"measures": SIMULATIONS})
    measures = (tmp_path / "measures.parquet").read_bytes()
    manifests = sorted((tmp_path / "data" / "measures").glob("*/manifest.json"))
    written = {path: path.stat().st_mtime_ns for path in manifests}
    manifests[3].unlink()
    assert run_scenario(SCENARIO, tmp_path, seeds=1, overrides=SMALL).computed == {"measures": 1}
    assert (tmp_path / "measures.parquet").read_bytes() == measures
    changed = [path for path in manifests if path.stat().st_mtime_ns != written[path]]
    assert changed == [manifests[3]]
