"""Read a map that a page draws below the nodes: WKT in metres, or OpenStreetMap in degrees.

The lines of a map must be in the plane of the run. WKT is taken as it is; a simulator that moves or
mirrors its map writes places that lie elsewhere, and then the map is refused. OpenStreetMap needs
the place that is the origin of the plane (`--centre`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.files import read_text
from beforehand.mobility import geo
from beforehand.mobility.xml import elements
from beforehand.play.run import Movement, Run

Line = NDArray[np.float64]
"""Points of x, y in metres."""
DRAWN = ("LINESTRING", "MULTILINESTRING", "POLYGON", "MULTIPOLYGON")
SHAPE = re.compile(r"([A-Z]+)\s*(?:Z|M|ZM)?\s*((?:\([^A-DF-Z]*\))|EMPTY)", re.I)
CHAIN = re.compile(r"\(([^()]+)\)")
WAYS = ("highway", "railway", "waterway", "natural", "boundary")
"""The keys of OpenStreetMap's ways that are drawn: buildings would hide the nodes."""
AROUND = 0.1
"""The share of the plane by which lines may leave it; others are left out."""
POINTS_MAX = 300_000
CENTRE_HINT = (
    "pass `--centre LON,LAT`: the middle of the area that the trace's places were projected around"
)


def with_map(run: Run, path: Path, centre: tuple[float, float] | None) -> Run:
    """Return the run with the lines of a map around its places.

    centre: longitude and latitude of the origin of the plane, for a map in degrees."""
    if run.movement is None:
        hint = "leave the map out, or play a log with places beside it"
        raise InputError("a run without places has no plane for a map", where=str(path), hint=hint)
    is_osm = path.suffix.casefold() in (".osm", ".xml")
    if is_osm and centre is None:
        raise InputError("a map in degrees", where=str(path), hint=CENTRE_HINT)
    lines = list(_read_osm(path, centre) if is_osm and centre else _read_wkt(path))
    if not lines:
        hint = f"it draws {', '.join(DRAWN)}" if not is_osm else f"it draws {', '.join(WAYS)}"
        raise InputError("no line in the map", where=str(path), hint=hint)
    near = _around(lines, run.movement)
    if not near:
        raise InputError(_apart(lines, run.movement), where=str(path), hint=_hint(is_osm))
    count = sum(map(len, near))
    if count > POINTS_MAX:
        hint = "cut the map to the area of the run, or leave out small ways"
        problem = f"the map has {count:,} points, and a page draws at most {POINTS_MAX:,}"
        raise InputError(problem, where=str(path), hint=hint)
    notes = run.notes
    if len(near) < len(lines):
        notes = (*notes, f"{len(lines) - len(near):,} of {len(lines):,} lines of the map lie apart")
    return replace(run, background=tuple(near), notes=notes)


def _read_wkt(path: Path) -> Iterator[Line]:
    text = read_text(path)
    rest = SHAPE.sub("", text)
    if strange := re.search(r"\S[^\n]{0,40}", rest):
        hint = "a line is `LINESTRING (0 0, 10 5)`; OpenStreetMap's files end with `.osm`"
        raise InputError(f"no WKT: `{strange[0]}`", where=str(path), hint=hint)
    for shape, points in SHAPE.findall(text):
        if shape.upper() in DRAWN:
            for chain in CHAIN.findall(points):
                yield _line(chain, path)


def _line(chain: str, path: Path) -> Line:
    """Return the points of `x y, x y, ...`; further coordinates are left out."""
    try:
        return np.array([[float(n) for n in point.split()[:2]] for point in chain.split(",")])
    except ValueError:
        hint = "points are two numbers: `LINESTRING (0 0, 10 5)`"
        raise InputError(f"no points: `{chain[:40]}`", where=str(path), hint=hint) from None


def _read_osm(path: Path, centre: tuple[float, float]) -> Iterator[Line]:
    places: dict[str, tuple[float, float]] = {}
    refs: list[str] = []
    is_drawn = False
    for event, element in elements(path, "node", "way", "nd", "tag"):
        if event == "start" and element.tag == "way":
            refs, is_drawn = [], False
        elif event == "end" and element.tag == "node":
            lon, lat = element.get("lon", "nan"), element.get("lat", "nan")
            places[element.get("id", "")] = (float(lon), float(lat))
        elif event == "end" and element.tag == "nd":
            refs.append(element.get("ref", ""))
        elif event == "end" and element.tag == "tag":
            is_drawn |= element.get("k") in WAYS
        elif event == "end" and is_drawn:
            known = np.array([places[ref] for ref in refs if ref in places])
            if len(known) > 1:
                yield np.column_stack(geo.project_around(known[:, 0], known[:, 1], *centre))


def _around(lines: list[Line], movement: Movement) -> list[Line]:
    """Return the lines that come near the places of the run."""
    low, high = _box(movement)
    room = AROUND * max(float((high - low).max()), 1.0)
    return [
        line
        for line in lines
        if (line.max(axis=0) >= low - room).all() and (line.min(axis=0) <= high + room).all()
    ]


def _box(movement: Movement) -> tuple[Line, Line]:
    x = np.concatenate([movement.x0, movement.x1])
    y = np.concatenate([movement.y0, movement.y1])
    return np.array([x.min(), y.min()]), np.array([x.max(), y.max()])


def _apart(lines: list[Line], movement: Movement) -> str:
    points = np.concatenate(lines)
    spans = []
    for low, high in ((points.min(axis=0), points.max(axis=0)), _box(movement)):
        spans.append(f"{low[0]:.0f}..{high[0]:.0f}, {low[1]:.0f}..{high[1]:.0f} m")
    return f"the map covers x, y {spans[0]}, and the nodes move in {spans[1]}"


def _hint(is_osm: bool) -> str:
    if is_osm:
        return f"another centre: {CENTRE_HINT}"
    return "the map needs the plane of the trace: move or mirror it as the simulator did"
