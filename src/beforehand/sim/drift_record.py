"""Write what an observer of drifting clocks delivers, in the columns of the output of `observe`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from beforehand.protocols.observer.observer import Dial
from beforehand.sim.drift import Drift, deliver, simulate
from beforehand.sim.log import write_events

TICK_US = 1000
"""A tick has no length; the file says `clock: ticks`."""


def record_deliveries(spec: Drift, dial: Dial, path: Path) -> None:
    """Write a row for each delivered event, with the vector clock of its sending."""
    run = simulate(spec)
    delivered = deliver(run, spec, dial)
    at = delivered.label
    arrived = np.empty(len(run.arrival), np.int64)
    arrived[run.arrived] = np.arange(len(run.arrived))
    columns = {
        "process": run.stamps.process[at],
        "time": run.stamps.r[at] * TICK_US,
        "arrived_seq": arrived[at],
        "delivered_seq": np.arange(len(at)),
        "delivered_at": delivered.tick * TICK_US,
        "waited_us": (delivered.tick - run.arrival[at]) * TICK_US,
        "moved": np.maximum.accumulate(arrived[at]) > arrived[at],
        "suspect": delivered.is_overtaken,
    }
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    table = table.append_column("past", pa.array(run.past[at].tolist(), pa.list_(pa.int64())))
    write_events(table.replace_schema_metadata({"clock": "ticks"}), path)
