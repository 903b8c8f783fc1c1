"""Read contact plans of ION (Interplanetary Overlay Network).

A line `a contact FROM_TIME TO_TIME FROM_NODE TO_NODE RATE` plans a contact in one direction. A time
is `+N`, seconds after the reference time, or `yyyy/mm/dd-hh:mm:ss` in UTC. A line `@ TIME` sets the
reference time. Rates and distances (`a range ...`) are not used. Links of a trace work in both
directions, so the plans of both directions become one contact.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.repair_lines import find_contact_repairs
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.trace import Trace

FORMAT = "ion"
DATE = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}")
HINT = "a line is `a contact +START +END FROM TO RATE`"
Row = tuple[str, str, int, int]


def read_ion(path: str | Path, *, presence: str | None = None, strict: bool = False) -> Trace:
    """Return the contacts of the plan; `presence` and `strict` as in `read_contacts`."""
    lines.check_presence(presence)
    path = Path(path)
    problems, repairs = lines.Problems(path), Repairs(path, strict=strict)
    rows: list[Row] = []
    numbers: list[int] = []
    kinds: set[bool] = set()
    reference_us = 0
    for number, line in lines.numbered_lines(lines.read_text(path)):
        fields = line.split()
        try:
            if fields[0] == "@":
                reference_us = _time_us(fields[1], 0) if len(fields) == 2 else _wrong(line)
            elif fields[:2] == ["a", "contact"]:
                rows.append(_contact(fields, reference_us))
                numbers.append(number)
                kinds |= {bool(DATE.fullmatch(text)) or reference_us > 0 for text in fields[2:4]}
            elif fields[0] == "d":
                raise ValueError(f"a plan that deletes contacts is not read: `{line}`")
        except ValueError as error:
            problems.add(number, str(error), hint=HINT)
    problems.check()
    if not rows:
        raise InputError("no contact in the plan", where=str(path), hint=HINT)
    if len(kinds) > 1:
        problem = "times after a reference time beside dates, and no `@ TIME` that sets it"
        raise InputError(problem, where=str(path), hint="write `@ 2024/05/01-08:00:00` first")
    find_contact_repairs(repairs, rows, numbers)
    repairs.check()
    assumed = (_directions(rows), lines.assumed_presence(presence))
    trace = lines.trace_of_contacts(rows, repairs.changes, presence)
    return replace(trace, detected_format=DetectedFormat(FORMAT, assumed=assumed))


def is_plan(sample: Sequence[str]) -> bool:
    """Return whether a line is a command of a contact plan."""
    return any(re.match(r"a\s+(contact|range)\s+\S+\s+\S+\s", line) for line in sample)


def _contact(fields: list[str], reference_us: int) -> Row:
    if len(fields) not in (7, 8):
        raise ValueError(f"{len(fields)} fields where 7 are needed")
    up_us, down_us = (_time_us(text, reference_us) for text in fields[2:4])
    if down_us < up_us:
        raise ValueError(f"contact ends before it starts: from {fields[2]} to {fields[3]}")
    a, b = fields[4:6]
    return a, b, up_us, down_us


def _time_us(text: str, reference_us: int) -> int:
    if DATE.fullmatch(text):
        return lines.moment_us(_iso(text))
    return reference_us + lines.seconds_us(text.removeprefix("+"))


def _iso(text: str) -> str:
    day, time = text.split("-")
    written = f"{day.replace('/', '-')}T{time}"
    datetime.datetime.fromisoformat(written)  # a ValueError names what is wrong with the date
    return written


def _wrong(line: str) -> int:
    raise ValueError(f"not a reference time: `{line}`")


def _directions(rows: Sequence[Row]) -> str:
    planned = {(a, b, up_us, down_us) for a, b, up_us, down_us in rows}
    one_way = sum((b, a, up_us, down_us) not in planned for a, b, up_us, down_us in planned)
    return (
        "a link works in both directions, at any rate and distance "
        f"({one_way:,} of {len(planned):,} contacts are planned in one direction only)"
    )
