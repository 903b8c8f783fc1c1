"""What the readers share: numbered lines, exact times, and the problems of a file."""

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
"""A file that is wrong throughout is wrong in one way: the first few lines show it."""

SECONDS_MAX = 253_402_300_799
"""The end of the year 9999 in Unix time; what is beyond it is in milliseconds by mistake."""
METRES_MAX = 1e8
"""Of a coordinate. Twice around the Earth is 8e7; what is beyond it is in no unit of places."""
COMMENTS = ("#", "%", "//")
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}.*")
DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")

PRESENCES = ("whole", "seen")


class Problems:
    """What is wrong with one input, raised together by `check`, or at once when there are many."""

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
    """The whole file as text, unpacked where it is gzip, without the mark of some editors."""
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
    """(line number from 1, stripped line) of every line that is neither empty nor a comment."""
    # Not `splitlines`: it also breaks at form feeds and the like, and the numbers would be off.
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        stripped = line.strip()
        if stripped and not is_comment(stripped):
            yield number, stripped


def seconds_us(text: str, unit_us: int = 1_000_000) -> int:
    """Microseconds of a decimal number of seconds, without passing through a float.

    unit_us: of the number, if it is not seconds. Raises ValueError with what is wrong: not a
    number, negative, or absurd. Times before zero are refused because the simulator reads a
    negative time as "cancelled".
    """
    try:
        value = Decimal(text.replace("_", "?"))  # Python would take `1_0` for 10
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
    """A coordinate, a speed or an angle. Raises ValueError with what is wrong."""
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        raise ValueError(f"not a number: `{text}`{_comma(text)}") from None
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: `{text}`")
    return value


def place_m(text: str, scale_m: float = 1.0) -> float:
    """A coordinate on a plane. Raises ValueError with what is wrong."""
    return check_place(metres(text) * scale_m, text)


def check_place(value: float, text: str) -> float:
    if not abs(value) <= METRES_MAX:
        raise ValueError(f"a place more than {METRES_MAX / 1000:,.0f} km away: `{text}`")
    return value


def degrees(text: str, most: int) -> float:
    """A longitude (most 180) or a latitude (most 90). Raises ValueError with what is wrong."""
    value = metres(text)
    if abs(value) > most:
        kind = "longitude" if most == 180 else "latitude"
        swapped = "; are the two swapped?" if most == 90 and abs(value) <= 180 else ""
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
    """Whether it is a number or a date: what no header holds."""
    return is_number(text) or DECIMAL_COMMA.fullmatch(text) is not None or is_date(text)


def is_date(text: str) -> bool:
    return DATE.fullmatch(text) is not None


def is_of_this_century(text: str) -> bool:
    """Whether a number is a time between 2000 and 2100 if it is seconds since 1970: in any other
    unit it would be one that nobody has in a file."""
    return is_number(text) and 946_684_800 <= float(text) < 4_102_444_800


def moment_us(text: str, unit_us: int = 1_000_000) -> int:
    """As `seconds_us`, and of a date with a time of day: since 1970, in UTC unless it says."""
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
    """Distinct names, numbers in them by value, so that the order of the rows is no matter."""
    return sorted(set(names), key=lambda name: (_natural_key(name), name))


def _natural_key(name: str) -> list[tuple[int, str]]:
    # Of two numbers without leading zeros the longer is the larger, and digits compare as text.
    parts = re.split(r"([0-9]+)", name)
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part)
        for i, part in enumerate(parts)
    ]


def trace_of_contacts(
    rows: Sequence[tuple[str, str, int, int]], changes: dict[str, int], presence: str | None
) -> Trace:
    """A trace from named contacts, for formats that say who met but not who was there.

    presence: `whole`, everybody from the first to the last instant of the file (if not given); or
    `seen`, each node from its own first to its own last contact.
    """
    names = natural_order(name for row in rows for name in row[:2])
    contacts = indexed(rows, names)
    there = _seen(len(names), contacts) if presence == "seen" else None
    return make_trace(names, contacts, there, changes)


def indexed(rows: Sequence[tuple[str, str, int, int]], names: Sequence[str]) -> Ints:
    """The same with numbers for names."""
    index = {name: i for i, name in enumerate(names)}
    return np.array(
        [(index[a], index[b], up, down) for a, b, up, down in rows], dtype=np.int64
    ).reshape(-1, 4)


def check_presence(presence: str | None) -> None:
    if presence is not None and presence not in PRESENCES:
        options = " or ".join(f"`{option}`" for option in PRESENCES)
        raise InputError(f"no such presence: `{presence}`", hint=f"pass {options}")


def assumed_presence(presence: str | None) -> str:
    """In words, for files that do not say who was there."""
    if presence == "seen":
        return "each node is there from its first to its last contact"
    wish = "" if presence else " (`--presence seen`: each from its first to its last contact)"
    return f"everybody is there from the first to the last instant of the file{wish}"


def span_us(name: str, seconds: float | None) -> int | None:
    """An option in seconds as microseconds; refused if it is no time that can pass."""
    if seconds is None:
        return None
    if not 1e-6 <= seconds <= SECONDS_MAX:
        hint = f"`{name}` is a number of seconds above zero"
        raise InputError(f"`{name}` is no time that can pass: {seconds:g} s", hint=hint)
    return round(seconds * 1e6)


def lengthen(
    rows: list[tuple[str, str, int, int]], slot_us: int | None, changes: dict[str, int], name: str
) -> list[tuple[str, str, int, int]]:
    """Contacts without duration last `slot_us`; without it they are left to be dropped.

    A file that has nothing else is refused: dropping all of it would be no reading at all.
    """
    instants = sum(up_us == down_us for _, _, up_us, down_us in rows)
    if slot_us is None:
        if instants == len(rows) > 0:
            problem = "every contact begins and ends at the same instant"
            hint = "say how long a sighting counts: `--slot 20s`"
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
    return rows[first < last]  # a node met only for an instant was not there for any time
