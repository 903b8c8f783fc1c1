"""Find the services of each day, from `calendar.txt`, `calendar_dates.txt`, or both."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.mobility.formats.gtfs.files import Feed, Row

DATE = re.compile(r"[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", ""), False),
}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_day(text: str) -> datetime.date:
    try:
        if not DATE.fullmatch(text):  # `strptime` would read 19-1-2019 as a day of 1912
            raise ValueError
        return datetime.datetime.strptime(text.replace("-", ""), "%Y%m%d").date()
    except ValueError:
        raise ValueError(f"not a date `YYYYMMDD`: `{text}`") from None


@dataclass
class Calendar:
    """Regular services with their weekdays and date span, and exceptions for single days."""

    regular: list[tuple[str, tuple[bool, ...], int, int]] = field(default_factory=list)
    """Service, weekdays from Monday on, first and last day as ordinals."""
    added: dict[int, set[str]] = field(default_factory=dict)
    removed: dict[int, set[str]] = field(default_factory=dict)

    def known(self) -> set[str]:
        """Return every service that the calendar names, even one that never runs."""
        single = (*self.added.values(), *self.removed.values())
        return {service for service, *_ in self.regular}.union(*single)

    def services(self, day: datetime.date) -> set[str]:
        number = day.toordinal()
        running = {
            service
            for service, weekdays, first, last in self.regular
            if first <= number <= last and weekdays[day.weekday()]
        }
        return running - self.removed.get(number, set()) | self.added.get(number, set())

    def sizes(self, trips: Counter[str]) -> tuple[int, NDArray[np.int64]]:
        """Return the first day as an ordinal, and the trips of each day from it on.

        trips: the number of trips of each service.
        """
        ends = [n for _, _, first, last in self.regular for n in (first, last) if first <= last]
        special = {*self.added, *self.removed}
        if not ends and not special:
            return 0, np.zeros(0, dtype=np.int64)
        start = min([*ends, *special])
        counts = np.zeros(max([*ends, *special]) - start + 1, dtype=np.int64)
        weekday = np.arange(start - 1, start - 1 + len(counts)) % 7  # ordinal 1 was a Monday
        for service, weekdays, first, last in self.regular:
            part = slice(first - start, last - start + 1)
            if first <= last:
                counts[part] += np.array(weekdays)[weekday[part]] * trips[service]
        for number in special:
            running = self.services(datetime.date.fromordinal(number))
            counts[number - start] = sum(trips[service] for service in running)
        return start, counts


def read_calendar(feed: Feed) -> Calendar:
    calendar = Calendar()

    mend, seen = feed.repairs.mend, set[str]()

    def regular(line: int, row: Row) -> None:
        service, file = row["service_id"], "calendar.txt"
        first, last = parse_day(row["start_date"]), parse_day(row["end_date"])
        flags = [row[name].lower() for name in DAYS]
        if strange := [flag for flag in flags if flag not in FLAGS]:
            raise ValueError(f"neither 0 nor 1 for a day of the week: `{strange[0]}`")
        odd = sum(flag not in ("0", "1") for flag in flags)
        what = "a day of the week that is neither 0 nor 1; taken as its number, or 0 if empty"
        mend("weekday_flag", file, line, what, odd)
        if last < first:
            mend("ends_before_start", file, line, f"service `{service}` never runs: it ends first")
        if service in seen:
            what = f"service `{service}` a second time; it runs on the days of both"
            mend("duplicate_service", file, line, what)
        seen.add(service)
        weekdays = tuple(FLAGS[flag] for flag in flags)
        calendar.regular.append((service, weekdays, first.toordinal(), last.toordinal()))

    def exception(line: int, row: Row) -> None:
        number, service = parse_day(row["date"]).toordinal(), row["service_id"]
        kinds = {"1": (calendar.added, calendar.removed), "2": (calendar.removed, calendar.added)}
        if row["exception_type"] not in kinds:
            raise ValueError(f"no such exception_type: `{row['exception_type']}`")
        now, otherwise = kinds[row["exception_type"]]
        if service in otherwise.get(number, ()):
            what = f"service `{service}` is added and removed on one day; the last one counts"
            mend("both_exceptions", "calendar_dates.txt", line, what)
            otherwise[number].discard(service)
        now.setdefault(number, set()).add(service)

    feed.rows("calendar.txt", ("service_id", *DAYS, "start_date", "end_date"), regular)
    feed.rows("calendar_dates.txt", ("service_id", "date", "exception_type"), exception)
    return calendar


def choose_day(
    feed: Feed, calendar: Calendar, trips: Counter[str], wanted: datetime.date | None
) -> datetime.date:
    """Return the wanted day if a trip runs on it; by default the first day with the most trips."""
    start, counts = calendar.sizes(trips)
    served = np.flatnonzero(counts)
    if not len(served):
        hint = "look at `calendar.txt` and `calendar_dates.txt`"
        raise InputError("no day of service in the calendar", where=str(feed.path), hint=hint)
    if wanted is None:
        return datetime.date.fromordinal(start + int(np.argmax(counts)))
    at = wanted.toordinal() - start
    if not 0 <= at < len(counts) or not counts[at]:
        first, last = (datetime.date.fromordinal(start + int(served[i])) for i in (0, -1))
        hint = f"the feed covers {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        raise InputError(f"no trip on {wanted:%Y-%m-%d}", where=str(feed.path), hint=hint)
    return wanted
