"""Stage `verdicts`: the verifier on Spark, a block of senders of one run per task."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beforehand.kernels.causality import KINDS, Violations, find_violations
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.plan import Run
from beforehand.pipeline.schemas import JUDGED, VIOLATIONS, table_of, table_of_rows
from beforehand.verify.event_log import EVENTS_FILE, Log, read_logs
from beforehand.verify.verdict import count_kinds, state_of

TASK_STEPS_MAX = 4_000_000_000
"""Deliveries times senders of one task: a few seconds."""


@dataclass(frozen=True)
class Block:
    """One task: the senders from `low` to `high` (excluded) of one run."""

    run: str
    events: Dataset
    verdict: Dataset
    low: int
    high: int


def make_blocks(run: Run, verdict: Dataset) -> list[Block]:
    """Blocks of senders with about the same work; any node may be a sender."""
    facts = run.events.manifest()
    nodes = max(1, facts["nodes"])
    count = max(1, min(nodes, -(-facts["deliveries"] * nodes // TASK_STEPS_MAX)))
    edges = [nodes * i // count for i in range(count + 1)]
    return [
        Block(run.name, run.events, verdict, low, high) for low, high in itertools.pairwise(edges)
    ]


def verify(spark: SparkSession, blocks: Sequence[Block]) -> DataFrame:
    """One row per block when it is done; the violations stay in the files that it wrote."""
    tasks = spark.range(0, len(blocks), 1, len(blocks))
    return tasks.mapInArrow(_worker(tuple(blocks)), JUDGED)


def commit_verdict(run: Run, verdict: Dataset, judged: Sequence[dict[str, int]]) -> None:
    """The verdict on a run, once all of its blocks are done."""
    counts = {kind: sum(row[kind] for row in judged) for kind in KINDS}
    deliveries = run.events.manifest()["deliveries"]
    state, reason = state_of(counts, deliveries, missing=0)
    rows = sum(counts.values())
    verdict.commit(run=run.name, state=state, reason=reason, rows=rows, **counts)


def _worker(
    blocks: tuple[Block, ...],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch["id"].to_numpy().tolist():
                yield from table_of_rows(JUDGED, [verify_block(blocks[index])]).to_batches()

    return work


def verify_block(block: Block) -> tuple[str, int, int, int, int]:
    """Judge, write the violations: the run, `low`, and how many there are of each kind."""
    (log,) = read_logs(block.events.file(EVENTS_FILE))
    history = log.history()
    # Nodes that neither broadcast nor delivered have no place in the history.
    high = min(block.high, len(history.nodes))
    violations = find_violations(history, min(block.low, high), high)
    path = block.verdict.file(f"violations-{block.low}.parquet")
    write_table(path, _violation_table(log, violations))
    counts = count_kinds(violations)
    return (block.run, block.low, counts["late"], counts["twice"], counts["unknown"])


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
