"""Read a profile: a TOML file that declares how the lines or records of a log are events."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from beforehand.errors import InputError, closest
from beforehand.files import unreadable
from beforehand.logs.bounded import Match, compile_user, find_in_each
from beforehand.logs.located import AT
from beforehand.logs.mapping import NONE, ROLES, Fields
from beforehand.logs.model import KINDS, Causality, Event, Reading, Run
from beforehand.logs.readers import tables
from beforehand.logs.source import Source

HINT = "docs/logs.md has an example of a profile"


class Declared(msgspec.Struct, forbid_unknown_fields=True):
    """A profile as it is written."""

    title: str = ""
    example: str = ""
    test: str = ""
    """A regular expression that recognises a file by its first lines."""
    re: str = ""
    """The regular expression of one event, with named groups; empty for CSV and JSON."""
    each: str = ""
    """The key of the records in a JSON document."""
    split: str = ""
    """Matches the line between two runs; the group `run` is the name."""
    comment: str = ""
    """Matches lines that are no events."""
    causality: Causality = "messages"
    sequential: bool = True
    ordered: bool = True
    """Whether the lines of a node are in its order."""
    whole: bool = False
    refuse: str = ""
    """Why such a log cannot be judged, and what to do."""
    note: str = ""
    none: list[str] = []
    time: str = ""
    """A field and its unit or format: `startTime us`."""
    fields: dict[str, str] = {}
    """The field of each role."""
    kinds: dict[str, str] = {}
    """Kinds by the words of the log."""
    kind_re: dict[str, str] = {}
    """Kinds by regular expressions over the text of an event; a group may be `message`."""


@dataclass(frozen=True)
class Profile:
    """A profile, checked."""

    name: str
    declared: Declared
    fields: Fields
    is_ours: bool = False
    patterns: Mapping[str, re.Pattern[str]] = field(default_factory=dict)


def read_profile(path: Path) -> Profile:
    """Return the profile of a TOML file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, HINT) from error
    return parse_profile(path.stem, text, str(path))


def parse_profile(name: str, text: str, where: str, *, is_ours: bool = False) -> Profile:
    try:
        declared = msgspec.convert(tomllib.loads(text), Declared)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"not a profile: {error}", where=where, hint=HINT) from error
    for role in declared.fields:
        if role not in ROLES:
            hint = closest(role, ROLES) or f"roles: {', '.join(ROLES)}"
            raise InputError(f"no such role: `{role}`", where=where, hint=hint)
    for kind in (*declared.kinds.values(), *declared.kind_re):
        if kind not in KINDS:
            hint = closest(kind, KINDS) or f"kinds: {', '.join(KINDS)}"
            raise InputError(f"no such kind: `{kind}`", where=where, hint=hint)
    path, _, form = declared.time.partition(" ")
    roles = {**declared.fields, **({"time": path} if path else {})}
    fields = Fields(roles, declared.kinds, (*NONE, *declared.none), form)
    written = {"re": declared.re, "test": declared.test, "split": declared.split}
    written |= {"comment": declared.comment, **declared.kind_re}
    patterns = {key: compile_user(pattern, where) for key, pattern in written.items() if pattern}
    return Profile(name, declared, fields, is_ours, patterns)


@cache
def shipped() -> tuple[Profile, ...]:
    """Return the profiles that come with the package, by name."""
    folder = files("beforehand.logs") / "profiles"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=str)
    return tuple(
        parse_profile(file.name.removesuffix(".toml"), file.read_text(), file.name, is_ours=True)
        for file in found
    )


def recognises(profile: Profile, source: Source) -> str:
    """Return the mark by which a profile recognises a file; empty if it does not."""
    test = profile.patterns.get("test")
    match = test.search(source.head) if test else None
    return f"`{match[0].strip()[:60]}`" if match else ""


def read_with(
    profile: Profile, sources: list[Source], fields: Fields | None = None, why: str = ""
) -> Reading:
    """Read files by a profile."""
    declared = profile.declared
    if declared.refuse:
        raise InputError(declared.refuse, where=sources[0].name, hint=declared.note or HINT)
    used = profile.fields
    if fields:
        kinds = {**used.kinds, **fields.kinds}
        used = replace(used, roles={**used.roles, **fields.roles}, kinds=kinds)
    names = [source.name for source in sources]
    reading = Reading(profile.name, why or "the profile was named", [], names)
    runs: dict[str, Run] = {}
    for source in sources:
        found: list[Event] = []
        for part, record, line in _records(profile, source, reading):
            name = str(used.get(record, "run") or part)
            run = runs.setdefault(name, _new_run(profile, name or _name_of(sources)))
            if event := _event(used, record, source, line, reading, run):
                run.events.append(event)
                found.append(event)
        _name_kinds(profile, found, source.name)
    reading.runs = [*runs.values()] or [_new_run(profile, _name_of(sources))]
    return reading


def _name_of(sources: list[Source]) -> str:
    return sources[0].short if len(sources) == 1 else sources[0].folder


def _new_run(profile: Profile, name: str) -> Run:
    declared = profile.declared
    run = Run(name, declared.causality)
    run.is_sequential, run.is_known = declared.sequential, declared.ordered
    run.notes += [declared.note] if declared.note else []
    return run


def _matches(profile: Profile, key: str, texts: list[str], where: str) -> list[list[Match]]:
    """Return the matches of a pattern in each text. One of a user is bounded in time."""
    pattern = profile.patterns[key]
    if not profile.is_ours:
        return find_in_each(pattern, texts, where)
    return [[(m.start(), m.end(), m.groupdict()) for m in pattern.finditer(t)] for t in texts]


def _name_kinds(profile: Profile, events: list[Event], where: str) -> None:
    """Give events the kinds, and the messages, that patterns find in their texts."""
    texts = [event.text for event in events]
    for kind in profile.declared.kind_re:
        for event, found in zip(events, _matches(profile, kind, texts, where), strict=True):
            if found:
                event.kind = kind
                event.message = found[0][2].get("message") or event.message


def _event(
    fields: Fields,
    record: dict[str, Any],
    source: Source,
    line: int,
    reading: Reading,
    run: Run,
) -> Event | None:
    record.setdefault("file", source.short)
    try:
        event = fields.event(record, source.name, line)
    except (ValueError, TypeError):
        reading.skipped["records with a field that cannot be read"] += 1
        run.doubts.append(f"{source.name}:{line} has a field that cannot be read")
        return None
    if not event.node:
        reading.skipped["records without a node"] += 1
        run.doubts.append(f"{source.name}:{line} names no node")
        return None
    if run.causality == "clocks":
        event.position = (event.clock or {}).get(event.node)
        if not event.position:
            reading.skipped["records without a clock of their node"] += 1
            return None
    return event


def _records(
    profile: Profile, source: Source, reading: Reading
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yield the run, the fields and the line of each record."""
    if not profile.declared.re:
        is_json = tables.is_json_lines(source) or tables.is_json_array(source)
        rows = tables.json_records(source) if is_json else tables.csv_records(source)
        comments = _comments(profile, source)
        for _, line, record in rows:
            if line in comments:
                reading.skipped["comments"] += 1
                continue
            inner = record.get(profile.declared.each) if profile.declared.each else None
            for one in inner if isinstance(inner, list) else [record]:
                yield "", dict(one), source.line_at(one[AT]) if inner else line
        return
    text = source.text
    ends = [(0, "")]
    if profile.declared.split:
        (splits,) = _matches(profile, "split", [text], source.name)
        ends += [(end, groups.get("run") or str(n)) for n, (_, end, groups) in enumerate(splits, 1)]
    (matches,) = _matches(profile, "re", [text], source.name)
    found = [match for match in matches if match[1] > match[0]]
    at = 0
    for start, _, groups in found:
        while at + 1 < len(ends) and ends[at + 1][0] <= start:
            at += 1
        yield ends[at][1], dict(groups), source.line_at(start)
    _count_rest(profile, source, [(start, end) for start, end, _ in found], reading)


def _count_rest(
    profile: Profile, source: Source, spans: list[tuple[int, int]], reading: Reading
) -> None:
    """Count the lines that the pattern does not match."""
    covered: set[int] = set()
    for start, end in spans:
        covered.update(range(source.line_at(start), source.line_at(max(start, end - 1)) + 1))
    comments = _comments(profile, source)
    rest: Counter[str] = Counter()
    for number, line in enumerate(source.lines, 1):
        if number not in covered and line.strip():
            is_comment = number in comments
            rest["comments" if is_comment else "lines that the profile does not match"] += 1
    reading.skipped += rest


def _comments(profile: Profile, source: Source) -> set[int]:
    """Return the numbers of the lines that are comments."""
    if not profile.declared.comment:
        return set()
    found = _matches(profile, "comment", source.lines, source.name)
    return {number for number, matches in enumerate(found, 1) if matches}
