"""Stage `positions`: store the mobility source of a scenario as a dataset.

A source with positions gives linear movement, from which stage `contacts` computes the contacts. A
source that already consists of contacts gives the trace itself.
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
    """Facts about movement or contacts."""

    nodes: int
    changes: dict[str, int]
    """How often cleaning made each kind of repair."""
    read: dict[str, Any] | None = None
    """The detected format of the input file."""
    sentences: list[str] = []
    """The detected format as sentences."""


def make_positions(job: Job) -> Made:
    """Load the mobility source of the job, and write it as a dataset."""
    dataset, (source, seed) = job.dataset, job.spec
    loaded = source.load(seed)
    if isinstance(loaded, Trace):
        return write_trace(dataset, loaded)
    write_table(dataset.file(POSITIONS_FILE), table_of(POSITIONS, loaded.segments))
    _write_presence(dataset, loaded.names, loaded.presence)
    return Made(len(loaded.node), _facts(loaded))


def write_trace(dataset: Dataset, trace: Trace) -> Made:
    """Write all files of the trace; the caller commits the dataset."""
    write_table(dataset.file(CONTACTS_FILE), table_of(CONTACTS, trace.contacts.T))
    _write_presence(dataset, trace.names, trace.presence)
    return Made(len(trace.contacts), _facts(trace))


def read_trace(dataset: Dataset) -> Trace:
    """Read the trace that `write_trace` wrote."""
    names, presence = read_presence(dataset)
    contacts = _matrix(read_parquet(dataset.file(CONTACTS_FILE)), names_of(CONTACTS))
    return Trace(names, presence, contacts, dataset.facts(TraceFacts).changes)


def read_presence(dataset: Dataset) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the nodes, and rows of node, up_us, down_us."""
    table = read_parquet(dataset.file(PRESENCE_FILE))
    presence = _matrix(table, ["node", "up_us", "down_us"])
    # Every node is present at some time, so this table names all nodes.
    names = dict(zip(presence[:, 0].tolist(), table["name"].to_pylist(), strict=True))
    return tuple(str(names[node]) for node in range(len(names))), presence


def _facts(made: Positions | Trace) -> TraceFacts:
    facts = TraceFacts(len(made.names), dict(made.changes))
    if made.detected_format is None:
        return facts
    read, sentences = made.detected_format.as_json(), made.detected_format.sentences()
    return msgspec.structs.replace(facts, read=read, sentences=sentences)


def _write_presence(dataset: Dataset, names: tuple[str, ...], presence: Ints) -> None:
    node, up_us, down_us = presence.T
    shown = [names[i] for i in node.tolist()]
    write_table(dataset.file(PRESENCE_FILE), table_of(PRESENCE, (node, shown, up_us, down_us)))


def _matrix(table: pa.Table, names: list[str]) -> Ints:
    columns = [table[name].to_numpy().astype(np.int64) for name in names]
    return np.ascontiguousarray(np.column_stack(columns))
