"""Read SUMO's floating car data (`sumo --fcd-output`): vehicles and persons at every time step.

`<timestep time="1.00"><vehicle id="v0" x="5" y="7"/></timestep>`. A node is present while
consecutive time steps list it. With `--fcd-output.geo` SUMO writes longitude and latitude under the
same names x and y, so `places` says which they are where the numbers allow both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import geo, lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.positions import Floats, Positions, positions_of_points
from beforehand.mobility.xml import elements

PLACES = ("metres", "degrees")
CITY_DEG = 2.0
"""In degrees a traffic scenario spans less than this; in metres it spans more."""
NODES = ("vehicle", "person", "container")


def read_sumo(path: str | Path, *, places: str | None = None, strict: bool = False) -> Positions:
    """Return the movement in the file.

    places: `metres` or `degrees`; detected from the numbers where they allow only one.
    strict: refuse two places of a node in one time step, of which otherwise the last one counts.
    """
    check_places(places)
    path = Path(path)
    problems = lines.Problems(path)
    rows: list[tuple[str, int, float, float]] = []
    times: set[int] = set()
    now_us = 0
    for event, element in elements(path, "timestep", *NODES):
        try:
            if event == "start" and element.tag == "timestep":
                now_us = lines.seconds_us(element.attrib["time"])
                times.add(now_us)
            elif event == "start" and element.tag in NODES:
                x, y = (lines.place_m(element.attrib[axis]) for axis in "xy")
                rows.append((element.attrib["id"], now_us, x, y))
        except (KeyError, ValueError) as error:
            what = f"no attribute {error}" if isinstance(error, KeyError) else str(error)
            problems.add(None, f"in `<{element.tag}>` at {now_us / 1e6:g} s: {what}")
    problems.check()
    if not rows:
        raise InputError(
            "no vehicle in the file",
            where=str(path),
            hint="check that the path names the right file",
        )
    names = lines.natural_order(row[0] for row in rows)
    index = {name: i for i, name in enumerate(names)}
    xs, ys = (np.array([row[i] for row in rows]) for i in (2, 3))
    assumed: list[str] = []
    if (places or _detect_unit(xs, ys, path)) == "degrees":
        assumed += geo.check_area(xs, ys, str(path))
        xs, ys = geo.project(xs, ys)
    gap_us = max((b - a for a, b in pairwise(sorted(times))), default=None)
    node, t_us = [index[row[0]] for row in rows], [row[1] for row in rows]
    found = positions_of_points(names, node, t_us, xs, ys, gap_us=gap_us)
    if strict and "duplicate_position" in found.changes:
        count = found.changes["duplicate_position"]
        problem = f"{count} places of a node that has another one in the same time step"
        raise InputError(problem, where=str(path), hint="without `strict` the last one counts")
    assumed.append("a node is there while the time steps list it")
    return replace(found, detected_format=DetectedFormat("sumo", assumed=tuple(assumed)))


def check_places(places: str | None) -> None:
    if places is not None and places not in PLACES:
        raise InputError(f"no such places: `{places}`", hint="pass `metres` or `degrees`")


def _detect_unit(x: Floats, y: Floats, path: Path) -> str:
    could_be_degrees = np.abs(x).max() <= 180 and np.abs(y).max() <= 90
    if not could_be_degrees:
        return "metres"
    problem = f"x and y may be metres or degrees: {_span(x)} and {_span(y)}"
    if max(np.ptp(x), np.ptp(y)) < CITY_DEG:
        problem = f"x and y look like degrees: {_span(x)} and {_span(y)}"
    hint = "say which: `--places degrees` (written with `--fcd-output.geo`) or `--places metres`"
    raise InputError(problem, where=str(path), hint=hint)


def _span(values: Sequence[float] | Floats) -> str:
    return f"{min(values):g} to {max(values):g}"
