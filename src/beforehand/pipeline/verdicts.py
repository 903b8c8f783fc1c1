"""Stage `verdicts`: the verifier on Spark, a block of senders of one run per task."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from beforehand.kernels.causality import KINDS, Violations, find_violations
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.schemas import VIOLATIONS, table_of
from beforehand.pipeline.simulate import RunFacts
from beforehand.pipeline.stages import Job, Made
from beforehand.verify.about import DEFAULT_PROMISE
from beforehand.verify.event_log import EVENTS_FILE, Log, read_logs
from beforehand.verify.verdict import State, count_kinds, state_of

TASK_STEPS_MAX = 4_000_000_000
"""Deliveries times senders of one task: a few seconds."""


class Block(NamedTuple):
    """One task: the senders from `low` to `high` (excluded) of one run."""

    events: Dataset
    verdict: Dataset
    low: int
    high: int


class VerdictFacts(msgspec.Struct, frozen=True):
    """On one run."""

    state: State
    reason: str
    """If unknown: why. If valid although something is out of order: why that is."""
    promise: str
    """What the run was held to."""
    violations: dict[str, int]
    """By kind."""


def make_blocks(job: Job) -> list[Block]:
    """Blocks of senders with about the same work; any node may be a sender."""
    (events,) = job.inputs
    facts = events.facts(RunFacts)
    nodes = max(1, facts.nodes)
    count = max(1, min(nodes, -(-facts.deliveries * nodes // TASK_STEPS_MAX)))
    edges = [nodes * i // count for i in range(count + 1)]
    return [Block(events, job.dataset, low, high) for low, high in itertools.pairwise(edges)]


class Judged(msgspec.Struct, frozen=True):
    """What one task found out."""

    counts: dict[str, int]
    """Violations by kind."""
    doubts: tuple[str, ...]
    promise: str


def verify_block(block: Block) -> Judged:
    """Judge, write the violations: how many there are of each kind."""
    (log,) = read_logs(block.events.file(EVENTS_FILE))
    history = log.history()
    # Nodes that neither broadcast nor delivered have no place in the history.
    high = min(block.high, len(history.nodes))
    violations = find_violations(history, min(block.low, high), high)
    path = block.verdict.file(f"violations-{block.low}.parquet")
    write_table(path, _violation_table(log, violations))
    promise = log.about.promise or DEFAULT_PROMISE
    return Judged(count_kinds(violations), log.doubts, promise)


def join_blocks(job: Job, answers: Sequence[Any]) -> Made:
    """The verdict on a run, once all of its blocks are done."""
    (events,) = job.inputs
    judged = msgspec.convert(answers, list[Judged])
    counts = {kind: sum(found.counts[kind] for found in judged) for kind in KINDS}
    doubts, promise = judged[0].doubts, judged[0].promise  # the blocks are of one log
    state, reason = state_of(counts, events.facts(RunFacts).deliveries, doubts, promise)
    return Made(sum(counts.values()), VerdictFacts(state, reason, promise, counts))


def _violation_table(log: Log, violations: Violations) -> pa.Table:
    row = violations.row
    columns = (
        [log.run] * len(row),
        log.step[row],
        log.t_us[row],
        log.node[row],
        [KINDS[kind] for kind in violations.kind],
        log.origin[row],
        log.seq[row],
    )
    return table_of(VIOLATIONS, columns)
