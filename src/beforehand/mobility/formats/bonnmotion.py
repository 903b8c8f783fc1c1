"""Read BonnMotion's `.movements`: one line per node, its waypoints as `t x y t x y ...`.

A node's name is the number of its line, from 0. A node rests at its last waypoint until the last
time in the file, as BonnMotion defines it.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.positions import Positions, positions_of_points
from beforehand.mobility.repair_lines import find_point_repairs
from beforehand.mobility.repairs import Repairs

Point = tuple[int, float, float]


def read_bonnmotion(path: str | Path, *, strict: bool = False) -> Positions:
    """Return the movement in the file, in metres as given.

    strict: reject, line by line, what would otherwise be repaired.
    """
    path = Path(path)
    problems = lines.Problems(path)
    ways: list[list[Point]] = []
    numbers: list[int] = []
    for number, line in lines.numbered_lines(lines.read_text(path)):
        try:
            ways.append(_waypoints(line.split()))
            numbers.append(number)
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `t x y t x y ...`, in seconds")
    problems.check()
    end_us = max((way[-1][0] for way in ways), default=0)
    if end_us <= min((way[0][0] for way in ways), default=0):
        raise InputError(
            "no time passes in the file", where=str(path), hint="waypoints need later times"
        )
    rows = [
        (node, *point)
        for node, way in enumerate(ways)
        for point in [*way, *([(end_us, *way[-1][1:])] if way[-1][0] < end_us else [])]
    ]
    node, t_us, x, y = zip(*rows, strict=True)
    found = positions_of_points([str(i) for i in range(len(ways))], node, t_us, x, y)
    repairs = Repairs(path, strict=strict)
    points = [(str(i), at, numbers[i]) for i, at in zip(node, t_us, strict=True)]
    find_point_repairs(repairs, points, found)
    repairs.check()
    return found


def _waypoints(fields: list[str]) -> list[Point]:
    if len(fields) % 3:
        raise ValueError(f"{len(fields)} numbers, which is not a multiple of 3")
    way = [
        (lines.seconds_us(t), lines.place_m(x), lines.place_m(y))
        for t, x, y in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    ]
    for earlier, later in pairwise(way):
        if later[0] < earlier[0]:
            seconds = f"{earlier[0] / 1e6:g} to {later[0] / 1e6:g}"
            raise ValueError(f"time goes back in the line: from {seconds}")
    return way
