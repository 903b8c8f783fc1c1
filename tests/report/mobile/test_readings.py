"""Readings side by side, from runs made up so that every verdict is known."""

import pandas as pd

from beforehand.papers.claims import read_claims
from beforehand.report.datasets import Scenario
from beforehand.report.mobile.data import CellResults
from beforehand.report.mobile.readings import MEANT, RANGE, judge_readings, readings_section

CLAIMS = read_claims("mobile")
ABOUT = {
    "slow": {"evidence": "the text"},
    "quick": {"evidence": "fitted"},
    "mended": {"extends": "slow", "experiments": ["standing"], "evidence": "another text"},
}
PARAMETERS = {"readings": ABOUT}


def run(reading, experiment, delay_s, *, lost=5.0, heard_lost=8.0, broken=0, seed=1):
    return {
        "run": f"{reading}-{experiment}-{seed}",
        "reading": reading,
        "experiment": experiment,
        "system": "was_flood",
        "mac": "none",
        "hosts": 70,
        "seed": seed,
        "delay_us_avg": delay_s * 1e6,
        "lost_percent": lost,
        "heard_lost_percent": heard_lost,
        "broken": broken,
    }


RUNS = [
    run("slow", "dynamic", 0.5),
    run("slow", "dynamic", 9.9, broken=3, seed=2),
    run("slow", "standing", 0.45),
    run("quick", "dynamic", 0.3),
    run("quick", "standing", 0.3),
    run("mended", "standing", 0.2),
]


def cells(runs):
    empty = pd.DataFrame(columns=["reading", "experiment", "system", "mac", "run"])
    scenario = Scenario("s", "s", "mob", PARAMETERS, {}, {}, "cells")
    return CellResults(scenario, pd.DataFrame(runs), empty, empty, empty)


def test_a_reading_has_the_runs_of_the_one_that_it_extends_but_for_its_own_experiments():
    found = cells(RUNS)
    assert found.readings() == ("slow", "quick", "mended")
    mended = found.under("mended").runs
    assert sorted(mended["run"]) == ["mended-standing-1", "slow-dynamic-1", "slow-dynamic-2"]
    assert sorted(found.under("quick").runs["run"]) == ["quick-dynamic-1", "quick-standing-1"]


def test_claims_are_judged_by_reading_and_losses_with_both_counts():
    judged = judge_readings(cells(RUNS), CLAIMS)
    delays = {name: of["dynamic_delay", MEANT] for name, of in judged.found.items()}
    assert {name: found.judgement for name, found in delays.items()} == {
        "slow": "not held",
        "quick": "held",
        "mended": "not held",
    }
    assert (delays["slow"].ours, delays["slow"].whole, delays["slow"].runs) == (0.5, 1, 2)
    assert judged.held("slow", MEANT) == {"dynamic_slower"}
    assert judged.held("slow", RANGE) == {"dynamic_slower", "dynamic_lost"}


def test_the_section_counts_collapses_and_names_claims_that_no_reading_holds_together():
    section = readings_section(cells(RUNS), CLAIMS)
    summary, claims, conflicts = (table.data for table in section.tables)
    assert summary["collapsed"].tolist() == [1, 0, 1]
    assert summary["held_meant"].tolist() == [1, 1, 0]
    assert set(claims[claims["key"] == "dynamic_lost"]["losses"]) == {MEANT, RANGE}
    assert conflicts.to_numpy().tolist() == [
        ["dynamic_delay", "quick", "dynamic_slower"],
        ["dynamic_slower", "slow", "dynamic_delay"],
    ]
    assert "3 of 37 claims were run" in section.prose[1]
