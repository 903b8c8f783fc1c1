"""Text files of rows: find the separator and the header, and resolve the header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.tables.columns import HINT, PLAIN, TIMES, Layout, resolve
from beforehand.mobility.tables.plausible import plain_layout

MARKS = (",", ";", "\t", "|")
SPACE = " "
DAYS, DAY_US = ("date", "day"), 86_400_000_000
ROWS_COMPARED = 500
"""The number of rows from which the columns of a table without a header are detected."""
FIELDS_MIN = 3
"""The fewest fields per row: no format has fewer."""


@dataclass(frozen=True)
class Table:
    """The lines of a file with their numbers, without the header."""

    path: Path
    lines: list[tuple[int, str]]
    mark: str = SPACE
    header: tuple[str, ...] = ()
    header_line: int = 0
    is_remark: bool = False
    """Whether the header stands in a comment. Then it counts only if it resolves to a layout."""

    @property
    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the fields of every line. They are not stored, to save memory."""
        return ((number, split(line, self.mark)) for number, line in self.lines)

    @property
    def first(self) -> list[str]:
        """Return the fields of the first line; an empty list for an empty table."""
        return next((fields for _, fields in self.rows), [])

    def layout(self) -> Layout | None:
        """Return the layout of the header, or None without a header.

        Raise InputError if roles are missing. A header in a comment that lacks roles counts as
        none.
        """
        if not self.header:
            return None
        if self.is_remark:
            try:
                return resolve(self.header, "")
            except InputError:
                return None
        return resolve(self.header, self.header_where)

    @property
    def header_where(self) -> str:
        """Return where the header is: in the file, or in the option that replaces it."""
        return f"{self.path}:{self.header_line}" if self.header_line else f"columns of {self.path}"

    def layout_of(self, format: str) -> Layout:
        """Return the layout for a reader of one format.

        Raise InputError if the file has another format.
        """
        found = self.layout()
        if found is None and format in PLAIN:
            return plain_layout(format, list(islice(self.rows, ROWS_COMPARED)), self.path)
        where = self.header_where if self.header else f"{self.path}:1"
        if found is None:
            problem = "no header that names the columns"
            raise InputError(problem, where=where, hint=HINT)
        if found.format != format:
            problem = f"the header is one of `{found.format}`, not of `{format}`"
            hint = f"leave the format out, or pass `{found.format}`"
            raise InputError(f"{problem}: {','.join(self.header)}", where=where, hint=hint)
        return found

    def assumed_times(self, layout: Layout) -> list[str]:
        """Return the assumptions about times that are dates, or numbers without a given unit."""
        self._refuse_days_apart(layout)
        fields = {role: self.first[layout.at[role]] for role in TIMES if role in layout.at}
        if any(map(lines.is_date, fields.values())):
            return ["dates are in UTC unless they name another zone, and counted from 1970"]
        if layout.kind_at is not None:  # a file that `write_contacts` wrote
            return []
        open_ended = [role for role in fields if not layout.states_unit(role)]
        if all(lines.is_of_this_century(fields[role]) for role in open_ended):
            return []
        return ["times are seconds (a header like `time_ms` names another unit)"]

    def _refuse_days_apart(self, layout: Layout) -> None:
        """Raise InputError if dates have their own column: all days would fall on one."""
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
                where=self.header_where,
                hint="put both into one column, as `2024-05-01T08:00:00`",
            )

    def check_width(self, fields: Sequence[str], layout: Layout) -> None:
        """Raise ValueError if a row has the wrong number of fields."""
        if layout.header:
            if len(fields) != len(layout.header):
                raise ValueError(f"{len(fields)} fields under a header of {len(layout.header)}")
            return
        needed = max(layout.at.values()) + 1
        if len(fields) < needed:
            raise ValueError(f"{len(fields)} fields where at least {needed} are needed")


def read_table(path: Path, columns: str | None = None) -> Table:
    return parse_table(path, lines.read_text(path), columns)


def parse_table(path: Path, text: str, columns: str | None = None) -> Table:
    """Parse a table. A first line without a number is a header, because every row has a time.

    A comment directly before the first row is also a header if it names the columns, as `# t i j`.
    columns: names to use in place of the header, if the file has one: `a,b,time`.
    """
    found = _parse_table(path, text)
    if columns is None:
        return found
    given = _names(columns.replace(",", " ").split())
    return replace(found, header=given, header_line=0, is_remark=False)


def _parse_table(path: Path, text: str) -> Table:
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
    """Return the separator that splits the line into the most fields.

    It is white space if every other separator gives fewer than `FIELDS_MIN` fields.
    """
    counts = {mark: len(split(line, mark)) for mark in MARKS}
    tabbed = split(line, "\t")
    # A header may omit the name of its first column.
    if "" in (tabbed[1:] if is_header(tabbed) else tabbed):
        counts["\t"] = 0  # tabs that align columns do not separate them
    best = max(MARKS, key=lambda mark: counts[mark])
    return best if counts[best] >= FIELDS_MIN else SPACE


def split(line: str, mark: str) -> list[str]:
    """Split a line into fields. Quoted fields keep their spaces; other fields are stripped."""
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
        mark = ","  # this line has another style than the first
    return [part.strip() for part in line.split(mark)]


def is_header(fields: Sequence[str]) -> bool:
    named = [field for field in fields if field.strip()]
    return len(named) >= FIELDS_MIN and not any(map(lines.is_moment, named))


def _names(fields: Sequence[str]) -> tuple[str, ...]:
    return tuple(field.strip().lstrip("\ufeff") for field in fields)
