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
    print(write_report(args.directory))
    return EXIT_VALID


def write_report(directory: Path) -> Path:
    """Write report.html and figures/ into the folder that holds the results of a scenario."""
    from beforehand.pipeline.experiment import load_experiment
    from beforehand.report.datasets import read_scenario
    from beforehand.report.page import write_page

    experiment = load_experiment(read_scenario(directory).world, where=str(directory))
    return write_page(experiment.page(directory), directory)
