"""Claim: the verifier judges a day of 1.4 million deliveries exactly in 30 CPU seconds.

The log is that of the Östermalm walkers with lifetimes of 20 minutes. `cpu_s` covers everything
from the Parquet file to the verdict; `cpu_s_first` includes compilation or loading compiled code.

The benchmark then plants 1,000 violations, a third each swapped, late and twice, at most one per
node. The two messages of each violation have the same sender, so one depends on the other whatever
else is planted. Each is therefore a violation on its own, and the verifier must find every one.

`cpu_s_skips` is the time for the same log if every hundredth reception is an event `skip` instead,
so that nearly every node has a floor.
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
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beforehand.kernels.verify.causality import LATE, TWICE, History, find_violations
from beforehand.kernels.verify.index import index_log
from beforehand.mobility.generators.walkers import generate
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, write_events
from beforehand.verify.event_log import Log
from beforehand.verify.verdict import RunVerdict, verify_events

REPEATS = 3
PLANTED = 1000
RANGE_M = 50.0
LIFETIME_US = 20 * 60 * 1_000_000

Ints = NDArray[np.int64]


def write_log(path: Path) -> None:
    trace = generate(1).contacts_within(RANGE_M)
    columns = run_one(trace, Spec("delta", seed=1, lifetime_us=LIFETIME_US)).columns
    write_events(event_table("ostermalm", columns), path)


def write_with_skips(path: Path, target: Path) -> None:
    """Write the log with a skip in place of every hundredth reception. The floors are below all
    messages."""
    table = pq.read_table(path)
    kinds = table["kind"].cast(pa.string())
    at = np.flatnonzero(np.asarray(pc.equal(kinds, pa.scalar("receive"))))[::100]
    kind, seq = kinds.to_numpy(zero_copy_only=False), table["seq"].to_numpy().copy()
    kind[at], seq[at] = "skip", 0
    for name, values in (
        ("kind", pa.array(kind, pa.string()).dictionary_encode()),
        ("seq", pa.array(seq)),
    ):
        table = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(table, target)


def timed(path: Path) -> tuple[RunVerdict, float]:
    started_s = time.process_time()
    (verdict,) = verify_events(path).runs
    assert isinstance(verdict, RunVerdict)
    return verdict, time.process_time() - started_s


def pairs_of(history: History) -> Ints:
    """Return rows (first, second) of two deliveries of one sender at one node, for `PLANTED` nodes.

    Both messages were broadcast before the first delivery.
    """
    is_delivery = np.ones(len(history.node), np.bool_)
    is_delivery[history.broadcast_rows] = False
    rows = np.flatnonzero(is_delivery)
    sender = history.sender[history.message[rows]]
    rows = rows[np.lexsort((rows, sender, history.node[rows]))]
    node, sender = history.node[rows], history.sender[history.message[rows]]
    first, second = rows[:-1], rows[1:]
    fits = (node[:-1] == node[1:]) & (sender[:-1] == sender[1:])
    fits &= history.broadcast_rows[history.message[second]] < first
    pairs = np.column_stack([first, second])[fits]
    shuffled = np.random.default_rng(1).permutation(pairs)
    _, one_each = np.unique(history.node[shuffled[:, 0]], return_index=True)
    return shuffled[one_each][:PLANTED]


def plant(log: Log, pairs: Ints) -> tuple[History, Ints, Ints]:
    """Return the history with all planted violations, their rows, and their kinds."""
    swapped, late, twice = (pairs[i::3] for i in range(3))
    rows = len(np.asarray(log.node))
    source = np.arange(rows)
    source[swapped[:, 0]], source[swapped[:, 1]] = swapped[:, 1], swapped[:, 0].copy()
    # To move a row behind another, give it the sort key 2 * other + 1.
    place = 2 * np.arange(rows)
    place[late[:, 0]] = 2 * late[:, 1] + 1
    source = np.concatenate([source, twice[:, 0]])
    place = np.concatenate([place, 2 * twice[:, 1] + 1])
    order = np.argsort(place, kind="stable")
    wrong = np.full(len(place), -1)
    wrong[swapped[:, 1]] = wrong[late[:, 0]] = LATE
    wrong[rows:] = TWICE
    taken = source[order]
    history = index_log(log.node[taken], log.is_broadcast[taken], log.origin[taken], log.seq[taken])
    planted = np.flatnonzero(wrong[order] >= 0)
    return history, planted, wrong[order][planted]


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "events.parquet"
    write_log(file)
    verdict, first_s = timed(file)
    seconds = [timed(file)[1] for _ in range(REPEATS)]
    skipping = Path(folder) / "skips.parquet"
    write_with_skips(file, skipping)
    with_skips = [timed(skipping) for _ in range(REPEATS)]
    history, planted, kinds = plant(verdict.log, pairs_of(verdict.history))
    violations = find_violations(history)
    found = dict(zip(violations.row.tolist(), violations.kind.tolist(), strict=True))
    matched = zip(planted.tolist(), kinds.tolist(), strict=True)
    print(
        json.dumps(
            {
                "bench": "verify/ostermalm",
                "deliveries": verdict.deliveries,
                "nodes": len(verdict.history.nodes),
                "verdict": verdict.state,
                "cpu_s": round(statistics.median(seconds), 2),
                "spread": round(max(seconds) / min(seconds), 2),
                "cpu_s_skips": round(statistics.median(cpu_s for _, cpu_s in with_skips), 2),
                "verdict_skips": with_skips[0][0].state,
                "cpu_s_first": round(first_s, 2),
                "planted": len(planted),
                "found": sum(found.get(row) == kind for row, kind in matched),
                "python": platform.python_version(),
            }
        )
    )
