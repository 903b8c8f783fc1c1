"""`beforehand verify`: check whether an event log is in causal order."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note_rest,
    print_json,
    print_table,
    told_stages,
)
from beforehand.errors import visible
from beforehand.promises import PROMISES, label_of

if TYPE_CHECKING:
    from beforehand.verify.verdict import RunVerdict

EXAMPLE = "beforehand verify events.parquet --explain"
STORIES_MAX, LOST_MAX = 20, 20
HEADINGS = (
    *("run", "broadcasts", "deliveries", "late", "twice", "unknown"),
    *("promised", "verdict"),
)


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "verify", "judge an event log: valid, invalid or unknown", EXAMPLE
    )
    parser.add_argument(
        "events", type=Path, help="a Parquet file (or its .gz), a folder of them, or `-`"
    )
    parser.add_argument("--explain", action="store_true", help="the causal chain of each violation")
    parser.add_argument(
        "--promise",
        choices=tuple(PROMISES),
        help="the promise to judge the runs by, overriding that of the log; default for a log "
        "without one: causal",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.verify.verdict import verify_events

    with told_stages() as tell:
        verdict = verify_events(args.events, promise=args.promise, on_done=tell)
    stories = list(islice(verdict.stories(), STORIES_MAX)) if args.explain else []
    hidden = sum(sum(run.counts.values()) for run in verdict.runs) - len(stories)
    if args.json:
        runs = [_as_dict(run) for run in verdict.runs]
        told = {"verdict": verdict.state, "runs": runs, "lost": verdict.lost, "stories": stories}
        print_json({**told, "stories_not_shown": hidden})
        return verdict.exit_code
    print_table(str(args.events), HEADINGS, [_row(run) for run in verdict.runs])
    for story in stories:
        print(f"\n{story}")
    if args.explain:
        note_rest(hidden, "violations")
    hidden_logs = max(0, len(verdict.lost) - LOST_MAX)
    reasons = list(verdict.reasons())  # the reasons of lost logs come last
    for name, state, reason in reasons[: len(reasons) - hidden_logs]:
        print(visible(f"{name}: {state}: {reason}"))
    note_rest(hidden_logs, "lost logs")
    print(f"verdict: {verdict.state}")
    return verdict.exit_code


def _row(run: RunVerdict) -> tuple[str, ...]:
    counts = (run.broadcasts, run.deliveries, *run.counts.values())
    return (run.run, *(f"{count:,}" for count in counts), label_of(run.promise), run.state)


def _as_dict(run: RunVerdict) -> dict[str, object]:
    return {
        "run": run.run,
        "verdict": run.state,
        "reason": run.reason,
        "promise": run.promise,
        "promise_from": run.promise_from,
        "broadcasts": run.broadcasts,
        "deliveries": run.deliveries,
        "violations": run.counts,
    }
