"""Read histories of clients: Jepsen and Maelstrom as EDN, `history.txt` and `jepsen.log`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from beforehand.errors import InputError
from beforehand.logs import edn
from beforehand.logs.model import Event, Read, Reading, Run
from beforehand.logs.source import Source

LINE = re.compile(
    r"^(?:.*jepsen\.util(?: -|:) )?(?P<process>:?[\w-]+)\s+:(?P<type>invoke|ok|fail|info)\s+"
    r":(?P<f>\S+)(?:\s+(?P<value>[^\t\n]*))?.*$",
    re.M,
)
EDN_OP = re.compile(r"\A\s*[\[(]?\s*(?:#[\w.]+\s*)?\{[^{}]{0,400}:type\s+:(?:invoke|ok|info|fail)")
RESULTS = re.compile(r"\A\s*\{.{0,20000}:valid\?", re.S)
HINT = "a history has maps with :process, :type and :f"


@dataclass(slots=True)
class Operation:
    """One line of a history."""

    process: Any
    type: str
    f: str
    value: Any
    line: int


def is_edn_history(source: Source) -> str:
    return "EDN maps with `:type :invoke`" if EDN_OP.search(source.head) else ""


def is_results(source: Source) -> str:
    is_first = RESULTS.search(source.head) and not EDN_OP.search(source.head)
    return "results with `:valid?`" if is_first else ""


def is_text_history(source: Source) -> str:
    lines = [line for line in source.head.split("\n")[:50] if line.strip()]
    matched = sum(bool(LINE.match(line)) for line in lines)
    found = LINE.search(source.text) if lines and (matched or "jepsen" in source.head) else None
    return "lines of a process, a type and a function" if found else ""


def read_results(sources: list[Source], why: str) -> Reading:
    reading = Reading("jepsen-results", why, [], [source.name for source in sources])
    reading.skipped["files with the results of a checker, which hold no events"] = len(sources)
    return reading


def read_edn(sources: list[Source], why: str) -> Reading:
    return _read(sources, why, _edn_operations)


def read_text(sources: list[Source], why: str) -> Reading:
    return _read(sources, why, _text_operations)


def _edn_operations(source: Source, _reading: Reading) -> Iterator[Operation]:
    for value in edn.values(source):
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict) or ":type" not in one:
                continue
            line = source.line_at(one[edn.AT])
            if ":process" not in one or ":f" not in one:
                where = f"{source.name}:{line}"
                raise InputError("an operation without :process or :f", where=where, hint=HINT)
            kind = str(one[":type"]).removeprefix(":")
            f = str(one[":f"]).removeprefix(":")
            yield Operation(one[":process"], kind, f, one.get(":value"), line)


def _text_operations(source: Source, reading: Reading) -> Iterator[Operation]:
    count = 0
    for match in LINE.finditer(source.text):
        count += 1
        word = match["process"]
        process = int(word) if word.isdigit() else word
        text = (match["value"] or "").strip()
        try:
            value = next(edn.values(Source("", text.encode())), None)
        except InputError:
            value = text
        yield Operation(process, match["type"], match["f"], value, source.line_at(match.start()))
    rest = sum(bool(line.strip()) for line in source.lines) - count
    if rest:
        reading.skipped["lines that are no operations"] += rest


def _read(sources: list[Source], why: str, operations: Any) -> Reading:
    reading = Reading("jepsen", why, [], [source.name for source in sources])
    for source in sources:
        found = list(operations(source, reading))
        clients = [op for op in found if isinstance(op.process, int)]
        reading.skipped["operations of the nemesis"] += len(found) - len(clients)
        reading.runs.append(_run(source, clients, reading))
    reading.skipped = +reading.skipped
    return reading


def concurrency_of(operations: list[Operation]) -> int:
    """Return how many processes run at once: one that ended :info is replaced by a process whose
    number is higher by that."""
    first = {op.process for op in operations}
    ended = {op.process for op in operations if op.type == "info"}
    if not ended:
        return max(first, default=0) + 1
    return next(
        (n for n in range(1, max(first) + 2) if all(p - n in ended for p in first if p >= n)),
        max(first) + 1,
    )


def _run(source: Source, operations: list[Operation], reading: Reading) -> Run:
    run = Run(source.short, "messages")
    sessions = concurrency_of(operations)
    reading.assumed.append(f"a session is the process modulo {sessions}")
    states = Counter(op.type for op in operations)
    _doubt(run, operations, states)
    broadcasts = {"broadcast"} & {op.f for op in operations}
    for op in operations:
        node = str(op.process % sessions)
        event = Event(node, "local", source.name, op.line, position=None)
        event.text = f":{op.type} :{op.f} {op.value}"[:200]
        if broadcasts and op.f == "broadcast" and op.type == "invoke":
            event.kind, event.message = "broadcast", str(op.value)
        elif broadcasts and op.f == "read" and op.type == "ok" and isinstance(op.value, list):
            run.reads.append(Read(event, tuple(map(str, op.value))))
        run.events.append(event)
    if not broadcasts:
        run.causality = "none"
    return run


def _doubt(run: Run, operations: list[Operation], states: Counter[str]) -> None:
    invoked = states["invoke"]
    if states["info"]:
        every = "every operation" if not states["ok"] + states["fail"] else f"{states['info']:,}"
        run.doubts.append(f"{every} of {invoked:,} ended :info: it may or may not have happened")
    written = Counter(
        (op.f, str(op.value)) for op in operations if op.type == "invoke" and op.f in WRITES
    )
    again = sum(count > 1 for count in written.values())
    if again:
        run.doubts.append(f"{again:,} values are written more than once, so reads have no source")
    if not {"broadcast"} & {op.f for op in operations}:
        run.doubts.append("no broadcasts: reads-from of registers is not judged")


WRITES = ("write", "cas", "put", "append", "broadcast", "add", "enqueue")
