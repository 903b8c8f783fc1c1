"""Read public transport timetables (GTFS), a zip or a folder, as the vehicles' movement in a day.

Times are seconds of the service day and go on past 24:00:00. Vehicles follow the shape of their
trip. Without a shape they move straight from stop to stop.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from beforehand.errors import InputError, list_some
from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.formats.gtfs.blocks import (
    EMPTY_SPEED,
    VehicleRun,
    assign,
    distance_m,
    jumps,
)
from beforehand.mobility.formats.gtfs.calendar import parse_day
from beforehand.mobility.formats.gtfs.files import Feed, Row, whole
from beforehand.mobility.formats.gtfs.map import Map, read_map
from beforehand.mobility.formats.gtfs.paths import (
    Floats,
    Way,
    away_m,
    call_times,
    drive,
    lengths_along,
    place_stops,
)
from beforehand.mobility.formats.gtfs.tables import (
    CALLS_FILE,
    DAY_S,
    Trip,
    clock_s,
    trips_of_day,
    with_seconds,
)
from beforehand.mobility.positions import Positions, join_points, make_positions
from beforehand.mobility.repairs import Repairs

RUNS_MAX = 200_000
"""The most runs in one day. The largest cities have half as many."""
FREQUENCIES_FILE = "frequencies.txt"
STRAY_M = 500.0
"""Metres from a stop to its place on the road. In the feeds that we tried the most is 150 m."""
FLAWS = {
    "wrong_measure": "its distances put stops where they are not; placed by the nearest instead",
    "shape_elsewhere": "the road does not pass its stops; straight from stop to stop",
}
Placed = tuple[Floats, Floats, str]
"""A road, the distance of each stop along it, and the flaw of the feed that was worked around."""


def read_gtfs(
    path: str | Path,
    *,
    day: str | None = None,
    blocks: str = "auto",
    layover_s_max: float = 3600,
    strict: bool = False,
) -> Positions:
    """Return the vehicles of one day of service, in metres around the middle of the stops.

    day: `YYYYMMDD` or `YYYY-MM-DD`; by default the first of the days with the most trips.
    blocks: `auto` takes the feed's `block_id` and infers it where it is empty. `infer` always
    chains trips that one vehicle can drive, from nearby and after the longest wait. `trip` makes
    every trip a vehicle of its own.
    layover_s_max: a vehicle without a trip for longer than this is absent.
    strict: reject what breaks the rules of GTFS instead of repairing and counting it.
    """
    repairs = Repairs(Path(path), strict=strict)
    feed = Feed(Path(path), repairs)
    try:
        wanted = parse_day(day) if day is not None else None
    except ValueError as error:
        raise InputError(str(error), hint="pass a day like `2014-06-02`") from error
    date, trips, known = trips_of_day(feed, wanted)
    city = read_map(feed, {call.stop for trip in trips for call in trip.calls})
    runs = _runs(feed, trips, known, city)
    repairs.check()
    if not runs:
        raise InputError("no trip of the day can be driven", where=str(feed.path))
    counts: dict[str, int] = {}
    vehicles = assign(runs, blocks, layover_s_max, counts)
    what = "two trips of one block at one time; they become two vehicles"
    repairs.mend("block_overlap", "trips.txt", None, what, counts.get("block_overlap", 0))
    pairs = [pair for driven in vehicles.values() for pair in pairwise(driven)]
    far = sum(jumps(*pair) and distance_m(*pair) > STRAY_M for pair in pairs)
    what = "a trip of a block starts elsewhere when the one before it ends; it is there at once"
    repairs.mend("block_jump", "trips.txt", None, what, far)
    repairs.fill("inferred_vehicle", counts.get("inferred_vehicle", 0))
    repairs.check()
    found = _positions(vehicles, layover_s_max, repairs.changes)
    assumed = [*city.assumed, *_time_zones(feed)]
    if day is None:
        assumed.insert(0, "the first of the days with the most trips (`--day` takes another)")
    called = {call.stop for trip in trips for call in trip.calls}
    counted = {"trips": trips, "stops": called, "runs": runs, "vehicles": vehicles}
    facts: dict[str, int | str] = {"day": f"{date:%Y-%m-%d}"}
    facts |= {name: len(items) for name, items in counted.items()}
    return replace(
        found, detected_format=DetectedFormat("gtfs", assumed=tuple(assumed), facts=facts)
    )


def _positions(
    vehicles: dict[str, list[VehicleRun]], layover_s_max: float, changes: dict[str, int]
) -> Positions:
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


def _runs(feed: Feed, trips: list[Trip], known: set[str], city: Map) -> list[VehicleRun]:
    repairs = feed.repairs
    starts = _starts(feed, {trip.trip for trip in trips}, known)
    routes = _route_names(feed)
    placed: dict[tuple[object, ...], Placed] = {}
    runs: list[VehicleRun] = []
    for trip in trips:
        usable = _usable(trip, city, repairs)
        if len(usable.calls) < 2:
            what = f"trip `{trip.trip}` has fewer than two stops to drive to; left out"
            repairs.mend("trip_without_stops", "trips.txt", trip.line, what)
            continue
        way = _trip_way(usable, city, placed, repairs)
        if way is None:
            what = f"trip `{trip.trip}` has no duration; left out"
            repairs.mend("trip_without_time", CALLS_FILE, usable.calls[0].line, what)
            continue
        for start_s in starts.get(trip.trip, [float(way.t_s[0])]):
            shifted = Way(way.t_s - way.t_s[0] + start_s, way.x, way.y)
            runs.append(VehicleRun(routes.get(trip.route, trip.route), trip.block, shifted))
    return runs


def _usable(trip: Trip, city: Map, repairs: Repairs) -> Trip:
    """Return the trip from its first to its last timed stop, without stops that have no place."""
    calls = list(trip.calls)
    for call in [call for call in calls if call.stop not in city.stops]:
        what = f"trip `{trip.trip}`: stop `{call.stop}` has no place in stops.txt; left out"
        repairs.mend("stop_without_place", CALLS_FILE, call.line, what)
        calls.remove(call)
    timed = [i for i, call in enumerate(calls) if call.arrival_s >= 0]
    inner = calls[timed[0] : timed[-1] + 1] if timed else []
    outer = [call for call in calls if call not in inner]
    if outer:
        what = f"trip `{trip.trip}`: no time at its first or last stop; they are left out"
        repairs.mend("end_without_time", CALLS_FILE, outer[0].line, what, len(outer))
    return replace(trip, calls=tuple(inner))


def _trip_way(
    trip: Trip, city: Map, placed: dict[tuple[object, ...], Placed], repairs: Repairs
) -> Way | None:
    road = city.roads.get(trip.shape)
    stops = np.array([city.stops[call.stop] for call in trip.calls])
    if road is None:
        if trip.shape:
            what = f"trip `{trip.trip}`: no shape `{trip.shape}`; straight from stop to stop"
            repairs.mend("missing_shape", "trips.txt", trip.line, what)
        else:
            repairs.fill("without_shape")
        road, offsets = stops, lengths_along(stops)
    else:
        # Many trips of a day share a path, so the placed stops are cached.
        key = (trip.shape, *((call.stop, call.shape_dist) for call in trip.calls))
        if key not in placed:
            placed[key] = _placed(trip, road, city.measures[trip.shape], stops)
        road, offsets, flaw = placed[key]
        if flaw:
            what = f"trip `{trip.trip}`, shape `{trip.shape}`: {FLAWS[flaw]}"
            repairs.mend(flaw, "trips.txt", trip.line, what)
    times = call_times(trip.calls, offsets, repairs)
    return None if times is None else drive(road, offsets, *times)


def _placed(trip: Trip, road: Floats, measure: Floats, stops: Floats) -> Placed:
    """Place the stops along the road.

    The feed's own measure is used if it is complete; otherwise the nearest places in order. A
    measure that misplaces the stops is in another unit than the road. A road that does not pass its
    stops belongs to another trip.
    """
    flaw = ""
    given = np.array([math.nan if c.shape_dist is None else c.shape_dist for c in trip.calls])
    if not (np.isnan(given).any() or np.isnan(measure).any() or (np.diff(measure) < 0).any()):
        offsets: Floats = np.maximum.accumulate(np.interp(given, measure, lengths_along(road)))
        if away_m(road, offsets, stops) <= STRAY_M:
            return road, offsets, flaw
        flaw = "wrong_measure"
    offsets = place_stops(road, stops)
    if away_m(road, offsets, stops) <= STRAY_M:
        return road, offsets, flaw
    return stops, lengths_along(stops), "shape_elsewhere"


def _starts(feed: Feed, running: set[str], known: set[str]) -> dict[str, list[float]]:
    """Return the start times of the trips that `frequencies.txt` repeats."""
    starts: dict[str, list[float]] = {}
    count = 0

    def frequency(line: int, row: Row) -> None:
        nonlocal count
        if row["trip_id"] not in running:
            what = f"trip `{row['trip_id']}` is not in trips.txt; nothing is repeated"
            unknown = row["trip_id"] not in known
            feed.repairs.mend("unknown_trip", FREQUENCIES_FILE, line, what, int(unknown))
            return
        headway_s = whole(row, "headway_secs")
        if headway_s <= 0:
            raise ValueError(f"not a headway: `{row['headway_secs']}`")
        start_s, end_s = (
            clock_s(with_seconds(row[name], FREQUENCIES_FILE, line, feed.repairs))
            for name in ("start_time", "end_time")
        )
        if start_s < 0 or end_s < 0:
            raise ValueError("repeated without a start or an end")
        if end_s < start_s:
            what = f"trip `{row['trip_id']}` is repeated until after midnight, on the next day"
            feed.repairs.mend("past_midnight", FREQUENCIES_FILE, line, what)
            end_s += DAY_S
        if end_s == start_s:
            what = (
                f"trip `{row['trip_id']}` is repeated from a time to the same: no run comes of it"
            )
            feed.repairs.mend("never_repeated", FREQUENCIES_FILE, line, what)
        span = range(start_s, end_s, headway_s)
        count += len(span)
        if count > RUNS_MAX:
            raise ValueError(f"a headway of {headway_s} s makes more than {RUNS_MAX:,} runs a day")
        before = starts.setdefault(row["trip_id"], [])
        new = sorted({*map(float, span)}.difference(before))
        what = f"trip `{row['trip_id']}` starts twice at one time; once is enough"
        feed.repairs.mend("same_start", FREQUENCIES_FILE, line, what, len(span) - len(new))
        before += new

    feed.rows(FREQUENCIES_FILE, ("trip_id", "start_time", "end_time", "headway_secs"), frequency)
    return starts


def _route_names(feed: Feed) -> dict[str, str]:
    names: dict[str, str] = {}

    def route(_: int, row: Row) -> None:
        names[row["route_id"]] = row.get("route_short_name") or row["route_id"]

    feed.rows("routes.txt", ("route_id",), route)
    return names


def _time_zones(feed: Feed) -> list[str]:
    """Return a note if the agencies of the feed have different time zones."""
    zones: set[str] = set()
    feed.rows("agency.txt", (), lambda _, row: zones.add(row.get("agency_timezone", "")))
    zones.discard("")
    if len(zones) < 2:
        return []
    return [f"all times are of one time zone, though agency.txt has {list_some(sorted(zones))}"]


def _duties(runs: list[VehicleRun], layover_s_max: float) -> list[Way]:
    """Return the paths of a vehicle, one for each interval in which it is present.

    Between two trips it drives to the next start at once and waits there.
    """
    duties = [[runs[0].way]]
    for earlier, later in pairwise(runs):
        wait_s = later.start_s - earlier.end_s
        if wait_s > layover_s_max or jumps(earlier, later):
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
