"""The files of a checkpoint by which the driver and the observers of a folder tell each other.

A notice (`observe.stream.NOTICE`) is a row of a file in `notices`: an observer delivers all it
holds, or a run starts. The stream reads these files like its other input. So a notice has its
effect once, and the same effect if its micro-batch is repeated by another run. The observers' state
is in `observers`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.files import replaced
from beforehand.observe.saved import HEAD_BYTES, Head, holding, read_head
from beforehand.observe.stamps import ACTS, KEY, RUN_US
from beforehand.observe.stream import METRICS
from beforehand.observe.versions import newest_states

NOTICES, OBSERVERS = "notices", "observers"
LIVE, BOUNDED, FLUSH = "live", "bounded", "flush"

Row = dict[str, object]


def announce_run(checkpoint: Path, *, is_live: bool) -> None:
    """Announce the start of a run to all observers.

    In a run that is not live, observers that are silent do nothing: its duration must not change
    its output. Only the first of several such runs needs to be told. A live one also needs a first
    micro-batch, without which Spark has no time.
    """
    folder = checkpoint / NOTICES
    folder.mkdir(exist_ok=True)
    runs = sorted(path.stem for path in folder.glob("*.parquet") if not path.stem.endswith(FLUSH))
    if not is_live and runs and runs[-1].endswith(BOUNDED):
        return
    row: Row = {KEY: None, RUN_US: time.time_ns() // 1000, ACTS: is_live}
    _write(folder, LIVE if is_live else BOUNDED, [row])


def request_flush(checkpoint: Path, observers: Sequence[str | None]) -> None:
    """Tell these observers to deliver all they hold, and keep their state."""
    rows: list[Row] = [{KEY: name, RUN_US: None, ACTS: None} for name in observers]
    _write(checkpoint / NOTICES, FLUSH, rows)


def _write(folder: Path, kind: str, rows: list[Row]) -> None:
    columns: list[Any] = [(KEY, pa.string()), (RUN_US, pa.int64()), (ACTS, pa.bool_())]
    with replaced(folder / f"{time.time_ns()}-{kind}.parquet") as written:
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), written)


def holding_now(checkpoint: Path) -> list[str | None]:
    """Return the observers that hold rows. No query may be running."""
    return [name for state in _states(checkpoint) for name in holding(state)]


def counts_of_state(checkpoint: Path) -> Head:
    """Return the counts of all partitions together."""
    heads = [read_head(state) for state in _states(checkpoint, HEAD_BYTES)]
    return Head(sum(head.observers for head in heads), sum(head.held for head in heads))


def _states(checkpoint: Path, size: int | None = None) -> list[bytes]:
    metadata = checkpoint / "spark" / "metadata"
    if not metadata.exists():
        return []
    query = msgspec.json.decode(metadata.read_bytes())["id"]
    return newest_states(str((checkpoint / OBSERVERS).resolve()), query, METRICS, size)
