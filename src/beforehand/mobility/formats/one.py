"""Read The ONE's two text formats: connectivity events, and external movement.

Events: `time CONN a b up` and `time CONN a b down`; other events are skipped and counted. Movement:
a header `minTime maxTime minX maxX minY maxY [minZ maxZ]`, then `time id x y` per line. Times and
places are relative to the minima of the header, as in The ONE.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.formats.updown_events import FORMAT, Event, contacts_of_events
from beforehand.mobility.positions import Positions, positions_of_points
from beforehand.mobility.repair_lines import find_contact_repairs, find_point_repairs
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.trace import Trace


def read_one_events(
    path: str | Path,
    *,
    presence: str | None = None,
    slot_s: float | None = None,
    strict: bool = False,
) -> Trace:
    """Return the contacts of the file.

    `updown_events.contacts_of_events` repairs inconsistent events. The options are those of
    `contacts_list.read_contacts`.
    """
    lines.check_presence(presence)
    path, slot_us = Path(path), lines.span_us("slot_s", slot_s)
    problems = lines.Problems(path)
    repairs = Repairs(path, strict=strict)
    events: list[Event] = []
    for number, line in lines.numbered_lines(lines.read_text(path)):
        fields = line.split()
        if len(fields) > 1 and not is_connection(fields):
            repairs.mend("skipped_line", "", number, f"no `CONN`, but `{fields[1]}`; skipped")
            continue
        try:
            events.append(_event(fields, number))
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `time CONN a b up|down`")
    problems.check()
    if not events:
        raise InputError(
            "no `CONN` event in the file",
            where=str(path),
            hint="check that the path names the right file",
        )
    contacts, numbers = contacts_of_events(events, repairs)
    met = lines.lengthen(contacts, slot_us, repairs.changes, str(path))
    find_contact_repairs(repairs, met, numbers)
    repairs.check()
    detected_format = DetectedFormat(FORMAT, assumed=(lines.assumed_presence(presence),))
    return replace(
        lines.trace_of_contacts(met, repairs.changes, presence), detected_format=detected_format
    )


def read_one_movement(path: str | Path, *, strict: bool = False) -> Positions:
    """Return the movement in the file, in metres.

    A node is present from its first to its last line.

    strict: reject, line by line, what would otherwise be repaired.
    """
    path = Path(path)
    problems = lines.Problems(path)
    body = lines.numbered_lines(lines.read_text(path))
    start_us, left, bottom = _header(path, next(body, (1, "")))
    rows: list[tuple[str, int, float, float]] = []
    numbers: list[int] = []
    for number, line in body:
        fields = line.split()
        try:
            if len(fields) not in (4, 5):
                raise ValueError(f"{len(fields)} fields where `time id x y` is needed")
            time_us = lines.seconds_us(fields[0]) - start_us
            if time_us < 0:
                raise ValueError(f"time {fields[0]} is before the minTime of the header")
            x, y = lines.place_m(fields[2]) - left, lines.place_m(fields[3]) - bottom
            rows.append((fields[1], time_us, x, y))
            numbers.append(number)
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `time id x y`")
    problems.check()
    if not rows:
        raise InputError("no movement after the header", where=str(path))
    names = lines.natural_order(row[0] for row in rows)
    index = {name: i for i, name in enumerate(names)}
    node, t_us, x_m, y_m = zip(*rows, strict=True)
    found = positions_of_points(names, [index[name] for name in node], t_us, x_m, y_m)
    repairs = Repairs(path, strict=strict)
    find_point_repairs(repairs, list(zip(node, t_us, numbers, strict=True)), found)
    repairs.check()
    return found


def is_connection(fields: list[str]) -> bool:
    """Return whether a line is a `CONN` event, in upper or lower case."""
    return len(fields) > 1 and fields[1].upper() == "CONN"


def _event(fields: list[str], number: int) -> Event:
    # The ONE may add the name of the radio interface after the state.
    if len(fields) not in (5, 6) or fields[4].lower() not in ("up", "down"):
        raise ValueError(f"not a connectivity event: `{' '.join(fields)}`")
    a, b = sorted(fields[2:4])
    return lines.seconds_us(fields[0]), a, b, fields[4].lower() == "up", number


def _header(path: Path, first: tuple[int, str]) -> tuple[int, float, float]:
    number, line = first
    fields = line.split()
    try:
        if len(fields) not in (6, 8):
            raise ValueError(f"{len(fields)} numbers in the header")
        numbers = [lines.place_m(field) for field in fields[2:]]
        return lines.seconds_us(fields[0]), numbers[0], numbers[2]
    except ValueError as error:
        raise InputError(
            str(error),
            where=f"{path}:{number}",
            hint="the first line is `minTime maxTime minX maxX minY maxY [minZ maxZ]`",
        ) from error
