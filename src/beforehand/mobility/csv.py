"""Plain CSV with a header: `node,t,x,y` in seconds and metres, or `node,t,lon,lat` in degrees.

The columns may come in any order; others are ignored.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import geo, lines
from beforehand.mobility.positions import Positions, positions_of_points

PLANE, GLOBE = ("x", "y"), ("lon", "lat")


def read_csv(path: str | Path, *, gap_s: float | None = None) -> Positions:
    """The movement of the file, straight from one row of a node to its next.

    gap_s: a node without a row for longer than this is away in between; by default it never is.
    """
    path = Path(path)
    problems = lines.Problems(path)
    # Comments and empty lines go, but each row keeps the number of its line.
    numbered = list(lines.numbered_lines(lines.read_text(path)))
    header = _fields(numbered[0][1]) if numbered else []
    columns = _columns(path, header)
    rows: list[tuple[str, int, float, float]] = []
    for number, line in numbered[1:]:
        fields = _fields(line)
        try:
            if len(fields) != len(header):
                raise ValueError(f"{len(fields)} fields under a header of {len(header)}")
            name, time, first, second = (fields[column] for column in columns)
            if not name:
                raise ValueError("a node without a name")
            rows.append((name, lines.seconds_us(time), lines.metres(first), lines.metres(second)))
        except ValueError as error:
            problems.add(number, str(error))
    problems.check()
    if not rows:
        raise InputError("no rows after the header", where=str(path))
    names = lines.natural_order(row[0] for row in rows)
    index = {name: i for i, name in enumerate(names)}
    x, y = (np.array([row[i] for row in rows]) for i in (2, 3))
    if header[columns[2]] == "lon":
        x, y = geo.project(x, y)
    node, t_us = [index[row[0]] for row in rows], [row[1] for row in rows]
    gap_us = None if gap_s is None else round(gap_s * 1e6)
    return positions_of_points(names, node, t_us, x, y, gap_us=gap_us)


def has_header(line: str) -> bool:
    header = _fields(line)
    return {"node", "t"} <= set(header) and any({*pair} <= set(header) for pair in (PLANE, GLOBE))


def _fields(line: str) -> list[str]:
    return [field.strip() for field in next(csv.reader(io.StringIO(line)))]


def _columns(path: Path, header: list[str]) -> list[int]:
    places = PLANE if set(PLANE) <= set(header) else GLOBE
    missing = [name for name in ("node", "t", *places) if name not in header]
    if missing:
        raise InputError(
            f"no column `{missing[0]}` in the header: {','.join(header)}",
            where=f"{path}:1",
            hint="the first line must name `node,t,x,y` or `node,t,lon,lat`",
        )
    return [header.index(name) for name in ("node", "t", *places)]
