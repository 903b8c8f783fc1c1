"""`beforehand verify`: was an event log in causal order?"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from beforehand.commands.console import Commands, add_command, add_json, print_json, print_table

EXAMPLE = "beforehand verify events.parquet --explain"
STORIES_MAX = 20


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "verify", "judge an event log: valid, invalid or unknown", EXAMPLE
    )
    parser.add_argument("events", type=Path, help="a Parquet file, or a folder of them")
    parser.add_argument("--explain", action="store_true", help="the causal chain of each violation")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.verify.verdict import verify_events

    verdict = verify_events(args.events)
    stories = list(islice(verdict.stories(), STORIES_MAX)) if args.explain else []
    if args.json:
        runs = [
            {
                "run": run.run,
                "verdict": run.state,
                "reason": run.reason,
                "broadcasts": run.broadcasts,
                "deliveries": run.deliveries,
                "violations": run.counts,
            }
            for run in verdict.runs
        ]
        print_json({"verdict": verdict.state, "runs": runs, "stories": stories})
        return verdict.exit_code
    rows = [
        (
            run.run,
            f"{run.broadcasts:,}",
            f"{run.deliveries:,}",
            *map(str, run.counts.values()),
            f"{run.state} {run.reason}".strip(),
        )
        for run in verdict.runs
    ]
    headings = ("run", "broadcasts", "deliveries", "late", "twice", "unknown", "verdict")
    print_table(str(args.events), headings, rows)
    for story in stories:
        print(f"\n{story}")
    print(f"verdict: {verdict.state}")
    return verdict.exit_code
