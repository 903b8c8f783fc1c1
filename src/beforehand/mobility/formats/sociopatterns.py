"""Read sightings in SocioPatterns' format: `t i j` means that i and j were together up to t.

A sighting counts for one time slot, and a contact is a run of slots without a gap. Contacts are
symmetric: `t i j` and `t j i` mean the same. A header decides the columns (`tables/columns.py`).
Without a header the first three columns count; further ones (the classes of i and j) are ignored. A
table with an up/down column is a table of events (`updown_events.py`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.formats.updown_events import read_states, state_column
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.tables.columns import SIGHTINGS, Layout
from beforehand.mobility.tables.table import Table, read_table
from beforehand.mobility.trace import Trace
from beforehand.units import format_duration

SLOT_S = 20.0
BASE_STATION = re.compile(r"-[0-9]+")
"""The ids by which scanners record a sighting of no device, or of one outside the study."""


def read_sociopatterns(
    path: str | Path,
    *,
    columns: str | None = None,
    slot_s: float | None = None,
    presence: str | None = None,
    strict: bool = False,
) -> Trace:
    """Return the contacts of the file; joined slots are counted as `merged`.

    columns: names in place of the header: `a,b,time`.
    slot_s: the time that a sighting counts, 20 s if not given. It counts up to t, or from t on in a
    file that starts at zero.
    presence: the file does not give presence. `whole` (default): every node is present from the
    first to the last instant of the file. `seen`: each node from its first to its last contact.
    strict: reject, line by line, what would otherwise be repaired. Joined slots are not a repair:
    they are part of the format.
    """
    lines.check_presence(presence)
    path, slot_us = Path(path), lines.span_us("slot_s", SLOT_S if slot_s is None else slot_s)
    assert slot_us is not None
    repairs = Repairs(path, strict=strict)
    table = read_table(path, columns)
    layout = table.layout_of(SIGHTINGS)
    state_at = state_column(table, layout)
    if state_at is not None:
        given_us = None if slot_s is None else slot_us
        return read_states(
            table, layout, state_at, presence=presence, slot_us=given_us, strict=strict
        )
    rows = _sightings(table, layout, repairs)
    repairs.check()
    if not rows:
        raise InputError(
            "no contacts in the file",
            where=str(path),
            hint="check that the path names the right file",
        )
    times = sorted({seen_us for _, _, seen_us in rows})
    from_t = times[0] < slot_us
    shift_us = 0 if from_t else slot_us
    spans = [(a, b, t_us - shift_us, t_us - shift_us + slot_us) for a, b, t_us in rows]
    trace = lines.trace_of_contacts(spans, repairs.changes, presence)
    assumed = [
        *table.assumed_times(layout),
        _slot_assumed(times, slot_us, slot_s is None, from_t),
        lines.assumed_presence(presence),
    ]
    return replace(trace, detected_format=layout.detected_format(assumed))


def _sightings(table: Table, layout: Layout, repairs: Repairs) -> list[tuple[str, str, int]]:
    """Return both nodes and the time of every valid sighting."""
    problems = lines.Problems(table.path)
    rows: list[tuple[str, str, int]] = []
    for number, fields in table.rows:
        try:
            table.check_width(fields, layout)
            a, b, seen_us = _sighting(fields, layout)
        except ValueError as error:
            hint = "" if layout.header else "a line is `t i j`, t in seconds"
            problems.add(number, str(error), hint=hint)
            continue
        if BASE_STATION.fullmatch(a) or BASE_STATION.fullmatch(b):
            what = f"`{a}` and `{b}`: a sighting without a second node; left out"
            repairs.mend("saw_nobody", "", number, what)
            continue
        if a == b and repairs.strict:
            repairs.mend("self_contact", "", number, f"`{a}` meets itself; left out")
        rows.append((a, b, seen_us))
    problems.check()
    return rows


def _sighting(fields: list[str], layout: Layout) -> tuple[str, str, int]:
    at = layout.at
    a, b = fields[at["a"]], fields[at["b"]]
    if not (a and b):
        raise ValueError("a node without a name")
    return a, b, lines.moment_us(fields[at["time"]], layout.unit_us("time"))


def _slot_assumed(times: list[int], slot_us: int, is_default: bool, from_t: bool) -> str:
    when = "from its time on" if from_t else "up to its time"
    text = f"a sighting counts for {format_duration(slot_us)}, {when}"
    step_us = min((later - earlier for earlier, later in pairwise(times)), default=slot_us)
    if is_default and step_us != slot_us:
        text += f" (the times are {format_duration(step_us)} apart and more: `--slot` sets it)"
    return text
