"""Decide whether a log is in causal order: the verdict on each run, with proofs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from beforehand.errors import EXIT_UNKNOWN, EXIT_VALID, EXIT_VIOLATION, visible
from beforehand.kernels.verify.causality import (
    KINDS,
    LATE,
    TWICE,
    History,
    Spread,
    Violations,
    causal_chain,
    find_violations,
    first_delivery,
    first_follower,
    spread_of,
)
from beforehand.logs.mapping import fields_of
from beforehand.logs.model import Reading
from beforehand.promises import DEFAULT_PROMISE, PROMISES
from beforehand.units import format_duration
from beforehand.verify.event_log import READ_COLUMNS, STDIN, Log, logs_of, read_logs
from beforehand.verify.find import find_logs
from beforehand.verify.floors import BelowFloor
from beforehand.verify.foreign import entry as foreign
from beforehand.verify.foreign.judge import LogVerdict, judge_reading
from beforehand.verify.node_logs import are_of_nodes, read_node_logs
from beforehand.verify.plan import find_lost_logs

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

OnDone = Callable[[str, int, int], object]
"""Called with a stage, the number of its steps done, and their total."""
LOGS, SENDERS = "logs judged", "senders of this log"

LOST = "its event log is missing"

State = Literal["valid", "invalid", "unknown"]
PromiseFrom = Literal["option", "log", "default"]
EXIT_CODES: dict[State, int] = {
    "valid": EXIT_VALID,
    "invalid": EXIT_VIOLATION,
    "unknown": EXIT_UNKNOWN,
}


@dataclass(frozen=True)
class RunVerdict:
    """The verdict on one run."""

    run: str
    state: State
    reason: str
    """Why the verdict is unknown, valid despite late deliveries, or impossible; else empty."""
    promise: str
    """The order that the run was held to: a key of `PROMISES`, or an unknown promise of the log."""
    promise_from: PromiseFrom
    """Where `promise` comes from: the caller, the metadata of the log, or the default."""
    broadcasts: int
    deliveries: int
    counts: dict[str, int]
    """Violations by kind: late, twice, unknown."""
    log: Log
    history: History
    violations: Violations

    def stories(self) -> Iterator[str]:
        """Yield for each violation the events that prove it, from the cause to the delivery."""
        spreads: dict[int, Spread] = {}
        for row, kind in zip(self.violations.row.tolist(), self.violations.kind, strict=True):
            message = int(self.history.message[row])
            if kind == LATE and message not in spreads:
                spreads = {message: spread_of(self.history, message)}  # caches one message only
            yield _describe(self.log, self.history, row, int(kind), spreads.get(message))
        for found in self.log.below_floor.shown:
            yield _describe_below(self.log, found)

    @property
    def stories_count(self) -> int:
        """Return how many violations there are, allowed ones included."""
        return sum(self.counts.values()) + self.log.below_floor.count


@dataclass(frozen=True)
class Verdict:
    """The verdict on all runs of a log: the worst of theirs."""

    runs: tuple[RunVerdict | LogVerdict, ...]
    lost: tuple[str, ...] = ()
    """The folders of logs that the plan of the folder names and that are missing."""
    readings: tuple[Reading, ...] = ()
    """The meaning found in logs of other systems, and what was skipped or assumed."""

    @property
    def state(self) -> State:
        return worst([*(run.state for run in self.runs), *("unknown" for _ in self.lost)])

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.state]

    def stories(self) -> Iterator[str]:
        for run in self.runs:
            yield from run.stories()

    def reasons(self) -> Iterator[tuple[str, State, str]]:
        """Yield (run or folder, its verdict, why) where there is a reason to report."""
        yield from ((run.run, run.state, run.reason) for run in self.runs if run.reason)
        yield from ((folder, "unknown", LOST) for folder in self.lost)


def verify_events(
    path: str | os.PathLike[str] | pa.Table | pd.DataFrame,
    *,
    promise: str | None = None,
    mapping: Mapping[str, str] | Sequence[str] | None = None,
    profile: str | os.PathLike[str] | None = None,
    is_whole: bool = False,
    has_complete_reads: bool = False,
    on_done: OnDone = lambda _stage, _done, _all: None,
) -> Verdict:
    """Judge every run of a log: an event log, a folder of them, or a log of another system.

    The logs of real nodes are merged by causality first. In a folder that `beforehand run` wrote, a
    missing log that the plan names makes the verdict unknown. `docs/logs.md` tells how logs of
    other systems are read.

    path: a file, a folder, `-`, an Arrow table, or a DataFrame of pandas.
    promise: a key of `PROMISES`; overrides the log. By default the log's own promise, or causal
    order if the log does not say.
    mapping: the field of each role, as in `{"node": "host.name"}`; by default they are detected.
    profile: a TOML file that maps the log.
    is_whole: whether the log has every event of the run, so that a message that was never sent is
    a violation.
    has_complete_reads: whether a read promises to show all that the authors of its messages knew.
    on_done: called with the number of logs judged; and for each log with the number of senders
    whose messages are checked.
    """
    of_user = Path(profile) if profile else None
    asked = foreign.LogOptions(fields_of(mapping), of_user, is_whole, has_complete_reads)
    if not isinstance(path, str | os.PathLike):
        return _of_table(foreign.arrow_of(path), promise, asked)
    path = Path(path)
    content = sys.stdin.buffer.read() if path == STDIN else None
    if asked.is_any or foreign.is_foreign(path, content):
        readings = foreign.read(path, content, asked)
        return _of_readings(readings, promise, asked)
    lost = () if path == STDIN else tuple(find_lost_logs(path))
    found: list[tuple[Path, ...]] = list(find_logs(path))
    judged: list[RunVerdict | LogVerdict] = []
    for done, files in enumerate(found):
        on_done(LOGS, done, len(found))
        is_of_nodes = are_of_nodes(files)
        logs = read_node_logs(files) if is_of_nodes else read_logs(files, content=content)
        judged += [judge(log, promise, partial(on_done, SENDERS)) for log in logs]
    on_done(LOGS, len(found), len(found))
    return Verdict(tuple(judged), lost)


def _of_table(table: pa.Table, promise: str | None, asked: foreign.LogOptions) -> Verdict:
    if not asked.is_any and set(READ_COLUMNS) <= {*table.column_names} and len(table):
        logs = logs_of([table.select(READ_COLUMNS)], "the table")
        return Verdict(tuple(judge(log, promise) for log in logs))
    return _of_readings(foreign.read_table(table, asked), promise, asked)


def _of_readings(
    readings: Sequence[Reading], promise: str | None, asked: foreign.LogOptions
) -> Verdict:
    runs = [
        run
        for reading in readings
        for run in judge_reading(
            reading,
            promise,
            is_whole=asked.is_whole,
            has_complete_reads=asked.has_complete_reads,
        )
    ]
    return Verdict(tuple(runs), readings=tuple(readings))


def worst(states: Iterable[str]) -> State:
    """Return the worst of several verdicts; unknown if there are none."""
    found = set(states)
    if "invalid" in found:
        return "invalid"
    return "valid" if found == {"valid"} else "unknown"


def judge(
    log: Log,
    promise: str | None = None,
    on_done: Callable[[int, int], object] = lambda _done, _all: None,
) -> RunVerdict:
    held_to = promise or log.about.promise or DEFAULT_PROMISE
    history = log.history()
    violations = find_violations(history, threads=processors(), on_done=on_done)
    counts = count_kinds(violations)
    deliveries = len(history.node) - len(history.broadcast_rows)
    state, reason = state_of(
        counts, deliveries, log.doubts, held_to, log.impossible, log.below_floor.count
    )
    return RunVerdict(
        log.run,
        state,
        reason,
        held_to,
        "option" if promise else "log" if log.about.promise else "default",
        len(history.broadcast_rows),
        deliveries,
        counts,
        log,
        history,
        violations,
    )


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_kinds(violations: Violations) -> dict[str, int]:
    counts = np.bincount(violations.kind, minlength=len(KINDS)).tolist()
    return dict(zip(KINDS, counts, strict=True))


def state_of(
    counts: dict[str, int],
    deliveries: int,
    doubts: Sequence[str],
    promise: str,
    impossible: int = 0,
    below_floor: int = 0,
) -> tuple[State, str]:
    """Return the verdict, and why it is unknown, or valid despite late deliveries.

    A late or repeated delivery is a violation whatever else happened. If there are doubts about the
    log, an unknown broadcast may be among the missing events, and so may a violation. A delivery
    that is impossible in every order makes the log invalid, whatever is missing. So does a delivery
    at or below the floor of its node.
    """
    proven = []
    if impossible:
        proven.append(f"{impossible:,} deliveries before their broadcasts, in whatever order")
    if below_floor:
        proven.append(f"{below_floor:,} deliveries at or below the floor of their node")
    if proven:
        return "invalid", "; ".join(proven)
    if promise not in PROMISES:
        doubts = [*doubts, f"it promises `{promise}`, which this version cannot judge"]
    broken_by = PROMISES[promise].broken_by if promise in PROMISES else ()
    sure = [kind for kind in broken_by if kind != "unknown" or not doubts]
    if any(counts[kind] for kind in sure):
        return "invalid", ""
    if doubts:
        return "unknown", "; ".join(doubts)
    if not deliveries:
        return "unknown", "nothing was delivered"
    return "valid", PROMISES[promise].describe_late(counts["late"], deliveries)


def _describe(log: Log, history: History, row: int, kind: int, spread: Spread | None) -> str:
    what = f"node {log.name(log.node[row])} delivered {_message(log, row)}"
    if kind == LATE:
        assert spread is not None
        after = first_follower(history, spread, int(history.node[row]), row)
        rows = [*causal_chain(history, spread, int(history.message[after])), after, row]
        head = f"{what} after {_message(log, after)}, which causally follows it"
    elif kind == TWICE:
        rows = [*first_delivery(history, row), row]
        head = f"{what} a second time"
    elif history.message[row] >= 0:
        rows = [row, int(history.broadcast_rows[history.message[row]])]
        head = f"{what} before it was broadcast"
    else:
        rows = [row]
        head = f"{what}, which no node had broadcast"
    return "\n".join([f"run {visible(log.run)}: {head}", *(_line(log, at) for at in rows)])


def _describe_below(log: Log, found: BelowFloor) -> str:
    node, skip = log.name(found.node), found.skip
    message = f"{log.name(found.origin)}:{found.seq}"
    head = f"node {node} delivered {message}, which is not above its floor of {skip.floor}"
    return "\n".join(
        [
            f"run {visible(log.run)}: {head}",
            _event(skip.step, skip.t_us, f"node {node} skips up to {skip.floor}"),
            _event(found.step, found.t_us, f"node {node} delivers {message}"),
        ]
    )


def _line(log: Log, row: int) -> str:
    verb = "broadcasts" if log.is_broadcast[row] else "delivers"
    node, message = log.name(log.node[row]), _message(log, row)
    return _event(int(log.step[row]), int(log.t_us[row]), f"node {node} {verb} {message}")


def _event(step: int, t_us: int, what: str) -> str:
    return f"  step {step:>8}  at {format_duration(t_us):>8}  {what}"


def _message(log: Log, row: int) -> str:
    return f"{log.name(log.origin[row])}:{log.seq[row]}"
