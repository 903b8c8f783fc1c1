"""Convert events of connections that come up and go down to contacts.

The ONE writes such events as `time CONN a b up` (`one.py`). Tables have them too: two nodes, a
time, and a column that holds up or down for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter

from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.repair_lines import find_contact_repairs
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.tables.columns import Layout
from beforehand.mobility.tables.table import Table
from beforehand.mobility.trace import Trace

Contact = tuple[str, str, int, int]
Event = tuple[int, str, str, bool, int]  # time_us, a, b, whether it is up, line

FORMAT = "one-events"
WORDS = {
    **dict.fromkeys(("up", "connect", "connected"), True),
    **dict.fromkeys(("down", "disconnect", "disconnected"), False),
}
"""Words that mark a column as a state column, whatever its name."""
HINTS = {
    **dict.fromkeys(("start", "begin", "open", "on", "enter", "join", "true", "1"), True),
    **dict.fromkeys(("end", "stop", "close", "closed", "off", "exit", "leave"), False),
    **dict.fromkeys(("false", "0"), False),
}
"""Words that count only in a column with a name in `NAMES` and only if every row has one of them.

Elsewhere they mean something else: a `1` under `same_class` is not a connection.
"""
NAMES = ("event", "state", "status", "action", "conn", "connection", "connected", "link", "updown")
STATES = {**WORDS, **HINTS}
VALUES_MAX = 20
"""More distinct values than this: not a state column."""


def state_column(table: Table, layout: Layout) -> int | None:
    """Return the column without a role that holds up or down for each row, or None."""
    roles = set(layout.at.values())
    values = {i: set[str]() for i in range(len(layout.header)) if i not in roles}
    for _, fields in table.rows:
        for i, found in values.items():
            if i < len(fields) and len(found) <= VALUES_MAX:
                found.add(fields[i].strip().casefold())
    for i, found in values.items():
        if found & set(WORDS):
            return i
        is_named = layout.header[i].strip().casefold() in NAMES
        if is_named and found <= set(HINTS) and {HINTS[word] for word in found} == {True, False}:
            return i
    return None


def read_states(
    table: Table,
    layout: Layout,
    state_at: int,
    *,
    presence: str | None,
    slot_us: int | None,
    strict: bool,
) -> Trace:
    """Return the contacts of a table of events; options as in `contacts_list.read_contacts`."""
    problems, repairs = lines.Problems(table.path), Repairs(table.path, strict=strict)
    events: list[Event] = []
    for number, fields in table.rows:
        try:
            table.check_width(fields, layout)
            a, b = sorted(fields[layout.at[role]] for role in "ab")
            if not a:
                raise ValueError("a node without a name")
            t_us = lines.moment_us(fields[layout.at["time"]], layout.unit_us("time"))
            word = fields[state_at].strip().casefold()
            if word not in STATES:
                raise ValueError(f"neither up nor down: `{fields[state_at]}`")
            events.append((t_us, a, b, STATES[word], number))
        except ValueError as error:
            problems.add(number, str(error))
    problems.check()
    contacts, numbers = contacts_of_events(events, repairs)
    met = lines.lengthen(contacts, slot_us, repairs.changes, str(table.path))
    find_contact_repairs(repairs, met, numbers)
    repairs.check()
    trace = lines.trace_of_contacts(met, repairs.changes, presence)
    assumed = (*table.assumed_times(layout), lines.assumed_presence(presence))
    layout_found = layout.detected_format(assumed)
    columns = {**layout_found.columns, "up or down": layout.header[state_at]}
    ignored = tuple(name for name in layout_found.ignored if name != layout.header[state_at])
    return replace(trace, detected_format=DetectedFormat(FORMAT, columns, ignored, assumed))


def contacts_of_events(
    events: Sequence[Event], repairs: Repairs
) -> tuple[list[Contact], list[int]]:
    """Return the contacts, and for each the line of its `down`, or of its `up` if it never ends.

    A second `up` before the `down` starts an overlapping contact (`duplicate_up`): the pair stays
    connected until as many `down` have followed. A `down` without an `up` is dropped
    (`unmatched_down`). A connection still up at the end ends with the last event (`never_down`).
    """
    for before, event in pairwise(events):
        if event[0] < before[0]:
            what = f"earlier than the event of line {before[4]}; put in order"
            repairs.mend("out_of_order", "", event[4], what)
    open_: dict[tuple[str, str], list[tuple[int, int]]] = {}
    contacts: list[Contact] = []
    numbers: list[int] = []
    for time_us, a, b, is_up, number in sorted(events, key=itemgetter(0)):
        still_open = open_.setdefault((a, b), [])
        if is_up:
            if still_open:
                what = f"`{a}` and `{b}` are up already, by line {still_open[-1][1]}"
                repairs.mend("duplicate_up", "", number, what)
            still_open.append((time_us, number))
        elif not still_open:
            repairs.mend("unmatched_down", "", number, f"`{a}` and `{b}` are not up; skipped")
        else:
            up_us, _ = still_open.pop()
            if not still_open:
                contacts.append((a, b, up_us, time_us))
                numbers.append(number)
    end_us = max(event[0] for event in events)
    for (a, b), still_open in open_.items():
        if still_open:
            what = f"`{a}` and `{b}` never come down; ended with the last event"
            repairs.mend("never_down", "", still_open[0][1], what)
            contacts.append((a, b, still_open[0][0], end_us))
            numbers.append(still_open[0][1])
    return contacts, numbers
