"""The tasks of Spark that order events: one partition of a micro-batch, or of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from beforehand.errors import LocalError
from beforehand.observe.rejects import sift
from beforehand.observe.rows import join
from beforehand.observe.saved import decode_state, encode_state
from beforehand.observe.stamps import (
    ACTS,
    ENDS,
    KEY,
    NOW_US,
    OF_BATCH,
    PARTITION,
    RUN_US,
    Reordering,
)
from beforehand.observe.state import BatchMoment, State, new_state, take
from beforehand.observe.versions import Versions

BATCH, QUERY = "streaming.sql.batchId", "sql.streaming.queryId"
"""Properties that Spark sets for the tasks of a micro-batch."""
ROWS_MAX = 50_000
"""The size of the batches that a task returns."""
TABLE_ROWS_MIN = 500_000
"""A task of a table holds this many rows, or all of one observer if it has more."""

Batches = Iterator[pa.RecordBatch]


class OrderTask(NamedTuple):
    """How events are ordered, as it is sent to the workers."""

    order: Reordering
    idle_us: int | None
    rejects: Path | None
    """The folder for rows marked as unreadable; None if no rows are marked."""
    folder: str | None
    """The folder of the states; None for a table."""
    partitions: int
    name: str
    """Tells two observers of one query apart."""

    @property
    def needs_ticks(self) -> bool:
        """Return whether an observer acts when nothing arrives."""
        return self.order.clock == "wall" or self.idle_us is not None

    def order_batch(self, batches: Batches) -> Batches:
        """Order one partition of a micro-batch, and write its state under the number of the batch.

        The state before the batch is never changed. So a task that Spark repeats does the same
        again.
        """
        context: Any = TaskContext.get()
        batch, query = (context.getLocalProperty(name) for name in (BATCH, QUERY))
        if batch is None or self.folder is None:
            raise LocalError(
                "not a micro-batch of a stream", hint="use a trigger with micro-batches"
            )
        states = Versions(self.folder, query, self.name, context.partitionId())
        saved, versions = states.read_before(int(batch))
        state = new_state(self.order)
        if saved is not None:
            state = decode_state(saved, self.order, self.partitions)
        found, out = list(batches), None
        if found:
            rows = pa.Table.from_batches(found).combine_chunks()
            state, out = self.take_batch(state, rows, context.partitionId())
            saved = None
        saved = saved or encode_state(state, self.order, self.partitions)
        states.write(int(batch), saved, versions)
        if out is not None:
            yield from out.to_batches(max_chunksize=ROWS_MAX)

    def take_batch(self, state: State, rows: pa.Table, partition: int) -> tuple[State, pa.Table]:
        """Take the rows of a partition, among them ticks and notices."""
        if not np.all(rows[PARTITION].to_numpy() == partition):
            raise LocalError(
                "Spark has put rows of one partition into another",
                hint="`--conf spark.sql.adaptive.enabled=false`",
            )
        moment = BatchMoment(rows[NOW_US][0].as_py(), self.idle_us)
        if RUN_US in rows.column_names:
            state = _in_last_run(state, rows)
        rows = rows.filter(pc.is_valid(rows[ENDS]))
        rows = rows.drop_columns([name for name in OF_BATCH if name in rows.column_names])
        return take(state, self._sifted(rows), self.order, moment)

    def order_table(self, batches: Batches) -> Batches:
        """Order rows that are sorted by observer."""
        for rows in _whole_observers(batches):
            none = new_state(self.order)
            _, out = take(none, self._sifted(rows), self.order, BatchMoment(is_last=True))
            yield from out.to_batches(max_chunksize=ROWS_MAX)

    def _sifted(self, rows: pa.Table) -> pa.Table:
        return rows if self.rejects is None else sift(rows, self.rejects)


def _in_last_run(state: State, rows: pa.Table) -> State:
    """Return the state, in the run that started last."""
    starts = rows.filter(pc.is_valid(rows[RUN_US]))
    if not len(starts):
        return state
    last = int(np.argmax(starts[RUN_US].to_numpy()))
    return state._replace(since_us=starts[RUN_US][last].as_py(), acts=starts[ACTS][last].as_py())


def _whole_observers(batches: Batches) -> Iterator[pa.Table]:
    """Yield tables that have all rows of their observers, from rows that are sorted by observer."""
    held: list[pa.Table] = []
    enough = TABLE_ROWS_MIN
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        if sum(map(len, held)) < enough:
            continue
        rows = join(held).combine_chunks()
        codes: Any = pc.dictionary_encode(rows[KEY].combine_chunks(), null_encoding="encode")
        codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        starts = np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1
        if len(starts):
            yield rows.slice(0, int(starts[-1]))
            rows = rows.slice(int(starts[-1]))
        held, enough = [rows], max(TABLE_ROWS_MIN, 2 * len(rows))
    if held:
        yield join(held).combine_chunks()
