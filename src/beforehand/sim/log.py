"""The event log of a run in columns: one row per event, in the total order of the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.events import (
    COLUMNS,
    FILE_COLUMNS,
    KINDS,
    PAST_COLUMNS,
    RECEIVE,
    SEND,
    About,
    metadata_of,
)
from beforehand.files import replaced
from beforehand.protocols.contract.base import Message

if TYPE_CHECKING:
    import pyarrow as pa

NO_MESSAGE = (Message((-1, -1), (), b""),)
"""Stands for the message in events of a node."""

ROW = np.dtype(list(COLUMNS.items()))
_write = Struct("=qibiqq").pack_into  # writes one ROW
ROW_BYTES = ROW.itemsize
PAGE_BYTES = ROW_BYTES << 12
"""A page is small enough to stay in the cache until it is full."""


class Log:
    """An event log. Rows are written into pages of bytes: about 0.2 µs and 33 bytes per row."""

    def __init__(self) -> None:
        self._page = bytearray(PAGE_BYTES)
        self._end = 0
        self._full: list[bytes] = []

    def add(
        self, t_us: int, node: int, kind: int, messages: Sequence[Message], value: int = 0
    ) -> None:
        """Add one row for each message."""
        page, end = self._page, self._end
        for message in messages:
            if end == PAGE_BYTES:
                self._full.append(bytes(page))
                end = 0
            origin, seq = message.id
            _write(page, end, t_us, node, kind, origin, seq, value)
            end += ROW_BYTES
        self._end = end

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return the whole log, one array per column.

        A file has two more columns: `run`, and `step`, the position of an event."""
        pages = [np.frombuffer(page, ROW) for page in (*self._full, bytes(self._page[: self._end]))]
        return {name: np.concatenate([page[name] for page in pages]) for name in COLUMNS}


def event_table(
    run: str,
    columns: dict[str, NDArray[np.int64]],
    *,
    senders: NDArray[Any] | None = None,
    promise: str | None = None,
    names: Sequence[str] = (),
    about: About | None = None,
    first: int = 0,
) -> pa.Table:
    """Return the event log as an Arrow table, with the names of the kinds (dictionary-encoded).

    Its metadata contain the number of events, so that a truncated log is detected.
    senders: the node from which each `receive` row came, or a negative number where it is unknown.
    promise: what the protocol promises, `causal` or `none`. names: of the nodes, if they have some.
    about: the protocol and its settings, if the log shall name them.
    first: the step of the first row, in a part of a log.
    """
    import pyarrow as pa

    size = len(columns["t_us"])
    kinds = pa.DictionaryArray.from_arrays(columns["kind"], pa.array(KINDS))
    runs = pa.DictionaryArray.from_arrays(np.zeros(size, np.int8), pa.array([run]))
    steps = pa.array(np.arange(first, first + size, dtype=np.int64))
    rest = [
        kinds if name == "kind" else pa.array(columns[name].astype(kept_as, copy=False))
        for name, kept_as in COLUMNS.items()
    ]
    table = pa.table([runs, steps, *rest, _senders(columns, senders)], names=list(FILE_COLUMNS))
    completed = msgspec.structs.replace(
        about or About(), events=size, promise=promise, names=tuple(names)
    )
    return table.replace_schema_metadata(metadata_of(run, completed))


def _senders(columns: dict[str, NDArray[np.int64]], senders: NDArray[Any] | None) -> pa.Array[Any]:
    import pyarrow as pa

    size = len(columns["t_us"])
    if senders is None:
        return pa.nulls(size, pa.int32())
    of_row = np.full(size, -1, np.int32)
    of_row[columns["kind"] == RECEIVE] = senders
    return pa.array(of_row, mask=of_row < 0)


def packet_senders(columns: dict[str, NDArray[np.int64]]) -> NDArray[np.int32]:
    """Return the sender of each `receive` row of a log in which `value` is the packet.

    The packet is the one that a `send` row of the sender has.
    """
    sent, received = (columns["kind"] == kind for kind in (SEND, RECEIVE))
    packets = columns["value"][sent]
    of_packet = np.full(int(packets.max(initial=-1)) + 1, -1, np.int32)
    of_packet[packets] = columns["node"][sent]
    senders: NDArray[np.int32] = of_packet[columns["value"][received]]
    return senders


def links_table(contacts: NDArray[np.int64]) -> pa.Table:
    """Return when each link comes up and goes down, in the order in which the world plays it.

    contacts: rows of a, b, up_us, down_us. At one instant links go down before others come up.
    """
    import pyarrow as pa

    a, b, up_us, down_us = contacts.T
    t_us = np.concatenate([down_us, up_us])
    is_up = np.repeat([False, True], len(contacts))
    ends = [np.concatenate([end, end]).astype(np.int32) for end in (a, b)]
    order = np.lexsort((ends[1], ends[0], is_up, t_us))
    arrays = [pa.array(array[order]) for array in (t_us, *ends, is_up)]
    return pa.table(arrays, names=["t_us", "a", "b", "up"])


def pasts_table(pasts: NDArray[np.int64]) -> pa.Table:
    """Return the causes that messages name, in the order of the broadcasts.

    pasts: rows of origin, seq, cause_origin, cause_seq.
    """
    import pyarrow as pa

    origin, seq, cause_origin, cause_seq = pasts.T
    columns = (origin.astype(np.int32), seq, cause_origin.astype(np.int32), cause_seq)
    return pa.table([pa.array(column) for column in columns], names=list(PAST_COLUMNS))


def write_events(table: pa.Table, path: Path) -> None:
    """Write a Parquet file atomically: a reader never finds half a file."""
    import pyarrow.parquet as pq

    with replaced(path) as partial:
        pq.write_table(table, partial, **parquet_options(table))


def parquet_options(table: pa.Table) -> dict[str, Any]:
    """Return how the columns of a table are encoded."""
    names = table.column_names
    plain = [name for name in ("step", "t_us", "seq", "value") if name in names]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in names if name not in plain],
        "column_encoding": dict.fromkeys(plain, "DELTA_BINARY_PACKED"),
        "write_page_checksum": True,
    }
