"""Read the trips of one day of a GTFS feed and their calls, and repair them where needed."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from beforehand.mobility import lines
from beforehand.mobility.formats.gtfs.calendar import choose_day, read_calendar
from beforehand.mobility.formats.gtfs.files import Feed, Row, whole
from beforehand.mobility.repairs import Repairs

DAY_S = 86_400
WRAP_S = DAY_S // 2
"""A time that falls by more than half a day has passed midnight and restarted at zero."""
CALLS_FILE = "stop_times.txt"


@dataclass(frozen=True)
class StopTime:
    """One call of a trip at a stop. An empty time in the feed is -1 here."""

    line: int
    sequence: int
    stop: str
    arrival_s: int
    departure_s: int
    shape_dist: float | None


@dataclass(frozen=True)
class Trip:
    trip: str
    route: str
    shape: str
    block: str
    line: int
    calls: tuple[StopTime, ...]


def clock_s(text: str) -> int:
    """Return `H:MM:SS` in seconds of the service day, also past 24:00:00; -1 if empty."""
    if not text:
        return -1
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"not a time `H:MM:SS`: `{text}`")
    hours, minutes, seconds = map(int, parts)
    if minutes > 59 or seconds > 59:
        raise ValueError(f"not a time `H:MM:SS`: `{text}`")
    if hours > 240:
        raise ValueError(f"a time more than ten days after its day: `{text}`")
    return hours * 3600 + minutes * 60 + seconds


def trips_of_day(
    feed: Feed, wanted: datetime.date | None
) -> tuple[datetime.date, list[Trip], set[str]]:
    """Return the day, its trips, and the names of all trips in the feed.

    wanted: by default the first of the days with the most trips.
    """
    rows: dict[str, tuple[int, Row]] = {}

    def trip(line: int, row: Row) -> None:
        if row["trip_id"] in rows:
            what = f"trip `{row['trip_id']}` a second time; the first one counts"
            feed.repairs.mend("duplicate_trip", "trips.txt", line, what)
        else:
            rows[row["trip_id"]] = line, row

    feed.rows("trips.txt", ("route_id", "service_id", "trip_id"), trip)
    per_service = Counter(row["service_id"] for _, row in rows.values())
    calendar = read_calendar(feed)
    day = choose_day(feed, calendar, per_service, wanted)
    services, known = calendar.services(day), calendar.known()
    for name, (line, row) in rows.items():
        if row["service_id"] not in known:
            what = f"trip `{name}`: service `{row['service_id']}` is in no calendar; it never runs"
            feed.repairs.mend("unknown_service", "trips.txt", line, what)
    running = {trip for trip, (_, row) in rows.items() if row["service_id"] in services}
    return day, list(_with_calls(feed, rows, running)), {*rows}


def _with_calls(feed: Feed, rows: dict[str, tuple[int, Row]], running: set[str]) -> Iterator[Trip]:
    calls: dict[str, list[StopTime]] = {}
    repairs = feed.repairs

    def stop_time(line: int, row: Row) -> None:
        trip = row["trip_id"]
        if trip not in running:
            if trip not in rows:
                what = f"trip `{trip}` is not in trips.txt; its stop is left out"
                repairs.mend("unknown_trip", CALLS_FILE, line, what)
            return
        dist = row.get("shape_dist_traveled", "")
        arrival_s, departure_s = (
            clock_s(with_seconds(row.get(name, ""), CALLS_FILE, line, repairs))
            for name in ("arrival_time", "departure_time")
        )
        calls.setdefault(trip, []).append(
            StopTime(
                line,
                whole(row, "stop_sequence"),
                row["stop_id"],
                departure_s if arrival_s < 0 else arrival_s,
                arrival_s if departure_s < 0 else departure_s,
                lines.metres(dist) if dist else None,
            )
        )

    feed.rows(CALLS_FILE, ("trip_id", "stop_id", "stop_sequence"), stop_time)
    for trip, (line, row) in rows.items():
        if trip in running:
            called = _in_sequence(trip, calls.get(trip, []), repairs)
            given = (row.get("shape_id", ""), row.get("block_id", ""))
            yield Trip(trip, row["route_id"], *given, line, mended_calls(trip, called, repairs))


def _in_sequence(trip: str, calls: list[StopTime], repairs: Repairs) -> list[StopTime]:
    found: list[StopTime] = []
    for call in sorted(calls, key=lambda call: call.sequence):
        if found and replace(call, line=found[-1].line) == found[-1]:
            what = f"trip `{trip}`: the same call a second time; left out"
            repairs.mend("duplicate_call", CALLS_FILE, call.line, what)
            continue
        if found and call.sequence == found[-1].sequence:
            what = f"trip `{trip}`: two calls of one stop_sequence; in the order of the file"
            repairs.mend("same_sequence", CALLS_FILE, call.line, what)
        found.append(call)
    return found


def with_seconds(text: str, file: str, line: int, repairs: Repairs) -> str:
    if text.count(":") != 1:
        return text
    repairs.mend("no_seconds", file, line, f"a time without seconds: `{text}`; taken as :00")
    return f"{text}:00"


def mended_calls(trip: str, calls: list[StopTime], repairs: Repairs) -> tuple[StopTime, ...]:
    """Return the calls of one trip with times that never fall; a time may be empty."""
    found: list[StopTime] = []
    ahead_s, last_s = 0, -1
    for i, call in enumerate(calls):
        if call.arrival_s >= 0:
            times_s = (later.arrival_s for later in calls[i:] if later.arrival_s >= 0)
            arrival_s, departure_s = call.arrival_s + ahead_s, call.departure_s + ahead_s
            # Midnight only if all later times are on the next day too; else this one time is wrong.
            if last_s - arrival_s > WRAP_S and all(t_s + ahead_s < last_s for t_s in times_s):
                ahead_s += DAY_S
                arrival_s, departure_s = arrival_s + DAY_S, departure_s + DAY_S
                what = f"trip `{trip}`: its times begin again at midnight; taken for the next day"
                repairs.mend("past_midnight", CALLS_FILE, call.line, what)
            if arrival_s - departure_s > WRAP_S:
                ahead_s, departure_s = ahead_s + DAY_S, departure_s + DAY_S
                what = f"trip `{trip}`: midnight passes at this stop; it leaves on the next day"
                repairs.mend("past_midnight", CALLS_FILE, call.line, what)
            elif departure_s < arrival_s:
                departure_s = arrival_s
                what = f"trip `{trip}`: departure before arrival; it leaves when it arrives"
                repairs.mend("departure_before_arrival", CALLS_FILE, call.line, what)
            last_s = max(last_s, departure_s)
            call = replace(call, arrival_s=arrival_s, departure_s=departure_s)
        found.append(call)
    return _without_falls(trip, found, repairs)


def _without_falls(trip: str, calls: list[StopTime], repairs: Repairs) -> tuple[StopTime, ...]:
    """Empty as few times as possible so that the others never fall."""
    known = [i for i, call in enumerate(calls) if call.arrival_s >= 0]
    if all(calls[i].departure_s <= calls[j].arrival_s for i, j in pairwise(known)):
        return tuple(calls)
    # Find the longest chain that never falls; one trip is short enough for a quadratic search.
    length, before = dict.fromkeys(known, 1), dict[int, int]()
    for n, j in enumerate(known):
        for i in known[:n]:
            if calls[i].departure_s <= calls[j].arrival_s and length[i] + 1 > length[j]:
                length[j], before[j] = length[i] + 1, i
    kept: set[int] = set()
    at: int | None = max(known, key=lambda i: (length[i], -i))
    while at is not None:
        kept.add(at)
        at = before.get(at)
    for i in known:
        if i not in kept:
            what = f"trip `{trip}`: a time before that of the stop before; filled in by distance"
            repairs.mend("time_falls", CALLS_FILE, calls[i].line, what)
            calls[i] = replace(calls[i], arrival_s=-1, departure_s=-1)
    return tuple(calls)
