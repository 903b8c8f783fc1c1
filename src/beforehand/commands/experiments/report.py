"""`beforehand report`: write the report page of a finished run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import Commands, add_command, add_json, print_json
from beforehand.errors import EXIT_VALID
from beforehand.files import check_folder_target

if TYPE_CHECKING:
    from beforehand.report.content import Page

EXAMPLE = "beforehand report out/city-bus"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "report", "write the page of a finished run again", EXAMPLE)
    parser.add_argument("directory", type=Path, help="the folder that `beforehand run` wrote to")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.report.page import write_page

    page = build_page(args.directory)
    path = write_page(page, args.directory)
    if args.json:
        figures = [figure.slug for section in page.sections for figure in section.figures]
        tables = [table.slug for section in page.sections for table in section.tables]
        told = {"report": str(path), "title": page.title, "verdict": page.verdict}
        print_json({**told, "headline": page.headline, "tables": tables, "figures": figures})
    else:
        print(path)
    return EXIT_VALID


def write_report(directory: Path) -> Path:
    """Write report.html and figures/ into the folder that holds the results of a scenario."""
    from beforehand.report.page import write_page

    return write_page(build_page(directory), directory)


def build_page(directory: Path) -> Page:
    """Return the content of the report page."""
    from beforehand.pipeline.experiment import load_experiment
    from beforehand.report.datasets import read_scenario

    check_folder_target(directory)
    experiment = load_experiment(read_scenario(directory).world, where=str(directory))
    return experiment.page(directory)
