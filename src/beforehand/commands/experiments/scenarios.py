"""`beforehand scenarios`: list the scenarios of the package, or copy one to change it."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_VALID, InputError, choose

EXAMPLE = "beforehand scenarios --copy my-gtfs"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "scenarios", "list the scenarios of the package, or copy one", EXAMPLE
    )
    parser.add_argument("--copy", metavar="NAME", help="copy one into this folder, to change it")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.copy is not None:
        return _copy(args.copy)
    return show(as_json=args.json)


def show(*, as_json: bool) -> int:
    """Print the list of scenarios."""
    from beforehand.scenario.shipped import shipped

    scenarios = shipped()
    if as_json:
        print_json([{"name": one.name, "title": one.title} for one in scenarios])
    else:
        rows = [(one.name, one.title) for one in scenarios]
        print_table("Scenarios of the package", ("name", "title"), rows, are_texts=True)
        note(
            "`beforehand run city-bus` runs one of them; `beforehand scenarios --copy city-bus` "
            "copies it into this folder"
        )
    return EXIT_VALID


def _copy(name: str) -> int:
    from beforehand.scenario.shipped import shipped

    by_name = {one.name: one.path for one in shipped()}
    if name not in by_name:
        raise InputError(f"no such scenario: `{name}`", hint=choose(name, by_name))
    target = Path(by_name[name].name)
    if target.exists():
        raise InputError("there is a file of that name", where=str(target), hint="move it away")
    shutil.copyfile(by_name[name], target)
    print(target)
    return EXIT_VALID
