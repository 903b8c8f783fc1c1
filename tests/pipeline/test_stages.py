"""The stages on Spark against the kernels and the summary that they must agree with."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.core.epidemic import Options
from beforehand.mobility.crowd import generate
from beforehand.mobility.walkers import generate as generate_walkers
from beforehand.pipeline import verdicts
from beforehand.pipeline.contacts import find_pieces, merge_pieces
from beforehand.pipeline.datasets import plan_dataset
from beforehand.pipeline.metrics import (
    PERMILLE,
    SCATTER_MAX,
    SCATTER_TOP,
    find_deliveries,
    find_quantiles,
    find_receptions,
    rank_values,
    sample_scatter,
    summarise_runs,
)
from beforehand.pipeline.plan import Run
from beforehand.pipeline.positions import write_trace
from beforehand.pipeline.schemas import CONTACTS, EVENTS, FACTS, POSITIONS, table_of, table_of_rows
from beforehand.pipeline.simulate import simulate
from beforehand.pipeline.stages import AsTasks, InParts, Job, Task
from beforehand.pipeline.verdicts import VerdictFacts, join_blocks, make_blocks, verify_block
from beforehand.sim.log import BROADCAST, DELIVER, RECEIVE, event_table, write_events
from beforehand.sim.run import Spec, run_one
from beforehand.sim.summary import describe, summarise
from beforehand.verify.verdict import verify_events

pytestmark = pytest.mark.spark

SPECS = {
    "causal": Spec("causal", seed=3),
    "delta": Spec("delta", seed=3, lifetime_us=120_000_000),
    # A small cache: messages are evicted, come again, and some are dropped while they wait.
    "small": Spec("causal", seed=3, layer=Options(announce_us=1_000_000, capacity=15)),
    "none": Spec("none", seed=3),
}


@pytest.fixture(scope="module")
def trace():
    return generate(4, nodes_mean=60, hours=0.4)


@pytest.fixture(scope="module")
def columns(trace):
    return {name: run_one(trace, spec).columns for name, spec in SPECS.items()}


@pytest.fixture(scope="module")
def walked(columns):
    """Delays of all receptions, latencies and ages of all deliveries, found row by row."""
    found = {}
    for name, run in columns.items():
        ids = zip(run["origin"].tolist(), run["seq"].tolist(), strict=True)
        rows = zip(
            run["kind"].tolist(), run["t_us"].tolist(), run["node"].tolist(), ids, strict=True
        )
        spoken, received, measured = {}, {}, ([], [], [])
        for kind, t_us, node, id in rows:
            if kind == BROADCAST:
                spoken[id] = t_us
            elif kind == RECEIVE:
                received[node, id] = t_us
                measured[0].append(t_us - spoken[id])
            elif kind == DELIVER and (node, id) in received:
                measured[1].append(t_us - received[node, id])
                measured[2].append(t_us - spoken[id])
        found[name] = [np.sort(values) for values in measured]
    return found


@pytest.fixture(scope="module")
def events(spark, columns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    for name in columns:
        write_events(event_table(name, columns[name]), folder / f"{name}.parquet")
    return spark.read.schema(EVENTS).parquet(*(str(path) for path in folder.iterdir())).cache()


@pytest.fixture(scope="module")
def ranked(events):
    return (
        rank_values(find_receptions(events), "delay_us").cache(),
        rank_values(find_deliveries(events), "latency_us").cache(),
    )


@pytest.mark.parametrize("slab_s", [7, 60, 100_000])
def test_contacts_do_not_depend_on_the_slabs_and_are_those_of_the_kernel(spark, slab_s):
    positions = generate_walkers(5, hours=0.1)
    segments = spark.createDataFrame(table_of(POSITIONS, positions.segments))
    start_us = int(positions.t0_us.min())
    pieces = find_pieces(segments, range_m=50.0, start_us=start_us, slab_us=slab_s * 1_000_000)
    found = sorted(tuple(row) for row in merge_pieces(pieces).collect())
    expected = sorted(tuple(row) for row in positions.contacts_within(50.0).contacts.tolist())
    assert found == expected
    assert len(found) > 100


def test_pieces_that_touch_or_overlap_are_one_contact(spark):
    pieces = [
        (1, 2, 0, 10),
        (1, 2, 10, 20),  # touches
        (1, 2, 12, 15),  # inside
        (1, 2, 17, 19),  # inside, and behind one that ended before
        (1, 2, 21, 30),  # a gap of one
        (1, 3, 5, 25),  # another pair
    ]
    merged = merge_pieces(spark.createDataFrame(table_of_rows(CONTACTS, pieces[::-1])))
    assert sorted(map(tuple, merged.collect())) == [(1, 2, 0, 20), (1, 2, 21, 30), (1, 3, 5, 25)]


def test_the_figures_are_those_of_the_simulator(spark, events, ranked, columns, walked):
    made = (1, 1, 1, 1, 3, 4, "causal", "valid", 0, 1.0, "")
    facts = [(n, "causal", None, 1, *made) for n in columns]
    facts += [("mute", "causal", None, 1, *made[:4], 0, 0, *made[6:])]
    known = spark.createDataFrame(table_of_rows(FACTS, facts))
    rows = {row["run"]: row for row in summarise_runs(events, *ranked, known).collect()}
    assert rows["small"]["dropped"] > 0
    for name in columns:
        expected = summarise(columns[name])
        for key in ("broadcasts", "receptions", "deliveries", "expired", "dropped"):
            assert rows[name][key] == expected[key], (name, key)
        assert rows[name]["delivery_ratio"] == pytest.approx(expected["delivery_ratio"])
        assert rows[name]["past_entries_avg"] == pytest.approx(expected["past_entries"]["avg"])
        for measure, values in zip(("delay", "latency", "age"), walked[name], strict=True):
            for kind, value in describe(values).items():
                assert rows[name][f"{measure}_us_{kind}"] == pytest.approx(value), (name, measure)
    assert rows["mute"]["receptions"] == 0
    assert rows["mute"]["delay_us_max"] == 0.0
    assert {rows[name]["reach"] for name in columns} == {0.75}
    assert (rows["mute"]["delivery_ratio"], rows["mute"]["reach"]) == (None, None)


def test_quantiles_are_exact(ranked, walked):
    rows = find_quantiles(*ranked).collect()
    found = {(row["run"], row["metric"], row["share"]): row["value_us"] for row in rows}
    assert len(found) == len(rows) == len(walked) * 2 * len(PERMILLE)
    for name, (delay_us, latency_us, _) in walked.items():
        for metric, values in (("delay", delay_us), ("latency", latency_us)):
            for permille in PERMILLE:
                rank = max(1, -(-permille * len(values) // 1000))
                share = permille / 1000
                assert found[name, metric, share] == values[rank - 1], (name, metric, share)
    assert {0.0, 0.005, 0.5, 0.99, 0.995, 0.999, 1.0} <= {share for _, _, share in found}


def test_the_scatter_keeps_the_largest_latencies_and_is_the_same_every_time(ranked, walked):
    points = [tuple(row) for row in sample_scatter(ranked[1]).collect()]
    assert sorted(points) == sorted(map(tuple, sample_scatter(ranked[1]).collect()))
    for name, (_, latency_us, _) in walked.items():
        kept = sorted(point[2] for point in points if point[0] == name)
        assert kept[-SCATTER_TOP:] == latency_us[-SCATTER_TOP:].tolist()
        assert len(kept) <= SCATTER_MAX
        assert len(kept) > 0.7 * min(SCATTER_MAX, len(latency_us))


def make_jobs(root, trace):
    """The runs of `SPECS`, and the verdicts on them."""
    made = {"inputs": (), "parameters": {}, "sources": ()}
    traces = plan_dataset(root, "contacts", "s3", **made)
    traces.commit(*write_trace(traces, trace))
    runs, judgements = [], []
    for name, spec in SPECS.items():
        events = plan_dataset(root, "events", name, **made)
        runs.append(Job(Task(name, {}, Run(spec, None), (traces,)), events))
        verdict = plan_dataset(root, "verdicts", name, **made)
        judgements.append(Job(Task(name, {}, None, (events,)), verdict))
    return runs, judgements


def test_one_task_per_simulation_and_blocks_of_senders_give_the_verdict_of_the_kernel(
    spark, trace, columns, tmp_path, monkeypatch
):
    runs, judgements = make_jobs(tmp_path, trace)
    AsTasks(simulate).make("events", runs, lambda: spark)
    assert {run.task.label: run.dataset.manifest().rows for run in runs} == {
        name: len(log["t_us"]) for name, log in columns.items()
    }
    # So little to a task that every run is cut into many.
    monkeypatch.setattr(verdicts, "TASK_STEPS_MAX", 300_000)
    assert sum(len(make_blocks(job)) for job in judgements) > 2 * len(runs)
    InParts(make_blocks, verify_block, join_blocks).make("verdicts", judgements, lambda: spark)
    promises, violations = set(), 0
    for run, judgement in zip(runs, judgements, strict=True):
        (expected,) = verify_events(run.dataset.file("events.parquet")).runs
        said = judgement.dataset.facts(VerdictFacts)
        promises.add(said.promise)
        violations += sum(said.violations.values())
        assert (said.state, said.violations) == (expected.state, expected.counts)
        steps = [
            step
            for path in judgement.dataset.folder.glob("violations-*.parquet")
            for step in pq.read_table(path)["step"].to_pylist()
        ]
        assert sorted(steps) == expected.log.step[expected.violations.row].tolist()
    assert promises == {"causal", "none"}
    assert violations > 0
