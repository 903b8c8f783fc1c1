"""Read contact lists: one line `a b start end` per contact, as CRAWDAD distributes them.

White space, tabs, commas or semicolons separate the fields. Times are seconds, decimals allowed.
`#` starts a comment. A header may give the columns in any order and under any known name
(`tables/columns.py`). A duration may replace one of the times. Other columns are ignored and
reported. Without a header the first four columns count. A name with spaces or commas needs double
quotes.

A list may also give presence. Then a column `kind` marks every row as `contact` or `presence`. A
`presence` row means that node `a` was present from start to end; its `b` is empty.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.repair_lines import find_contact_repairs
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.tables.columns import CONTACTS, TIMES, Layout
from beforehand.mobility.tables.table import Table, read_table
from beforehand.mobility.trace import Trace, make_trace

Row = tuple[str, str, int, int]

KINDS = ("contact", "presence")
HEADER = "a,b,start,end,kind"


def read_contacts(
    path: str | Path,
    *,
    columns: str | None = None,
    presence: str | None = None,
    slot_s: float | None = None,
    strict: bool = False,
) -> Trace:
    """Return the contacts of the file as a clean trace; `changes` counts the repairs.

    columns: names in place of the header: `a,b,start,end`.
    presence: for a file without presence rows. `whole` (default): every node is present from the
    first to the last instant of the file. `seen`: each node from its first to its last contact.
    slot_s: the duration of a contact of zero length; without it such contacts are dropped and
    counted.
    strict: reject, line by line, what would otherwise be repaired.
    """
    lines.check_presence(presence)
    path, slot_us = Path(path), lines.span_us("slot_s", slot_s)
    table = read_table(path, columns)
    layout = _believed(table, table.layout_of(CONTACTS))
    (met, there), numbers = _rows(table, layout)
    changes: dict[str, int] = {}
    repairs = Repairs(path, strict=strict)
    met = lines.lengthen(met, slot_us, changes, str(path))
    find_contact_repairs(repairs, met, numbers, _stays(there) if there else None)
    repairs.check()
    if not there:
        if not met:
            hint = "check that the path names the right file"
            raise InputError("no contacts in the file", where=str(path), hint=hint)
        trace = lines.trace_of_contacts(met, changes, presence)
        assumed = [*table.assumed_times(layout), lines.assumed_presence(presence)]
        return replace(trace, detected_format=layout.detected_format(assumed))
    if presence is not None:
        hint = "leave `presence` out"
        raise InputError(
            "the file itself defines the presence of nodes", where=str(path), hint=hint
        )
    names = lines.natural_order([name for row in met for name in row[:2]] + [r[0] for r in there])
    index = {name: i for i, name in enumerate(names)}
    # A node with presence of zero length keeps its name and its index.
    stays = [(index[name], up, down) for name, _, up, down in there if up < down]
    spans = np.array(stays, dtype=np.int64).reshape(-1, 3)
    trace = make_trace(names, lines.indexed(met, names), spans, changes)
    return replace(trace, detected_format=layout.detected_format(table.assumed_times(layout)))


def write_contacts(trace: Trace, path: str | Path, *, packed: bool = False) -> None:
    """Write contacts and presence as CSV that `read_contacts` reads back exactly. packed: gzip."""
    text = "".join(contact_lines(trace)).encode()
    # No time stamp in the gzip header, so that the same contacts give the same bytes.
    Path(path).write_bytes(gzip.compress(text, mtime=0) if packed else text)


def contact_lines(trace: Trace) -> Iterator[str]:
    for name in trace.names:
        if not name or "\n" in name or "\r" in name:
            raise InputError(f"not a name for a line of text: {name!r}", hint="rename the node")
    present = set(trace.presence[:, 0].tolist())
    absent = [[node, 0, 0] for node in range(trace.nodes_count) if node not in present]
    quoted = ['"' + name.replace('"', '""') + '"' for name in trace.names]
    yield f"{HEADER}\n"
    for node, up_us, down_us in [*trace.presence.tolist(), *absent]:
        yield f"{quoted[node]},,{_seconds(up_us)},{_seconds(down_us)},presence\n"
    for a, b, up_us, down_us in trace.contacts.tolist():
        yield f"{quoted[a]},{quoted[b]},{_seconds(up_us)},{_seconds(down_us)},contact\n"


def _believed(table: Table, layout: Layout) -> Layout:
    """Ignore a column `kind` that does not hold `contact` or `presence`: it has another meaning."""
    if layout.kind_at is None:
        return layout
    first = table.first
    is_ours = len(first) > layout.kind_at and first[layout.kind_at] in KINDS
    return layout if is_ours else replace(layout, kind_at=None)


def _rows(table: Table, layout: Layout) -> tuple[tuple[list[Row], list[Row]], list[int]]:
    """Return the contact rows and the presence rows, and the line numbers of the contacts."""
    problems = lines.Problems(table.path)
    kind_at = layout.kind_at
    rows: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    numbers: list[int] = []
    for number, fields in table.rows:
        try:
            table.check_width(fields, layout)
            kind = "contact" if kind_at is None else fields[kind_at]
            if kind not in KINDS:
                raise ValueError(f"neither `contact` nor `presence`: `{kind}`")
            rows[kind].append(_parse(fields, layout, kind))
            if kind == "contact":
                numbers.append(number)
        except ValueError as error:
            hint = "" if layout.header else "a line is `a b start end`, in seconds"
            problems.add(number, str(error), hint=hint)
    if rows["presence"]:
        _check_presence_rows(rows["presence"], rows["contact"], problems)
    problems.check()
    return (rows["contact"], rows["presence"]), numbers


def _stays(there: list[Row]) -> dict[str, list[tuple[int, int]]]:
    spans: dict[str, list[tuple[int, int]]] = {}
    for name, _, up_us, down_us in there:
        spans.setdefault(name, []).append((up_us, down_us))
    return spans


def _check_presence_rows(there: list[Row], met: list[Row], problems: lines.Problems) -> None:
    spans = _stays(there)
    for name, stays in spans.items():
        stays.sort()
        if any(later[0] < earlier[1] for earlier, later in pairwise(stays)):
            problems.add(None, f"node `{name}` is there twice at one time")
    for name in lines.natural_order({name for row in met for name in row[:2]} - set(spans)):
        hint = "add a row of kind `presence` for it, or leave the column `kind` out"
        problems.add(None, f"node `{name}` has a contact and is never present", hint=hint)


def _parse(fields: list[str], layout: Layout, kind: str) -> Row:
    at = layout.at
    a, b = fields[at["a"]], fields[at["b"]]
    if not a or (not b and kind == "contact"):
        raise ValueError("a node without a name")
    if b and kind == "presence":
        raise ValueError(f"presence is of one node, not of `{a}` and `{b}`")
    times = {
        role: lines.moment_us(fields[at[role]], layout.unit_us(role))
        for role in TIMES
        if role in at
    }
    lasts_us = times.get("duration", 0)
    up_us = times["start"] if "start" in times else times["end"] - lasts_us
    down_us = times["end"] if "end" in times else up_us + lasts_us
    if up_us < 0:
        raise ValueError(f"a duration of {lasts_us / 1e6:g} s, from before zero on")
    if down_us < up_us:
        start, end = (fields[at[role]] for role in ("start", "end"))
        raise ValueError(f"contact ends before it starts: from {start} to {end}")
    return a, b, up_us, down_us


def _seconds(time_us: int) -> str:
    whole, rest = divmod(time_us, 1_000_000)
    return f"{whole}.{rest:06}" if rest else str(whole)
