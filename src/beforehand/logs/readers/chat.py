"""Read chats with annotations of which line answers which: IRC."""

from __future__ import annotations

import re

from beforehand.errors import InputError
from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source

CHAT_LINE = re.compile(r"^\[\d\d:\d\d\] (?:<(?P<nick>[^>\s]+)>|\* (?P<actor>\S+)) (?P<text>.*)$")
NOTICE = "==="
PAIR = re.compile(r"^(?P<parent>\d+) (?P<child>\d+) -\s*$")


def is_irc(source: Source) -> str:
    lines = [line for line in source.head.split("\n") if line.strip()]
    if lines and all(map(PAIR.match, lines)):
        return "pairs of line numbers of a chat"
    chat_lines = sum(bool(CHAT_LINE.match(line)) for line in lines)
    notices = sum(line.startswith(NOTICE) for line in lines)
    is_chat = chat_lines > 1 and chat_lines + notices == len(lines)
    return "lines of a chat: `[hh:mm] <nick>`" if is_chat else ""


def read_irc(sources: list[Source], why: str) -> Reading:
    """Return the lines of chats, with the lines that they answer if annotations say so.

    The annotations of `X.raw.txt` are in `X.annotation.txt`, or else in the only file of pairs.
    Its lines count from 0.
    """
    reading = Reading("irc", why, [], [source.name for source in sources])
    pairs = [source for source in sources if PAIR.match(source.head.lstrip().split("\n")[0])]
    chats = [source for source in sources if source not in pairs]
    if not chats:
        hint = "give the folder that has the chat, too"
        raise InputError("annotations without their chat", where=pairs[0].name, hint=hint)
    for chat in chats:
        stem = chat.short.partition(".")[0]
        own = [source for source in pairs if source.short.partition(".")[0] == stem]
        own = own or (pairs if len(chats) == 1 else [])
        reading.runs.append(_run(chat, own, reading))
    return reading


def _run(chat: Source, pairs: list[Source], reading: Reading) -> Run:
    run = Run(chat.short, "parents" if pairs else "none", is_sequential=False)
    by_line: dict[int, Event] = {}
    for number, line in enumerate(chat.lines):
        if match := CHAT_LINE.match(line):
            event = Event(match["nick"] or match["actor"], "local", chat.name, number + 1)
            event.id, event.text = str(number), match["text"][:200]
            by_line[number] = event
        elif line.strip():
            reading.skipped["notices of the server"] += 1
    run.events = [*by_line.values()]
    marked: set[int] = set()
    for source in pairs:
        for number, line in enumerate(source.lines, 1):
            if not line.strip():
                continue
            found = PAIR.match(line)
            if found is None:
                raise InputError("not a pair of lines", where=f"{source.name}:{number}")
            cause, effect = sorted((int(found["parent"]), int(found["child"])))
            marked |= {cause, effect}
            if not {cause, effect} <= by_line.keys():
                reading.skipped["pairs that name a notice of the server"] += 1
            elif cause != effect:
                event = by_line[effect]
                event.parents = (*event.parents, str(cause))
    if pairs and (outside := len(by_line.keys() - marked)):
        run.doubts.append(f"{outside:,} lines are outside of the annotated ones")
    return run
