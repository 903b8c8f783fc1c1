"""Every published figure of random runs, with eviction, loss and duplication, computed again."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from beforehand.events import BROADCAST, DELIVER, DROP, EXPIRE, JOIN, RECEIVE
from beforehand.mobility.generators.crowd import generate
from beforehand.pipeline.contacts.metrics import (
    PERMILLE,
    find_quantiles,
    sample_scatter,
    summarise_messages,
    summarise_nodes,
    summarise_run,
)
from beforehand.pipeline.schemas import MESSAGES, NODES, RUNS, names_of
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.clock import Clocks
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import (
    count_reachable,
    measure_delays,
    summarise,
    tally_hops,
)
from beforehand.sim.log import NO_MESSAGE, Log, event_table
from tests.pipeline.contacts.recompute import Recomputed, gauge_values, quantile, spread

SECOND_US = 1_000_000


def draw_spec(seed):
    """A random run: every kind of order, small and large buffers, links that lose and repeat."""
    rng = random.Random(seed)
    protocol = ("causal", "delta", "vector", "none")[seed % 4]
    lossy = rng.random() < 0.6
    links = LinkModel(
        latency_us=rng.choice([0, 2_000, 300_000]),
        bytes_per_s=rng.choice([None, 2_000, 100_000]),
        loss=rng.choice([0.05, 0.3]) * lossy,
        duplication=rng.choice([0.0, 0.3]) * lossy,
    )
    layer = Options(
        announce_us=rng.choice([0, SECOND_US]),
        retry_us=2 * SECOND_US if lossy else None,
        capacity=rng.choice([None, 3, 8, 20]),
        eviction=rng.choice(["oldest", "random"]),
        frame_messages_max=rng.choice([1, 4096]),
    )
    has_lifetime = protocol == "delta" or (protocol == "none" and rng.random() < 0.5)
    lifetime_us = rng.choice([20, 90, 600]) * SECOND_US if has_lifetime else None
    clocks = Clocks(skew_us=rng.choice([0, SECOND_US]) if has_lifetime else 0)
    return Spec(protocol, seed, lifetime_us, links=links, layer=layer, clocks=clocks)


def draw_log(seed):
    """A random log with all outcomes: a message can be dropped and come again, expire, or wait."""
    rng = random.Random(seed)
    log, now_us, stories = Log(), 0, []
    for node in range(6):
        log.add(0, node, JOIN, NO_MESSAGE)
    for seq in range(40):
        origin = rng.randrange(6)
        for node in {*range(6)} - {origin}:
            comes = [RECEIVE, DROP] * rng.randrange(3) + [RECEIVE] * rng.randrange(2)
            ends = rng.choice([[], [DELIVER], [EXPIRE], [DELIVER, RECEIVE]]) if comes else []
            ends = ends if comes and comes[-1] == RECEIVE else []
            stories.append((node, origin, seq, [*comes, *ends]))
        message = Message((origin, seq), (), b"")
        now_us += rng.randrange(3)
        log.add(now_us, origin, BROADCAST, (message,), rng.randrange(4))
        log.add(now_us, origin, DELIVER, (message,))
    while stories:
        node, origin, seq, left = stories.pop(rng.randrange(len(stories)))
        now_us += rng.randrange(3)
        if left:
            log.add(now_us, node, left[0], (Message((origin, seq), (), b""),))
            stories.append((node, origin, seq, left[1:]))
    return log.columns()


@pytest.mark.parametrize("seed", range(8))
def test_each_outcome_is_counted_from_the_log(seed):
    columns = draw_log(seed)
    found, expected = (
        summarise(columns),
        Recomputed(event_table("x", columns).to_pylist(), [], None),
    )
    for name, value in expected.counts().items():
        assert found[name] == value > 0, name
    for name, values in expected.measures().items():
        assert found[f"{name}_us"] == pytest.approx(spread(values), rel=1e-12), name
    assert found["reachable"] == expected.reachable()
    ends = ("deliveries", "expired", "dropped", "waiting")
    assert found["broadcasts"] + found["receptions"] == sum(found[name] for name in ends)


SEEDS = range(24)


@pytest.fixture(scope="module")
def runs():
    """seed -> (spec, result, the figures again)."""
    found = {}
    for seed in SEEDS:
        spec = draw_spec(seed)
        result = run_one(generate(seed, nodes_mean=12, hours=0.2), spec)
        log = event_table("x", result.columns)
        names = ("t_us", "node", "origin", "seq")
        evictions = [dict(zip(names, row, strict=True)) for row in result.evictions.tolist()]
        found[seed] = spec, result, Recomputed(log.to_pylist(), evictions, spec.life_us)
    return found


def row_of(spec, result):
    """The figures as a run publishes them."""
    facts = summarise_run(result.columns, measure_delays(result.columns), result.evictions)
    handed = facts.counts["broadcasts"] + facts.counts["receptions"]
    reachable = count_reachable(result.columns, spec.life_us)
    return {
        **facts.counts,
        "delivery_ratio": facts.counts["deliveries"] / handed,
        "reachable": reachable,
        "reach": facts.counts["receptions"] / reachable,
        "evictions": facts.evictions,
        "held_us_avg": facts.held_us_avg,
        "past_entries_avg": facts.past_entries_avg,
        **{f"{m}_us_{k}": v for m, spread in facts.spreads.items() for k, v in spread.items()},
    }


def test_the_random_runs_have_all_that_can_go_wrong(runs):
    every = [row_of(spec, result) for spec, result, _ in runs.values()]
    for name in ("again", "evictions", "dropped", "waiting"):
        assert sum(row[name] > 0 for row in every) >= 3, name
    assert sum(result.frames_aborted > 0 for _, result, _ in runs.values()) >= 3
    assert all(r.frames_aborted <= r.frames_lost <= r.frames_sent for _, r, _ in runs.values())
    lossy = [r for spec, r, _ in runs.values() if spec.links.loss]
    assert any(result.frames_aborted < result.frames_lost for result in lossy)
    sound = [r for spec, r, _ in runs.values() if not (spec.links.loss or spec.links.duplication)]
    assert all(result.frames_aborted == result.frames_lost for result in sound)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_message_that_was_evicted_and_received_again_counted_as_new(runs, seed):
    spec, result, again = runs[seed]
    found, expected = row_of(spec, result), again.run()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("seed", SEEDS)
def test_every_message_at_every_node_has_one_outcome_and_delay_and_latency_are_the_age(runs, seed):
    spec, result, _ = runs[seed]
    row = row_of(spec, result)
    ends = ("deliveries", "expired", "dropped", "waiting")
    assert row["broadcasts"] + row["receptions"] == sum(row[name] for name in ends)
    assert row["receptions"] <= row["reachable"]
    assert row["receptions"] + row["again"] == (result.columns["kind"] == RECEIVE).sum()
    assert 0 <= row["delivery_ratio"] <= 1
    if row["age_us_avg"] is not None:
        parts = row["delivered_delay_us_avg"] + row["latency_us_avg"]
        assert row["age_us_avg"] == pytest.approx(parts, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tables_of_nodes_and_messages_add_up_to_the_run(runs, seed):
    spec, result, again = runs[seed]
    row, delays = row_of(spec, result), measure_delays(result.columns)
    nodes = summarise_nodes("x", result.columns, delays).to_pylist()
    messages = summarise_messages("x", result.columns, delays).to_pylist()
    for name in ("broadcasts", "receptions", "deliveries"):
        assert sum(node[name] for node in nodes) == row[name]
    for name in ("receptions", "deliveries"):
        assert sum(message[name] for message in messages) == row[name]
    expected = again.nodes()
    assert [node["node"] for node in nodes] == list(expected)
    for node in nodes:
        for name, value in expected[node["node"]].items():
            assert node[name] == pytest.approx(value, rel=1e-12), name
        if node["age_us_avg"] is not None:
            parts = node["delivered_delay_us_avg"] + node["latency_us_avg"]
            assert node["age_us_avg"] == pytest.approx(parts, rel=1e-12)
    expected = again.messages()
    assert len(messages) == len(expected)
    for message in messages:
        for name, value in expected[message["origin"], message["seq"]].items():
            assert message[name] == value, name


@pytest.mark.parametrize("seed", SEEDS)
def test_quantiles_scatter_and_hops_are_those_of_first_receptions(runs, seed):
    _, result, again = runs[seed]
    columns = result.columns
    delays, measured = measure_delays(columns), again.measures()
    rows = find_quantiles("x", delays).to_pylist()
    known = [name for name in ("delay", "latency") if measured[name]]
    assert len(rows) == len(known) * len(PERMILLE)
    for row in rows:
        assert row["value_us"] == quantile(measured[row["metric"]], round(1000 * row["share"]))
    points = sample_scatter("x", columns, delays).to_pylist()
    known = set(zip(measured["delivered_delay"], measured["latency"], strict=True))
    assert {(point["delay_us"], point["latency_us"]) for point in points} <= known
    received = columns["kind"] == RECEIVE
    ids = zip(columns["origin"][received].tolist(), columns["seq"][received].tolist(), strict=True)
    pairs = zip(columns["node"][received].tolist(), ids, strict=True)
    senders = zip(pairs, result.senders.tolist(), strict=True)
    tally = tally_hops(columns, result.senders, delays)
    assert tally == again.hops(senders)
    assert sum(tally.values()) == len(delays.received)


CHECKED_ELSEWHERE = {
    "nodes": "mobility/test_statistics.py::test_every_figure_of_a_small_trace",
    "contacts": "mobility/test_statistics.py::test_every_figure_of_a_small_trace",
    "left_out": "pipeline/contacts/test_parts_of_a_run.py"
    "::test_broadcasts_whose_source_is_absent_are_counted_as_left_out",
    "frames_aborted": "sim/contacts/test_twin.py::test_in_a_few_random_worlds_nothing_differs",
    "frames": "sim/contacts/test_twin.py::test_in_a_few_random_worlds_nothing_differs",
    "bytes": "sim/contacts/test_twin.py::test_in_a_few_random_worlds_nothing_differs",
    "violations": "kernels/verify/test_causality.py"
    "::test_it_agrees_with_the_oracle_on_every_delivery",
    "verdict": "kernels/verify/test_causality.py::test_it_agrees_with_the_oracle_on_every_delivery",
}
"""Published columns that the event log alone does not give, and the test that holds each to another
computation."""
NAMES = {"run", "protocol", "lifetime_us", "point", "seed", "promise", "transfer_model"}
NAMES |= {"engine", "engine_why", "cpu_s", "node", "origin", "seq"}


def test_every_published_column_is_recomputed_or_names_the_test_that_checks_it(runs):
    _, _, again = runs[0]
    recomputed = {*again.run(), *next(iter(again.nodes().values()))}
    recomputed |= {*next(iter(again.messages().values()))}
    for columns in (RUNS, NODES, MESSAGES):
        unchecked = {*names_of(columns)} - recomputed - NAMES - {*CHECKED_ELSEWHERE}
        assert not unchecked
    for place in CHECKED_ELSEWHERE.values():
        file, name = place.split("::")
        assert f"def {name}(" in (Path(__file__).parents[2] / file).read_text(), place


@pytest.mark.parametrize("protocol", ["causal", "vector", "none"])
def test_gauges_are_those_of_a_replay_of_the_log(protocol):
    slow, single = LinkModel(bytes_per_s=1_000), Options(frame_messages_max=1)
    spec = Spec(protocol, seed=5, gauge_us=1, links=slow, layer=single)
    result = run_one(generate(5, nodes_mean=12, hours=0.2), spec)
    allowed = gauge_values(event_table("x", result.columns).to_pylist())
    checked = Counter()
    for t_us, node, gauge, value in result.gauges:
        if gauge == "cache" or (gauge != "barrier" and protocol == "causal"):
            assert value in allowed(node, t_us, gauge), (t_us, node, gauge)
            checked[gauge] += value > 0
    assert min(checked.values()) > 0
    assert {"cache"} <= {*checked}
