from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.errors import InputErrors
from beforehand.kernels.verify.violations import count_violations
from beforehand.protocols.observer.observer import PERFECT, cbd, dapw, dpc1, dpc2
from beforehand.sim.drift import Drift, Run, deliver, measure, run_slowly, simulate
from beforehand.sim.drift_figures import figure_dials, figure_specs

SPECS = st.builds(
    Drift,
    processes=st.integers(3, 6),
    epsilon=st.integers(1, 12),
    delta=st.integers(1, 12),
    rate=st.sampled_from([0.05, 0.3, 1.0]),
    law=st.sampled_from(["half", "quarter"]),
    fan_out=st.sampled_from([None, 1, 2]),
    delay_clock=st.sampled_from(["sender", "steps", "ticks"]),
    messages=st.integers(1, 150),
    seed=st.integers(0, 2**62),
)
EVERY_KIND = [
    dapw(100),
    dapw(60),
    dapw(0),
    cbd(100),
    cbd(40),
    cbd(0),
    cbd(80, 1),
    dpc1(90),
    dpc2(50),
]
READINGS = [(True, "sender"), (False, "sender"), (True, "steps"), (True, "ticks")]


def violations(run: Run, spec: Drift, dial: object) -> float:
    order = deliver(run, spec, dial).label
    return count_violations(order, run.stamps.process, run.seq, run.past).messages_percent


@settings(max_examples=30)
@given(spec=SPECS)
def test_the_compiled_run_gives_the_deliveries_of_the_cores(spec):
    fast = simulate(spec)
    slow, deliveries = run_slowly(spec, EVERY_KIND)
    for ours, theirs in zip([*fast.stamps, *fast[1:]], [*slow.stamps, *slow[1:]], strict=True):
        assert np.array_equal(ours, theirs)
    for dial, diary in zip(EVERY_KIND, deliveries, strict=True):
        delivered = deliver(fast, spec, dial)
        assert list(zip(delivered.label.tolist(), delivered.tick.tolist(), strict=True)) == diary


@settings(max_examples=30)
@given(spec=SPECS)
def test_perfect_delivery_violates_nothing_and_loses_nothing(spec):
    run = simulate(spec)
    assert violations(run, spec, PERFECT) == 0
    delivered = deliver(run, spec, PERFECT)
    assert sorted(delivered.label) == sorted(run.arrived)
    assert not delivered.is_overtaken.any()
    wait = delivered.tick - run.stamps.r[delivered.label]
    assert wait.max(initial=0) <= spec.guarantees.horizon


@settings(max_examples=30)
@given(spec=SPECS)
def test_no_process_has_more_events_at_a_tick_than_promised(spec):
    run = simulate(spec)
    assert run.events_per_tick <= spec.guarantees.events_per_tick
    assert run.stamps.kn.max() <= run.events_per_tick * spec.processes


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    one, again, other = (simulate(Drift(messages=300, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.past, again.past)
    assert not np.array_equal(one.past, other.past)


def test_observers_of_one_run_see_the_same_messages():
    rows = list(measure(Drift(messages=500), figure_dials(Drift())))
    assert len(rows) == len(figure_dials(Drift())) == 12 + 12 + 36
    assert {(row.received, row.lost, row.pairs) for row in rows} == {
        (rows[0].received, 500 - rows[0].received, rows[0].pairs)
    }
    assert 0 < rows[0].lost < 30  # 2.3 % of a normal law lie two deviations above its mean


def test_a_measure_counts_violations_and_waits():
    perfect, hasty = measure(Drift(messages=3000), [("cbd", cbd(100)), ("dapw", dapw(0))])
    assert (perfect.violations_percent, perfect.inverted, perfect.overtaken) == (0, 0, 0)
    assert hasty.violations_percent > 10
    assert hasty.inverted >= hasty.backward > 0
    assert hasty.forward <= hasty.overtaken
    assert hasty.wait_mean < perfect.wait_mean / 2
    assert perfect.wait_share_max <= 1
    assert perfect.size_bytes == 7  # 5 + 4 + 11 * 4 bits


@pytest.mark.slow
@pytest.mark.parametrize(("sends_to_all", "delay_clock"), READINGS)
def test_the_full_wait_has_no_violations_with_any_parameters_of_the_paper(
    sends_to_all, delay_clock
):
    specs = figure_specs([1], messages=2000, sends_to_all=sends_to_all, delay_clock=delay_clock)
    assert len(specs) == 22
    for spec in specs:
        run = simulate(spec)
        assert [violations(run, spec, dial) for dial in (dapw(100), cbd(100))] == [0, 0]


@pytest.mark.slow
def test_a_shorter_wait_or_timestamp_causes_more_violations():
    spec = Drift(messages=4000, law="quarter")
    run = simulate(spec)
    by_wait = [violations(run, spec, cbd(wait)) for wait in (100, 60, 40, 20, 0)]
    assert by_wait == sorted(by_wait)
    assert by_wait[-1] > 5
    by_size = [violations(run, spec, cbd(100, k)) for k in (11, 6, 4, 2, 1, 0)]
    assert by_size == sorted(by_size)
    assert by_size[-1] < violations(run, spec, dpc1(100))


def test_impossible_settings_of_a_run_are_refused_with_all_problems():
    wrong = Drift(processes=1, epsilon=0, delta=0, rate=0, fan_out=5, messages=0)
    with pytest.raises(InputErrors) as caught:
        simulate(wrong)
    assert len(caught.value.errors) == 6
    with pytest.raises(InputErrors):
        run_slowly(wrong, [])
