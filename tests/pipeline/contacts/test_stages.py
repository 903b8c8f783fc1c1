"""The stages on Spark against the kernels that they must agree with."""

from __future__ import annotations

import dataclasses

import pyarrow.parquet as pq
import pytest

from beforehand.mobility.generators.crowd import generate
from beforehand.mobility.generators.walkers import generate as generate_walkers
from beforehand.pipeline.contacts import detect, verdicts
from beforehand.pipeline.contacts.detect import make_contacts, merge_pieces
from beforehand.pipeline.contacts.plan import Run
from beforehand.pipeline.contacts.positions import make_positions, write_trace
from beforehand.pipeline.contacts.simulate import simulate
from beforehand.pipeline.contacts.verdicts import (
    VerdictFacts,
    join_blocks,
    make_blocks,
    verify_block,
)
from beforehand.pipeline.datasets import plan_dataset
from beforehand.pipeline.schemas import CONTACTS, table_of_rows
from beforehand.pipeline.stages import AsTasks, InParts, Job, Task
from beforehand.play.judge import violations_of
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.run import Spec
from beforehand.verify.verdict import verify_events

pytestmark = pytest.mark.spark

SPECS = {
    "delta": Spec("delta", seed=3, lifetime_us=120_000_000),
    # A small cache: messages are evicted, come again, and some are dropped while they wait.
    "small": Spec("causal", seed=3, layer=Options(announce_us=1_000_000, capacity=15)),
    "none": Spec("none", seed=3),
}


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A source that has been read."""

    positions: object

    def load(self, _seed):
        return self.positions


@pytest.fixture(scope="module")
def trace():
    return generate(4, nodes_mean=40, hours=0.2)


def test_contacts_do_not_depend_on_the_slabs_and_are_those_of_one_process(
    spark, tmp_path, monkeypatch
):
    positions = generate_walkers(5, hours=0.1)
    made = {"inputs": (), "parameters": {}, "sources": ()}
    source = plan_dataset(tmp_path, "positions", "s5", **made)
    source.commit(*make_positions(Job(Task("s5", {}, (Loaded(positions), 5)), source)))
    alone, slabs = (
        Job(Task(name, {}, 50.0, (source,)), plan_dataset(tmp_path, "contacts", name, **made))
        for name in ("alone", "slabs")
    )
    opened = []
    alone_made = make_contacts(lambda: opened.append(spark), alone)
    assert not opened
    monkeypatch.setattr(detect, "ALONE_MAX", 0)
    monkeypatch.setattr(detect, "SLAB_US_MIN", 30_000_000)
    assert make_contacts(lambda: spark, slabs) == alone_made
    assert alone_made.rows > 100
    for name in ("contacts.parquet", "presence.parquet"):
        assert alone.dataset.file(name).read_bytes() == slabs.dataset.file(name).read_bytes()


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
    spark, trace, tmp_path, monkeypatch
):
    runs, judgements = make_jobs(tmp_path, trace)
    AsTasks(simulate).make("events", runs, lambda: spark)
    assert all(run.dataset.manifest().rows > 1000 for run in runs)
    # So little to a task that every run is cut into many.
    monkeypatch.setattr(verdicts, "TASK_STEPS_MAX", 50_000)
    assert sum(len(make_blocks(job)) for job in judgements) > 2 * len(runs)
    InParts(make_blocks, verify_block, join_blocks).make("verdicts", judgements, lambda: spark)
    promises, violations = set(), 0
    for run, judgement in zip(runs, judgements, strict=True):
        (expected,) = verify_events(run.dataset.file("events.parquet")).runs
        said = judgement.dataset.facts(VerdictFacts)
        promises.add(said.promise)
        violations += sum(said.violations.values())
        assert (said.state, said.violations) == (expected.state, expected.counts)
        rows = [
            row
            for path in judgement.dataset.folder.glob("violations-*.parquet")
            for row in pq.read_table(path).to_pylist()
        ]
        wrong = expected.log.step[expected.violations.row].tolist()
        assert sorted(row["step"] for row in rows) == wrong
        # The proof of a violation ends with its follower and the late delivery.
        proofs = violations_of(expected).chain
        after = {step: chain[-2, 2:4].tolist() for step, chain in zip(wrong, proofs, strict=False)}
        told = [row for row in rows if row["step"] in after and row["follower_step"] is not None]
        assert told or not wrong
        for row in told:
            assert [row["follower_origin"], row["follower_seq"]] == after[row["step"]]
            assert row["follower_step"] < row["step"]
    assert promises == {"causal", "none"}
    assert violations > 0
