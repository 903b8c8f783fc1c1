"""Read a trace that can be simulated, from a file of any known format."""

from __future__ import annotations

import os
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions
from beforehand.mobility.read import format_of, has_places, opened, read
from beforehand.mobility.trace import Trace


def read_trace(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    range_m: float | None = None,
    **options: object,
) -> Trace:
    """Return the contacts of a mobility trace.

    - `path`: a file or folder; docs/mobility.md lists the formats.
    - `format`: one of these formats; detected from the content if not given.
    - `range_m`: two nodes at most this many metres apart are in contact. A trace of positions needs
      it; a trace of contacts refuses it.
    - `options`: those of the format, such as `day="2014-06-02"` for a timetable.

    Raise `InputError` if the file cannot be read as that format, or an option does not apply.
    """
    source = Path(path)
    with opened(source) as file:
        columns = options.get("columns")
        name = format_of(file, format, columns if isinstance(columns, str) else None)
        if has_places(name) != (range_m is not None):
            problem, hint = "the trace has contacts already", "leave `range_m` out"
            if range_m is None:
                problem = "the trace has places, not contacts"
                hint = "pass `range_m=200`: two nodes that are that close are in contact"
            raise InputError(problem, where=str(source), hint=hint)
        found = read(file, name, **options)
    if not isinstance(found, Positions):
        return found
    assert range_m is not None, "can't happen: positions need it"
    return found.contacts_within(range_m)
