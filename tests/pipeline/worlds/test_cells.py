"""The sweep of the world of cells: its tasks, each computed once, its verdict and its files."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.pipeline.cells.experiments import experiment_options
from beforehand.pipeline.experiment import read_scenario
from beforehand.pipeline.jobs import run_scenario
from beforehand.pipeline.sweep import sweep_stage
from beforehand.pipeline.worlds import cells
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.registry import FormerName
from beforehand.report.mobile.page import build_mobile_page
from beforehand.scenario.shipped import FOLDER
from beforehand.verify.verdict import verify_events
from tests.pipeline.in_process import InProcess

SCENARIOS = FOLDER
PRESENT = {"mobile": "was", "was_flood": "was-flood"}
SMALL = """
[scenario]
world = "cells"
[sweep]
seeds = 2
[cells]
sizes = [[2, 6]]
radio_mbit_s = 1
duration = "12s"
settle = "4s"
[experiments.still]
rates = [4]
walks = false
[experiments.walking]
rates = [4, 8]
failures = 1
failures_last = "1s"
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


def read(path, name):
    return pq.read_table(path / f"{name}.parquet").to_pylist()


@pytest.mark.usefixtures("without_spark")
def test_each_experiment_has_its_runs_and_their_series(scenario, tmp_path):
    out = tmp_path / "out"
    summary = run_scenario(scenario, out)
    assert (summary.state, summary.computed) == ("valid", {"cells": 6})
    runs = read(out, "cells_runs")
    found = [(run["experiment"], run["rate_per_s"], run["seed"]) for run in runs]
    expected = [("still", 4.0), ("walking", 4.0), ("walking", 8.0)]
    assert found == [(name, rate, seed) for name, rate in expected for seed in (1, 2)]
    outages = [row["run"] for row in read(out, "cells_outages")]
    assert outages == [run["run"] for run in runs if run["experiment"] == "walking"]
    series = read(out, "cells_series")
    assert [row["t_s"] for row in series if row["run"] == runs[0]["run"]] == list(range(1, 13))
    assert all(len(row["kept"]) == row["stations"] == 2 for row in series)
    flows = read(out, "cells_flows")
    sent = sum(row["frames"] for row in flows if row["network"] == "radio")
    assert sent == sum(row["radio_frames"] for row in series)
    headings, lines = cells.EXPERIMENT.table(runs)
    assert len(lines) == 3
    assert all(len(line) == len(headings) for line in lines)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("fault", "state"),
    [("violations", "invalid"), ("duplicates", "invalid"), ("missing", "unknown")],
)
def test_one_invalid_run_makes_the_experiment_invalid(
    scenario, tmp_path, monkeypatch, fault, state
):
    def spoiled(job):
        for row in cells.measure_rows(job):
            is_bad = (row["experiment"], row["seed"], row["rate_per_s"]) == ("walking", 2, 8.0)
            yield {**row, fault: 1} if is_bad else row

    stage = sweep_stage(cells.STAGE, cells.SOURCES, cells._tasks, spoiled)
    changed = replace(cells.EXPERIMENT, stages=lambda: (stage,))
    monkeypatch.setattr(cells, "EXPERIMENT", changed)
    out = tmp_path / "out"
    assert run_scenario(scenario, out).state == state
    assert build_mobile_page(out).verdict == state


@pytest.mark.usefixtures("without_spark")
def test_a_search_lists_the_tried_rates_and_an_unsustained_rate_is_no_violation(scenario, tmp_path):
    scenario.write_text(
        SMALL.split("[experiments.still]")[0]
        + '[experiments.most]\nrates = [400]\nsearch_to = 800\nduration = "9s"\nsettle = "2s"\n'
    )
    out = tmp_path / "out"
    assert run_scenario(scenario, out, seeds=1).state == "valid"
    (run,) = read(out, "cells_runs")
    tried = {rate["rate_per_s"]: rate["is_sustained"] for rate in run["tried"]}
    assert run["is_sustained"]
    assert not tried[400.0], "more than the radio carries"
    assert run["rate_per_s"] == max(rate for rate, ok in tried.items() if ok)
    assert build_mobile_page(out).verdict == "valid"


@pytest.mark.usefixtures("without_spark")
def test_events_are_kept_on_request_and_verify_with_the_verdict_of_the_sweep(scenario, tmp_path):
    out = tmp_path / "out"
    plain = run_scenario(scenario, out)
    assert not list(out.rglob("events.parquet"))
    kept = run_scenario(scenario, out, overrides=["sweep.events=true"])
    assert (kept.state, kept.computed) == ("valid", {"cells": 6})
    assert [{**row, "run": ""} for row in kept.rows] == [{**row, "run": ""} for row in plain.rows]
    verdict = verify_events(out)
    assert verdict.state == "valid"
    found = sorted((run.broadcasts, run.deliveries) for run in verdict.runs)
    assert found == sorted((row["broadcasts"], row["deliveries"]) for row in kept.rows)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("cells.sizes=[10]", "not a list of sizes"),
        ("cells.sizes=[[10, 0]]", "not numbers of stations"),
        ("cells.systems=['nobody']", "no such choice"),
        ("cells.rates=[0]", "above zero"),
        ("cells.warm_up='20s'", "warm-up"),
        ("cells.speed=3", "no such key"),
        ("cells.retry_min='1us'", "shorter than any answer takes"),
        ("cells.retry_min='2s'", "more than 1s"),
        ("experiments.still=3", "is no table"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(scenario, tmp_path, setting, problem):
    with pytest.raises((InputError, InputErrors)) as refused:
        run_scenario(scenario, tmp_path / "out", overrides=[setting])
    assert problem in refused.value.render()


def test_problems_of_an_experiment_are_reported_too(scenario, tmp_path):
    scenario.write_text(SMALL + "speed = 3\npayload = 100\n")
    with pytest.raises((InputError, InputErrors)) as refused:
        run_scenario(scenario, tmp_path / "out")
    assert "no such key: `speed`" in refused.value.render()
    assert "`payload`" in refused.value.render()


@pytest.mark.parametrize("written", ["mobile", "was_flood"])
def test_scenario_may_name_a_system_as_it_was_called_formerly(scenario, written):
    named = read_scenario(scenario, overrides=[f"cells.systems=['{PRESENT[written]}']"])
    with pytest.warns(FormerName, match=f"`{written}` is called `{PRESENT[written]}` now"):
        former = read_scenario(scenario, overrides=[f"cells.systems=['{written}']"])
    assert former.options == named.options
    twice = f"cells.systems=['{written}', '{PRESENT[written]}']"
    with pytest.warns(FormerName), pytest.raises((InputError, InputErrors)):
        read_scenario(scenario, overrides=[twice])


def test_a_system_whose_hosts_cannot_move_is_not_made_to_walk(scenario, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "was", SYSTEMS["was"]._replace(is_mobile=False))
    with pytest.raises(InputErrors) as refused:
        list(cells._tasks(read_scenario(scenario)))
    assert "cannot change their cell" in refused.value.render()


OTHERWISE = {
    "systems": '["was-flood"]',
    "sizes": "[[2, 9]]",
    "rates": "[9]",
    "macs": '["csma"]',
    "modulation": '"dsss"',
    "capture": "true",
    "answers_draw": "false",
    "radio_mbit_s": "2",
    "wire_mbit_s": "2",
    "range": '"99m"',
    "walks": "false",
    "stays_covered": "false",
    "choice": '"nearest"',
    "placement": '"area"',
    "payload": "7",
    "ack_jitter": "0.01",
    "timer_jitter": "0.01",
    "duration": '"50s"',
    "warm_up": '"3s"',
    "settle": '"3s"',
    "sample": '"3s"',
    "search_to": "99",
    "queue": "7",
    "inflight": "7",
    "retry_min": '"300ms"',
    "silence": '"3s"',
    "repeats_max": "0.5",
    "full_duplex": "true",
    "unicast_hold": '"1ms"',
    "retry_full_at": "7",
    "ack_ranges": "false",
    "ck_needs": '"station"',
    "ck_ack": '"25ms"',
    "ck_acks_always": "true",
    "tcp_timeout_first": '"3s"',
    "tcp_timeout_min": '"1s"',
    "tcp_measures": "true",
    "tcp_ack": '"0s"',
    "failures": "3",
    "failures_from": '"11s"',
    "failures_every": '"31s"',
    "failures_last": '"6s"',
    "failures_grow": '"3s"',
    "failures_at": "1",
}


GIVEN = ("failures = 2", 'macs = ["none"]')
"""Without failures, their settings change nothing; a hold is refused with carrier sense."""


def test_every_setting_of_an_experiment_changes_its_runs(tmp_path):
    def planned(line):
        path = tmp_path / "one.toml"
        lines = [given for given in GIVEN if given.split()[0] != line.partition(" ")[0]]
        path.write_text("\n".join(('[scenario]\nworld = "cells"\n[cells]', *lines, line)))
        return [task.parameters for task in cells._tasks(read_scenario(path))]

    assert set(OTHERWISE) == set(experiment_options())
    plain = planned("")
    assert plain == planned("retry_min = '200ms'")
    silent = [k for k, v in OTHERWISE.items() if planned(f"{k} = {v}") == plain]
    assert silent == []


def test_without_experiments_there_is_one(tmp_path):
    path = tmp_path / "plain.toml"
    path.write_text('[scenario]\nworld = "cells"\n[cells]\nrates = [3]\n')
    tasks = list(cells._tasks(read_scenario(path)))
    assert [task.spec[1].rate_per_s for task in tasks] == [3.0] * cells.EXPERIMENT.seeds


READINGS = """
[scenario]
world = "cells"
[sweep]
seeds = 2
first_seed = 5
[experiments.one]
rates = [3]
[experiments.two]
rates = [4]
retry_min = "300ms"
[readings.plain]
evidence = "the text"
[readings.bare]
macs = ["none"]
full_duplex = true
[readings.slow]
extends = "bare"
experiments = ["two"]
retry_min = "400ms"
"""


def test_every_experiment_is_planned_under_every_reading(tmp_path):
    path = tmp_path / "readings.toml"
    path.write_text(READINGS)
    found = [
        (task.reading, task.experiment, task.spec.radio.mac, task.spec.pace.retry_us_min, task.seed)
        for task in (cells.CellsTask(*task.spec) for task in cells._tasks(read_scenario(path)))
    ]
    assert found == [
        (*row, seed)
        for row in (
            ("plain", "one", "dcf", 200_000),
            ("plain", "two", "dcf", 300_000),
            ("bare", "one", "none", 200_000),
            ("bare", "two", "none", 300_000),
            ("slow", "two", "none", 400_000),
        )
        for seed in (5, 6)
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('extends = "slow"', "cannot extend"),
        ('extends = "later"', "no such choice"),
        ('experiments = ["three"]', "no such choice"),
        ("speed = 3", "no such key"),
    ],
)
def test_a_reading_that_makes_no_sense_is_refused(tmp_path, line, problem):
    path = tmp_path / "readings.toml"
    path.write_text(f"{READINGS}[readings.last]\n{line}\n")
    with pytest.raises(InputError, match=problem):
        read_scenario(path)


SHIPPED = ("mobile-figures", "mobile-throughput", "mobile-collapse", "mobile-readings")


def test_the_shipped_scenarios_can_be_planned():
    tasks = list(cells._tasks(read_scenario(SCENARIOS / "mobile-quick.toml")))
    assert len(tasks) == 18
    for name in SHIPPED:
        assert list(cells._tasks(read_scenario(SCENARIOS / f"{name}.toml")))
