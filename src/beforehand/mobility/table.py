"""Text files of rows: which mark separates the fields, whether there is a header, what it says."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.columns import HINT, PLAIN, TIMES, Layout, resolve

MARKS = (",", ";", "\t", "|")
SPACE = " "
DAYS, DAY_US = ("date", "day"), 86_400_000_000
FIELDS_MIN = 3
"""No format has fewer."""


@dataclass(frozen=True)
class Table:
    """The lines of a file, each with its number; the header is not among them."""

    path: Path
    lines: list[tuple[int, str]]
    mark: str = SPACE
    header: tuple[str, ...] = ()
    header_line: int = 0
    is_remark: bool = False
    """The header stands in a comment, so that it binds only if it makes sense."""

    @property
    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The fields of every line; not kept, because a long file has many."""
        return ((number, split(line, self.mark)) for number, line in self.lines)

    @property
    def first(self) -> list[str]:
        """The fields of the first line; none of an empty table."""
        return next((fields for _, fields in self.rows), [])

    def layout(self) -> Layout | None:
        """What the header says; None if there is none. Refused if it says too little."""
        if not self.header:
            return None
        if self.is_remark:
            try:
                return resolve(self.header, "")
            except InputError:
                return None
        return resolve(self.header, f"{self.path}:{self.header_line}")

    def layout_of(self, format: str) -> Layout:
        """The layout for a reader of one format, or a refusal if the file is of another."""
        found = self.layout()
        if found is None and format in PLAIN:
            return PLAIN[format]
        where = f"{self.path}:{self.header_line}" if self.header else f"{self.path}:1"
        if found is None:
            problem = "no header that names the columns"
            raise InputError(problem, where=where, hint=HINT)
        if found.format != format:
            problem = f"the header is one of `{found.format}`, not of `{format}`"
            hint = f"leave the format out, or pass `{found.format}`"
            raise InputError(f"{problem}: {','.join(self.header)}", where=where, hint=hint)
        return found

    def assumed_times(self, layout: Layout) -> list[str]:
        """What is assumed of times that are dates, or numbers whose unit nobody says."""
        self._refuse_days_apart(layout)
        fields = {role: self.first[layout.at[role]] for role in TIMES if role in layout.at}
        if any(map(lines.is_date, fields.values())):
            return ["dates are in UTC unless they say otherwise, and counted from 1970"]
        if layout.kind_at is not None:  # as we write it
            return []
        open_ended = [role for role in fields if not layout.says_unit(role)]
        if all(lines.is_of_this_century(fields[role]) for role in open_ended):
            return []
        return ["times are seconds (a header like `time_ms` says what else they are)"]

    def _refuse_days_apart(self, layout: Layout) -> None:
        """Times of day with the day in a column of its own: all days would be one."""
        apart = [i for i, name in enumerate(layout.header) if name.strip().casefold() in DAYS]
        if not apart:
            return
        role = next(role for role in TIMES if role in layout.at)
        days, latest_us = set[str](), 0
        for _, fields in self.rows:
            days.add(fields[apart[0]])
            latest_us = max(
                latest_us, lines.moment_us(fields[layout.at[role]], layout.unit_us(role))
            )
        if len(days) > 1 and latest_us <= DAY_US:
            raise InputError(
                f"the times of {len(days):,} days, which stand in a column of their own: "
                f"`{layout.header[apart[0]]}`",
                where=f"{self.path}:{self.header_line}",
                hint="put both into one column, as `2024-05-01T08:00:00`",
            )

    def check_width(self, fields: Sequence[str], layout: Layout) -> None:
        """Raises ValueError if a row does not have the fields that it should have."""
        if layout.header:
            if len(fields) != len(layout.header):
                raise ValueError(f"{len(fields)} fields under a header of {len(layout.header)}")
            return
        needed = max(layout.at.values()) + 1
        if len(fields) < needed:
            raise ValueError(f"{len(fields)} fields where at least {needed} are needed")


def read_table(path: Path) -> Table:
    return parse_table(path, lines.read_text(path))


def parse_table(path: Path, text: str) -> Table:
    """A first line without any number is a header: every row has a time, which is one.

    So is a comment right before the first row if it names its columns, as `# t i j`.
    """
    numbered: list[tuple[int, str]] = []
    remark: tuple[int, str] | None = None
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        stripped = line.strip()
        if lines.is_comment(stripped):
            remark = remark if numbered else (number, stripped.lstrip("#%/").strip())
        elif stripped:
            numbered.append((number, stripped if "\t" not in line else line.strip(" \r\n")))
    if not numbered:
        return Table(path, [])
    mark = separator(numbered[0][1])
    number, first = numbered[0][0], split(numbered[0][1], mark)
    if is_header(first):
        return Table(path, numbered[1:], mark, _names(first), number)
    if remark is not None:
        header = split(remark[1], separator(remark[1]))
        if len(header) == len(first) and is_header(header):
            return Table(path, numbered, mark, _names(header), remark[0], is_remark=True)
    return Table(path, numbered, mark)


def separator(line: str) -> str:
    """The mark that makes most of the line; white space where none makes enough of it."""
    counts = {mark: len(split(line, mark)) for mark in MARKS}
    tabbed = split(line, "\t")
    # A header may leave the name of its first column out.
    if "" in (tabbed[1:] if is_header(tabbed) else tabbed):
        counts["\t"] = 0  # tabs that align columns, not that separate them
    best = max(MARKS, key=lambda mark: counts[mark])
    return best if counts[best] >= FIELDS_MIN else SPACE


def split(line: str, mark: str) -> list[str]:
    """The fields of one line; within quotes every character counts, outside the ends are cut."""
    if '"' in line:
        if mark == SPACE:
            line = line.replace("\t", " ")
        else:
            outside = rf'("(?:[^"]|"")*")| *{re.escape(mark)} *'
            line = re.sub(outside, lambda found: found[1] or mark, line)
        try:
            return next(csv.reader([line], delimiter=mark, skipinitialspace=True))
        except csv.Error:
            return [line]
    if mark == SPACE:
        fields = line.split()
        if len(fields) >= FIELDS_MIN or "," not in line:
            return fields
        mark = ","  # one line in another style than the first
    return [part.strip() for part in line.split(mark)]


def is_header(fields: Sequence[str]) -> bool:
    named = [field for field in fields if field.strip()]
    return len(named) >= FIELDS_MIN and not any(map(lines.is_moment, named))


def _names(fields: Sequence[str]) -> tuple[str, ...]:
    return tuple(field.strip().lstrip("\ufeff") for field in fields)
