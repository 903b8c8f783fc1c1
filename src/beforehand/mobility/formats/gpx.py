"""Read GPX tracks: `<trkpt lat="41.1" lon="-8.6"><time>2024-05-01T08:00:00Z</time></trkpt>`.

In a single file every track is a node, named by its `<name>`. In a folder every file is a node,
named by the file. A node is away between the segments (`<trkseg>`) of its track.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.kernels.contacts import Segments
from beforehand.mobility import geo, lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.positions import Positions, join_points, make_positions
from beforehand.mobility.xml import elements

Point = tuple[str, int, int, float, float]
"""Node, segment, time in microseconds, longitude, latitude."""


def read_gpx(path: str | Path, *, gap_s: float | None = None, strict: bool = False) -> Positions:
    """Return the movement in a file, or in all `.gpx` files of a folder.

    gap_s: a node without a point for longer than this is absent in between.
    strict: refuse points at the same time of one node, of which otherwise the last one counts.
    """
    path, gap_us = Path(path), lines.span_us("gap_s", gap_s)
    files = sorted(path.glob("*.gpx")) if path.is_dir() else [path]
    points: list[Point] = []
    for file in files:
        points += _points(file, file.stem if path.is_dir() else None, len(points))
    if not points:
        hint = "routes and waypoints have no times; a track has"
        raise InputError("no track with points in the file", where=str(path), hint=hint)
    names = lines.natural_order(point[0] for point in points)
    index = {name: i for i, name in enumerate(names)}
    lon, lat = (np.array([point[i] for point in points]) for i in (3, 4))
    assumed = geo.check_area(lon, lat, str(path))
    x, y = geo.project(lon, lat)
    segment = np.array([point[1] for point in points])
    t_us = [point[2] for point in points]
    # Points are joined within a segment only, so a segment stands for a node here.
    legs, joined = join_points(segment, t_us, x, y)
    changes = {"duplicate_position": len(points) - joined} if joined < len(points) else {}
    if changes and strict:
        problem = f"{len(points) - joined} points at the same time as another one of their track"
        raise InputError(problem, where=str(path), hint="without `strict` the last one counts")
    if gap_us is not None:
        legs = legs.take(np.flatnonzero(legs.t1_us - legs.t0_us <= gap_us))
    of_segment = np.array([index[name] for name in _node_by_segment(points)])
    legs = legs._replace(node=of_segment[legs.node])
    _refuse_overlap(legs, names, path)
    found = make_positions(names, legs, changes)
    if not len(found.presence):
        hint = "a track needs two points at different times"
        raise InputError("no node is present for any time", where=str(path), hint=hint)
    assumed.append("a node is away between the segments of its track")
    return replace(found, detected_format=DetectedFormat("gpx", assumed=tuple(assumed)))


def _points(file: Path, node: str | None, first: int) -> list[Point]:
    """Return the points of a file. Segments are numbered from `first` on, which no point has."""
    problems = lines.Problems(file)
    found: list[Point] = []
    tracks, segment = 0, first
    name, place, when = "", ("", ""), ""
    pending: list[tuple[int, int, float, float]] = []
    for event, element in elements(file, "trk", "name", "trkseg", "trkpt", "time"):
        if event == "start":
            if element.tag == "trk":
                tracks, name, pending = tracks + 1, "", []
            elif element.tag == "trkseg":
                before = pending[-1][0] if pending else found[-1][1] if found else -1
                segment += before == segment
            elif element.tag == "trkpt":
                place, when = (element.get("lon", ""), element.get("lat", "")), ""
        elif element.tag == "time":
            when = (element.text or "").strip()
        elif element.tag == "name" and not pending:
            name = (element.text or "").strip()
        elif element.tag == "trkpt":
            try:
                lon, lat = lines.degrees(place[0], 180), lines.degrees(place[1], 90)
                pending.append((segment, lines.moment_us(when), lon, lat))
            except ValueError as error:
                problems.add(None, f"a point of track {tracks}: {error}")
        elif element.tag == "trk":
            named = node or name or f"track {tracks}"
            found += [(named, *point) for point in pending]
            pending = []
    problems.check()
    return found


def _node_by_segment(points: list[Point]) -> list[str]:
    names = [""] * (max(point[1] for point in points) + 1)
    for name, segment, *_ in points:
        names[segment] = name
    return [name or points[0][0] for name in names]


def _refuse_overlap(legs: Segments, names: list[str], path: Path) -> None:
    """Raise InputError if two segments of one node overlap in time: it would be in two places."""
    order = np.lexsort((legs.t0_us, legs.node))
    node, t0_us, t1_us = legs.node[order], legs.t0_us[order], legs.t1_us[order]
    twice = np.flatnonzero((node[1:] == node[:-1]) & (t0_us[1:] < t1_us[:-1]))
    if len(twice):
        problem = f"`{names[node[twice[0]]]}` has two tracks at one time"
        hint = "give the tracks different names, or put each device into a file of a folder"
        raise InputError(problem, where=str(path), hint=hint)
