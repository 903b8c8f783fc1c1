"""Compare receptions and counts of waiting messages of a page with the log that it plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

NEVER = 0x7FFFFFFF
RECEPTIONS, INSTANTS = 3000, 50
PAIR = ["node", "origin", "seq"]
FIND = """(() => { const { model } = beforehand, at = new Map();
for (let m = 0; m < model.messages; m++) at.set(model.origin[m] + ':' + model.seqText(m), m);
return PICKED.map(([n, o, s]) => { const row = model.rowOf(n, at.get(o + ':' + s));
return [model.recT[row], model.recEnd[row], model.recSender[row]]; }); })()"""
COUNT = """INSTANTS.map((t) => { const { model } = beforehand; let n = 0;
for (let i = 0; i < model.receptions; i++) n += model.recT[i] <= t && model.recEnd[i] > t;
return n; })"""


def compare(page: Any, log: Path) -> tuple[int, int]:
    """Return how many receptions and instants were compared; raise where page and log differ."""
    columns = ["t_us", "node", "kind", "origin", "seq", "sender"]
    rows = pq.read_table(log, columns=columns).to_pandas()
    rows["t"] = (rows.t_us - rows.t_us.min()) // 1000
    received = rows[rows.kind == "receive"].drop_duplicates(PAIR)
    delivered = rows[rows.kind == "deliver"].drop_duplicates(PAIR)[[*PAIR, "t"]]
    both = received.merge(delivered.rename(columns={"t": "done"}), on=PAIR, how="left")
    # JSON has no larger whole numbers than 2^53, so a sequence number is text.
    began, done = both.t.to_numpy(), both.done.fillna(NEVER).to_numpy().astype(np.int64)
    draw = np.random.default_rng(1)
    picked = draw.choice(len(both), min(RECEPTIONS, len(both)), replace=False)
    keys = [[int(n), int(o), str(s)] for n, o, s in both[PAIR].to_numpy()[picked].tolist()]
    wanted = [[int(began[i]), int(done[i]), int(both.sender[i])] for i in picked.tolist()]
    assert page.evaluate(FIND.replace("PICKED", json.dumps(keys))) == wanted
    waits = began[done > began + 1] + 1
    instants = [int(t) for t in draw.integers(0, rows.t.max(), INSTANTS // 2)]
    instants += [int(t) for t in draw.choice(waits, INSTANTS // 2)] if len(waits) else []
    waiting = [int(((began <= t) & (t < done)).sum()) for t in instants]
    assert page.evaluate(COUNT.replace("INSTANTS", json.dumps(instants))) == waiting
    assert max(waiting) > 0 or not len(waits)
    return len(keys), len(instants)
