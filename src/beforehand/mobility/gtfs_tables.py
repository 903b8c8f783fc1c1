"""The tables of a GTFS feed that movement needs, from a zip or a folder, for one day of service."""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines

REQUIRED = ("stops.txt", "trips.txt", "stop_times.txt")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
REGULAR_DAYS_MAX = 750  # a calendar may be open-ended; two years have every day of the week twice

Row = dict[str, str]


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
    calls: tuple[StopTime, ...]


class Feed:
    """The files of one feed. Every problem found in them is collected under its file and line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open = _opener(path)
        missing = [name for name in REQUIRED if self._open(name) is None]
        if missing:
            raise InputError(
                f"not a GTFS feed: no {' and no '.join(f'`{name}`' for name in missing)}",
                where=str(path),
                hint="pass the zip or the folder that holds `stop_times.txt`",
            )

    def rows(self, name: str, needed: tuple[str, ...], parse: Callable[[int, Row], None]) -> None:
        """Call `parse(line, row)` for every row; a ValueError from it is a problem of that line."""
        raw = self._open(name)
        if raw is None:
            return
        problems = lines.Problems(f"{self.path}/{name}")
        reader = csv.reader(io.StringIO(lines.decode(raw, f"{self.path}/{name}"), newline=""))
        header = [field.strip() for field in next(reader, [])]
        for column in needed:
            if column not in header:
                problems.add(1, f"no column `{column}`", hint="the GTFS reference requires it")
        problems.check()
        for fields in reader:
            if fields:
                try:
                    if len(fields) > len(header):
                        raise ValueError(f"{len(fields)} fields under a header of {len(header)}")
                    parse(reader.line_num, dict(zip(header, map(str.strip, fields), strict=False)))
                except ValueError as error:
                    problems.add(reader.line_num, str(error))
        problems.check()


def _opener(path: Path) -> Callable[[str], bytes | None]:
    if path.is_dir():
        return lambda name: (path / name).read_bytes() if (path / name).is_file() else None
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"not a zip: {error}", where=str(path), hint="check the path") from error
    # Some feeds are zipped with their folder.
    inside = {name.rpartition("/")[2]: name for name in archive.namelist()}
    return lambda name: archive.read(inside[name]) if name in inside else None


def clock_s(text: str) -> int:
    """Seconds from the start of the service day of `H:MM:SS`, also past 24:00:00; -1 if empty."""
    if not text:
        return -1
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"not a time `H:MM:SS`: `{text}`")
    hours, minutes, seconds = map(int, parts)
    if minutes > 59 or seconds > 59:
        raise ValueError(f"not a time `H:MM:SS`: `{text}`")
    return hours * 3600 + minutes * 60 + seconds


def parse_day(text: str) -> datetime.date:
    try:
        return datetime.datetime.strptime(text.replace("-", ""), "%Y%m%d").date()
    except ValueError:
        raise ValueError(f"not a date `YYYYMMDD`: `{text}`") from None


def services_by_day(feed: Feed) -> dict[datetime.date, set[str]]:
    """The services of every day of the feed, from `calendar.txt` and `calendar_dates.txt`."""
    days: dict[datetime.date, set[str]] = {}

    def regular(_: int, row: Row) -> None:
        first, last = parse_day(row["start_date"]), parse_day(row["end_date"])
        for offset in range(min((last - first).days + 1, REGULAR_DAYS_MAX)):
            day = first + datetime.timedelta(days=offset)
            if row[DAYS[day.weekday()]] == "1":
                days.setdefault(day, set()).add(row["service_id"])

    def exception(_: int, row: Row) -> None:
        services = days.setdefault(parse_day(row["date"]), set())
        if row["exception_type"] == "1":
            services.add(row["service_id"])
        elif row["exception_type"] == "2":
            services.discard(row["service_id"])
        else:
            raise ValueError(f"no such exception_type: `{row['exception_type']}`")

    feed.rows("calendar.txt", ("service_id", *DAYS, "start_date", "end_date"), regular)
    feed.rows("calendar_dates.txt", ("service_id", "date", "exception_type"), exception)
    return days


def trips_of_day(feed: Feed, day: datetime.date | None) -> tuple[datetime.date, list[Trip]]:
    """The day and its trips. Without a day: the first of those with the most trips."""
    rows: dict[str, Row] = {}

    def trip(_: int, row: Row) -> None:
        rows[row["trip_id"]] = row

    feed.rows("trips.txt", ("route_id", "service_id", "trip_id"), trip)
    by_day = services_by_day(feed)
    per_service = Counter(row["service_id"] for row in rows.values())
    sizes = {date: sum(per_service[s] for s in services) for date, services in by_day.items()}
    if day is None:
        if not sizes:
            raise InputError("no day of service in the calendar", where=str(feed.path))
        day = min(sizes, key=lambda date: (-sizes[date], date))
    if not sizes.get(day):
        span = f"{min(sizes):%Y-%m-%d} to {max(sizes):%Y-%m-%d}" if sizes else "no day at all"
        raise InputError(
            f"no trip on {day:%Y-%m-%d}", where=str(feed.path), hint=f"the feed covers {span}"
        )
    wanted = {t: row for t, row in rows.items() if row["service_id"] in by_day[day]}
    return day, list(_with_calls(feed, wanted))


def _with_calls(feed: Feed, wanted: dict[str, Row]) -> Iterator[Trip]:
    calls: dict[str, list[StopTime]] = {}

    def stop_time(line: int, row: Row) -> None:
        if row["trip_id"] not in wanted:
            return
        arrival_s, departure_s = clock_s(row["arrival_time"]), clock_s(row["departure_time"])
        arrival_s, departure_s = (
            departure_s if arrival_s < 0 else arrival_s,
            arrival_s if departure_s < 0 else departure_s,
        )
        if departure_s < arrival_s:
            raise ValueError(f"departure {row['departure_time']} before {row['arrival_time']}")
        dist = row.get("shape_dist_traveled", "")
        calls.setdefault(row["trip_id"], []).append(
            StopTime(
                line,
                int(row["stop_sequence"]),
                row["stop_id"],
                arrival_s,
                departure_s,
                lines.metres(dist) if dist else None,
            )
        )

    needed = ("trip_id", "arrival_time", "departure_time", "stop_id", "stop_sequence")
    feed.rows("stop_times.txt", needed, stop_time)
    for trip, row in wanted.items():
        called = tuple(sorted(calls.get(trip, ()), key=lambda call: call.sequence))
        route, shape, block = row["route_id"], row.get("shape_id", ""), row.get("block_id", "")
        yield Trip(trip, route, shape, block, called)
