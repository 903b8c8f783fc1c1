"""Events of processes with drifting clocks, as an observer of a stream would get them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beforehand.kernels.observer.reorder import Stamps
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import Drift, simulate

TICK_US = 1000
SYSTEM = Guarantees(10, epsilon=10, delta=10, events_per_tick=10**6)


def drifting_rows(seed: int, messages: int, *, distinct: bool = True) -> pa.Table:
    """In order of arrival; `id` is the number of the message in the simulation.

    distinct: no two arrive in the same microsecond, else many do.
    """
    run = simulate(Drift(messages=messages, seed=seed))
    at = run.arrived
    arrived_us = run.arrival[at] * TICK_US
    if distinct:
        _, first, place = np.unique(arrived_us, return_index=True, return_inverse=True)
        arrived_us = arrived_us + np.arange(len(at)) - first[place]
    stamps = Stamps(*(column[at] for column in run.stamps))
    return pa.table(
        {
            "observer": pa.array([f"eye-{seed}"] * len(at)),
            "process": stamps.process,
            "stamp": stamp_column(stamps),
            "arrived": arrived_us,
            "past": list_column(run.past[at]),
            "id": at,
        }
    )


def stamp_column(stamps: Stamps) -> pa.StructArray:
    parts = [pa.array(stamps.r), pa.array(stamps.c), list_column(stamps.kn)]
    return pa.StructArray.from_arrays(parts, names=["r", "c", "kn"])


def list_column(matrix: np.ndarray) -> pa.ListArray:
    rows, columns = matrix.shape
    starts = np.arange(rows + 1, dtype=np.int32) * columns
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(matrix.ravel()))
