"""`beforehand report`: the page of a run that is already there."""

from __future__ import annotations

import argparse
from pathlib import Path

from beforehand.commands.console import Commands, add_command
from beforehand.errors import EXIT_VALID

EXAMPLE = "beforehand report out/city-bus"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "report", "write the page of a finished run again", EXAMPLE)
    parser.add_argument("directory", type=Path, help="the folder that `beforehand run` wrote to")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.report.page import write_report

    print(write_report(args.directory))
    return EXIT_VALID
