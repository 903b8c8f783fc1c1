"""Pack many rows into one binary value. Imports are few: half of Spark's workers need only this.

A stateful Spark operator in Python takes its rows one by one and through pandas. That is several
times slower than one packet per observer and micro-batch, and it changes some types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beforehand.observe.rejects import sift

KEY, ROWS = "_observer", "_rows"
PACKETS_IN, PACKETS_OUT = f"{KEY} string, {ROWS} binary", f"{ROWS} binary"
PACKET_ROWS_MAX = 50_000

Batches = Iterator[pa.RecordBatch]


def pack(batches: Batches, rejects: Path | None = None) -> Batches:
    """Yield one packet for each observer of a batch.

    rejects: the folder for rows marked as unreadable; None if no rows are marked.
    """
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if rejects is not None:
            rows = sift(rows, rejects)
        if not len(rows):
            continue
        keys: Any = pc.dictionary_encode(rows[KEY].combine_chunks(), null_encoding="encode")
        rows = rows.drop_columns([KEY])
        observer = keys.indices.to_numpy()
        at = np.argsort(observer, kind="stable")
        cuts = np.searchsorted(observer[at], np.arange(1, len(keys.dictionary)))
        packets = [write_rows(rows.take(part)) for part in np.split(at, cuts)]
        yield pa.RecordBatch.from_pydict({KEY: keys.dictionary, ROWS: packets})


def unpack(batches: Batches) -> Batches:
    for batch in batches:
        for packet in batch[ROWS]:
            yield from read_rows(packet.as_py()).to_batches()


def open_packets(packets: Iterable[Any]) -> pa.Table:
    return join([read_rows(packet) for packet in packets])


def join(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables, even if they disagree on which columns may be null.

    Spark decides nullability anew for every micro-batch. In a union of two streams, of which one is
    empty this time, a column may become non-nullable.
    """
    return pa.concat_tables(tables, promote_options="permissive")


def close_packets(rows: pa.Table) -> list[bytes]:
    starts = range(0, len(rows), PACKET_ROWS_MAX)
    return [write_rows(rows.slice(start, PACKET_ROWS_MAX)) for start in starts]


def write_rows(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def read_rows(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
