"""Decide whether a log of another system is in causal order, and by which source of causality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from beforehand import events
from beforehand.errors import visible
from beforehand.logs.model import (
    BROADCAST,
    DELIVER,
    KINDS,
    LOCAL,
    RECEIVE,
    SEND,
    Reading,
    Run,
)
from beforehand.promises import DEFAULT_PROMISE, PROMISES
from beforehand.verify.foreign.broadcasts import judge_broadcasts
from beforehand.verify.foreign.clocks import judge_clocks
from beforehand.verify.foreign.findings import Finding, Judged
from beforehand.verify.foreign.messages import judge_messages
from beforehand.verify.foreign.parents import judge_parents
from beforehand.verify.foreign.reads import READ_KINDS, judge_reads

State = Literal["valid", "invalid", "unknown"]
SOURCES = {
    "clocks": "vector clocks",
    "parents": "ids of direct causes",
    "messages": "messages that events name",
    "none": "nowhere",
}
KNOWN = {*KINDS, *events.KINDS, *events.NODE_KINDS}
REASONS_MAX = 8


@dataclass(frozen=True)
class LogVerdict:
    """The verdict on one run of another system's log."""

    run: str
    state: State
    reason: str
    """Why the verdict is unknown, or what was allowed; else empty."""
    promise: str
    promise_from: Literal["option", "log", "default"]
    format: str
    causality: str
    """The source of causality: clocks, parents, messages or none."""
    nodes: int
    events: int
    messages: int
    """Clocks: inferred messages. Parents: edges between nodes. Else: receptions."""
    edges: int
    skew: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    broadcasts: int
    deliveries: int

    @property
    def stories_count(self) -> int:
        """Return how many violations there are, allowed ones included."""
        return sum(self.counts.values())

    def stories(self) -> Iterator[str]:
        """Yield for each violation the events that prove it, with their files and lines."""
        for finding in self.findings:
            yield finding.story(self.run)


def judge_reading(
    reading: Reading,
    promise: str | None,
    *,
    is_whole: bool = False,
    has_complete_reads: bool = False,
) -> Iterator[LogVerdict]:
    """Yield the verdict on each run of what was read."""
    for run in reading.runs:
        yield judge_run(
            run,
            reading.format,
            promise,
            is_whole=is_whole,
            has_complete_reads=has_complete_reads,
        )


def judge_run(
    run: Run,
    form: str,
    promise: str | None = None,
    *,
    is_whole: bool = False,
    has_complete_reads: bool = False,
) -> LogVerdict:
    held_to = promise or DEFAULT_PROMISE
    parts = _judged(run, is_whole)
    kinds = Counter(event.kind for event in run.events)
    findings = [finding for part in parts for finding in part.findings]
    doubts = [*run.doubts, *(doubt for part in parts for doubt in part.doubts)]
    doubts += _strange(kinds) if run.causality == "messages" else []
    counts: Counter[str] = Counter(finding.kind for finding in findings)
    allowed = {"late"} - {*PROMISES[held_to].broken_by}
    allowed |= set() if has_complete_reads else {*READ_KINDS}
    state: State = "valid"
    if any(kind not in allowed for kind in counts):
        state = "invalid"
    elif doubts:
        state = "unknown"
    allowed_late = PROMISES[held_to].describe_late(counts["late"], kinds[DELIVER])
    reason = _joined(doubts) if state == "unknown" else allowed_late if state == "valid" else ""
    if state == "valid" and not reason and counts:
        listed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
        reason = f"{listed}: complete reads were not promised"
    notes = [*run.notes, *(note for part in parts for note in part.notes)]
    notes += [f"besides: {_joined(doubts)}"] if doubts and state == "invalid" else []
    return LogVerdict(
        run.name, state, reason, held_to, "option" if promise else "default",
        form, run.causality,
        len({event.node for event in run.events}), len(run.events),
        sum(part.messages for part in parts), sum(part.edges for part in parts),
        sum(part.skew for part in parts),
        dict(sorted((kind, count) for kind, count in counts.items() if count)),
        tuple(findings), tuple(notes), kinds[BROADCAST], kinds[DELIVER],
    )  # fmt: skip


def _judged(run: Run, is_whole: bool) -> list[Judged]:
    """Return the results of the judges that the source of causality asks for."""
    kinds = {event.kind for event in run.events}
    if not run.events:
        return [Judged(doubts=["there are no events in the log"])]
    if run.causality == "none":
        reason = "the log has no source of causality: no clocks, no parents, no messages"
        return [Judged(doubts=[reason])]
    if run.causality == "parents":
        return [judge_parents(run)]
    is_history = run.causality == "messages" and not kinds & {DELIVER, SEND, RECEIVE}
    if run.reads or (is_history and run.doubts):
        return [judge_reads(run)]
    parts = [judge_clocks(run)] if run.causality == "clocks" else []
    if kinds & {BROADCAST, DELIVER}:
        broadcasts = judge_broadcasts(run, is_whole=is_whole)
        if parts:
            broadcasts.edges = broadcasts.messages = 0  # those of the clocks are counted
        parts.append(broadcasts)
    if parts and run.causality == "messages" and kinds & {SEND, RECEIVE}:
        parts.append(_judge_beside(run, is_whole))
    if run.causality == "messages" and not parts:
        messages = judge_messages(run, is_whole=is_whole)
        if not messages.messages and not messages.findings and not parts:
            messages.doubts.append("no message has a send and a receive: there is nothing to judge")
        parts.append(messages)
    return parts


def _judge_beside(run: Run, is_whole: bool) -> Judged:
    """Judge the sends and receives in a log of broadcasts.

    Those that name a broadcast message are its transport, and not judged. Others carry causality
    from one node to another, which the judge of broadcasts does not see: it may miss a violation.
    """
    broadcasts = {event.message for event in run.events if event.kind in (BROADCAST, DELIVER)}
    ends = [event for event in run.events if event.kind in (SEND, RECEIVE)]
    apart = [event for event in ends if event.message not in broadcasts]
    if not apart:
        return Judged(notes=["sends and receives of broadcast messages are their transport"])
    kept = [event for event in run.events if event.kind not in (SEND, RECEIVE)]
    kept = [replace(event, kind=LOCAL) for event in kept]
    judged = judge_messages(replace(run, events=[*kept, *apart]), is_whole=is_whole)
    judged.edges = 0  # those of the nodes are counted
    if not judged.findings:
        judged.doubts.append(
            f"{len(apart):,} sends and receives beside the broadcasts may order them, too"
        )
    return judged


def _strange(kinds: Counter[str]) -> list[str]:
    """Return a doubt about events of unknown kinds: they may be misspelt deliveries."""
    strange = {kind: count for kind, count in kinds.items() if kind not in KNOWN}
    if not strange:
        return []
    shown = ", ".join(
        f"`{visible(kind[:40])}` {count:,}" for kind, count in sorted(strange.items())[:5]
    )
    return [f"{sum(strange.values()):,} events are of no known kind: {shown}"]


def _joined(reasons: list[str]) -> str:
    more = [f"{len(reasons) - REASONS_MAX:,} more reasons"] if len(reasons) > REASONS_MAX else []
    return "; ".join([*reasons[:REASONS_MAX], *more])
