"""Read records with named fields: CSV, JSON lines, JSON arrays, and Arrow tables."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from beforehand.errors import InputError, closest
from beforehand.logs.located import AT, documents
from beforehand.logs.mapping import Fields, detected, value_at
from beforehand.logs.model import KINDS, Causality, Reading, Run
from beforehand.logs.source import Source

Record = tuple[str, int, Mapping[str, Any]]
"""File, line and fields."""
NEEDED = "a log needs a node, and clocks, parents or messages"
MAP_HINT = "name the fields: `--map node=host kind=event message=id`; `beforehand logs` has more"
CELL_MAX = 1 << 24
NAME = re.compile(r"\s*[A-Za-z_][\w .()/-]{0,60}")
"""The form of the name of a column."""
OWN_COLUMNS = ("run", "step", "node", "kind", "origin", "seq")
"""The columns of our own event log that give every event of a run its place."""


def is_json_lines(source: Source) -> str:
    first = next((line for line in source.head.split("\n") if line.strip()), "")
    try:
        return "each line is a JSON object" if isinstance(json.loads(first), dict) else ""
    except (ValueError, RecursionError):
        return ""


def is_json_array(source: Source) -> str:
    is_array = re.match(r"\s*\[\s*\{\s*\"", source.head)
    is_object = re.match(r"\s*\{\s*\"", source.head)
    return "a JSON array of objects" if is_array else "a JSON object" if is_object else ""


def is_csv(source: Source) -> str:
    """Return why a file is a table: a header whose names are roles, and rows as wide as it."""
    try:
        rows = list(csv.reader(source.head.split("\n")[:20], delimiter=delimiter_of(source)))
    except csv.Error:
        return ""
    rows = [row for row in rows if row]
    if len(rows) < 2 or len(rows[0]) < 2 or len({*rows[0]}) < len(rows[0]):
        return ""
    if any(len(row) != len(rows[0]) for row in rows[:-1]) or not all(map(NAME.fullmatch, rows[0])):
        return ""
    return f"a table with the columns {', '.join(name.strip() for name in rows[0])[:80]}"


def delimiter_of(source: Source) -> str:
    first = source.head.split("\n", 1)[0]
    return max(",\t;", key=first.count)


def csv_records(source: Source) -> Iterable[Record]:
    csv.field_size_limit(CELL_MAX)
    reader = csv.reader(source.text.split("\n"), delimiter=delimiter_of(source))
    header: list[str] = []
    line = 1
    for row in reader:
        begins, line = line, reader.line_num + 1
        if not header:
            header = [name.strip() for name in row]
        elif row:
            if len(row) != len(header):
                problem = f"{len(row)} fields, but the header has {len(header)}"
                where = f"{source.name}:{begins}"
                raise InputError(problem, where=where, hint="check whether the file is complete")
            yield source.name, begins, dict(zip(header, (c.strip() for c in row), strict=True))


def json_records(source: Source) -> Iterable[Record]:
    """Yield the objects of JSON lines, or of arrays."""
    if is_json_lines(source) and "\n" in source.text.strip():
        for number, line in enumerate(source.lines, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{source.name}:{number}"
                hint = "check whether the file is complete"
                raise InputError("not JSON", where=where, hint=hint) from error
            yield source.name, number, value if isinstance(value, dict) else {}
        return
    for document in documents(source):
        for value in document if isinstance(document, list) else [document]:
            if isinstance(value, dict):
                yield from _inner(source, value)


def _inner(source: Source, value: dict[str, Any]) -> Iterator[Record]:
    """Yield the records in an object: those of its only list of objects, else the object itself."""
    lists = [v for v in value.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    records = lists[0] if len(lists) == 1 and len(value) == 2 else [value]  # besides `AT`
    if any(not isinstance(one, dict) or AT not in one for one in records):
        records = [value]
    for one in records:
        yield source.name, source.line_at(one[AT]), one


def read_records(
    records: Iterable[Record], reading: Reading, fields: Fields | None, where: str
) -> Reading:
    """Add the runs of records to a reading; fields not given are detected by their names."""
    rows = list(records)
    if not rows:
        raise InputError("there are no records in the log", where=where, hint=MAP_HINT)
    columns = {key: None for _, _, record in rows[:200] for key in record if key != AT}
    roles = detected(columns)
    given = dict(fields.roles) if fields else {}
    _refuse_missing(given, rows, columns, where)
    used = Fields({**roles, **given}, fields.kinds if fields else {})
    for role, path in used.roles.items():
        if role not in given:
            reading.assumed.append(f"{role} is `{path}`")
    causality = _causality(used.roles)
    if "node" not in used.roles:
        problem = f"no field is known to be the node: {', '.join(_paths(rows[0][2]))[:200]}"
        raise InputError(problem, where=where, hint=MAP_HINT)
    _fill(reading, rows, used, causality)
    if used.roles.get("position") == "step" and {*OWN_COLUMNS} <= {*columns}:
        for run in reading.runs:
            run.is_total = True  # `step` is the order of all events of one run
    return reading


def _paths(record: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of the fields of a record, as a mapping names them."""
    for key, value in record.items():
        if key == AT:
            continue
        if isinstance(value, dict) and value:
            yield from _paths(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def _refuse_missing(
    given: Mapping[str, str], rows: list[Record], columns: Iterable[str], where: str
) -> None:
    for role, path in given.items():
        for part in path.replace(",", "/").split("/"):
            if part[:1] != "'" and all(value_at(r, part) is None for _, _, r in rows[:10_000]):
                hint = closest(part, columns) or f"fields: {', '.join(columns)[:200]}"
                raise InputError(f"no field `{part}` for {role}", where=where, hint=hint)


def _causality(roles: Mapping[str, str]) -> Causality:
    if "clock" in roles:
        return "clocks"
    if "message" in roles and "kind" in roles:
        return "messages"
    if "parents" in roles and "id" in roles:
        return "parents"
    return "none"


def _fill(reading: Reading, rows: list[Record], fields: Fields, causality: Causality) -> None:
    runs: dict[str, Run] = {}
    for file, line, record in rows:
        name = str(fields.get(record, "run") or "")
        run = runs.get(name)
        if run is None:
            run = runs[name] = Run(name or reading.files[0].rpartition("/")[2], causality)
            run.is_sequential = causality != "parents"
        try:
            event = fields.event(record, file, line)
        except (ValueError, TypeError) as error:
            raise InputError(str(error), where=f"{file}:{line}", hint=MAP_HINT) from error
        if not event.node:
            reading.skipped["records without a node"] += 1
            run.doubts.append(f"{file}:{line} names no node")
            continue
        if causality == "clocks":
            event.position = (event.clock or {}).get(event.node)
            if event.clock is None or not event.position:
                reading.skipped["records without a clock of their node"] += 1
                run.doubts.append(f"{file}:{line} has no clock with an entry of its node")
                continue
        elif causality == "messages" and event.kind not in KINDS:
            reading.skipped[f"records of the kind `{event.kind[:40]}`"] += 1
        run.events.append(event)
    reading.runs += runs.values()
