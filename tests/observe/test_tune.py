from __future__ import annotations

import numpy as np
import pytest

from beforehand.kernels.observer.reorder import Stamps
from beforehand.observe.tune import WAITS, Sample, measure, tune
from beforehand.protocols.observer.observer import Dial, cbd
from beforehand.sim.drift import Drift, simulate
from beforehand.sim.drift import measure as measure_run

SPEC = Drift(messages=4000, seed=2)


@pytest.fixture(scope="module")
def sample() -> Sample:
    run = simulate(SPEC)
    at = run.arrived
    stamps = Stamps(*(column[at] for column in run.stamps))
    return Sample(run.arrival[at], stamps, run.seq[at], run.past[at])


def test_a_point_of_a_tuning_equals_the_measure_of_the_simulation(sample):
    dial = cbd(40, 3)
    point = measure(sample, slice(None), SPEC.guarantees, dial)
    (expected,) = measure_run(SPEC, [("cbd-3", dial)])
    assert point.violations_percent == pytest.approx(expected.violations_percent)
    assert point.violations_percent > 1
    assert point.suspects_percent == pytest.approx(100 * expected.overtaken / expected.received)


def test_the_smallest_wait_that_keeps_the_budget_is_chosen_then_the_smallest_timestamp(sample):
    found = tune(sample, SPEC.guarantees, budget_percent=1)
    assert [point.wait_percent for point in found.waits] == list(WAITS)
    chosen = found.chosen
    below = [p for p in found.waits if p.wait_percent < chosen.wait_percent]
    assert below
    assert all(p.violations_percent > 1 for p in below)
    smaller = [p for p in found.stamps if (p.uses_c, p.elements) < (chosen.uses_c, chosen.elements)]
    assert smaller
    assert all(p.violations_percent > 1 for p in smaller)
    assert chosen.violations_percent <= 1
    assert chosen.elements < sample.stamps.kn.shape[1]
    assert [p.size_bytes for p in found.stamps] == sorted(p.size_bytes for p in found.stamps)


def test_it_is_confirmed_on_messages_that_were_not_used_to_choose(sample):
    found = tune(sample, SPEC.guarantees, budget_percent=2)
    chosen, half = found.chosen, len(sample.arrival) // 2
    dial = Dial(chosen.wait_percent, elements=chosen.elements, uses_c=chosen.uses_c)
    assert found.confirmed == measure(sample, slice(half, None), SPEC.guarantees, dial)
    assert found.confirmed.violations_percent != chosen.violations_percent


def test_tune_chose_settings_that_its_own_check_found_over_budget(sample):
    # The second half is the hard one: its clocks are off, so what does in the first does not there.
    half = len(sample.arrival) // 2
    r = sample.stamps.r.copy()
    r[half:] -= sample.stamps.process[half:] % 3
    c = np.where(np.arange(len(r)) < half, sample.stamps.c, 0)
    shifted = sample._replace(stamps=sample.stamps._replace(r=r, c=c))
    budgets = np.arange(0, 30, 0.5)
    found = [tune(shifted, SPEC.guarantees, budget_percent=budget) for budget in budgets]
    chosen = [
        (budget, tuning) for budget, tuning in zip(budgets, found, strict=True) if tuning.chosen
    ]
    assert chosen
    assert all(tuning.chosen.violations_percent <= budget for budget, tuning in chosen)
    assert all(tuning.confirmed.violations_percent <= budget for budget, tuning in chosen)
    # A budget that only the first half keeps: nothing is recommended.
    assert found[0].waits[-1].violations_percent == 0
    assert found[0].chosen is None


def test_a_budget_of_zero_takes_the_full_wait_or_a_sufficient_shorter_one(sample):
    found = tune(sample, SPEC.guarantees, budget_percent=0)
    assert found.chosen.wait_percent > 60
    assert found.waits[-1].violations_percent == 0


def test_a_budget_that_no_settings_keep_chooses_none(sample):
    # Clocks that say nothing at all: only luck would put these in order.
    rng = np.random.default_rng(1)
    noise = rng.permutation(sample.stamps.r)
    nothing = np.zeros_like(sample.stamps.kn)
    stamps = sample.stamps._replace(r=noise, c=np.zeros_like(noise), kn=nothing)
    found = tune(sample._replace(stamps=stamps), SPEC.guarantees, budget_percent=1)
    assert found.chosen is None
    assert len(found.waits) == len(WAITS)
    assert found.stamps == ()


def test_more_wait_means_a_longer_wait(sample):
    found = tune(sample, SPEC.guarantees, budget_percent=1, checks_queue=False)
    waited = [point.waited_mean for point in found.waits]
    assert waited == sorted(waited)
    assert waited[0] < 1 < waited[-1]
