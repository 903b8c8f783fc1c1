"""Write an event log part by part: the memory that it takes does not grow with the run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beforehand.events import COLUMNS, About, metadata_of
from beforehand.files import replaced
from beforehand.sim.log import event_table, parquet_options

ROWS_PER_GROUP = 1 << 17
Columns = dict[str, NDArray[Any]]


class EventWriter:
    """Writes the rows of one run into a Parquet file, group by group. How the rows were divided
    into parts does not show in the bytes."""

    def __init__(self, target: Path | io.BytesIO, run: str) -> None:
        self.rows = 0
        self._run = run
        self._waiting: list[pa.Table] = []
        empty = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}
        table = self._table(empty, np.empty(0, np.int32))
        self._file = pq.ParquetWriter(target, table.schema, **parquet_options(table))

    def add(self, columns: Columns, senders: NDArray[np.int32]) -> None:
        """Write the next rows. senders: the node that forwarded the message, of each reception."""
        self._waiting.append(self._table(columns, senders))
        self.rows += len(columns["t_us"])
        if sum(map(len, self._waiting)) >= ROWS_PER_GROUP:
            table = pa.concat_tables(self._waiting)
            whole = len(table) - len(table) % ROWS_PER_GROUP
            self._write(table.slice(0, whole))
            self._waiting = [table.slice(whole)]

    def finish(self, about: About) -> None:
        """Write the rest, and the metadata."""
        if self._waiting:
            self._write(pa.concat_tables(self._waiting))
        whole = msgspec.structs.replace(about, events=self.rows)
        self._file.add_key_value_metadata(metadata_of(self._run, whole))
        self.close()

    def close(self) -> None:
        self._file.close()

    def _table(self, columns: Columns, senders: NDArray[np.int32]) -> pa.Table:
        made = event_table(self._run, columns, senders=senders, first=self.rows)
        return made.replace_schema_metadata(None)

    def _write(self, table: pa.Table) -> None:
        # One chunk: pages would begin where a part does.
        self._file.write_table(table.combine_chunks(), ROWS_PER_GROUP)


@contextmanager
def event_writer(
    target: Path | io.BytesIO, run: str, *, promise: str | None, names: Sequence[str], about: About
) -> Iterator[EventWriter]:
    """Yield a writer. The file is there when the block ends without an error, and not before."""
    if isinstance(target, Path):
        with (
            replaced(target) as partial,
            _closed(EventWriter(partial, run), promise, names, about) as writer,
        ):
            yield writer
    else:
        with _closed(EventWriter(target, run), promise, names, about) as writer:
            yield writer


@contextmanager
def _closed(
    writer: EventWriter, promise: str | None, names: Sequence[str], about: About
) -> Iterator[EventWriter]:
    try:
        yield writer
        writer.finish(msgspec.structs.replace(about, promise=promise, names=tuple(names)))
    finally:
        writer.close()
