"""`beforehand status`: report which datasets of a run exist and which are missing."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note,
    note_rest,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_UNKNOWN, EXIT_VALID

DAMAGE_SHOWN = 20
EXAMPLE = "beforehand status out/city-bus"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "status", "show the progress of a run", EXAMPLE)
    parser.add_argument("directory", type=Path, help="the folder that `beforehand run` writes to")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.pipeline.work import is_done, read_progress

    stages = read_progress(args.directory)
    if args.json:
        print_json([asdict(stage) for stage in stages])
    else:
        rows = [(stage.stage, str(stage.there), str(stage.wanted)) for stage in stages]
        print_table(str(args.directory), ("stage", "there", "wanted"), rows)
        damaged = [problem for stage in stages for problem in stage.damaged]
        for problem in damaged[:DAMAGE_SHOWN]:
            note(f"damaged: {problem}")
        note_rest(len(damaged) - DAMAGE_SHOWN, "damaged files")
        if damaged:
            note("give the command of the run again: damaged datasets are computed again")
    return EXIT_VALID if is_done(stages) else EXIT_UNKNOWN
