"""Data sources of Spark for traces and event logs: `spark.read.format("beforehand.contacts")`.

A source is read by Spark's Python workers, one file at a time, so they need this package (`--ship`)
and the files. Rows have the columns that `simulate_runs` and `verify_runs` take.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from beforehand.errors import InputError
from beforehand.events import METADATA, OPTIONAL_COLUMNS, About, Runs
from beforehand.lab.trace import read_trace
from beforehand.mobility.trace import Trace
from beforehand.pipeline.frames import RUN_EVENTS
from beforehand.pipeline.schemas import CONTACTS, PRESENCE, arrow_schema

TABLES = {"contacts": CONTACTS, "presence": PRESENCE}
LOGS = "*.parquet"
ROWS_MAX = 50_000


def register_sources(spark: SparkSession) -> None:
    """Make the formats `beforehand.contacts` and `beforehand.events` known to a session."""
    for source in (ContactSource, EventSource):
        spark.dataSource.register(source)


class ContactSource(DataSource):
    """Contacts of a mobility trace of any format that `read_trace` knows.

    Options: `path`; `format`, otherwise detected; `range_m`, which a trace of positions needs;
    `table`, which is `contacts` or `presence`.
    """

    @classmethod
    def name(cls) -> str:
        return "beforehand.contacts"

    def schema(self) -> str:
        table = self.options.get("table", "contacts")
        if table not in TABLES:
            raise InputError(f"no table `{table}`", hint=f"choose {' or '.join(TABLES)}")
        return TABLES[table]

    def reader(self, schema: StructType) -> DataSourceReader:
        return ContactReader(dict(self.options), self.schema())


class ContactReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: str) -> None:
        self._options, self._schema = options, schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options = self._options
        range_m = float(options["range_m"]) if "range_m" in options else None
        trace = read_trace(_path(options), options.get("format"), range_m=range_m)
        make = presence_table if options.get("table") == "presence" else contact_table
        yield from make(trace).cast(arrow_schema(self._schema)).to_batches(ROWS_MAX)


def contact_table(trace: Trace) -> pa.Table:
    rows = np.asarray(trace.contacts)
    names = arrow_schema(CONTACTS).names
    return pa.table({name: pa.array(rows[:, at]) for at, name in enumerate(names)})


def presence_table(trace: Trace) -> pa.Table:
    rows = np.asarray(trace.presence)
    named = pa.array([trace.names[node] for node in rows[:, 0].tolist()], pa.string())
    node, up_us, down_us = (pa.array(rows[:, at]) for at in range(3))
    return pa.table({"node": node, "name": named, "up_us": up_us, "down_us": down_us})


class EventSource(DataSource):
    """Event logs in Parquet, one or a folder of them, with promise and size of each run.

    Option: `path`.
    """

    @classmethod
    def name(cls) -> str:
        return "beforehand.events"

    def schema(self) -> str:
        return RUN_EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:
        return EventReader(dict(self.options))


class EventReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._path = Path(_path(options))

    def partitions(self) -> list[InputPartition]:
        files = [self._path] if self._path.is_file() else sorted(self._path.rglob(LOGS))
        if not files:
            raise InputError("no event log there", where=str(self._path), hint=f"give {LOGS}")
        return [InputPartition(str(file)) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from event_rows(partition.value).to_batches(ROWS_MAX)


def event_rows(file: str) -> pa.Table:
    """Return the events of a log with the promise and the size of their runs."""
    table = pq.read_table(file)
    try:
        written = (table.schema.metadata or {}).get(METADATA.encode(), b'{"runs": {}}')
        runs = msgspec.json.decode(written, type=Runs).runs
    except msgspec.MsgspecError as error:
        raise InputError(f"the metadata cannot be read: {error}", where=file) from error
    names = table["run"].to_pylist() if len(runs) != 1 else list(runs) * len(table)
    known = {name: runs.get(str(name), About()) for name in set(names)}
    schema = arrow_schema(RUN_EVENTS)
    added: dict[str, Any] = {
        "promise": pa.array([known[name].promise for name in names], pa.string()),
        "events": pa.array([known[name].events for name in names], pa.int64()),
    }
    for name in OPTIONAL_COLUMNS:
        added[name] = pa.nulls(len(table), schema.field(name).type)
    for name, column in added.items():
        if name not in table.column_names:
            table = table.append_column(name, column)
    if missing := set(schema.names) - set(table.column_names):
        raise InputError(f"no event log: no column {', '.join(sorted(missing))}", where=file)
    return table.select(schema.names).cast(schema)


def _path(options: dict[str, str]) -> str:
    if "path" not in options:
        raise InputError("no path", hint="call `.load(path)`")
    return options["path"]
