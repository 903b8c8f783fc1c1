"""Stage `verdicts`: run the verifier on Spark.

A run is one task if it is small, or if the sparse walk is the faster one. Else the driver indexes
the log once, and each task maps the index into memory and walks through a block of senders.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
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
    is_sparse,
    spread_of,
)
from beforehand.pipeline.contacts.simulate import RunFacts
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.schemas import VIOLATIONS, table_of
from beforehand.pipeline.stages import Job, Made
from beforehand.promises import DEFAULT_PROMISE
from beforehand.temporary import own_name
from beforehand.verify.event_log import Log, read_logs
from beforehand.verify.stored_index import open_index, write_index
from beforehand.verify.verdict import State, count_kinds, state_of

TASK_STEPS_MAX = 20_000_000_000
"""Maximum of deliveries times senders per task, which takes a few seconds."""
FOLLOWERS_MAX = 100
"""Finding the message that a late delivery follows takes one or two passes over the log."""
INDEX = ".index"
"""The name of the index in the folder of the verdict, before a dot and the name of its writer."""


class Block(NamedTuple):
    """The input of one task: the senders from `low` to `high` (exclusive) of one run."""

    events: Dataset
    verdict: Dataset
    low: int
    high: int
    indexed: Path | None = None
    """The folder of the log's index; None if the task reads the log itself."""


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
    index = job.dataset.file(f"{INDEX}.{own_name()}")
    if count == 1 or not write_index(events.file(EVENTS_FILE), index):
        return [Block(events, job.dataset, 0, nodes)]
    if is_sparse(open_index(events.file(EVENTS_FILE), index).history()):
        return [Block(events, job.dataset, 0, nodes, index)]
    edges = [nodes * i // count for i in range(count + 1)]
    return [Block(events, job.dataset, low, high, index) for low, high in itertools.pairwise(edges)]


class Judged(msgspec.Struct, frozen=True):
    """The result of one task."""

    counts: dict[str, int]
    """The number of violations by kind."""
    doubts: tuple[str, ...]
    promise: str
    below_floor: int
    """The number of deliveries at or below the floor of their node, of the whole log."""


def verify_block(block: Block) -> Judged:
    """Verify one block, write its violations, and return how many there are of each kind."""
    file = block.events.file(EVENTS_FILE)
    (log,) = read_logs(file) if block.indexed is None else (open_index(file, block.indexed),)
    history = log.history()
    # The history does not contain nodes that neither broadcast nor delivered.
    high = min(block.high, len(history.nodes))
    violations = find_violations(history, min(block.low, high), high)
    path = block.verdict.file(f"violations-{block.low}.parquet")
    write_table(path, _violation_table(log, history, violations))
    promise = log.about.promise or DEFAULT_PROMISE
    return Judged(count_kinds(violations), log.doubts, promise, log.below_floor.count)


def verify_run(job: Job) -> Made | None:
    """Return the verdict on a run that is small enough for one block; None for a larger one."""
    blocks = make_blocks(job)
    return join_blocks(job, [verify_block(blocks[0])]) if len(blocks) == 1 else None


def join_blocks(job: Job, answers: Sequence[Any]) -> Made:
    """Return the verdict on a run from the results of all its blocks."""
    (events,) = job.inputs
    for index in job.dataset.folder.glob(f"{INDEX}.*"):
        shutil.rmtree(index)
    judged = msgspec.convert(answers, list[Judged])
    counts = {kind: sum(found.counts[kind] for found in judged) for kind in KINDS}
    same = judged[0]  # all blocks read the same log
    deliveries, promise = events.facts(RunFacts).deliveries, same.promise
    state, reason = state_of(counts, deliveries, same.doubts, promise, below_floor=same.below_floor)
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
