"""Read the messages of a run from a file: when which node broadcasts how many bytes.

Two formats are known. The content decides, never the name of the file.

- The ONE's message events: `time C id from to size`. The destination is not used, because a
  broadcast is for every node. Other events (`CONN`, `S`, `DE`, `DR`, `R`, `A`) are counted and
  skipped. A size may have The ONE's unit: `500k`, `2M`, `1MiB`.
- A table with a header that names time, source and size, in any order (`time,source,size`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.tables import aliases
from beforehand.mobility.tables.columns import squashed
from beforehand.mobility.tables.table import Table, parse_table

SIZE = re.compile(r"([0-9]{1,15})(k|M|G|kiB|MiB|GiB)?")
SIZE_UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "kiB": 2**10, "MiB": 2**20, "GiB": 2**30}
ACTIONS = ("CONN", "S", "DE", "DR", "R", "A")
"""The ONE's other events: connections, and what became of a message."""
SOURCES = ("source", "src", "from", "sender", "origin", "creator", "author", *aliases.NODE)
SIZES = ("size", "bytes", "sizebytes", "payload", "payloadbytes", "payloadsize", "messagesize")
ROLES = {"time": (*aliases.TIME, *aliases.TIME_WEAK), "source": SOURCES, "size": SIZES}
HINT = (
    "a line is The ONE's `time C id from to size`, or the file has a header that names time, "
    "source and size: `time,source,size`"
)


class MessageEvent(NamedTuple):
    """One broadcast: its time, its node by name, its size, and its line in the file."""

    t_us: int
    source: str
    size_bytes: int
    line: int


@dataclass(frozen=True)
class MessageEvents:
    """The broadcasts of a file in order of time; of one instant, in order of the file."""

    rows: tuple[MessageEvent, ...]
    changes: Mapping[str, int]
    """The number of skipped lines by kind."""
    detected_format: DetectedFormat


def read_message_events(path: str | Path) -> MessageEvents:
    """Return the broadcasts of the file. Raise InputErrors with all wrong lines together."""
    path = Path(path)
    text = lines.read_text(path)
    numbered = list(lines.numbered_lines(text))
    if not numbered:
        raise InputError("nothing in the file but comments", where=str(path), hint=HINT)
    problems = lines.Problems(path)
    changes: dict[str, int] = {}
    if any(is_message_event(line.split()) for _, line in numbered):
        detected_format = DetectedFormat("message events of The ONE")
        found = list(_created(numbered, problems, changes))
    else:
        table = parse_table(path, text)
        at = _columns(table)
        columns = {role: table.header[i] for role, i in at.items()}
        rest = tuple(name for i, name in enumerate(table.header) if i not in at.values())
        detected_format = DetectedFormat("message events", columns, rest)
        found = list(_rows(table, at, problems))
    problems.check()
    if not found:
        raise InputError("no broadcast in the file", where=str(path), hint=HINT)
    return MessageEvents(tuple(sorted(found, key=attrgetter("t_us"))), changes, detected_format)


def is_message_event(fields: list[str]) -> bool:
    """Return whether a line is The ONE's `time C id from to size`."""
    return len(fields) in (6, 7) and fields[1] == "C" and lines.is_number(fields[0])


def _created(
    numbered: list[tuple[int, str]], problems: lines.Problems, changes: dict[str, int]
) -> Iterator[MessageEvent]:
    for number, line in numbered:
        fields = line.split()
        if len(fields) > 2 and fields[1] in ACTIONS:
            changes["skipped_line"] = changes.get("skipped_line", 0) + 1
            continue
        try:
            if not is_message_event(fields):
                raise ValueError(f"not a message event: `{line[:60]}`")
            yield MessageEvent(
                lines.seconds_us(fields[0]), fields[3], _size_bytes(fields[5]), number
            )
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `time C id from to size`")


def _columns(table: Table) -> dict[str, int]:
    """Return the column of each role. Raise InputError if a role has none, or two."""
    where = f"{table.path}:{table.header_line or 1}"
    if not table.header:
        raise InputError("no message event and no header in the file", where=where, hint=HINT)
    names = [squashed(name.casefold()) for name in table.header]
    at: dict[str, int] = {}
    for role, known in ROLES.items():
        fitting = [i for i, name in enumerate(names) if name in known and i not in at.values()]
        if len(fitting) != 1:
            count = "two columns" if fitting else "no column"
            problem = f"{count} for `{role}` in the header: {','.join(table.header)}"
            raise InputError(problem, where=where, hint=HINT)
        at[role] = fitting[0]
    return at


def _rows(table: Table, at: dict[str, int], problems: lines.Problems) -> Iterator[MessageEvent]:
    for number, fields in table.rows:
        try:
            if len(fields) != len(table.header):
                width = len(table.header)
                raise ValueError(f"{len(fields)} fields under a header of {width}")
            if not fields[at["source"]]:
                raise ValueError("a broadcast without a source")
            t_us, size_bytes = lines.moment_us(fields[at["time"]]), _size_bytes(fields[at["size"]])
            yield MessageEvent(t_us, fields[at["source"]], size_bytes, number)
        except ValueError as error:
            problems.add(number, str(error))


def _size_bytes(text: str) -> int:
    match = SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a size in bytes: `{text}`")
    return int(match[1]) * SIZE_UNITS.get(match[2], 1)
