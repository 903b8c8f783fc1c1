"""Project the stops and roads of a GTFS feed to metres."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import geo, lines
from beforehand.mobility.formats.gtfs.files import Feed, Row, whole
from beforehand.mobility.formats.gtfs.paths import Floats

NOWHERE_DEGREES = 10.0
"""If the other stops are this far from 0, 0, a stop at 0, 0 has no known place."""

LEVELS_MAX = 2
"""The number of levels from a boarding area to its station."""


@dataclass(frozen=True)
class Map:
    """Stops and roads in metres, and the feed's own distance measure along each road."""

    stops: dict[str, tuple[float, float]]
    roads: dict[str, Floats]
    measures: dict[str, Floats]
    assumed: list[str]


def read_map(feed: Feed, called: set[str]) -> Map:
    """Read the stops and roads in metres around the middle of the called stops.

    called: the stops at which a trip of the day calls.
    """
    stops = {name: at for name, at in _places(feed, called).items() if name in called}
    shapes = _shapes(feed)
    if not stops:
        hint = "the day needs stops with `stop_lat` and `stop_lon`"
        raise InputError("no stop with a place", where=f"{feed.path}/stops.txt", hint=hint)
    lonlat = np.array(list(stops.values()))
    centre = geo.middle(lonlat[:, 0], lonlat[:, 1])
    assumed = geo.check_area(lonlat[:, 0], lonlat[:, 1], f"{feed.path}/stops.txt")
    x, y = geo.project_around(lonlat[:, 0], lonlat[:, 1], *centre)
    places = dict(zip(stops, zip(x.tolist(), y.tolist(), strict=True), strict=True))
    points = {
        name: np.array(sorted(rows, key=lambda row: row[0]))
        for name, rows in shapes.items()
        if len(rows) > 1
    }
    for name, rows in points.items():
        what = f"shape `{name}`: two points of one shape_pt_sequence; in the order of the file"
        again = int((np.diff(rows[:, 0]) == 0).sum())
        feed.repairs.mend("same_sequence", "shapes.txt", None, what, again)
    roads = {
        name: np.column_stack(geo.project_around(rows[:, 1], rows[:, 2], *centre))
        for name, rows in points.items()
    }
    return Map(places, roads, {name: rows[:, 3] for name, rows in points.items()}, assumed)


def _places(feed: Feed, called: set[str]) -> dict[str, tuple[float, float]]:
    """Return longitude and latitude of every stop.

    A stop without a place gets that of its station.
    """
    places: dict[str, tuple[float, float]] = {}
    parents: dict[str, tuple[int, str]] = {}

    def stop(line: int, row: Row) -> None:
        name = row["stop_id"]
        if name in places or name in parents:
            what = f"stop `{name}` a second time; the first one counts"
            feed.repairs.mend("duplicate_stop", "stops.txt", line, what)
        elif row["stop_lat"] and row["stop_lon"]:
            places[name] = lines.degrees(row["stop_lon"], 180), lines.degrees(row["stop_lat"], 90)
        else:
            parents[name] = line, row.get("parent_station", "")

    feed.rows("stops.txt", ("stop_id", "stop_lat", "stop_lon"), stop)
    for name in _nowhere(places):
        del places[name]
    found = dict(places)
    for name, (line, parent) in parents.items():
        # A boarding area belongs to a platform, and a platform to a station.
        for _ in range(LEVELS_MAX):
            if parent in parents:
                parent = parents[parent][1]
        if parent in places:
            found[name] = places[parent]
            if name in called:
                what = f"stop `{name}` has no place; it has that of its station `{parent}`"
                feed.repairs.mend("place_of_station", "stops.txt", line, what)
    return found


def _nowhere(places: dict[str, tuple[float, float]]) -> list[str]:
    zero = [name for name, at in places.items() if at == (0.0, 0.0)]
    others = np.array([at for at in places.values() if at != (0.0, 0.0)]).reshape(-1, 2)
    if not zero or not len(others) or np.abs(others).max(axis=1).min() < NOWHERE_DEGREES:
        return []
    return zero


def _shapes(feed: Feed) -> dict[str, list[tuple[int, float, float, float]]]:
    shapes: dict[str, list[tuple[int, float, float, float]]] = {}

    def shape(line: int, row: Row) -> None:
        if not (row["shape_pt_lat"] and row["shape_pt_lon"]):
            what = f"a point of shape `{row['shape_id']}` has no place; left out"
            feed.repairs.mend("shape_point_without_place", "shapes.txt", line, what)
            return
        measure = row.get("shape_dist_traveled", "")
        shapes.setdefault(row["shape_id"], []).append(
            (
                whole(row, "shape_pt_sequence"),
                lines.degrees(row["shape_pt_lon"], 180),
                lines.degrees(row["shape_pt_lat"], 90),
                lines.metres(measure) if measure else math.nan,
            )
        )

    needed = ("shape_id", "shape_pt_lat", "shape_pt_lon", "shape_pt_sequence")
    feed.rows("shapes.txt", needed, shape)
    return shapes
