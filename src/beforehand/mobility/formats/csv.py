"""Read positions with a header: a node, a time, and x and y in metres or longitude and latitude.

The columns may come in any order and under any known name (`tables/columns.py`). Other columns are
ignored and reported.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import geo, lines
from beforehand.mobility.positions import Positions, positions_of_points
from beforehand.mobility.repair_lines import find_point_repairs
from beforehand.mobility.repairs import Repairs
from beforehand.mobility.tables.columns import POSITIONS, Layout
from beforehand.mobility.tables.table import read_table

Row = tuple[str, int, float, float]


def read_csv(
    path: str | Path,
    *,
    columns: str | None = None,
    gap_s: float | None = None,
    strict: bool = False,
) -> Positions:
    """Return the movement in the file, in straight segments from each row of a node to its next.

    columns: names in place of the header: `time,node,x,y`.
    gap_s: a node without a row for longer than this is absent in between; by default it never is.
    strict: reject, line by line, what would otherwise be repaired.
    """
    path, gap_us = Path(path), lines.span_us("gap_s", gap_s)
    problems = lines.Problems(path)
    table = read_table(path, columns)
    layout = table.layout_of(POSITIONS)
    rows: list[Row] = []
    numbers: list[int] = []
    for number, fields in table.rows:
        try:
            table.check_width(fields, layout)
            rows.append(_row(fields, layout))
            numbers.append(number)
        except ValueError as error:
            problems.add(number, str(error))
    problems.check()
    if not rows:
        raise InputError("no rows after the header", where=str(path))
    names = lines.natural_order(row[0] for row in rows)
    index = {name: i for i, name in enumerate(names)}
    x, y = (np.array([row[i] for row in rows]) for i in (2, 3))
    assumed = table.assumed_times(layout)
    if "lon" in layout.at:
        assumed += geo.check_area(x, y, str(path))
        x, y = geo.project(x, y)
    node, t_us = [index[row[0]] for row in rows], [row[1] for row in rows]
    found = positions_of_points(names, node, t_us, x, y, gap_us=gap_us)
    repairs = Repairs(path, strict=strict)
    points = [(row[0], row[1], number) for row, number in zip(rows, numbers, strict=True)]
    find_point_repairs(repairs, points, found)
    repairs.check()
    if not len(found.presence):
        hint = "a node needs two rows at different times"
        raise InputError("no node is present at any time", where=str(path), hint=hint)
    if gap_us is None:
        wish = "`--gap 60s`: away where it has no row for longer"
        assumed.append(f"a node is there from its first to its last row ({wish})")
    return replace(found, detected_format=layout.detected_format(assumed))


def _row(fields: list[str], layout: Layout) -> Row:
    at = layout.at
    name = fields[at["node"]]
    if not name:
        raise ValueError("a node without a name")
    t_us = lines.moment_us(fields[at["time"]], layout.unit_us("time"))
    if "lon" in at:
        lon, lat = fields[at["lon"]], fields[at["lat"]]
        return name, t_us, lines.degrees(lon, 180), lines.degrees(lat, 90)
    x, y = (lines.place_m(fields[at[axis]], layout.scale_m) for axis in "xy")
    return name, t_us, x, y
