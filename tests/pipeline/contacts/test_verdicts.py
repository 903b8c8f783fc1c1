"""The stage `verdicts`, without Spark."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from beforehand.pipeline.contacts import verdicts
from beforehand.pipeline.contacts.simulate import RunFacts
from beforehand.pipeline.contacts.verdicts import join_blocks, make_blocks, verify_block
from beforehand.pipeline.datasets import plan_dataset
from beforehand.pipeline.stages import Job, Made, Task
from tests.verify.test_floors import SOUND, WRONG
from tests.verify.test_verdict import table_of


def facts_of(deliveries):
    """The facts of a run, of which the verdict needs the nodes and the deliveries."""
    return RunFacts(5, 0, 2, deliveries, 0, 0, None, 0, 0, "", 0.0, "cores", "")


@pytest.mark.parametrize("steps_max", [1, 1_000_000], ids=["in blocks", "whole"])
def test_verdict_of_an_experiment_names_deliveries_below_a_floor(tmp_path, monkeypatch, steps_max):
    monkeypatch.setattr(verdicts, "TASK_STEPS_MAX", steps_max)
    answers = []
    for name, rows in (("sound", SOUND), ("wrong", WRONG)):
        made = {"inputs": (), "parameters": {}, "sources": ()}
        events = plan_dataset(tmp_path, "events", name, **made)
        events.folder.mkdir(parents=True)
        pq.write_table(table_of(rows), events.file("events.parquet"))
        deliveries = sum(kind == "deliver" for _, kind, _, _ in rows)
        events.commit(*Made(len(rows), facts_of(deliveries)))
        verdict = plan_dataset(tmp_path, "verdicts", name, **made)
        verdict.folder.mkdir(parents=True)
        job = Job(Task(name, {}, None, (events,)), verdict)
        blocks = make_blocks(job)
        assert (len(blocks) > 1) == (steps_max == 1)
        facts = join_blocks(job, list(map(verify_block, blocks))).facts
        answers.append((facts.state, facts.reason))
    reason = "1 deliveries at or below the floor of their node"
    assert answers == [("valid", ""), ("invalid", reason)]
