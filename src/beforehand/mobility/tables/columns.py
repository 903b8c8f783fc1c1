"""Resolve the columns of a header: any order, any known name.

    positions    node, time, and x, y or lon, lat
    contacts     two nodes, and start, end; or start or end with a duration; or time with either
    sightings    two nodes and a time

A unit may follow a name, as in `time_ms`, `x(km)` or `duration [min]`. Without a unit, times are in
seconds, places in metres and angles in degrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from beforehand.errors import InputError
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.tables import aliases

POSITIONS, CONTACTS, SIGHTINGS = "csv", "contacts", "sociopatterns"
TIMES = ("time", "start", "end", "duration")
HINT = (
    "known columns are "
    + "; ".join(f"{role}: {', '.join(names)}" for role, names in aliases.KNOWN.items())
    + ". Positions need node, time, x, y (or lon, lat); contacts a, b, start, end (or duration); "
    "sightings a, b, time"
)

BRACKETS = re.compile(r"(.+?)\s*[(\[]\s*([^\s)\]]+)\s*[)\]]")
SUFFIX = re.compile(r"(.+?)[\s_.-]+([a-z]+)")


class Column(NamedTuple):
    """A column of a header: its normalised name without its unit, the unit, and the whole name."""

    position: int
    name: str
    unit: str
    whole: str


@dataclass(frozen=True)
class Layout:
    """The column index of each role. A file without a header has the documented column order."""

    format: str
    at: Mapping[str, int]
    header: tuple[str, ...] = ()
    units_us: Mapping[str, int] | None = None
    scale_m: float = 1.0
    kind_at: int | None = None
    """The column that holds `contact` or `presence` for each row, or None."""

    def unit_us(self, role: str) -> int:
        return (self.units_us or {}).get(role, 1_000_000)

    def states_unit(self, role: str) -> bool:
        """Return whether the header gives the unit, also within a name such as `unixtime`."""
        if not self.header:
            return False
        name = self.header[self.at[role]].casefold()
        return role in (self.units_us or {}) or any(word in name for word in ("sec", "unix"))

    def detected_format(self, assumed: Sequence[str] = ()) -> DetectedFormat:
        if not self.header:
            columns = {role: f"column {index + 1}" for role, index in self.at.items()}
            roles = {index: role for role, index in self.at.items()}
            order = " ".join(roles.get(i, "-") for i in range(max(roles) + 1))
            note = f"no header, so a line is `{order}`; a first line with names settles it"
            return DetectedFormat(self.format, columns, (), (note, *assumed))
        columns = {role: self.header[index] for role, index in self.at.items()}
        if self.kind_at is not None:
            columns["presence"] = self.header[self.kind_at]
        taken = {*self.at.values(), self.kind_at}
        rest = [(i, name) for i, name in enumerate(self.header) if i not in taken]
        ignored = tuple(name or f"column {i + 1}" for i, name in rest)
        return DetectedFormat(self.format, columns, ignored, tuple(assumed))


PLAIN = {
    CONTACTS: Layout(CONTACTS, {"a": 0, "b": 1, "start": 2, "end": 3}),
    SIGHTINGS: Layout(SIGHTINGS, {"time": 0, "a": 1, "b": 2}),
}
"""The layout by format for files without a header."""


def resolve(header: Sequence[str], where: str) -> Layout:
    """Return the layout that the header describes.

    Raise InputError if a role has no column or two columns, or if the header names both positions
    and contacts.
    """
    columns = [_column(i, name) for i, name in enumerate(header)]
    found: list[Layout] = []
    missing: list[tuple[str, ...]] = []
    for attempt in (_positions, _contacts):
        at, lacking, problem = attempt(columns)
        if problem:
            raise InputError(f"{problem}: {','.join(header)}", where=where, hint="rename one")
        if not lacking:
            found.append(_layout(at, header, columns))
        elif at:
            missing.append(lacking)
    if len(found) > 1:
        problem = f"the header names both positions and contacts: {','.join(header)}"
        raise InputError(problem, where=where, hint="leave the columns of one of them out")
    if found:
        return found[0]
    if missing:
        lacking = min(missing, key=len)
        problem = f"no column `{'` and no column `'.join(lacking)}` in the header"
    else:
        problem = "neither places nor two nodes in the header"
    raise InputError(f"{problem}: {','.join(header)}", where=where, hint=HINT)


def _layout(at: dict[str, int], header: Sequence[str], columns: Sequence[Column]) -> Layout:
    if "node" in at:
        format = POSITIONS
    else:
        format = CONTACTS if "start" in at or "end" in at or "duration" in at else SIGHTINGS
    units = {
        role: aliases.TIME_UNITS[columns[at[role]].unit]
        for role in TIMES
        if role in at and columns[at[role]].unit
    }
    scales = {aliases.PLACE_UNITS.get(columns[at[axis]].unit, 1.0) for axis in "xy" if axis in at}
    kinds = [column.position for column in columns if column.whole == "kind"]
    kind_at = kinds[0] if format == CONTACTS and kinds else None
    return Layout(format, at, tuple(header), units, max(scales, default=1.0), kind_at)


Attempt = tuple[dict[str, int], tuple[str, ...], str]
"""The column of each role, the roles without a column, and any other problem in words."""


def _positions(columns: Sequence[Column]) -> Attempt:
    at, plane, globe = dict[str, int](), dict[str, int](), dict[str, int]()
    times, lengths, angles = aliases.TIME_UNITS, aliases.PLACE_UNITS, aliases.ANGLE_UNITS
    problems = [
        _place(at, columns, "node", aliases.NODE, aliases.NODE_WEAK, {}),
        _place(at, columns, "time", aliases.TIME, aliases.TIME_WEAK, times),
        _place(plane, columns, "x", aliases.X, (), lengths),
        _place(plane, columns, "y", aliases.Y, (), lengths),
        _place(globe, columns, "lon", aliases.LON, (), angles),
        _place(globe, columns, "lat", aliases.LAT, (), angles),
    ]
    if len(plane) == 2 and columns[plane["x"]].unit != columns[plane["y"]].unit:
        problems.append("x and y in different units")
    axes, places = (("lon", "lat"), globe) if len(globe) > len(plane) else (("x", "y"), plane)
    if not places:  # a node and a time without a place are not positions
        return {}, axes, ""
    at |= places
    lacking = tuple(role for role in ("node", "time", *axes) if role not in at)
    # Two columns for one role are a problem only if the header describes positions.
    return at, lacking, "" if lacking else _first(problems)


def _contacts(columns: Sequence[Column]) -> Attempt:
    at: dict[str, int] = {}
    times, units = dict[str, int](), aliases.TIME_UNITS
    problems = [
        _place(times, columns, "start", aliases.START, (), units),
        _place(times, columns, "end", aliases.END, (), units),
        _place(times, columns, "duration", aliases.DURATION, (), units),
        _place(times, columns, "time", aliases.TIME, aliases.TIME_WEAK, units),
    ]
    names = {column.whole: column.position for column in columns}
    named = {column.name: column.position for column in columns}
    for first, second in aliases.SPANS:
        if first in named and second in named and not {"start", "end"} & set(times):
            times |= {"start": named[first], "end": named[second]}
    pairs = [(names[one], names[two]) for one, two in aliases.PAIRS if {one, two} <= set(names)]
    fromto = (named.get("from", -1), named.get("to", -1))
    pairs = list(dict.fromkeys(pairs)) or list(_pair_with_other(columns))
    if fromto in pairs and len(pairs) > 1:  # another pair names the nodes, so from and to are times
        pairs.remove(fromto)
        if not {"start", "end"} & set(times):
            times |= {"start": fromto[0], "end": fromto[1]}
    if len(pairs) > 1:
        problems.append("more than one pair of nodes")
    if pairs:
        at |= {"a": pairs[0][0], "b": pairs[0][1]}
    at |= _span(times)
    lacking = tuple(role for role in ("a", "b") if role not in at)
    if not {"start", "end", "time"} & set(at):
        lacking += ("start", "end") if "duration" not in at else ("start",)
    elif "time" not in at and len({"start", "end", "duration"} & set(at)) < 2:
        lacking += ("end",) if "start" in at else ("start",)
    if not pairs and {"time"} >= set(times):
        return {}, lacking, ""
    return at, lacking, "" if lacking else _first(problems)


def _first(problems: Sequence[str]) -> str:
    return next(filter(None, problems), "")


def _span(times: dict[str, int]) -> dict[str, int]:
    """Keep at most two times of a contact.

    A lone `time` beside an end or a duration is the start.
    """
    at = dict(times)
    if "time" in at and "start" not in at and ("end" in at or "duration" in at):
        at["start"] = at.pop("time")
    if "start" in at and "end" in at:
        at.pop("duration", None)
    if "start" in at or "end" in at:
        at.pop("time", None)
    return {role: at[role] for role in TIMES if role in at}


def _pair_with_other(columns: Sequence[Column]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a node column and a column that names the node it met."""
    for other in [column for column in columns if column.whole in aliases.OTHER]:
        at: dict[str, int] = {}
        rest = [column for column in columns if column is not other]
        _place(at, rest, "node", aliases.NODE, aliases.NODE_WEAK, {})
        if at:
            yield at["node"], other.position


def _place(
    at: dict[str, int],
    columns: Sequence[Column],
    role: str,
    strong: Sequence[str],
    weak: Sequence[str],
    units: Mapping[str, object],
) -> str:
    """Find the column of a role and store it in `at`; return a problem if two columns fit."""
    fitting = [column for column in columns if _fits(column, strong, units)]
    if not fitting:
        ranked = [column for name in weak for column in columns if _fits(column, (name,), units)]
        fitting = ranked[:1]
    if fitting:
        at[role] = fitting[0].position
    if len(fitting) > 1:
        return f"two columns for `{role}`"
    return ""


def _fits(column: Column, names: Sequence[str], units: Mapping[str, object]) -> bool:
    return column.name in names and (not column.unit or column.unit in units)


def _column(index: int, written: str) -> Column:
    """Split a column name into name and unit.

    A name that is known as a whole has no unit: `t_s` is `ts`, which is in seconds anyway.
    """
    text = written.strip().casefold()
    match = BRACKETS.fullmatch(text) or SUFFIX.fullmatch(text)
    if match is not None and match.re is SUFFIX and match[2] == "min":
        match = None  # `t_min` means a minimum as often as minutes
    whole = squashed(text)
    if match is None or match[2] not in UNITS or whole in WHOLE:
        return Column(index, whole, "", whole)
    return Column(index, squashed(match[1]), match[2], whole)


def squashed(text: str) -> str:
    return re.sub(r"[\s_.#-]+", "", text)


UNITS = {**aliases.TIME_UNITS, **aliases.PLACE_UNITS, **aliases.ANGLE_UNITS}
WHOLE = {
    *(*aliases.NODE, *aliases.NODE_WEAK, *aliases.TIME, *aliases.TIME_WEAK, *aliases.START),
    *(*aliases.END, *aliases.DURATION, *aliases.X, *aliases.Y, *aliases.LON, *aliases.LAT),
}
