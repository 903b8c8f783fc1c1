"""The ONE's two text formats: connectivity events, and external movement.

Events: `time CONN a b up` and `time CONN a b down`; other events are skipped and counted.
Movement: a header `minTime maxTime minX maxX minY maxY [minZ maxZ]`, then `time id x y` per line.
As The ONE does, times and places are taken relative to the minima of the header.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.positions import Positions, positions_of_points
from beforehand.mobility.trace import Trace
from beforehand.mobility.understood import Understood

Contact = tuple[str, str, int, int]


def read_one_events(
    path: str | Path, *, presence: str | None = None, slot_s: float | None = None
) -> Trace:
    """The contacts of the file.

    A second `up` before the `down` is a second, overlapping contact (`duplicate_up`): the pair is
    connected until as many `down` have come. `unmatched_down` are dropped; what is up at the end
    ends with the last event (`never_down`). presence, slot_s: as in `contacts_list.read_contacts`.
    """
    lines.check_presence(presence)
    path, slot_us = Path(path), lines.span_us("slot_s", slot_s)
    problems = lines.Problems(path)
    changes: dict[str, int] = {}
    events: list[tuple[int, str, str, bool]] = []
    for number, line in lines.numbered_lines(lines.read_text(path)):
        fields = line.split()
        if len(fields) > 1 and fields[1] != "CONN":
            _count(changes, "skipped_line")
            continue
        try:
            events.append(_event(fields))
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `time CONN a b up|down`")
    problems.check()
    if not events:
        raise InputError(
            "no `CONN` event in the file", where=str(path), hint="is it the right file?"
        )
    met = lines.lengthen(_contacts(events, changes), slot_us, changes, str(path))
    understood = Understood("one-events", assumed=(lines.assumed_presence(presence),))
    return replace(lines.trace_of_contacts(met, changes, presence), understood=understood)


def read_one_movement(path: str | Path) -> Positions:
    """The movement of the file, in metres; a node is there from its first to its last line."""
    path = Path(path)
    problems = lines.Problems(path)
    body = lines.numbered_lines(lines.read_text(path))
    start_us, left, bottom = _header(path, next(body, (1, "")))
    rows: list[tuple[str, int, float, float]] = []
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
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `time id x y`")
    problems.check()
    if not rows:
        raise InputError("no movement after the header", where=str(path))
    names = lines.natural_order(row[0] for row in rows)
    index = {name: i for i, name in enumerate(names)}
    node, t_us, x_m, y_m = zip(*rows, strict=True)
    return positions_of_points(names, [index[name] for name in node], t_us, x_m, y_m)


def _event(fields: list[str]) -> tuple[int, str, str, bool]:
    # The ONE may add the name of the radio after the state.
    if len(fields) not in (5, 6) or fields[4].lower() not in ("up", "down"):
        raise ValueError(f"not a connectivity event: `{' '.join(fields)}`")
    a, b = sorted(fields[2:4])
    return lines.seconds_us(fields[0]), a, b, fields[4].lower() == "up"


def _contacts(events: list[tuple[int, str, str, bool]], changes: dict[str, int]) -> list[Contact]:
    disorder = sum(b[0] < a[0] for a, b in pairwise(events))
    if disorder:
        changes["out_of_order"] = disorder
        events = sorted(events, key=lambda event: event[0])
    open_: dict[tuple[str, str], list[int]] = {}
    contacts: list[Contact] = []
    for time_us, a, b, is_up in events:
        ups = open_.setdefault((a, b), [])
        if is_up:
            if ups:
                _count(changes, "duplicate_up")
            ups.append(time_us)
        elif not ups:
            _count(changes, "unmatched_down")
        else:
            up_us = ups.pop()
            if not ups:
                contacts.append((a, b, up_us, time_us))
    end_us = events[-1][0]
    for (a, b), ups in open_.items():
        if ups:
            _count(changes, "never_down")
            contacts.append((a, b, ups[0], end_us))
    return contacts


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


def _count(changes: dict[str, int], kind: str) -> None:
    changes[kind] = changes.get(kind, 0) + 1
