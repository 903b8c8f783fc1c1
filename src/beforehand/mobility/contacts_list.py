"""Contact lists: one line `a b start end` per contact, as CRAWDAD distributes them.

Fields are separated by white space or commas; times are seconds, decimals allowed. Further columns
(CRAWDAD adds a running count and the gap before the contact) are ignored, `#` starts a comment, and
the first line may be a header. A name with spaces or commas goes in double quotes between commas.
"""

from __future__ import annotations

import csv
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.trace import Trace


def read_contacts(path: str | Path, *, presence: str = "whole") -> Trace:
    """The contacts of the file as a clean trace; what was mended is counted in `changes`.

    presence: the file does not say who was there when. `whole`: everybody from its first to its
    last instant; `seen`: each node from its first to its last contact.
    """
    lines.check_presence(presence)
    path = Path(path)
    problems = lines.Problems(path)
    rows: list[tuple[str, str, int, int]] = []
    first = True
    for number, line in lines.numbered_lines(lines.read_text(path)):
        fields = split_fields(line)
        if not (first and is_header(fields)):
            try:
                rows.append(_parse(fields))
            except ValueError as error:
                problems.add(number, str(error), hint="a line is `a b start end`, in seconds")
        first = False
    problems.check()
    if not rows:
        raise InputError("no contacts in the file", where=str(path), hint="is it the right file?")
    return lines.trace_of_contacts(rows, {}, presence)


def write_contacts(trace: Trace, path: str | Path) -> None:
    """Write the contacts as CSV that `read_contacts` reads back exactly.

    The format has no presence: a node that met nobody is not in the file, and a reader must be told
    with `presence` what to assume of the others.
    """
    for name in trace.names:
        if not name or "\n" in name or "\r" in name:
            raise InputError(f"not a name for a line of text: {name!r}", hint="rename the node")
    quoted = ['"' + name.replace('"', '""') + '"' for name in trace.names]
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        file.write("a,b,start,end\n")
        file.writelines(
            f"{quoted[a]},{quoted[b]},{_seconds(up_us)},{_seconds(down_us)}\n"
            for a, b, up_us, down_us in trace.contacts.tolist()
        )


def split_fields(line: str) -> list[str]:
    """The fields of one line; within quotes every character counts, outside the ends are cut."""
    if '"' in line:
        return next(csv.reader([line], skipinitialspace=True))
    if "," in line:
        return [part.strip() for part in line.split(",")]
    return line.split()


def is_header(fields: list[str]) -> bool:
    """A first line whose times are words; with one bad number it is an error and no header."""
    return len(fields) >= 4 and all(field[:1].isalpha() for field in fields[2:4])


def _parse(fields: list[str]) -> tuple[str, str, int, int]:
    if len(fields) < 4:
        raise ValueError(f"{len(fields)} fields where at least 4 are needed")
    if not (fields[0] and fields[1]):
        raise ValueError("a node without a name")
    up_us, down_us = lines.seconds_us(fields[2]), lines.seconds_us(fields[3])
    if down_us < up_us:
        raise ValueError(f"contact ends before it starts: from {fields[2]} to {fields[3]}")
    return fields[0], fields[1], up_us, down_us


def _seconds(time_us: int) -> str:
    whole, rest = divmod(time_us, 1_000_000)
    return f"{whole}.{rest:06}" if rest else str(whole)
