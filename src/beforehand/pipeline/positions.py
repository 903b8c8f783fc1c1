"""Stage `positions`: what the source of a scenario says, as a dataset.

Where it has places, that is straight movement, from which the next stage makes contacts. Where it
has contacts already, the dataset is the trace itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from beforehand.files import read_parquet
from beforehand.mobility.positions import Positions
from beforehand.mobility.trace import Ints, Trace
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.schemas import CONTACTS, POSITIONS, PRESENCE, names_of, table_of
from beforehand.pipeline.stages import Job, Made

POSITIONS_FILE, CONTACTS_FILE = "positions.parquet", "contacts.parquet"
PRESENCE_FILE = "presence.parquet"


class TraceFacts(msgspec.Struct, frozen=True):
    """Of movement or of contacts."""

    nodes: int
    changes: dict[str, int]
    """What cleaning mended, and how often."""
    read: dict[str, Any] | None = None
    """What a file was taken to be."""
    told: list[str] = []
    """The same in words."""


def make_positions(job: Job) -> Made:
    """Load the source of the job and write it down."""
    dataset, (source, seed) = job.dataset, job.spec
    loaded = source.load(seed)
    if isinstance(loaded, Trace):
        return write_trace(dataset, loaded)
    write_table(dataset.file(POSITIONS_FILE), table_of(POSITIONS, loaded.segments))
    _write_presence(dataset, loaded.names, loaded.presence)
    return Made(len(loaded.node), _facts(loaded))


def write_trace(dataset: Dataset, trace: Trace) -> Made:
    """The whole trace, yet to be committed."""
    write_table(dataset.file(CONTACTS_FILE), table_of(CONTACTS, trace.contacts.T))
    _write_presence(dataset, trace.names, trace.presence)
    return Made(len(trace.contacts), _facts(trace))


def read_trace(dataset: Dataset) -> Trace:
    """What `write_trace` wrote."""
    names, presence = read_presence(dataset)
    contacts = _matrix(read_parquet(dataset.file(CONTACTS_FILE)), names_of(CONTACTS))
    return Trace(names, presence, contacts, dataset.facts(TraceFacts).changes)


def read_presence(dataset: Dataset) -> tuple[tuple[str, ...], Ints]:
    """The names of the nodes, and rows of node, up_us, down_us."""
    table = read_parquet(dataset.file(PRESENCE_FILE))
    presence = _matrix(table, ["node", "up_us", "down_us"])
    # Every node is there at some time, else it would not be one.
    names = dict(zip(presence[:, 0].tolist(), table["name"].to_pylist(), strict=True))
    return tuple(str(names[node]) for node in range(len(names))), presence


def _facts(made: Positions | Trace) -> TraceFacts:
    facts = TraceFacts(len(made.names), dict(made.changes))
    if made.understood is None:
        return facts
    read, told = made.understood.as_json(), made.understood.sentences()
    return msgspec.structs.replace(facts, read=read, told=told)


def _write_presence(dataset: Dataset, names: tuple[str, ...], presence: Ints) -> None:
    node, up_us, down_us = presence.T
    shown = [names[i] for i in node.tolist()]
    write_table(dataset.file(PRESENCE_FILE), table_of(PRESENCE, (node, shown, up_us, down_us)))


def _matrix(table: pa.Table, names: list[str]) -> Ints:
    columns = [table[name].to_numpy().astype(np.int64) for name in names]
    return np.ascontiguousarray(np.column_stack(columns))
