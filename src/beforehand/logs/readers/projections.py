"""Read logs of Projections: what each processor of a Charm++ program created and processed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from beforehand.errors import InputError
from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source
from beforehand.logs.times import time_of

HEADER = re.compile(r"\APROJECTIONS-RECORD \d+\s*\n")
DESCRIPTION = re.compile(r"\APROJECTIONS_ID\s")
NAME = re.compile(r"\.(\d+)\.log$")
CREATION, BEGIN, BROADCAST = "1", "2", "20"
EVENT_AT, SOURCE_AT, TIME_AT = 4, 5, 3
"""The places of the number of the event, of the processor that created it, and of the time."""


def is_projections(source: Source) -> str:
    if HEADER.match(source.head):
        return "the first line is `PROJECTIONS-RECORD`"
    return "the description of a log of Projections" if DESCRIPTION.match(source.head) else ""


def read_projections(sources: list[Source], why: str) -> Reading:
    """Return one run: a processor creates messages, and processes each after its creation.

    A message is the processor and the number of its creation. Broadcasts and other messages are
    processed several times, so a creation is the sends of as many copies as were processed.
    """
    reading = Reading("projections", why, [], [source.name for source in sources])
    logs = [source for source in sources if HEADER.match(source.head)]
    if not logs:
        hint = "give the folder that has the logs of the processors, too"
        raise InputError("a description without its logs", where=sources[0].name, hint=hint)
    reading.assumed.append("a message may be processed several times")
    run = Run(logs[0].short if len(logs) == 1 else logs[0].folder, "messages")
    records = [record for source in logs for record in _records(source, reading)]
    processed = Counter(record.message for record in records if record.words[0] == BEGIN)
    copies: Counter[str] = Counter()
    for record in records:
        if record.words[0] == BEGIN:
            copies[record.message] += 1
            run.events.append(record.event("receive", copies[record.message]))
        else:
            last = max(1, processed[record.message])
            run.events += [record.event("send", copy) for copy in range(1, last + 1)]
    reading.runs.append(run)
    return reading


class Record(NamedTuple):
    """The creation of a message, or the begin of its processing."""

    words: list[str]
    node: str
    file: str
    line: int

    @property
    def message(self) -> str:
        source = self.words[SOURCE_AT] if self.words[0] == BEGIN else self.node
        return f"{source}/{self.words[EVENT_AT]}"

    def event(self, kind: str, copy: int) -> Event:
        name = self.message if copy == 1 else f"{self.message} copy {copy}"
        event = Event(self.node, kind, self.file, self.line, message=name)
        event.time_ns = time_of(self.words[TIME_AT], "us")
        event.text = f"entry {self.words[2]}"
        return event


def _records(source: Source, reading: Reading) -> Iterator[Record]:
    numbered = NAME.search(source.short)
    if numbered is None:
        problem = "the file name has no processor number"
        raise InputError(problem, where=source.name, hint="name it as in `NAME.0.log`")
    for number, line in enumerate(source.lines[1:], 2):
        words = line.split()
        if words and words[0] in (CREATION, BEGIN, BROADCAST):
            if len(words) <= SOURCE_AT:
                problem = f"a record of {len(words)} numbers"
                raise InputError(problem, where=f"{source.name}:{number}")
            yield Record(words, numbered[1], source.name, number)
        elif words:
            reading.skipped[f"records of the type {words[0][:20]}"] += 1
