"""Claim: merging and judging the logs of 50 real nodes, a million events, takes a few CPU seconds.

Every node delivers all messages in one order, each with its own lag and a wrong clock.
`merge_ns_per_event` is the merge alone; twice the events in twice the time show that it is linear.
`cpu_s` covers everything from the files to the verdict.
"""

from __future__ import annotations

import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beforehand.kernels.verify.index import index_log
from beforehand.kernels.verify.merge import merge_by_causality
from beforehand.verify.verdict import verify_events

REPEATS = 3
NODES = 50
EVENTS = 1_000_000
LAG_MAX = 500

Ints = NDArray[np.int64]


def line_of(node: int, sender: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the messages of one node's events, and which of these events are broadcasts."""
    every = np.arange(len(sender))
    own = np.flatnonzero(sender == node)
    place = np.maximum.accumulate(np.maximum(own - rng.integers(0, LAG_MAX, len(own)), 0))
    key = np.concatenate([2 * place, 2 * every + 1])
    order = np.argsort(key, kind="stable")
    return np.concatenate([own, every])[order], (np.arange(len(key)) < len(own))[order]


def write_logs(folder: Path, sender: Ints, lines: list[tuple[Ints, NDArray[np.bool_]]]) -> None:
    for node, (message, is_broadcast) in enumerate(lines):
        size = len(message) + 2
        kinds = ["start", *np.where(is_broadcast, "broadcast", "deliver").tolist(), "stop"]
        origins = ["", *(f"node-{at}" for at in sender[message].tolist()), ""]
        table = pa.table(
            {
                "run": pa.array(["bench"] * size).dictionary_encode(),
                "node": pa.array([f"node-{node}"] * size).dictionary_encode(),
                "life": pa.array(["only"] * size).dictionary_encode(),
                "step": pa.array(np.arange(size)),
                "t_us": pa.array(np.arange(size) + node * 10**12),
                "kind": pa.array(kinds).dictionary_encode(),
                "origin": pa.array(origins).dictionary_encode(),
                "seq": pa.array(np.concatenate([[0], message, [0]])),
                "value": pa.array(np.concatenate([[1], message * 0, [0]])),
            }
        )
        pq.write_table(table, folder / f"bench.{node}.node.parquet", compression="zstd")


def merge_ns(sender: Ints, lines: list[tuple[Ints, NDArray[np.bool_]]]) -> float:
    node = np.concatenate([np.full(len(m), at) for at, (m, _) in enumerate(lines)])
    message = np.concatenate([m for m, _ in lines])
    history = index_log(node, np.concatenate([b for _, b in lines]), sender[message], message)
    merge_by_causality(history.node, history.message, history.broadcast_rows)  # warm up
    seconds = []
    for _ in range(REPEATS):
        started_s = time.process_time()
        merge_by_causality(history.node, history.message, history.broadcast_rows)
        seconds.append(time.process_time() - started_s)
    return statistics.median(seconds) / len(node) * 1e9


def made(events: int) -> tuple[Ints, list[tuple[Ints, NDArray[np.bool_]]]]:
    rng = np.random.default_rng(1)
    sender = rng.integers(0, NODES, events // (NODES + 1))
    return sender, [line_of(node, sender, rng) for node in range(NODES)]


sender, lines = made(EVENTS)
with tempfile.TemporaryDirectory() as name:
    write_logs(Path(name), sender, lines)
    seconds = []
    for _ in range(REPEATS + 1):
        started_s = time.process_time()
        (verdict,) = verify_events(Path(name)).runs
        seconds.append(time.process_time() - started_s)
print(
    json.dumps(
        {
            "bench": "verify/node-logs",
            "nodes": NODES,
            "events": verdict.broadcasts + verdict.deliveries,
            "verdict": verdict.state,
            "merge_ns_per_event": round(merge_ns(sender, lines), 1),
            "merge_ns_per_event_twice": round(merge_ns(*made(2 * EVENTS)), 1),
            "cpu_s": round(statistics.median(seconds[1:]), 2),
            "spread": round(max(seconds[1:]) / min(seconds[1:]), 2),
            "cpu_s_first": round(seconds[0], 2),
            "python": platform.python_version(),
        }
    )
)
