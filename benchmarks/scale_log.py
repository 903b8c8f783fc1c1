"""Generate a long log for the benchmarks of the verifier, block by block.

Every node delivers every message in the order of the broadcasts, with a lag of its own. So a
message has about as many direct predecessors as the least lags say. `PLANTED` nodes deliver one
message late, and as many deliver one twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NAMES = pa.array(["broadcast", "deliver"])
GROUP_ROWS = 1 << 20
PLANTED = 500

Rows = tuple[np.ndarray, ...]
"""Node, message, origin of the message, whether it is a delivery, and tick."""


def ticks(nodes: int, messages: int, lags: tuple[int, int]) -> Iterator[Rows]:
    """Yield the rows of each tick: one broadcast, then all deliveries that are due, in any order of
    nodes."""
    draw = np.random.default_rng(1)
    lag = draw.integers(*lags, nodes, endpoint=True)
    origin = draw.permutation(max(nodes, messages))[:messages] % nodes
    gap = lags[1] + 2  # so far apart, one message causally follows the other
    chosen = draw.permutation(nodes)[: 2 * PLANTED]
    held = np.full(nodes, -2 * gap)
    held[chosen] = draw.integers(0, messages - gap, len(chosen))
    is_late = np.zeros(nodes, np.bool_)
    is_late[chosen[::2]] = True
    for tick in range(messages + lags[1] + 1):
        place = tick - lag
        is_due = (place >= 0) & (place < messages)
        again = np.flatnonzero(is_due & (place == held + gap))
        here = draw.permutation(np.flatnonzero(is_due & ~(is_late & (place == held))))
        mine = origin[tick : tick + 1]
        node = np.concatenate([mine, here, again])
        message = np.concatenate([np.full(len(mine), tick), place[here], held[again]])
        is_delivery = np.arange(len(node)) >= len(mine)
        yield node, message, origin[message], is_delivery, np.full(len(node), tick)


def write_log(path: Path, nodes: int, messages: int, lags: tuple[int, int]) -> None:
    texts = pa.dictionary(pa.int8(), pa.string())
    fields: dict[str, Any] = {"run": texts, "step": pa.int64(), "t_us": pa.int64()}
    fields |= {"node": pa.int32(), "kind": texts, "origin": pa.int32(), "seq": pa.int32()}
    kept: list[Rows] = []
    step, size = 0, 0
    with pq.ParquetWriter(path, pa.schema(fields), compression="snappy") as out:

        def flush() -> None:
            node, message, origin, is_delivery, tick = map(np.concatenate, zip(*kept, strict=True))
            columns = [
                pa.DictionaryArray.from_arrays(np.zeros(size, np.int8), pa.array(["scale"])),
                *(pa.array(values) for values in (step + np.arange(size), 1000 * tick)),
                pa.array(node.astype(np.int32)),
                pa.DictionaryArray.from_arrays(is_delivery.astype(np.int8), NAMES),
                *(pa.array(v.astype(np.int32)) for v in (origin, message)),
            ]
            out.write_table(pa.table(columns, schema=pa.schema(fields)))

        for rows in ticks(nodes, messages, lags):
            kept.append(rows)
            size += len(rows[0])
            if size >= GROUP_ROWS:
                flush()
                step, kept, size = step + size, [], 0
        if kept:
            flush()
