"""Stage `events`: one simulation is one task, which writes its own files.

A task is all or nothing and gives the same result every time. So it does not matter how often Spark
tries it, and what a killed run has finished is not done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from beforehand.errors import InputError
from beforehand.mobility.trace import Trace
from beforehand.pipeline.datasets import replaced, write_table
from beforehand.pipeline.plan import Run
from beforehand.pipeline.positions import read_trace
from beforehand.pipeline.schemas import GAUGES, GAUGES_FILE, SIMULATED, table_of_rows
from beforehand.sim.log import BROADCAST, DELIVER, event_table, write_events
from beforehand.sim.run import Result, run_one
from beforehand.verify.event_log import EVENTS_FILE


def simulate(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """One row per run when it is done. The first of `runs` are started first."""
    # `range` gives one row to each partition; `repartition` leaves some empty.
    tasks = spark.range(0, len(runs), 1, len(runs))
    return tasks.mapInArrow(_worker(tuple(runs)), SIMULATED)


def _worker(
    runs: tuple[Run, ...],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch["id"].to_numpy().tolist():
                yield from table_of_rows(SIMULATED, [simulate_one(runs[index])]).to_batches()

    return work


def simulate_one(run: Run) -> tuple[str, int, float]:
    """Run, write, commit. The name, the number of events and the CPU seconds."""
    trace = read_trace(run.trace)
    watched = watched_node(trace, run.watched)
    started_s = time.process_time()
    result = run_one(trace, run.spec)
    cpu_s = time.process_time() - started_s
    write_table(run.events.file(GAUGES_FILE), _gauge_table(run.name, watched, result))
    with replaced(run.events.file(EVENTS_FILE)) as partial:
        write_events(event_table(run.name, result.columns), partial)
    kind = result.columns["kind"]
    rows = len(kind)
    run.events.commit(
        rows=rows,
        nodes=trace.nodes_count,
        contacts=len(trace.contacts),
        broadcasts=int(np.count_nonzero(kind == BROADCAST)),
        deliveries=int(np.count_nonzero(kind == DELIVER)),
        frames=result.frames_sent,
        bytes=result.bytes_sent,
        transfer_model=run.spec.transfer_model,
        cpu_s=round(cpu_s, 3),
    )
    return run.name, rows, cpu_s


def watched_node(trace: Trace, wanted: str | int | None) -> int:
    """The index of the node that a scenario names; without a name, of the one there longest."""
    if wanted is None:
        there_us = np.zeros(trace.nodes_count, np.int64)
        np.add.at(there_us, trace.presence[:, 0], trace.presence[:, 2] - trace.presence[:, 1])
        return int(there_us.argmax())
    if isinstance(wanted, int) and 0 <= wanted < trace.nodes_count:
        return wanted
    if wanted in trace.names:
        return trace.names.index(str(wanted))
    shown = ", ".join(f"`{name}`" for name in trace.names[:5])
    raise InputError(
        f"no node to watch: `{wanted}`", hint=f"`gauges.node` is an index or one of {shown}, ..."
    )


def _gauge_table(run: str, watched: int, result: Result) -> pa.Table:
    rows = [(run, *row) for row in result.gauges if row[1] == watched]
    return table_of_rows(GAUGES, rows)
