"""Read logs with vector clocks as text: ShiViz, GoVector, Akka, Synoptic, and traces of TLC."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from beforehand.logs.bounded import compile_user, find_all
from beforehand.logs.mapping import clock_of
from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source

HEADER = re.compile(r"\(\?<(?:host|clock|event)>")
CLOCK_LINE = re.compile(
    r"^(?P<host>\S+) (?P<clock>\{(?:\s*\"[^\"]*\"\s*:\s*\d+\s*,?)*\s*\})\s*$", re.M
)
SPLIT = re.compile(r"^=== (?P<run>.*) ===$", re.M)
AKKA = re.compile(
    r"^\[\w+\] \[(?P<time>[^\]]*)\] \[[^\]]*\] \[akka://\w+/user/(?P<host>\w+)\] "
    r"(?P<clock>\{.*?\}) (?P<event>.*)$",
    re.M,
)
AKKA_BROADCAST = re.compile(r"Initiating RBBroadcast\(DataMessage\((\d+)")
AKKA_DELIVER = re.compile(r"RBDeliver of message DataMessage\((\d+)")
TLC = re.compile(r'^/\\ Host = (?P<host>.+)\n/\\ Clock = "(?P<clock>.*)"$', re.M)
SYNOPTIC = re.compile(r"^(?P<clock>\d+(?:,\d+)+) (?P<event>\S.*)$", re.M)
SYNOPTIC_SPLIT = re.compile(r"^--$", re.M)


def is_shiviz(source: Source) -> str:
    head = source.head
    first = head.split("\n", 1)[0]
    if HEADER.search(first) and "<clock>" in first:
        return "the first line is a regular expression with `(?<clock>`"
    if TLC.search(source.text):
        return "states of TLC with `Host` and `Clock`"
    if AKKA.search(head):
        return "lines of Akka with a vector clock"
    return "a line is a name and a vector clock" if CLOCK_LINE.search(head) else ""


def read_shiviz(sources: list[Source], why: str) -> Reading:
    """Return the runs of a ShiViz file, or of the files that the hosts of one run wrote."""
    reading = Reading("shiviz", why, [], [source.name for source in sources])
    parts = [_runs(source, reading) for source in sources]
    hosts = [{event.node for run in part for event in run.events} for part in parts]
    if len(parts) > 1 and all(len(host) == 1 for host in hosts) and all(len(p) == 1 for p in parts):
        run = Run(sources[0].folder or sources[0].name, "clocks")
        run.events = [event for part in parts for event in part[0].events]
        reading.assumed.append("the files, of one host each, are one run")
        reading.runs = [run]
    else:
        reading.runs = [run for part in parts for run in part]
    return reading


def _runs(source: Source, reading: Reading) -> list[Run]:
    text, start, pattern = source.text, 0, ""
    first, _, _ = text.partition("\n")
    if HEADER.search(first):
        pattern = first.strip()
        start = len(first) + 1
    runs = []
    for name, low, high in _pieces(text, start, SPLIT):
        run = Run(name or source.short, "clocks")
        for match in _matches(source, low, high, pattern):
            _add(run, source, match, reading)
        if run.events or not name:
            runs.append(run)
    return runs


def _pieces(text: str, start: int, split: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the start and the end of each run."""
    at, name = start, ""
    for match in split.finditer(text, start):
        if text[at : match.start()].strip():
            yield name, at, match.start()
        at, name = match.end() + 1, (match.groupdict().get("run") or "").strip()
    if text[at:].strip() or at == start:
        yield name, at, len(text)


Found = tuple[int, str, str, str]
"""The offset of a clock, its host, the clock, and the text of the event."""


def _matches(source: Source, low: int, high: int, pattern: str) -> Iterator[Found]:
    text = source.text
    if pattern and not TLC.search(text, low, high):
        found = find_all(compile_user(pattern, source.name), text[low:high], source.name)
        for start, _, groups in found:
            clock = groups.get("clock") or ""
            at = text.find(clock, low + start) if clock else low + start
            yield at, groups.get("host") or "", clock, groups.get("event") or ""
        return
    for regex in (TLC, AKKA):
        if regex.search(text, low, high):
            for match in regex.finditer(text, low, high):
                groups = match.groupdict()
                at = match.start("clock")
                yield (
                    at,
                    (groups["host"] or "").strip('"'),
                    groups["clock"] or "",
                    groups.get("event") or "",
                )
            return
    first = next((line for line in text[low:high].split("\n") if line.strip()), "")
    is_clock_first = bool(CLOCK_LINE.match(first))
    for match in CLOCK_LINE.finditer(text, low, high):
        if is_clock_first:
            end = text.find("\n", match.end() + 1)
            text_of_line = text[match.end() + 1 : high if end < 0 else end]
        else:
            text_of_line = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        yield match.start(), match["host"], match["clock"], text_of_line


def _add(run: Run, source: Source, found: Found, reading: Reading) -> None:
    at, host, clock, text_of_line = found
    line = source.line_at(at)
    try:
        known = clock_of(clock)
    except (ValueError, TypeError, json.JSONDecodeError):
        known = None
    if known is None:
        reading.skipped["lines whose clock cannot be read"] += 1
        run.doubts.append(f"line {line:,} has no readable clock")
        return
    event = Event(host, "local", source.name, line, clock=known, text=text_of_line[:200])
    if is_akka := AKKA_BROADCAST.search(text_of_line):
        event.kind, event.message = "broadcast", is_akka[1]
    elif is_akka := AKKA_DELIVER.search(text_of_line):
        event.kind, event.message = "deliver", is_akka[1]
    if host not in known or not known[host]:
        run.doubts.append(f"line {line:,} has a host without a counter, `{host}`")
        return
    event.position = known[host]
    run.events.append(event)


def is_synoptic(source: Source) -> str:
    lines = [line for line in source.head.split("\n") if line and line[0] != "#" and line != "--"]
    if len(lines) > 1 and all(SYNOPTIC.match(line) for line in lines):
        return "lines of a vector of counters and an event"
    return ""


def read_synoptic(sources: list[Source], why: str) -> Reading:
    """Return the runs of logs whose clocks are vectors of counters without the name of a host."""
    reading = Reading("synoptic", why, [], [source.name for source in sources])
    reading.assumed.append("the host of an event is the entry that no other event can own")
    for source in sources:
        for number, (_, low, high) in enumerate(_pieces(source.text, 0, SYNOPTIC_SPLIT), 1):
            run = Run(f"{source.short}#{number}", "clocks")
            rows = [
                (m.start(), tuple(map(int, m["clock"].split(","))), m["event"])
                for m in SYNOPTIC.finditer(source.text, low, high)
            ]
            for at, host, clock, text_of_line in _hosted(rows):
                line = source.line_at(at)
                if host < 0:
                    run.doubts.append(f"line {line:,}: the host does not follow from the clock")
                    continue
                known = {str(i): entry for i, entry in enumerate(clock) if entry}
                run.events.append(
                    Event(
                        str(host),
                        "local",
                        source.name,
                        line,
                        "",
                        "",
                        (),
                        known,
                        clock[host],
                        None,
                        text_of_line,
                    )
                )
            if rows:
                reading.runs.append(run)
    return reading


def _hosted(
    rows: list[tuple[int, tuple[int, ...], str]],
) -> Iterator[tuple[int, int, tuple[int, ...], str]]:
    """Yield the rows with the entry that is the host's own: no lesser clock has that value."""
    first: dict[tuple[int, int], tuple[int, ...]] = {}
    unsure: set[tuple[int, int]] = set()
    for _, clock, _ in rows:
        for key in enumerate(clock):
            least = first.setdefault(key, clock)
            if all(a <= b for a, b in zip(clock, least, strict=False)):
                first[key] = clock
                unsure.discard(key)
            elif not all(a >= b for a, b in zip(clock, least, strict=False)):
                unsure.add(key)
    owned = _claimed([clock for _, clock, _ in rows])
    for (at, clock, text_of_line), host in zip(rows, owned, strict=True):
        own = [
            i for i, n in enumerate(clock) if n and first[i, n] == clock and (i, n) not in unsure
        ]
        yield at, host if host >= 0 else own[0] if len(own) == 1 else -1, clock, text_of_line


def _claimed(clocks: list[tuple[int, ...]]) -> list[int]:
    """Return for each clock the entry that no other clock can own; -1 if that is not decided.

    A counter of a host is the own one of one event. So the first event of a host, which knows no
    other, owns its only entry; and an event whose causes own all other entries owns the last one.
    This needs every event of a run, and no clock to be right. Events with one clock and as many
    entries left own them in the order of their lines: whichever owns which, they know each other.
    """
    rows_of: dict[tuple[int, int], list[int]] = {}
    left = [{i for i, n in enumerate(clock) if n} for clock in clocks]
    for row, clock in enumerate(clocks):
        for i in left[row]:
            rows_of.setdefault((i, clock[i]), []).append(row)
    found = [-1] * len(clocks)
    same: dict[tuple[int, ...], list[int]] = {}
    for row, clock in enumerate(clocks):
        same.setdefault(clock, []).append(row)
    twins = [rows for rows in same.values() if len(rows) > 1]
    ready = [row for row, entries in enumerate(left) if len(entries) == 1]
    while ready:
        while ready:
            row = ready.pop()
            if found[row] >= 0 or len(left[row]) != 1:
                continue
            (host,) = left[row]
            _claim(row, host, clocks, rows_of, left, found, ready)
        for rows in twins:
            hosts = sorted(left[rows[0]])
            if found[rows[0]] < 0 and len(hosts) == len(rows):
                for row, host in zip(rows, hosts, strict=True):
                    _claim(row, host, clocks, rows_of, left, found, ready)
    return found


def _claim(
    row: int,
    host: int,
    clocks: list[tuple[int, ...]],
    rows_of: dict[tuple[int, int], list[int]],
    left: list[set[int]],
    found: list[int],
    ready: list[int],
) -> None:
    found[row] = host
    for other in rows_of[host, clocks[row][host]]:
        if found[other] < 0:
            left[other].discard(host)
            if len(left[other]) == 1:
                ready.append(other)
