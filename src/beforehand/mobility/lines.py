"""Shared parts of the readers: numbered lines, exact times, and the problems of a file."""

from __future__ import annotations

import datetime
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.trace import Ints, Trace, make_trace

PROBLEMS_MAX = 20
"""A reader stops after this many problems: they are usually all of one kind."""

SECONDS_MAX = 253_402_300_799
"""The end of the year 9999 in Unix time. A larger number is most likely in milliseconds."""
METRES_MAX = 1e8
"""The largest coordinate in metres. Twice around the Earth is 8e7, so more is a wrong unit."""
COMMENTS = ("#", "%", "//")
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}.*")
DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")

PRESENCES = ("whole", "seen")


class Problems:
    """Collect the problems of one input.

    `check` raises them together; `add` raises as soon as there are `PROBLEMS_MAX`.
    """

    def __init__(self, name: str | Path) -> None:
        self._name = str(name)
        self._errors: list[InputError] = []

    def add(self, line: int | None, problem: str, hint: str = "") -> None:
        where = self._name if line is None else f"{self._name}:{line}"
        self._errors.append(InputError(problem, where=where, hint=hint))
        if len(self._errors) == PROBLEMS_MAX:
            stopped = f"stopped after {PROBLEMS_MAX} problems; there may be more"
            self._errors.append(InputError(stopped, where=self._name))
            self.check()

    def check(self) -> None:
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise InputErrors(self._errors)


def read_text(path: Path) -> str:
    """Return the file as text, decompressed if it is gzip, without a byte order mark."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise InputError(
            f"cannot read the file: {reason}", where=str(path), hint="check the path"
        ) from error
    if raw.startswith(GZIP):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            hint = "fetch the file again"
            raise InputError(f"a broken gzip: {error}", where=str(path), hint=hint) from error
    if raw.startswith(ZIP):
        problem = "a broken zip: it has no table of contents"
        raise InputError(problem, where=str(path), hint="fetch the file again")
    return decode(raw, str(path))


def decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"not UTF-8 text: byte {raw[error.start]:#04x}",
            where=f"{name}:{line}",
            hint="convert the file to UTF-8 first",
        ) from error


def is_comment(stripped: str) -> bool:
    return stripped.startswith(COMMENTS)


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, stripped line) for every line that is not empty or a comment."""
    # `splitlines` also breaks at form feeds and the like, which would shift the line numbers.
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        stripped = line.strip()
        if stripped and not is_comment(stripped):
            yield number, stripped


def seconds_us(text: str, unit_us: int = 1_000_000) -> int:
    """Return a decimal number of seconds in microseconds, without passing through a float.

    unit_us: the unit of the number in microseconds, if it is not seconds. Raise ValueError if the
    text is not a number, is negative, or is too large. A negative time is rejected because the
    simulator reads it as "cancelled".
    """
    try:
        value = Decimal(text.replace("_", "?"))  # Python would read `1_0` as 10
    except InvalidOperation:
        raise ValueError(f"not a time in seconds: `{text}`{_comma(text) or _date(text)}") from None
    if not value.is_finite():
        raise ValueError(f"not a time in seconds: `{text}`")
    if value < 0:
        raise ValueError(f"a time before zero: `{text}`")
    if value > SECONDS_MAX * 1_000_000 // unit_us:
        asked = "; is it in milliseconds? then name its column `time_ms`" if value < 1e17 else ""
        raise ValueError(f"a time beyond the year 9999 in seconds: `{text}`{asked}")
    return round(value * unit_us)


def metres(text: str) -> float:
    """Return a coordinate, a speed or an angle. Raise ValueError if it is not a finite number."""
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        raise ValueError(f"not a number: `{text}`{_comma(text)}") from None
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: `{text}`")
    return value


def place_m(text: str, scale_m: float = 1.0) -> float:
    """Return a coordinate on a plane in metres. Raise ValueError if it is not a plausible one."""
    return check_place(metres(text) * scale_m, text)


def check_place(value: float, text: str) -> float:
    if not abs(value) <= METRES_MAX:
        raise ValueError(f"a place more than {METRES_MAX / 1000:,.0f} km away: `{text}`")
    return value


def degrees(text: str, most: int) -> float:
    """Return a longitude (most=180) or a latitude (most=90).

    Raise ValueError if the text is not a number or is out of range.
    """
    value = metres(text)
    if abs(value) > most:
        kind = "longitude" if most == 180 else "latitude"
        swapped = (
            "; latitude and longitude may be swapped" if most == 90 and abs(value) <= 180 else ""
        )
        raise ValueError(f"a {kind} beyond ±{most} degrees: `{text}`{swapped}")
    return value


def _comma(text: str) -> str:
    if DECIMAL_COMMA.fullmatch(text):
        return f"; a decimal comma? write `{text.replace(',', '.')}`"
    return ""


def _date(text: str) -> str:
    is_like = re.fullmatch(r"[0-9]+[-/:.][0-9]+[-/:. 0-9APMapm]*", text)
    return "; write a date and a time as `2024-05-01T08:00:00`" if is_like else ""


def is_number(text: str) -> bool:
    try:
        return "_" not in text and Decimal(text).is_finite()
    except InvalidOperation:
        return False


def is_moment(text: str) -> bool:
    """Return whether the text is a number or a date. A header has neither."""
    return is_number(text) or DECIMAL_COMMA.fullmatch(text) is not None or is_date(text)


def is_date(text: str) -> bool:
    return DATE.fullmatch(text) is not None


def is_of_this_century(text: str) -> bool:
    """Return whether a number, read as Unix seconds, lies between 2000 and 2100.

    Such a number is almost certainly Unix seconds: in another unit the time would be implausible.
    """
    return is_number(text) and 946_684_800 <= float(text) < 4_102_444_800


def moment_us(text: str, unit_us: int = 1_000_000) -> int:
    """Return a time as `seconds_us` does, or a date with a time of day.

    Dates count from 1970, in UTC unless they carry an offset.
    """
    if ":" not in text or not is_date(text):
        return seconds_us(text, unit_us)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"no such date: `{text}`") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    if since < datetime.timedelta(0):
        raise ValueError(f"a time before zero: `{text}`")
    return since // datetime.timedelta(microseconds=1)


def natural_order(names: Iterable[str]) -> list[str]:
    """Return the distinct names in natural order: numbers in them compare by value.

    The result does not depend on the order of the rows.
    """
    return sorted(set(names), key=lambda name: (_natural_key(name), name))


def _natural_key(name: str) -> list[tuple[int, str]]:
    # Without leading zeros the longer number is larger, and equal lengths compare as text.
    parts = re.split(r"([0-9]+)", name)
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part)
        for i, part in enumerate(parts)
    ]


def trace_of_contacts(
    rows: Sequence[tuple[str, str, int, int]], changes: dict[str, int], presence: str | None
) -> Trace:
    """Build a trace from named contacts, for formats without presence.

    presence: `whole` (default), every node from the first to the last instant of the file; `seen`,
    each node from its first to its last contact.
    """
    names = natural_order(name for row in rows for name in row[:2])
    contacts = indexed(rows, names)
    there = _seen(len(names), contacts) if presence == "seen" else None
    return make_trace(names, contacts, there, changes)


def indexed(rows: Sequence[tuple[str, str, int, int]], names: Sequence[str]) -> Ints:
    """Return the contacts as an array, with the index of each node instead of its name."""
    index = {name: i for i, name in enumerate(names)}
    return np.array(
        [(index[a], index[b], up, down) for a, b, up, down in rows], dtype=np.int64
    ).reshape(-1, 4)


def check_presence(presence: str | None) -> None:
    if presence is not None and presence not in PRESENCES:
        options = " or ".join(f"`{option}`" for option in PRESENCES)
        raise InputError(f"no such presence: `{presence}`", hint=f"pass {options}")


def assumed_presence(presence: str | None) -> str:
    """Return the assumption about presence in words, for files that do not give presence."""
    if presence == "seen":
        return "each node is there from its first to its last contact"
    wish = "" if presence else " (`--presence seen`: each from its first to its last contact)"
    return f"every node is present from the first to the last instant of the file{wish}"


def span_us(name: str, seconds: float | None) -> int | None:
    """Return an option in seconds as microseconds. Raise InputError if it is not positive."""
    if seconds is None:
        return None
    if not 1e-6 <= seconds <= SECONDS_MAX:
        hint = f"`{name}` is a number of seconds above zero"
        raise InputError(f"`{name}` is not a valid length of time: {seconds:g} s", hint=hint)
    return round(seconds * 1e6)


def lengthen(
    rows: list[tuple[str, str, int, int]], slot_us: int | None, changes: dict[str, int], name: str
) -> list[tuple[str, str, int, int]]:
    """Extend contacts of zero length to `slot_us`; without `slot_us` the caller drops them.

    Raise InputError if every contact has zero length: nothing would remain.
    """
    instants = sum(up_us == down_us for _, _, up_us, down_us in rows)
    if slot_us is None:
        if instants == len(rows) > 0:
            problem = "every contact begins and ends at the same instant"
            hint = "give the duration of a sighting: `--slot 20s`"
            raise InputError(problem, where=name, hint=hint)
        return rows
    if instants:
        changes["lengthened"] = instants
    return [(a, b, up, down if down > up else up + slot_us) for a, b, up, down in rows]


def _seen(nodes_count: int, contacts: Ints) -> Ints:
    first = np.full(nodes_count, np.iinfo(np.int64).max)
    last = np.full(nodes_count, np.iinfo(np.int64).min)
    for column in (0, 1):
        np.minimum.at(first, contacts[:, column], contacts[:, 2])
        np.maximum.at(last, contacts[:, column], contacts[:, 3])
    rows = np.column_stack([np.arange(nodes_count), first, last])
    return rows[first < last]  # a node whose contacts all have zero length is never present
