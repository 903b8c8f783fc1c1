"""Public transport timetables (GTFS), as a zip or a folder, to the movement of vehicles in a day.

Times are seconds of the service day and go on past 24:00:00. Vehicles follow the shape of their
trip, or straight lines from stop to stop where there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility import geo, lines
from beforehand.mobility.gtfs_blocks import EMPTY_SPEED, Run, assign, distance_m
from beforehand.mobility.gtfs_paths import CallError, Floats, Way, call_times, drive, place_stops
from beforehand.mobility.gtfs_tables import Feed, Row, Trip, clock_s, parse_day, trips_of_day
from beforehand.mobility.positions import Positions, join_points, make_positions


def read_gtfs(
    path: str | Path,
    *,
    day: str | None = None,
    blocks: str = "auto",
    layover_s_max: float = 3600,
) -> Positions:
    """The vehicles of one day of service, in metres around the middle of the stops.

    day: `YYYYMMDD` or `YYYY-MM-DD`; without it the first of the days with the most trips.
    blocks: `auto` takes the feed's `block_id` and infers where it is empty; `infer` always chains
    trips that one vehicle can drive, from nearby and after the longest wait; `trip` makes every
    trip a vehicle of its own. layover_s_max: a vehicle without a trip for longer than this is away.
    """
    feed = Feed(Path(path))
    changes: dict[str, int] = {}
    try:
        wanted = parse_day(day) if day is not None else None
    except ValueError as error:
        raise InputError(str(error), hint="pass a day like `2014-06-02`") from error
    _, trips = trips_of_day(feed, wanted)
    runs = _runs(feed, trips, _map(feed), changes)
    if not runs:
        raise InputError("no trip of the day can be driven", where=str(feed.path))
    vehicles = assign(runs, blocks, layover_s_max, changes)
    names = lines.natural_order(vehicles)
    owner: list[int] = []
    ways: list[Way] = []
    for i, name in enumerate(names):
        duties = _duties(vehicles[name], layover_s_max)
        owner += [i] * len(duties)
        ways += duties
    duty = np.repeat(np.arange(len(ways)), [len(way.t_s) for way in ways])
    t_us = np.rint(np.concatenate([way.t_s for way in ways]) * 1e6).astype(np.int64)
    x, y = np.concatenate([way.x for way in ways]), np.concatenate([way.y for way in ways])
    segments, _ = join_points(duty, t_us, x, y)
    segments = segments._replace(node=np.array(owner)[segments.node])
    return make_positions(names, segments, changes)


@dataclass(frozen=True)
class _Map:
    """Stops and roads in metres, and for roads also the feed's own measure of distance."""

    stops: dict[str, tuple[float, float]]
    roads: dict[str, Floats]
    measures: dict[str, Floats]


def _map(feed: Feed) -> _Map:
    stops: dict[str, tuple[float, float]] = {}
    shapes: dict[str, list[tuple[int, float, float, float]]] = {}

    def stop(_: int, row: Row) -> None:
        if row["stop_lat"] and row["stop_lon"]:
            stops[row["stop_id"]] = lines.metres(row["stop_lon"]), lines.metres(row["stop_lat"])

    def shape(_: int, row: Row) -> None:
        measure = row.get("shape_dist_traveled", "")
        shapes.setdefault(row["shape_id"], []).append(
            (
                int(row["shape_pt_sequence"]),
                lines.metres(row["shape_pt_lon"]),
                lines.metres(row["shape_pt_lat"]),
                lines.metres(measure) if measure else math.nan,
            )
        )

    feed.rows("stops.txt", ("stop_id", "stop_lat", "stop_lon"), stop)
    needed = ("shape_id", "shape_pt_lat", "shape_pt_lon", "shape_pt_sequence")
    feed.rows("shapes.txt", needed, shape)
    if not stops:
        raise InputError("no stop with a place", where=f"{feed.path}/stops.txt")
    lonlat = np.array(list(stops.values()))
    centre = geo.middle(lonlat[:, 0], lonlat[:, 1])
    x, y = geo.project_around(lonlat[:, 0], lonlat[:, 1], *centre)
    places = dict(zip(stops, zip(x.tolist(), y.tolist(), strict=True), strict=True))
    points = {name: np.array(sorted(rows)) for name, rows in shapes.items() if len(rows) > 1}
    roads = {
        name: np.column_stack(geo.project_around(rows[:, 1], rows[:, 2], *centre))
        for name, rows in points.items()
    }
    return _Map(places, roads, {name: rows[:, 3] for name, rows in points.items()})


def _runs(feed: Feed, trips: list[Trip], city: _Map, changes: dict[str, int]) -> list[Run]:
    problems = lines.Problems(f"{feed.path}/stop_times.txt")
    starts = _starts(feed)
    routes = _route_names(feed)
    placed: dict[tuple[str, ...], Floats] = {}
    runs: list[Run] = []
    for trip in trips:
        if len(trip.calls) < 2:
            changes["trip_without_stops"] = changes.get("trip_without_stops", 0) + 1
            continue
        try:
            way = _trip_way(trip, city, placed, changes)
        except ValueError as error:
            line = error.line if isinstance(error, CallError) else trip.calls[0].line
            problems.add(line, f"trip `{trip.trip}`: {error}")
            continue
        if way is None:
            changes["trip_without_time"] = changes.get("trip_without_time", 0) + 1
            continue
        for start_s in starts.get(trip.trip, [float(way.t_s[0])]):
            shifted = Way(way.t_s - way.t_s[0] + start_s, way.x, way.y)
            runs.append(Run(routes.get(trip.route, trip.route), trip.block, shifted))
    problems.check()
    return runs


def _trip_way(
    trip: Trip, city: _Map, placed: dict[tuple[str, ...], Floats], changes: dict[str, int]
) -> Way | None:
    missing = [call.stop for call in trip.calls if call.stop not in city.stops]
    if missing:
        raise ValueError(f"stop `{missing[0]}` has no place in stops.txt")
    road = city.roads.get(trip.shape)
    stops = np.array([city.stops[call.stop] for call in trip.calls])
    if road is None:
        steps = np.diff(stops, axis=0)
        road = stops
        offsets = np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))])
    else:
        # Many trips of a day go the same way.
        key = (trip.shape, *(call.stop for call in trip.calls))
        if key not in placed:
            placed[key] = _offsets(trip, road, city.measures[trip.shape], stops)
        offsets = placed[key]
    times = call_times(trip.calls, offsets, changes)
    return None if times is None else drive(road, offsets, *times)


def _offsets(trip: Trip, road: Floats, measure: Floats, stops: Floats) -> Floats:
    """By the feed's own measure where it is complete, else by the nearest places in order."""
    given = np.array(
        [math.nan if call.shape_dist is None else call.shape_dist for call in trip.calls]
    )
    if np.isnan(given).any() or np.isnan(measure).any() or (np.diff(measure) < 0).any():
        return place_stops(road, stops)
    steps = np.diff(road, axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))])
    offsets: Floats = np.maximum.accumulate(np.interp(given, measure, along))
    return offsets


def _starts(feed: Feed) -> dict[str, list[float]]:
    """Starts of the trips that `frequencies.txt` repeats instead of listing them."""
    starts: dict[str, list[float]] = {}

    def frequency(_: int, row: Row) -> None:
        headway_s = int(row["headway_secs"])
        if headway_s <= 0:
            raise ValueError(f"not a headway: `{row['headway_secs']}`")
        span = range(clock_s(row["start_time"]), clock_s(row["end_time"]), headway_s)
        starts.setdefault(row["trip_id"], []).extend(map(float, span))

    feed.rows("frequencies.txt", ("trip_id", "start_time", "end_time", "headway_secs"), frequency)
    return starts


def _route_names(feed: Feed) -> dict[str, str]:
    names: dict[str, str] = {}

    def route(_: int, row: Row) -> None:
        names[row["route_id"]] = row.get("route_short_name") or row["route_id"]

    feed.rows("routes.txt", ("route_id",), route)
    return names


def _duties(runs: list[Run], layover_s_max: float) -> list[Way]:
    """The ways of a vehicle, one from each time it comes until it goes.

    Between two trips it drives over at once and waits where the next one starts.
    """
    duties = [[runs[0].way]]
    for earlier, later in pairwise(runs):
        wait_s = later.start_s - earlier.end_s
        if wait_s > layover_s_max:
            duties.append([later.way])
        else:
            arrives_s = earlier.end_s + min(distance_m(earlier, later) / EMPTY_SPEED, wait_s)
            wait = Way(np.array([arrives_s]), later.way.x[:1], later.way.y[:1])
            duties[-1] += [wait, later.way]
    return [
        Way(
            *(np.concatenate([getattr(part, axis) for part in parts]) for axis in ("t_s", "x", "y"))
        )
        for parts in duties
    ]
