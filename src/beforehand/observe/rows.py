"""Arrow tables of rows: joined, and as bytes."""

from __future__ import annotations

import pyarrow as pa


def join(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables, even if they disagree on which columns may be null.

    Spark decides nullability anew for every micro-batch. In a union of two streams, of which one is
    empty this time, a column may become non-nullable.
    """
    return pa.concat_tables(tables, promote_options="permissive")


def write_rows(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def read_rows(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
