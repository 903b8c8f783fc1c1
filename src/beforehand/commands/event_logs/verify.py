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
    note,
    note_rest,
    print_json,
    print_table,
    stage_bars,
)
from beforehand.commands.shell.junit import write_junit
from beforehand.commands.shell.log_tables import (
    add_reading,
    log_as_dict,
    print_readings,
    reading_as_dict,
)
from beforehand.errors import InputError, visible
from beforehand.files import check_file_target, refuse_same
from beforehand.promises import PROMISES, label_of

if TYPE_CHECKING:
    from beforehand.verify.foreign.judge import LogVerdict
    from beforehand.verify.verdict import RunVerdict, Verdict

EXAMPLE = "beforehand verify events.parquet --explain"
STDIN = Path("-")
PAGE = ".html"
STORIES_MAX, LOST_MAX = 20, 20
HEADINGS = (
    *("run", "broadcasts", "deliveries", "late", "twice", "unknown"),
    *("promised", "verdict"),
)


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "verify", "judge whether an event log is in causal order", EXAMPLE
    )
    parser.add_argument(
        "events", type=Path, help="a log (see `beforehand logs`), a folder of logs, or `-`"
    )
    parser.add_argument("--explain", action="store_true", help="the causal chain of each violation")
    parser.add_argument(
        "--diagram",
        type=Path,
        metavar="FILE",
        help="with --explain: the first violation as a page (.html), or as a diagram (.svg, .png, "
        ".txt, .mmd, .tex)",
    )
    parser.add_argument(
        "--promise",
        choices=tuple(PROMISES),
        help="the promise to judge the runs by, overriding that of the log; default for a log "
        "without one: causal",
    )
    add_reading(parser)
    parser.add_argument(
        "--whole",
        action="store_true",
        help="the log has every event, so a message that was never sent is a violation",
    )
    parser.add_argument(
        "--complete-reads",
        action="store_true",
        help="reads of sets promise to show all that the authors of their messages knew",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML for CI, too")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.verify.verdict import RunVerdict, verify_events

    if args.diagram is not None:
        _check_diagram(args)
    with stage_bars() as show_stage:
        verdict = verify_events(
            args.events,
            promise=args.promise,
            mapping=args.map,
            profile=args.profile,
            is_whole=args.whole,
            has_complete_reads=args.complete_reads,
            on_done=show_stage,
        )
    if args.junit is not None:
        write_junit(verdict, str(args.events), args.junit)
    stories = list(islice(verdict.stories(), STORIES_MAX)) if args.explain else []
    hidden = sum(run.stories_count for run in verdict.runs) - len(stories)
    if args.diagram is not None:
        _write_diagram(args, verdict)
    if args.json:
        runs = [_as_dict(run) for run in verdict.runs]
        answer = {"verdict": verdict.state, "runs": runs, "lost": verdict.lost, "stories": stories}
        read = {"readings": [reading_as_dict(reading) for reading in verdict.readings]}
        print_json({**answer, "stories_not_shown": hidden, **(read if verdict.readings else {})})
        return verdict.exit_code
    own = [_row(run) for run in verdict.runs if isinstance(run, RunVerdict)]
    if own or not verdict.readings:
        print_table(str(args.events), HEADINGS, own)
    if verdict.readings:
        print_readings(str(args.events), verdict)
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


def _check_diagram(args: argparse.Namespace) -> None:
    """Refuse, before work starts, what cannot be drawn."""
    from beforehand.diagram.write import check_suffix

    if not args.explain:
        raise InputError(
            "`--diagram` draws the violation that `--explain` names",
            where="--diagram",
            hint="add --explain",
        )
    if args.events == STDIN:
        raise InputError(
            "a diagram needs a file", where="--diagram", hint="write the log to a file"
        )
    check_suffix(args.diagram, "--diagram", (PAGE,))
    check_file_target(args.diagram)
    refuse_same(args.diagram, args.events)


def _write_diagram(args: argparse.Namespace, verdict: Verdict) -> None:
    """Write the page or the diagram of the first run with a violation, else of the first run."""
    from beforehand.diagram.read import story_of
    from beforehand.diagram.write import write_diagram
    from beforehand.play.gather import gather_run
    from beforehand.play.page import write_page
    from beforehand.verify.verdict import RunVerdict

    if args.diagram.suffix.lower() != PAGE:
        write_diagram(story_of(args.events, verdict), args.diagram)
        note(f"wrote {args.diagram}")
        return
    runs = [run for run in verdict.runs if isinstance(run, RunVerdict)]
    if not runs:
        hint = "write a diagram instead: to a file that ends with .svg"
        raise InputError("`--diagram` cannot draw this log", where=str(args.events), hint=hint)
    wanted = next((run for run in runs if any(run.counts.values())), runs[0]).run
    write_page(gather_run(args.events, wanted), args.diagram)
    note(f"wrote {args.diagram}")


def _row(run: RunVerdict) -> tuple[str, ...]:
    counts = (run.broadcasts, run.deliveries, *run.counts.values())
    return (run.run, *(f"{count:,}" for count in counts), label_of(run.promise), run.state)


def _as_dict(run: RunVerdict | LogVerdict) -> dict[str, object]:
    from beforehand.verify.foreign.judge import LogVerdict

    if isinstance(run, LogVerdict):
        return log_as_dict(run)
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
