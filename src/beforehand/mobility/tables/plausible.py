"""Find the columns of a table without a header, or refuse it: never guess an implausible reading.

Documented are `t i j` for sightings and `a b start end` for contacts. Public data sets have other
orders under the same shape: `a b unixtime` (SNAP), `a b weight unixtime` (network repository,
KONECT) and one device's `id start end` (Haggle). The rules here compare the columns. A refusal
says what is implausible, in which line, and that `columns` decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.tables.columns import CONTACTS, PLAIN, SIGHTINGS, Layout

Row = tuple[int, list[str]]
"""The number of a line and its fields."""

PAIR_FIRST = Layout(SIGHTINGS, {"a": 0, "b": 1, "time": 2})
PAIR_WEIGHT = Layout(SIGHTINGS, {"a": 0, "b": 1, "time": 3})
ROWS_MIN = 3
"""Fewer rows have too little evidence against the documented order."""
RISING_MIN = 0.9
"""The share of lines whose time does not fall, in a file that is in order of time: some files are
joined from several days."""
GRID_MIN, CONSTANT_MIN = 6, 5
FRACTION = re.compile(r"-?[0-9]+\.[0-9]*[1-9][0-9]*(?:[eE][+-]?[0-9]+)?")


def plain_layout(format: str, rows: Sequence[Row], path: Path) -> Layout:
    """Return the layout of a file without a header. Raise InputError if no reading is plausible.

    rows: the first rows of the file, some hundreds of them.
    """
    if format == CONTACTS:
        for check in (_refuse_fractions, _refuse_weights, _refuse_places):
            check([row for row in rows if len(row[1]) >= 4], path)
        return PLAIN[CONTACTS]
    return _sightings(rows, path)


def pair_first(rows: Sequence[list[str]]) -> Layout | None:
    """Return the layout of `a b unixtime` or `a b weight unixtime`; None for other rows."""
    width = len(rows[0]) if rows else 0
    if width not in (3, 4) or any(len(row) != width for row in rows):
        return None
    columns = list(zip(*rows, strict=True))
    times = [all(map(lines.is_of_this_century, column)) for column in columns]
    if times == [False] * (width - 1) + [True]:
        return PAIR_FIRST if width == 3 else PAIR_WEIGHT
    return None


def _sightings(rows: Sequence[Row], path: Path) -> Layout:
    found = pair_first([fields for _, fields in rows])
    if found is not None:
        return found
    three = [row for row in rows if len(row[1]) == 3]
    if not three or len(three) < len(rows):
        return PLAIN[SIGHTINGS]  # the reader reports rows of a wrong width by their lines
    if all(map(lines.is_of_this_century, (fields[0] for _, fields in three))):
        return PLAIN[SIGHTINGS]
    _refuse_one_device(three, path)
    first, last = _rising(three, 0), _rising(three, 2)
    varies = len({fields[2] for _, fields in three}) > 1
    time_first, time_last = first >= RISING_MIN, varies and last == 1
    if time_first and time_last:  # only the nodes can tell: both of a pair come from one set
        sets = [{fields[i] for _, fields in three} for i in range(3)]
        time_first, time_last = bool(sets[1] & sets[2]), bool(sets[0] & sets[1])
    if time_first != time_last:
        return PLAIN[SIGHTINGS] if time_first else PAIR_FIRST
    number, fields = _fall(three)
    problem = (
        f"no header, and a line may be `time a b` or `a b time`: `{' '.join(fields)}`"
        if time_first or first == last == 1
        else f"no header, and neither column 1 nor column 3 is in order of time: "
        f"`{' '.join(fields)}`"
    )
    raise _implausible(path, number, problem, "time,a,b", "a,b,time")


def _refuse_one_device(rows: Sequence[Row], path: Path) -> None:
    """Raise InputError for lines `id start end`: the second node of the pair is not in the file."""
    numbers = [(fields, [lines.is_number(field) for field in fields]) for _, fields in rows]
    if not all(is_number[1] and is_number[2] for _, is_number in numbers):
        return
    spans = [(fields[0], float(fields[1]), float(fields[2])) for fields, _ in numbers]
    if any(start > end for _, start, end in spans):
        return
    names = {name for _, *ends in spans for name in ends}
    same = [(one, two) for one, two in pairwise(spans) if one[0] == two[0]]
    has_instants = any(start == end for _, start, end in spans)
    in_turn = len(same) >= ROWS_MIN and all(one[2] <= two[1] for one, two in same)
    is_named = not any(is_number[0] for _, is_number in numbers)
    of_century = lines.is_of_this_century(rows[0][1][1])
    ids = {fields[0] for fields, _ in numbers}
    is_apart = not ids & {fields[1] for fields, _ in numbers} and _rising(rows, 0) < RISING_MIN
    many = len(rows) >= ROWS_MIN and len(names) > len(rows)
    if (
        is_named
        or of_century
        or (len(rows) >= ROWS_MIN and (has_instants or in_turn or is_apart or many))
    ):
        number, fields = rows[0]
        problem = (
            "no header, and a line looks like `id start end` of one device, whose own name is "
            f"not in the file: `{' '.join(fields)}`"
        )
        first = "write the device's name before each line (`device id start end`), or "
        raise _implausible(path, number, problem, "time,a,b", "a,b,time", first=first)


def _refuse_fractions(rows: Sequence[Row], path: Path) -> None:
    for number, fields in rows:
        for name in fields[:2]:
            if FRACTION.fullmatch(name):
                problem = f"no header, and `a b start end` would name a node `{name}`"
                raise _implausible(path, number, problem, "time,node,x,y", "a,b,start,end")


def _refuse_weights(rows: Sequence[Row], path: Path) -> None:
    starts, ends = ({fields[i] for _, fields in rows} for i in (2, 3))
    if len(rows) >= CONSTANT_MIN and len(starts) == 1 and len(ends) > 1:
        (start,) = starts
        if lines.is_number(start) and float(start) != 0:
            problem = f"no header, and as `a b start end` every contact starts at {start}"
            raise _implausible(path, rows[0][0], problem, "a,b,weight,time", "a,b,start,end")


def _refuse_places(rows: Sequence[Row], path: Path) -> None:
    """Raise InputError if columns 1 and 2 are each combination of two sets: nodes and times."""
    pairs = [(fields[0], fields[1]) for _, fields in rows]
    if len(pairs) < GRID_MIN or not all(map(lines.is_number, (n for p in pairs for n in p))):
        return
    one, two = ({pair[i] for pair in pairs} for i in (0, 1))
    is_grid = len(set(pairs)) == len(pairs) == len(one) * len(two)
    if is_grid and min(len(one), len(two)) > 1:
        problem = (
            "no header, and a line looks like a node and a time with a place: columns 1 and 2 "
            "have each combination once"
        )
        raise _implausible(path, rows[0][0], problem, "time,node,x,y", "a,b,start,end")


def _rising(rows: Sequence[Row], column: int) -> float:
    """Return the share of steps in which the number in a column does not fall; 0 if it is text."""
    texts = [fields[column] for _, fields in rows]
    if not all(map(lines.is_number, texts)):
        return 0.0
    steps = [float(one) <= float(two) for one, two in pairwise(texts)]
    return sum(steps) / len(steps) if steps else 1.0


def _fall(rows: Sequence[Row]) -> Row:
    """Return the first row in which column 1 falls, or else the first row."""
    numeric = [row for row in rows if lines.is_number(row[1][0])]
    falls = (two for one, two in pairwise(numeric) if float(two[1][0]) < float(one[1][0]))
    return next(falls, rows[0])


def _implausible(
    path: Path, number: int, problem: str, *columns: str, first: str = ""
) -> InputError:
    options = " or ".join(f"`--columns {names}`" for names in columns)
    hint = f"{first}say what the columns are: {options}"
    return InputError(problem, where=f"{path}:{number}", hint=hint)
