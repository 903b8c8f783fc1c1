"""Read a mobility trace of any known format from a path.

Without `format` the content decides, never the file name. The reader looks at the first lines of a
text file that are neither empty nor a comment:

    sumo            XML with the root `<fcd-export>`
    gpx             XML with the root `<gpx>`, or a folder of `.gpx` files
    parquet         a file that starts with `PAR1`
    gtfs            a zip or a folder that holds `stop_times.txt`
    ns2             `time create|setdest|destroy id ...`, or a Tcl line with `setdest` or `X_`
    one-events      a line `time CONN ...`
    ion             a line `a contact ...`

These formats have unique markers. The header decides next (`tables/columns.py`): the file is `csv`
(positions), `contacts` or `sociopatterns` (sightings), or the reader rejects it. Without a header:

    one-movement    a line of 6 or 8 numbers, then lines `time id x y`
    bonnmotion      lines of 3, 6, 9, ... numbers that start at time 0, one of them longer than 3
    contacts        `a b start end ...` with start <= end
    sociopatterns   `t i j` or `t i j class class`, t a number that does not decrease; `a b t` or
                    `a b weight t` with Unix times

Where the columns of a file without a header make no sense, the file is rejected, and `columns`
decides (`tables/plausible.py`).

The reader takes the format that fits every line, or else the one that fits at least half of them.
The reader of that format then reports the wrong lines. If no format fits, or several do, the file
is rejected and the operator must pass `format`.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import get_type_hints

from beforehand.errors import InputError, InputErrors
from beforehand.mobility import lines
from beforehand.mobility.detected_format import DetectedFormat
from beforehand.mobility.formats import csv
from beforehand.mobility.formats.bonnmotion import read_bonnmotion
from beforehand.mobility.formats.contacts_list import read_contacts
from beforehand.mobility.formats.gpx import read_gpx
from beforehand.mobility.formats.gtfs.read import read_gtfs
from beforehand.mobility.formats.ion import is_plan, read_ion
from beforehand.mobility.formats.message_events import is_message_event
from beforehand.mobility.formats.ns2 import VERBS, read_ns2
from beforehand.mobility.formats.one import is_connection, read_one_events, read_one_movement
from beforehand.mobility.formats.parquet import is_parquet, read_contacts_parquet
from beforehand.mobility.formats.sociopatterns import read_sociopatterns
from beforehand.mobility.formats.sumo import read_sumo
from beforehand.mobility.positions import Positions
from beforehand.mobility.tables import table
from beforehand.mobility.tables.names import alike, refuse_two_spellings
from beforehand.mobility.tables.plausible import pair_first
from beforehand.mobility.trace import Trace
from beforehand.mobility.xml import root_name
from beforehand.temporary import scratch_folder

SAMPLE_LINES = 200
SAMPLE_CHARACTERS = 100_000
STDIN, STDIN_SHOWN = "-", "<stdin>"
NOT_NUMBERS = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)

READERS: dict[str, Callable[..., Positions | Trace]] = {
    "gtfs": read_gtfs,
    "sumo": read_sumo,
    "gpx": read_gpx,
    "parquet": read_contacts_parquet,
    "ns2": read_ns2,
    "one-events": read_one_events,
    "ion": read_ion,
    "one-movement": read_one_movement,
    "bonnmotion": read_bonnmotion,
    "contacts": read_contacts,
    "sociopatterns": read_sociopatterns,
    "csv": csv.read_csv,
}
ROOTS = {"fcd-export": "sumo", "gpx": "gpx"}
"""The format by root element of an XML file."""


def read(
    path: str | os.PathLike[str], format: str | None = None, **options: object
) -> Positions | Trace:
    """Read a file: `Positions` if it has places, `Trace` if it has contacts.

    format: one of `READERS`; detected from the content if not given. options: those of the reader.
    """
    path = Path(path)
    columns = options.get("columns")
    name = format_of(path, format, columns if isinstance(columns, str) else None)
    known = options_of(name)
    for option in options:
        if option not in known:
            hint = f"its options are {_listed(known)}" if known else "it has no options"
            raise InputError(f"format `{name}` has no option `{option}`", hint=hint)
    found = READERS[name](path, **options)
    refuse_two_spellings(found.names, path)
    detected_format = found.detected_format or DetectedFormat(name)
    doubts = list(alike(found.names))
    doubts += found.doubts() if isinstance(found, Positions) else []
    detected_format = replace(detected_format, assumed=(*detected_format.assumed, *doubts))
    return replace(found, detected_format=detected_format)


def format_of(path: Path, format: str | None = None, columns: str | None = None) -> str:
    """Return the given or detected format of an existing file.

    columns: the names that the operator gives to the columns, if any.
    """
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), hint="check the path")
    name = detect(path, columns) if format is None else format
    if name not in READERS:
        raise InputError(f"no such format: `{name}`", hint=f"the formats are {_listed(READERS)}")
    if format is not None:
        _refuse_mark_of_other(path, format)
    return name


def options_of(format: str) -> list[str]:
    """Return the names of the options of the format's reader."""
    return [p for p in inspect.signature(READERS[format]).parameters if p != "path"]


def has_places(format: str) -> bool:
    """Return whether the reader returns positions, from which contacts must be computed."""
    return get_type_hints(READERS[format])["return"] is Positions


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yield the path itself, or the path of a copy for `-` and for a pipe.

    A pipe can be read only once, but detection and reading both need the content. Errors show the
    original name.
    """
    is_stdin = str(path) == STDIN
    if not is_stdin and not path.is_fifo():
        yield path
        return
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as folder:
        copy, shown = Path(folder) / "stdin", STDIN_SHOWN if is_stdin else str(path)
        with copy.open("wb") as file:
            if is_stdin:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with path.open("rb") as pipe:
                    shutil.copyfileobj(pipe, file)
        try:
            yield copy
        except InputErrors as errors:
            renamed = [_renamed(error, copy, shown) for error in errors.errors]
            raise InputErrors(renamed) from errors
        except InputError as error:
            raise _renamed(error, copy, shown) from error


def _renamed(error: InputError, copy: Path, shown: str) -> InputError:
    where = error.where.replace(str(copy), shown)
    return InputError(error.problem, where=where, hint=error.hint)


def detect(path: Path, columns: str | None = None) -> str:
    """Return the one format that fits the content, or the names of the columns."""
    if packed := _packed_format(path):
        return packed
    text = lines.read_text(path)
    if root := root_name(text):
        return _of_xml(root, path)
    sample = _sample(text)
    if not sample:
        raise InputError("nothing in the file but comments", where=str(path))
    if columns is not None:
        layout = table.parse_table(path, text[:SAMPLE_CHARACTERS], columns).layout()
        assert layout is not None
        return layout.format
    if not _is_one_events(sample) and any(is_message_event(line.split()) for line in sample):
        problem = "these are message events: they list broadcasts, and not which nodes meet"
        hint = "pass a mobility trace; a file of messages is for `[traffic]` of a scenario"
        raise InputError(problem, where=str(path), hint=hint)
    fitting = [name for name, is_marked in MARKS.items() if is_marked(sample)]
    if not fitting:
        found = _headed(path, text)
        if found is not None:
            return found
        shares = {name: share(sample) for name, share in SHARES.items()}
        whole = [name for name, share in shares.items() if share == 1]
        fitting = whole or [name for name, share in shares.items() if share >= 0.5]
    if len(fitting) != 1:
        problem = (
            f"the file fits more than one format: {_listed(fitting)}"
            if fitting
            else f"the format is unknown; it starts with `{sample[0][:60]}`"
        )
        hint = f"pass `format`, one of {_listed(READERS)}"
        raise InputError(problem, where=str(path), hint=hint)
    return fitting[0]


def _packed_format(path: Path) -> str:
    """Return the format of a folder or of a file that is not text; empty for text."""
    if path.is_dir() and not any(path.iterdir()):
        hint = "a folder of a timetable (GTFS) or of `.gpx` files can be read"
        raise InputError("the folder is empty", where=str(path), hint=hint)
    if path.is_dir() and any(path.glob("*.gpx")):
        return "gpx"
    if path.is_file() and is_parquet(path):
        return "parquet"
    # The reader of GTFS reports what is missing if it is not a feed.
    return "gtfs" if path.is_dir() or zipfile.is_zipfile(path) else ""


def _sample(text: str) -> list[str]:
    return [line for _, line in islice(lines.numbered_lines(text), SAMPLE_LINES)]


def _refuse_mark_of_other(path: Path, format: str) -> None:
    """Raise InputError if the file has the unmistakable mark of another format."""
    found = _packed_format(path)
    if not found:
        text = lines.read_text(path)
        marked = [name for name, is_marked in MARKS.items() if is_marked(_sample(text))]
        found = ROOTS.get(root_name(text), "") or (marked[0] if len(marked) == 1 else "")
    if found and found != format:
        problem = f"a file of `{found}`, not of `{format}`"
        raise InputError(problem, where=str(path), hint=f"leave the format out, or pass `{found}`")


def _of_xml(root: str, path: Path) -> str:
    if root not in ROOTS:
        hint = f"known are {', '.join(f'`<{name}>`' for name in ROOTS)}"
        raise InputError(f"XML of an unknown kind: `<{root}>`", where=str(path), hint=hint)
    return ROOTS[root]


def _headed(path: Path, text: str) -> str | None:
    """Return the format that the header describes; None if there is no header."""
    found = table.parse_table(path, text[:SAMPLE_CHARACTERS])
    try:
        layout = found.layout()
    except InputError:
        # Words above words are prose; words above numbers are a header with unknown names.
        if any(map(lines.is_moment, found.first)):
            raise
        return None
    return layout.format if layout is not None else None


def _is_ns2(sample: Sequence[str]) -> bool:
    fields = [line.split() for line in sample]
    walkers = all(len(f) >= 3 and lines.is_number(f[0]) and f[1] in VERBS for f in fields)
    return walkers or any(("setdest" in s or "X_" in s) and "$" in s for s in sample)


def _is_one_events(sample: Sequence[str]) -> bool:
    return any(is_connection(line.split()) for line in sample)


MARKS: dict[str, Callable[[Sequence[str]], bool]] = {
    "ns2": _is_ns2,
    "one-events": _is_one_events,
    "ion": is_plan,
}


def _one_movement_share(sample: Sequence[str]) -> float:
    header, *body = (line.split() for line in sample)
    if len(header) not in (6, 8) or not _numbers(header):
        return 0.0
    return _share(len(row) in (4, 5) and _numbers([row[0], *row[2:4]]) for row in body)


def _bonnmotion_share(sample: Sequence[str]) -> float:
    rows = [line.split() for line in sample]
    if all(len(row) == 3 for row in rows):
        return 0.0
    return _share(
        len(row) % 3 == 0
        # A waypoint such as `nan` does not make the file a contact list.
        and all(lines.is_number(field) or NOT_NUMBERS.fullmatch(field) for field in row)
        and float(row[0]) == 0
        and all(float(a) <= float(b) for a, b in pairwise(row[::3]))
        for row in rows
    )


def _contacts_share(sample: Sequence[str]) -> float:
    body = _split(sample)
    shaped = [row for row in body if len(row) >= 4 and _numbers(row[2:4]) and _is_span(row[2:4])]
    ordered = _share(float(row[2]) <= float(row[3]) for row in shaped)
    # Contacts that end before they start still count half: the file is more like a contact list
    # than like any other format. Rows of different lengths lower the share.
    share = (1 + ordered) / 2 * len(shaped) / max(len(body), 1)
    return share if len({len(row) for row in body}) == 1 else 0.9 * share


def _is_span(ends: Sequence[str]) -> bool:
    """Return whether both fields can be a start and an end.

    A Unix time of this century beside a small number is a time with a weight.
    """
    first, last = map(lines.is_of_this_century, ends)
    return first == last


def _sociopatterns_share(sample: Sequence[str]) -> float:
    rows = _split(sample)
    if pair_first(rows) is not None:
        return 1.0
    if all(len(row) == 3 for row in rows) and all(lines.is_number(row[2]) for row in rows):
        return 1.0  # `plausible.plain_layout` finds the order of the columns or refuses the file
    good = [row for row in rows if len(row) in (3, 5) and _numbers(row[:1])]
    rising = _share(float(a[0]) <= float(b[0]) for a, b in pairwise(good)) if good[1:] else 1.0
    return rising * len(good) / len(rows)


SHARES: dict[str, Callable[[Sequence[str]], float]] = {
    "one-movement": _one_movement_share,
    "bonnmotion": _bonnmotion_share,
    "contacts": _contacts_share,
    "sociopatterns": _sociopatterns_share,
}


def _split(sample: Sequence[str]) -> list[list[str]]:
    mark = table.separator(sample[0])
    return [table.split(line, mark) for line in sample]


def _share(fits: Iterable[bool]) -> float:
    answers = list(fits)
    return sum(answers) / len(answers) if answers else 0.0


def _numbers(fields: Sequence[str]) -> bool:
    return all(lines.is_number(field) for field in fields)


def _listed(names: Sequence[str] | dict[str, Callable[..., Positions | Trace]]) -> str:
    return ", ".join(f"`{name}`" for name in names)
