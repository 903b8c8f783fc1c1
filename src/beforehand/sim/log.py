"""What happened in a run, as columns: one row per event, in the total order of the run."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from beforehand.files import replaced
from beforehand.protocols.contract.base import Message

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = (
    "broadcast",
    "receive",
    "deliver",
    "expire",
    "drop",
    "send",
    "join",
    "leave",
    "crash",
    "recover",
)
(BROADCAST, RECEIVE, DELIVER, EXPIRE, DROP, SEND, JOIN, LEAVE, CRASH, RECOVER) = range(len(KINDS))
NO_MESSAGE = (Message((-1, -1), (), b""),)
"""For events of a node rather than of a message."""

COLUMNS = {
    "t_us": np.int64,
    "node": np.int32,
    "kind": np.int8,
    "origin": np.int32,
    "seq": np.int64,
    "value": np.int64,
}
ROW = np.dtype(list(COLUMNS.items()))
_write = Struct("=qibiqq").pack_into  # a ROW
METADATA = "beforehand"
"""Under this key a file says of each run what its rows do not show; `verify` reads it."""
ROW_BYTES = ROW.itemsize
PAGE_BYTES = ROW_BYTES << 12
"""A page is small enough to stay in the cache until it is full."""


class Log:
    """Rows are written into pages of bytes: about 0.2 µs and 33 bytes a row."""

    def __init__(self) -> None:
        self._page = bytearray(PAGE_BYTES)
        self._end = 0
        self._full: list[bytes] = []

    def add(
        self, t_us: int, node: int, kind: int, messages: Sequence[Message], value: int = 0
    ) -> None:
        """One row for each of them."""
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
        """The whole log, one array per column. A file has two more: `run`, and `step`, which is the
        place of an event."""
        pages = [np.frombuffer(page, ROW) for page in (*self._full, bytes(self._page[: self._end]))]
        return {name: np.concatenate([page[name] for page in pages]) for name in COLUMNS}


def event_table(
    run: str,
    columns: dict[str, NDArray[np.int64]],
    *,
    promise: str | None = None,
    names: Sequence[str] = (),
) -> pa.Table:
    """The event log as Arrow, with the kinds spelled out (dictionary-encoded).

    Its metadata say how many events there were, so that one that was cut off is known for it.
    promise: what the protocol promises, `causal` or `none`. names: of the nodes, if they have some.
    """
    import pyarrow as pa

    size = len(columns["t_us"])
    kinds = pa.DictionaryArray.from_arrays(columns["kind"], pa.array(KINDS))
    runs = pa.DictionaryArray.from_arrays(np.zeros(size, np.int8), pa.array([run]))
    steps = pa.array(np.arange(size, dtype=np.int64))
    rest = [kinds if name == "kind" else pa.array(columns[name]) for name in COLUMNS]
    table = pa.table([runs, steps, *rest], names=["run", "step", *COLUMNS])
    about = {"events": size, "promise": promise, "names": list(names)}
    known = {key: value for key, value in about.items() if value or key == "events"}
    return table.replace_schema_metadata({METADATA: json.dumps({"runs": {run: known}})})


def write_events(table: pa.Table, path: Path) -> None:
    """Parquet, whole or not at all: a reader never finds half a file."""
    with replaced(path) as partial:
        _write_parquet(table, partial)


def events_bytes(table: pa.Table) -> bytes:
    """The same file, for whoever has no place for it."""
    buffer = io.BytesIO()
    _write_parquet(table, buffer)
    return buffer.getvalue()


def _write_parquet(table: pa.Table, target: Path | io.BytesIO) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        table,
        target,
        compression="zstd",
        use_dictionary=["run", "kind", "node", "origin"],  # type: ignore[arg-type]
        column_encoding=dict.fromkeys(("step", "t_us", "seq", "value"), "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )
