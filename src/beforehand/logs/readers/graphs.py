"""Read causal graphs: Matrix rooms, editing traces, Automerge changes and SSB feeds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from beforehand.errors import InputError
from beforehand.logs.located import AT, documents
from beforehand.logs.mapping import text_of
from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.readers.spans import has_keys
from beforehand.logs.source import Source
from beforehand.logs.times import time_of

AUTOMERGE = re.compile(r'\A\s*(?:\[\s*)?\{(?=[^\n]*"actor":)(?=[^\n]*"seq":)(?=[^\n]*"deps":)')


def is_matrix(source: Source) -> str:
    is_found = has_keys(source, "event_id", "prev_events")
    return "Matrix: objects with `event_id` and `prev_events`" if is_found else ""


def is_editing(source: Source) -> str:
    at = source.text.find('"txns"') if source.head.lstrip()[:1] == "{" else -1
    begin = source.text[at : at + (1 << 16)] if at >= 0 else ""
    is_found = '"parents"' in begin and '"agent"' in begin
    return "an editing trace: `txns` with `parents` and `agent`" if is_found else ""


def is_automerge(source: Source) -> str:
    found = AUTOMERGE.match(source.head)
    return "Automerge changes: `actor`, `seq` and `deps`" if found else ""


def is_ssb(source: Source) -> str:
    is_found = has_keys(source, "author", "sequence", "previous")
    return "SSB: `author`, `sequence` and `previous`" if is_found else ""


def _reading(form: str, sources: list[Source], why: str, *, is_chain: bool) -> tuple[Reading, Run]:
    name = sources[0].short if len(sources) == 1 else sources[0].folder
    run = Run(name, "parents", is_sequential=is_chain)
    return Reading(form, why, [run], [source.name for source in sources]), run


def _objects(source: Source) -> Iterator[dict[str, Any]]:
    for document in documents(source):
        for one in document if isinstance(document, list) else [document]:
            if isinstance(one, dict):
                yield one


def read_matrix(sources: list[Source], why: str) -> Reading:
    reading, run = _reading("matrix", sources, why, is_chain=False)
    for source in sources:
        for one in _matrix_objects(source):
            if "event_id" not in one or not isinstance(one.get("prev_events"), list):
                reading.skipped["objects without `event_id` or `prev_events`"] += 1
                run.doubts.append(f"{source.name} has events without `event_id` or `prev_events`")
                continue
            # Room versions 1 and 2 write pairs of an id and hashes.
            parents = [p[0] if isinstance(p, list) else p for p in one.get("prev_events") or ()]
            time = time_of(one.get("origin_server_ts"), "ms")
            event = Event(text_of(one.get("sender")), "local", source.name, source.line_at(one[AT]))
            event.id, event.parents = text_of(one.get("event_id")), tuple(map(text_of, parents))
            event.time_ns, event.text = time, text_of(one.get("type"))
            run.events.append(event)
    return reading


def _matrix_objects(source: Source) -> Iterator[dict[str, Any]]:
    """Yield events: bare, or in a list of an answer, such as `pdus`, `chunk` or `messages`."""
    for one in _objects(source):
        lists = [value for value in one.values() if isinstance(value, list)]
        inner = [part for value in lists for part in value if isinstance(part, dict)]
        if "event_id" in one or not inner:
            yield one
        else:
            yield from ({AT: one[AT], **part} for part in inner)


def read_editing(sources: list[Source], why: str) -> Reading:
    """Return the transactions of editing traces. A parent is the index of a transaction, or of an
    item that one spans."""
    reading, _ = _reading("editing", sources, why, is_chain=False)
    reading.runs = []
    for source in sources:
        run = Run(source.short, "parents", is_sequential=False)
        reading.runs.append(run)
        for document in _objects(source):
            txns = document.get("txns") or ()
            names = [str(at) for at in range(len(txns))]
            by_item = {}
            if any("span" in txn for txn in txns):
                by_item = {txn["span"][1] - 1: str(at) for at, txn in enumerate(txns)}
                starts = [txn["span"][0] for txn in txns]
                by_item = _Spans(starts, names)
            times = {txn.get("time") for txn in txns}
            for at, txn in enumerate(txns):
                parents = [by_item[p] if by_item else str(p) for p in txn.get("parents") or ()]
                time = time_of(txn.get("time")) if len(times) > 1 else None
                event = Event(text_of(txn.get("agent")), "local", source.name, 1)
                event.line = source.line_at(txn[AT])
                event.id, event.parents, event.time_ns = str(at), (*dict.fromkeys(parents),), time
                run.events.append(event)
            if len(times) == 1:
                run.notes.append("all times are the same, so there is no physical time")
    return reading


class _Spans(dict[int, str]):
    """Names of transactions by the items that they span."""

    def __init__(self, starts: list[int], names: list[str]) -> None:
        super().__init__(zip(starts, names, strict=True))
        self.starts = sorted(starts)

    def __missing__(self, item: int) -> str:
        from bisect import bisect_right

        at = bisect_right(self.starts, item) - 1
        return self[self.starts[at]] if at >= 0 else str(item)


def _changes(source: Source) -> Iterator[tuple[int, Any]]:
    """Yield the line and the content of each change: one per line, or all in an array."""
    if source.head.lstrip()[:1] == "[":
        yield from ((source.line_at(one[AT]), one) for one in _objects(source))
        return
    for number, line in enumerate(source.lines, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{source.name}:{number}"
                raise InputError(f"not a change of Automerge: {error}", where=where) from error


def read_automerge(sources: list[Source], why: str) -> Reading:
    """Return Automerge changes. A change follows `deps` and the actor's change before it."""
    reading, run = _reading("automerge", sources, why, is_chain=False)
    reading.assumed.append("a change follows its actor's change of the sequence number before")
    for source in sources:
        for number, one in _changes(source):
            try:
                actor, seq = one["actor"], int(one["seq"])
                deps = [f"{a}/{s}" for a, s in one["deps"].items()]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                problem = f"not a change of Automerge: {error}"
                raise InputError(problem, where=f"{source.name}:{number}") from error
            parents = [f"{actor}/{seq - 1}"] if seq > 1 else []
            event = Event(actor, "local", source.name, number, f"{actor}/{seq}")
            event.parents = tuple(dict.fromkeys([*deps, *parents]))
            event.time_ns = time_of(one.get("time"), "s")
            run.events.append(event)
    return reading


def read_ssb(sources: list[Source], why: str) -> Reading:
    """Return the messages of SSB feeds: bare, in `value`, or in `message`."""
    reading, run = _reading("ssb", sources, why, is_chain=False)
    for source in sources:
        for one in _objects(source):
            bare = one.get("value") or one.get("message") or one
            if not isinstance(bare, dict):
                reading.skipped["objects without a message"] += 1
                continue
            content = bare.get("content") if isinstance(bare.get("content"), dict) else {}
            own = text_of(one.get("key") or one.get("id") or bare.get("key"))
            if not isinstance(bare.get("sequence"), int) or not isinstance(bare.get("author"), str):
                reading.skipped["messages whose author or sequence has a wrong type"] += 1
                run.doubts.append(f"{source.name}:{source.line_at(one[AT])} has a wrong type")
            links = [bare.get("previous"), *_links(content)]
            event = Event(text_of(bare.get("author")), "local", source.name, 1, own)
            event.line = source.line_at(one[AT])
            event.parents = tuple(dict.fromkeys(filter(None, links)))
            event.time_ns = time_of(bare.get("timestamp"), "ms")
            run.events.append(event)
    return reading


def _links(content: Any) -> Iterator[str]:
    vote = content.get("vote")
    found = [content.get(key) for key in ("root", "branch", "fork")]
    found += [vote.get("link")] if isinstance(vote, dict) else []
    for value in found:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one.startswith("%"):
                yield one
