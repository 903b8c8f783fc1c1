"""Judge reads of sets: what a read shows, and what it lacks although an author had read it."""

from __future__ import annotations

from beforehand.logs.model import BROADCAST, Event, Read, Run
from beforehand.verify.foreign.findings import Judged, name_some

READ_KINDS = ("gap", "own write missing", "twice in a read")
"""Findings that are violations only where complete reads are promised."""


def judge_reads(run: Run) -> Judged:
    """Judge a history of broadcasts and reads.

    A message depends on what its author's session had read or broadcast before. It is late at a
    session if it appears in a read after one that shows a message that depends on it.
    """
    judged = Judged()
    reads = {id(read.event): read for read in run.reads}
    knows: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    broadcasts: dict[str, Event] = {}
    own: dict[str, list[str]] = {}
    shown: dict[str, list[Read]] = {}
    for event in sorted(run.events, key=lambda event: (event.file, event.line)):
        known = knows.setdefault(event.node, set())
        if event.kind == BROADCAST:
            needs[event.message] = set(known)
            broadcasts[event.message] = event
            known.add(event.message)
            own.setdefault(event.node, []).append(event.message)
        elif id(event) in reads:
            read = reads[id(event)]
            shown.setdefault(event.node, []).append(read)
            _judge_read(read, needs, broadcasts, own.get(event.node, []), judged)
            known.update(read.shown)
    for session in sorted(shown):
        _judge_late(shown[session], needs, broadcasts, judged)
    judged.messages = sum(len(set(read.shown)) for read in run.reads)
    judged.edges = sum(len(own) for own in needs.values())
    if not run.reads:
        judged.doubts.append("no read ended :ok, so nothing was delivered")
    elif not broadcasts:
        judged.doubts.append("nothing was broadcast")
    _note_missed(shown, broadcasts, judged)
    return judged


def _judge_read(
    read: Read,
    needs: dict[str, set[str]],
    broadcasts: dict[str, Event],
    own: list[str],
    judged: Judged,
) -> None:
    values = set(read.shown)
    event = read.event
    if len(values) < len(read.shown):
        judged.add("twice in a read", f"a read of `{event.node}` shows a value twice", event)
    for message in sorted(values - broadcasts.keys()):
        judged.add("unknown", f"a read shows `{message}`, which was not broadcast so far", event)
    lost = [message for message in own if message not in values]
    if lost:
        what = f"a read of `{event.node}` lacks its own `{lost[0]}`"
        judged.add("own write missing", what, broadcasts[lost[0]], event)
    for message in sorted(values & needs.keys()):
        if lacks := needs[message] - values:
            lack = min(lacks)
            what = f"a read shows `{message}` and lacks `{lack}`, which its author knew"
            causes = (broadcasts[lack],) if lack in broadcasts else ()
            judged.add("gap", what, *causes, broadcasts[message], event)
            break


def _judge_late(
    reads: list[Read], needs: dict[str, set[str]], broadcasts: dict[str, Event], judged: Judged
) -> None:
    missing: dict[str, tuple[str, Read]] = {}
    seen: set[str] = set()
    for read in reads:
        for message in sorted({*read.shown} - seen):
            if message in missing and message in broadcasts:
                after, earlier = missing[message]
                what = f"`{read.event.node}` shows `{message}` after `{after}`, which follows it"
                proof = (broadcasts[message], broadcasts[after], earlier.event, read.event)
                judged.add("late", what, *proof)
        seen.update(read.shown)
        for message in read.shown:
            for need in needs.get(message, set()) - seen:
                missing.setdefault(need, (message, read))


def _note_missed(
    shown: dict[str, list[Read]], broadcasts: dict[str, Event], judged: Judged
) -> None:
    if not shown or not broadcasts:
        return
    missed = [
        f"{message} at {session}"
        for session, reads in sorted(shown.items())
        for message in sorted({*broadcasts} - {value for read in reads for value in read.shown})
    ]
    if missed:
        judged.notes.append(name_some(missed, "messages never appear in a read of a session"))
