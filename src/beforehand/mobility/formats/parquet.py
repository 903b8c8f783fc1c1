"""Read and write contacts as Parquet: columns a, b, start, end, as in a list of contacts.

Columns may have any known name and unit (`tables/columns.py`). A column of a timestamp type is a
time by itself, and so are integers named `up_us` and `down_us`. With a column `kind` the rows are
contacts and presence, as in the list that `write_contacts` writes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from beforehand.errors import InputError
from beforehand.files import read_parquet
from beforehand.mobility import lines
from beforehand.mobility.formats.contacts_list import KINDS
from beforehand.mobility.tables.columns import CONTACTS, Layout, resolve
from beforehand.mobility.trace import Ints, Trace, make_trace

FORMAT = "parquet"
MARK = b"PAR1"


def is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def read_contacts_parquet(
    path: str | Path, *, presence: str | None = None, strict: bool = False
) -> Trace:
    """Return the contacts of the file; `presence` as in `read_contacts`.

    strict: refuse a file whose contacts would be repaired, with the number of each repair.
    """
    import pyarrow.parquet as pq

    lines.check_presence(presence)
    path = Path(path)
    names = pq.read_schema(path).names
    layout = resolve(names, str(path))
    if layout.format != CONTACTS:
        problem = f"Parquet of `{layout.format}`; only contacts are read: {','.join(names)}"
        raise InputError(problem, where=str(path), hint="name the columns a, b, start, end")
    table = read_parquet(path, names)
    nodes = {role: _names(table[layout.at[role]], path) for role in "ab"}
    up_us, down_us = _times(table, layout, path)
    kinds = table[layout.kind_at].to_pylist() if layout.kind_at is not None else []
    is_stay = np.array([kind == "presence" for kind in kinds], bool)
    if not len(is_stay) or set(kinds) - set(KINDS):
        is_stay, layout = np.zeros(len(up_us), bool), replace(layout, kind_at=None)
    met = np.flatnonzero(~is_stay).tolist()
    if not all(nodes["a"]) or not all(nodes["b"][i] for i in met):
        raise InputError("a node without a name", where=str(path), hint="fill the empty fields")
    rows = [(nodes["a"][i], nodes["b"][i], int(up_us[i]), int(down_us[i])) for i in met]
    if not is_stay.any():
        if not rows:
            raise InputError("no contacts in the file", where=str(path))
        trace = lines.trace_of_contacts(rows, {}, presence)
        assumed = [lines.assumed_presence(presence)]
    elif presence is not None:
        hint = "leave `presence` out"
        raise InputError(
            "the file itself defines the presence of nodes", where=str(path), hint=hint
        )
    else:
        trace, assumed = _with_stays(rows, nodes["a"], is_stay, up_us, down_us), []
    if strict and trace.changes:
        listed = ", ".join(f"{kind} {count}" for kind, count in trace.changes.items())
        raise InputError(f"the contacts are not clean: {listed}", where=str(path))
    return replace(trace, detected_format=replace(layout.detected_format(assumed), format=FORMAT))


def write_contacts_parquet(trace: Trace, path: str | Path) -> None:
    """Write contacts and presence; `read_contacts_parquet` reads back exactly this trace."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*trace.names, None]
    there, met = trace.presence, trace.contacts
    absent = np.setdiff1d(np.arange(trace.nodes_count), there[:, 0])
    stays = np.vstack([there, np.column_stack([absent, 0 * absent, 0 * absent])])
    a: list[str | None] = [names[i] for i in (*stays[:, 0], *met[:, 0])]
    b: list[str | None] = [None] * len(stays) + [names[i] for i in met[:, 1]]
    spans = np.vstack([stays[:, 1:], met[:, 2:]])
    kind = ["presence"] * len(stays) + ["contact"] * len(met)
    columns: list[Any] = [a, b, spans[:, 0], spans[:, 1], kind]
    heads = ["a", "b", "up_us", "down_us", "kind"]
    arrays = [pa.array(column) for column in columns]
    pq.write_table(pa.table(arrays, names=heads), path, compression="zstd")


def _with_stays(
    rows: list[tuple[str, str, int, int]],
    a: list[str],
    is_stay: Any,
    up_us: Ints,
    down_us: Ints,
) -> Trace:
    there = np.flatnonzero(is_stay).tolist()
    names = lines.natural_order([n for row in rows for n in row[:2]] + [a[i] for i in there])
    index = {name: i for i, name in enumerate(names)}
    stays = [(index[a[i]], up_us[i], down_us[i]) for i in there if up_us[i] < down_us[i]]
    return make_trace(names, lines.indexed(rows, names), np.array(stays).reshape(-1, 3))


def _names(column: Any, path: Path) -> list[str]:
    """Return the names of nodes; an empty text where there is none."""
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        hint = "write names as text or as whole numbers"
        raise InputError(f"nodes of type `{column.type}`", where=str(path), hint=hint)
    return ["" if name is None else str(name) for name in column.to_pylist()]


def _times(table: Any, layout: Layout, path: Path) -> tuple[Ints, Ints]:
    times = {role: at for role, at in layout.at.items() if role not in "ab"}
    found = {role: _column_us(table[at], layout.unit_us(role), path) for role, at in times.items()}
    lasts_us = found.get("duration", np.int64(0))
    up_us = found["start"] if "start" in found else found["end"] - lasts_us
    down_us = found["end"] if "end" in found else up_us + lasts_us
    wrong = np.flatnonzero((up_us < 0) | (down_us < up_us))
    if len(wrong):
        problem = f"row {wrong[0] + 1:,} ends before it starts, or starts before zero"
        raise InputError(problem, where=str(path))
    return up_us, down_us


def _column_us(column: Any, unit_us: int, path: Path) -> Ints:
    import pyarrow as pa

    if column.null_count:
        raise InputError("a contact without a time", where=str(path))
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy())
    values = column.to_numpy()
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InputError(f"times of type `{column.type}`", where=str(path), hint="write seconds")
    if (np.abs(values.astype(float)) * unit_us > lines.SECONDS_MAX * 1e6).any():
        hint = "name the column `start_ms` or `start_us`"
        raise InputError("times beyond the year 9999 in seconds", where=str(path), hint=hint)
    whole = np.rint(values * unit_us) if values.dtype.kind == "f" else values
    found: Ints = whole.astype(np.int64) * (1 if values.dtype.kind == "f" else unit_us)
    return found
