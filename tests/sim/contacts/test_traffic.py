"""When nodes broadcast, by each law of traffic."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.mobility.trace import make_trace
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.traffic import Event, Traffic, check_traffic, draw, plan_traffic
from beforehand.sim.streams import stream_key, unit

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
LAWS = ("periodic", "poisson", "uniform")


def trace_of(nodes=50, stay_us=10 * HOUR_US):
    """Nodes `n0`, `n1`, ... that are present twice, with an hour between."""
    stays = [(i, 0, stay_us) for i in range(nodes)]
    stays += [(i, stay_us + HOUR_US, 2 * stay_us + HOUR_US) for i in range(nodes)]
    met = [(0, 1, 0, stay_us)]
    return make_trace([f"n{i}" for i in range(nodes)], np.array(met), np.array(stays))


TRACE = trace_of()


def gaps_of(planned, node, until_us=10 * HOUR_US):
    times = planned.t_us[(planned.node == node) & (planned.t_us < until_us)]
    return np.diff(times)


def test_draws_on_arrays_equal_those_of_the_streams():
    a, b = np.array([0, 3, 2**40]), np.array([7, 0, 5])
    found = draw(9, "gaps", a, b)
    key = stream_key(9, "gaps")
    assert found.tolist() == [unit(key, x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize("law", LAWS)
def test_every_law_has_the_period_as_its_mean_and_keeps_to_the_presence(law):
    traffic = Traffic(
        first_us=SECOND_US, period_us=60 * SECOND_US, law=law, phase=law == "periodic"
    )
    planned = plan_traffic(TRACE, traffic, 3)
    assert len(planned.t_us) == pytest.approx(50 * 20 * 60, rel=0.03)
    order = np.lexsort((planned.node, planned.t_us))
    assert (order == np.arange(len(order))).all()
    in_first = (planned.t_us >= SECOND_US) & (planned.t_us < 10 * HOUR_US)
    in_second = (planned.t_us >= 11 * HOUR_US + SECOND_US) & (planned.t_us < 21 * HOUR_US)
    assert (in_first | in_second).all()
    gaps = np.concatenate([gaps_of(planned, node) for node in range(50)]) / (60 * SECOND_US)
    assert gaps.mean() == pytest.approx(1, rel=0.03)
    spread = {"periodic": 0, "poisson": 1, "uniform": 1 / np.sqrt(3)}[law]
    assert gaps.std() == pytest.approx(spread, rel=0.05)
    assert (gaps > 0).all()
    if law == "uniform":
        assert gaps.max() <= 2


@pytest.mark.parametrize("law", LAWS)
def test_runs_with_different_seeds_on_one_trace_had_the_same_traffic(law):
    traffic = Traffic(law=law, phase=True)
    first, second = plan_traffic(TRACE, traffic, 1), plan_traffic(TRACE, traffic, 2)
    assert traffic.is_drawn
    assert first.t_us.tolist() != second.t_us.tolist()
    assert first.t_us.tolist() == plan_traffic(TRACE, traffic, 1).t_us.tolist()
    fixed = Traffic()
    assert not fixed.is_drawn
    times = [plan_traffic(TRACE, fixed, seed).t_us.tolist() for seed in (1, 2)]
    assert times[0] == times[1]


def test_each_node_has_a_phase_of_less_than_a_period():
    traffic = Traffic(first_us=0, period_us=HOUR_US, phase=True)
    planned = plan_traffic(TRACE, traffic, 5)
    first_us = [planned.t_us[planned.node == node].min() for node in range(50)]
    assert 0 <= min(first_us) < max(first_us) < HOUR_US
    assert np.mean(first_us) == pytest.approx(HOUR_US / 2, rel=0.2)
    assert len(set(first_us)) == 50


def test_runs_that_differ_in_the_period_share_their_random_numbers():
    short, long = (
        plan_traffic(TRACE, Traffic(first_us=0, period_us=period_us, law="poisson"), 5)
        for period_us in (60 * SECOND_US, 120 * SECOND_US)
    )
    for node in range(5):
        a, b = gaps_of(short, node), gaps_of(long, node)
        assert a[: len(b)] * 2 == pytest.approx(b, abs=2)


def test_a_larger_share_of_sources_contains_the_smaller_one():
    planned = [plan_traffic(TRACE, Traffic(sources=share), 5) for share in (0.1, 0.5, 1.0)]
    nodes = [set(found.node.tolist()) for found in planned]
    assert [len(found) for found in nodes] == [5, 25, 50]
    assert nodes[0] < nodes[1] < nodes[2]
    assert nodes[1] != set(plan_traffic(TRACE, Traffic(sources=0.5), 6).node.tolist())
    named = plan_traffic(TRACE, Traffic(sources=("n3", "n9")), 5)
    assert set(named.node.tolist()) == {3, 9}
    assert not Traffic(sources=("n3",)).is_drawn
    assert Traffic(sources=0.5).is_drawn


@pytest.mark.parametrize(("law", "spread"), [("uniform", 1 / np.sqrt(3)), ("exponential", 1)])
def test_payloads_have_their_law_and_mean(law, spread):
    planned = plan_traffic(TRACE, Traffic(payload_bytes=1000, payload_law=law), 5)
    assert planned.payload_bytes.mean() == pytest.approx(1000, rel=0.02)
    assert planned.payload_bytes.std() == pytest.approx(1000 * spread, rel=0.03)
    assert planned.payload_bytes.min() >= 0
    fixed = plan_traffic(TRACE, Traffic(payload_bytes=7), 5)
    assert set(fixed.payload_bytes.tolist()) == {7}


EVENTS = (Event(5 * SECOND_US, "n4", 10), Event(SECOND_US, "n2", 30), Event(HOUR_US, "n2", 9))


def test_a_traffic_file_sets_origin_and_time_of_each_broadcast():
    planned = plan_traffic(TRACE, Traffic(law="file", events=EVENTS), 1)
    rows = list(zip(*(column.tolist() for column in planned), strict=True))
    assert rows == [(SECOND_US, 2, 30), (5 * SECOND_US, 4, 10), (HOUR_US, 2, 9)]
    absent = (*EVENTS, Event(10 * HOUR_US + 1, "n2", 9))
    assert len(plan_traffic(TRACE, Traffic(law="file", events=absent), 1).t_us) == 3


@pytest.mark.parametrize(
    ("traffic", "where", "problem", "hint"),
    [
        (Traffic(sources=("n3", "n03")), "traffic.sources", "no such node: `n03`", "did you mean"),
        (Traffic(law="file", events=(Event(1, "x", 1),)), "traffic.input", "`x`", "the trace has"),
        (
            Traffic(law="file", events=(Event(99 * HOUR_US, "n1", 1),)),
            *("traffic.input", "no source of the file is present", "lasts from 0 s to 75600 s"),
        ),
        (Traffic(period_us=1000), "place", "of which 20,000,000 can be played", "for example `"),
    ],
)
def test_traffic_that_does_not_fit_the_trace_is_refused(traffic, where, problem, hint):
    with pytest.raises(InputError) as caught:
        check_traffic(TRACE, traffic, where="place")
    assert caught.value.where == where
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_run_makes_the_planned_broadcasts():
    trace = trace_of(4, HOUR_US)
    spec = Spec("causal", 7, traffic=Traffic(law="poisson", payload_law="exponential"))
    columns = run_one(trace, spec).columns
    sent = columns["kind"] == 0
    planned = plan_traffic(trace, spec.traffic, 7)
    assert columns["t_us"][sent].tolist() == planned.t_us.tolist()
    assert sorted(columns["node"][sent].tolist()) == sorted(planned.node.tolist())
