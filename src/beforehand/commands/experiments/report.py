"""`beforehand report`: write the report page of a finished run again."""

from __future__ import annotations

import argparse
from pathlib import Path

from beforehand.commands.shell.console import Commands, add_command, add_json, print_json
from beforehand.errors import EXIT_VALID

EXAMPLE = "beforehand report out/city-bus"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "report", "write the page of a finished run again", EXAMPLE)
    parser.add_argument("directory", type=Path, help="the folder that `beforehand run` wrote to")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.lab.report import build_page
    from beforehand.report.page import write_page

    page = build_page(args.directory)
    path = write_page(page, args.directory)
    if args.json:
        figures = [figure.slug for section in page.sections for figure in section.figures]
        tables = [table.slug for section in page.sections for table in section.tables]
        answer = {"report": str(path), "title": page.title, "verdict": page.verdict}
        print_json({**answer, "headline": page.headline, "tables": tables, "figures": figures})
    else:
        print(path)
    return EXIT_VALID
