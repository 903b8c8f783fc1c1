"""The figures of a run against those that are found row by row."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.events import BROADCAST, DELIVER, RECEIVE
from beforehand.mobility.generators.crowd import generate
from beforehand.pipeline.contacts.metrics import (
    PERMILLE,
    SCATTER_MAX,
    SCATTER_TOP,
    find_quantiles,
    read_columns,
    sample_scatter,
    summarise_messages,
    summarise_nodes,
    summarise_run,
)
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import describe, measure_delays, summarise
from beforehand.sim.log import event_table

SPECS = {
    "causal": Spec("causal", seed=3),
    "delta": Spec("delta", seed=3, lifetime_us=120_000_000),
    # A small cache: messages are evicted, come again, and some are dropped while they wait.
    "small": Spec("causal", seed=3, layer=Options(announce_us=1_000_000, capacity=15)),
}


@pytest.fixture(scope="module")
def simulated():
    """The columns of each run."""
    trace = generate(4, nodes_mean=60, hours=0.4)
    return {name: run_one(trace, spec).columns for name, spec in SPECS.items()}


@pytest.fixture(scope="module")
def walked(simulated):
    """Delays of all receptions, latencies and ages of all deliveries, found row by row."""
    found = {}
    for name, run in simulated.items():
        ids = zip(run["origin"].tolist(), run["seq"].tolist(), strict=True)
        rows = zip(
            run["kind"].tolist(), run["t_us"].tolist(), run["node"].tolist(), ids, strict=True
        )
        spoken, received, measured = {}, {}, ([], [], [])
        for kind, t_us, node, id in rows:
            if kind == BROADCAST:
                spoken[id] = t_us
            elif kind == RECEIVE and (node, id) not in received and node != id[0]:
                received[node, id] = t_us
                measured[0].append(t_us - spoken[id])
            elif kind == DELIVER and (node, id) in received:
                measured[1].append(t_us - received[node, id])
                measured[2].append(t_us - spoken[id])
        found[name] = [np.sort(values) for values in measured]
    return found


@pytest.mark.parametrize("name", SPECS)
def test_the_figures_are_those_of_the_simulator(simulated, walked, name):
    columns = simulated[name]
    facts, expected = summarise_run(columns, measure_delays(columns), None), summarise(columns)
    assert facts.counts == {key: expected[key] for key in facts.counts}
    assert (facts.counts["dropped"] > 0) == (name == "small")
    assert facts.past_entries_avg == expected["past_entries"]["avg"]
    for measure, values in zip(("delay", "latency", "age"), walked[name], strict=True):
        assert facts.spreads[measure] == pytest.approx(describe(values)), measure
        assert expected[f"{measure}_us"] == facts.spreads[measure]


def test_a_log_is_read_as_it_was_written(simulated):
    again = read_columns(event_table("x", simulated["small"]))
    for name, column in simulated["small"].items():
        assert again[name].dtype == column.dtype
        assert (again[name] == column).all()


@pytest.mark.parametrize("name", SPECS)
def test_quantiles_are_exact(simulated, walked, name):
    rows = find_quantiles(name, measure_delays(simulated[name])).to_pylist()
    found = {(row["metric"], row["share"]): row["value_us"] for row in rows}
    assert len(found) == len(rows) == 2 * len(PERMILLE)
    for metric, values in zip(("delay", "latency"), walked[name], strict=False):
        for permille in PERMILLE:
            rank = max(1, -(-permille * len(values) // 1000))
            assert found[metric, permille / 1000] == values[rank - 1], (metric, permille)
    assert {0.0, 0.005, 0.5, 0.99, 0.995, 0.999, 1.0} <= {share for _, share in found}


def test_the_scatter_keeps_the_largest_latencies_and_is_the_same_in_any_order(simulated, walked):
    for name, columns in simulated.items():
        delays = measure_delays(columns)
        points = sample_scatter(name, columns, delays)
        kept = np.sort(points["latency_us"].to_numpy())
        latency_us = walked[name][1]
        assert kept[-SCATTER_TOP:].tolist() == latency_us[-SCATTER_TOP:].tolist()
        assert 0.7 * min(SCATTER_MAX, len(latency_us)) < len(kept) <= SCATTER_MAX
        order = np.random.default_rng(1).permutation(len(delays.delivered))
        mixed = delays._replace(
            delivered=delays.delivered[order],
            latency_us=delays.latency_us[order],
            age_us=delays.age_us[order],
        )
        assert sample_scatter(name, columns, mixed).equals(points)


def test_a_run_without_messages_has_figures_without_rows(simulated):
    mute = {name: column[:0] for name, column in simulated["causal"].items()}
    delays = measure_delays(mute)
    facts = summarise_run(mute, delays, np.empty((0, 4), np.int64))
    assert set(facts.counts.values()) == {0}
    assert facts.spreads["delay"]["max"] is None
    assert not len(find_quantiles("mute", delays))
    assert not len(sample_scatter("mute", mute, delays))
    assert not len(summarise_nodes("mute", mute, delays))
    assert not len(summarise_messages("mute", mute, delays))
