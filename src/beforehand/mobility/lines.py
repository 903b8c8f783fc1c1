"""What the readers share: numbered lines, exact times, and the problems of a file."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.trace import Ints, Trace, make_trace

PROBLEMS_MAX = 20
"""A file that is wrong throughout is wrong in one way: the first few lines show it."""

SECONDS_MAX = 2**62 // 10**6  # beyond it a sum of two times no longer fits in 64 bits

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
    """The whole file as text, without the mark that some editors put at its start."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise InputError(
            f"cannot read the file: {reason}", where=str(path), hint="check the path"
        ) from error
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


def numbered_lines(text: str, comment: str = "#") -> Iterator[tuple[int, str]]:
    """(line number from 1, stripped line) of every line that is neither empty nor a comment."""
    # Not `splitlines`: it also breaks at form feeds and the like, and the numbers would be off.
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            yield number, stripped


def seconds_us(text: str) -> int:
    """Microseconds of a decimal number of seconds, without passing through a float.

    Raises ValueError with what is wrong: not a number, negative, or beyond 64 bits. Times before
    zero are refused because the simulator reads a negative time as "cancelled".
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"not a time in seconds: `{text}`") from None
    if not value.is_finite():
        raise ValueError(f"not a time in seconds: `{text}`")
    if value < 0:
        raise ValueError(f"a time before zero: `{text}`")
    if value > SECONDS_MAX:
        raise ValueError(f"a time beyond {SECONDS_MAX} seconds: `{text}`")
    return round(value * 1_000_000)


def metres(text: str) -> float:
    """A coordinate, a speed or an angle. Raises ValueError with what is wrong."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"not a number: `{text}`") from None
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: `{text}`")
    return value


def is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


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
    rows: Sequence[tuple[str, str, int, int]], changes: dict[str, int], presence: str
) -> Trace:
    """A trace from named contacts, for formats that say who met but not who was there.

    presence: `whole`, everybody from the first to the last instant of the file; or `seen`, each
    node from its own first to its own last contact.
    """
    names = natural_order(name for row in rows for name in row[:2])
    index = {name: i for i, name in enumerate(names)}
    contacts = np.array(
        [(index[a], index[b], up, down) for a, b, up, down in rows], dtype=np.int64
    ).reshape(-1, 4)
    there = None if presence == "whole" else _seen(len(names), contacts)
    return make_trace(names, contacts, there, changes)


def check_presence(presence: str) -> None:
    if presence not in PRESENCES:
        options = " or ".join(f"`{option}`" for option in PRESENCES)
        raise InputError(f"no such presence: `{presence}`", hint=f"pass {options}")


def _seen(nodes_count: int, contacts: Ints) -> Ints:
    first = np.full(nodes_count, np.iinfo(np.int64).max)
    last = np.full(nodes_count, np.iinfo(np.int64).min)
    for column in (0, 1):
        np.minimum.at(first, contacts[:, column], contacts[:, 2])
        np.maximum.at(last, contacts[:, column], contacts[:, 3])
    rows = np.column_stack([np.arange(nodes_count), first, last])
    return rows[first < last]  # a node met only for an instant was not there for any time
