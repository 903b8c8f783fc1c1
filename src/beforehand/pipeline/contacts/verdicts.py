"""Stage `verdicts`: run the verifier on Spark, with one task per block of senders of a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from beforehand.events import EVENTS_FILE
from beforehand.kernels.verify.causality import (
    KINDS,
    LATE,
    History,
    Violations,
    find_violations,
    first_follower,
    spread_of,
)
from beforehand.pipeline.contacts.simulate import RunFacts
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.schemas import VIOLATIONS, table_of
from beforehand.pipeline.stages import Job, Made
from beforehand.promises import DEFAULT_PROMISE
from beforehand.verify.event_log import Log, read_logs
from beforehand.verify.verdict import State, count_kinds, state_of

TASK_STEPS_MAX = 4_000_000_000
"""Maximum of deliveries times senders per task, which takes a few seconds."""
FOLLOWERS_MAX = 100
"""Finding the message that a late delivery follows takes one or two passes over the log."""


class Block(NamedTuple):
    """The input of one task: the senders from `low` to `high` (exclusive) of one run."""

    events: Dataset
    verdict: Dataset
    low: int
    high: int


class VerdictFacts(msgspec.Struct, frozen=True):
    """The verdict on one run."""

    state: State
    reason: str
    """Why the verdict is unknown, or why the run is valid although some deliveries are out of
    order."""
    promise: str
    """The ordering guarantee that the run was checked against."""
    violations: dict[str, int]
    """The number of violations by kind."""


def make_blocks(job: Job) -> list[Block]:
    """Return blocks of senders with about equal work; any node may be a sender."""
    (events,) = job.inputs
    facts = events.facts(RunFacts)
    nodes = max(1, facts.nodes)
    count = max(1, min(nodes, -(-facts.deliveries * nodes // TASK_STEPS_MAX)))
    edges = [nodes * i // count for i in range(count + 1)]
    return [Block(events, job.dataset, low, high) for low, high in itertools.pairwise(edges)]


class Judged(msgspec.Struct, frozen=True):
    """The result of one task."""

    counts: dict[str, int]
    """The number of violations by kind."""
    doubts: tuple[str, ...]
    promise: str


def verify_block(block: Block) -> Judged:
    """Verify one block, write its violations, and return how many there are of each kind."""
    (log,) = read_logs(block.events.file(EVENTS_FILE))
    history = log.history()
    # The history does not contain nodes that neither broadcast nor delivered.
    high = min(block.high, len(history.nodes))
    violations = find_violations(history, min(block.low, high), high)
    path = block.verdict.file(f"violations-{block.low}.parquet")
    write_table(path, _violation_table(log, history, violations))
    promise = log.about.promise or DEFAULT_PROMISE
    return Judged(count_kinds(violations), log.doubts, promise)


def verify_run(job: Job) -> Made | None:
    """Return the verdict on a run that is small enough for one block; None for a larger one."""
    blocks = make_blocks(job)
    return join_blocks(job, [verify_block(blocks[0])]) if len(blocks) == 1 else None


def join_blocks(job: Job, answers: Sequence[Any]) -> Made:
    """Return the verdict on a run from the results of all its blocks."""
    (events,) = job.inputs
    judged = msgspec.convert(answers, list[Judged])
    counts = {kind: sum(found.counts[kind] for found in judged) for kind in KINDS}
    doubts, promise = judged[0].doubts, judged[0].promise  # all blocks read the same log
    state, reason = state_of(counts, events.facts(RunFacts).deliveries, doubts, promise)
    return Made(sum(counts.values()), VerdictFacts(state, reason, promise, counts))


def _violation_table(log: Log, history: History, violations: Violations) -> pa.Table:
    row = violations.row
    after = _followers(history, violations)
    columns = (
        [log.run] * len(row),
        log.step[row],
        log.t_us[row],
        log.node[row],
        [KINDS[kind] for kind in violations.kind],
        log.origin[row],
        log.seq[row],
        *(
            [None if at is None else int(column[at]) for at in after]
            for column in (log.step, log.origin, log.seq)
        ),
    )
    return table_of(VIOLATIONS, columns)


def _followers(history: History, violations: Violations) -> list[int | None]:
    """Return for each violation the row of the delivery after which it is late, if it is known."""
    found: list[int | None] = [None] * len(violations.row)
    late = np.flatnonzero(violations.kind == LATE)[:FOLLOWERS_MAX]
    spreads = {}
    for at in late.tolist():
        row = int(violations.row[at])
        message = int(history.message[row])
        if message not in spreads:
            spreads = {message: spread_of(history, message)}  # caches one message only
        found[at] = first_follower(history, spreads[message], int(history.node[row]), row)
    return found
