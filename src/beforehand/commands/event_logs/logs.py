"""`beforehand logs`: list the formats of logs that `verify` reads, with an example of each."""

from __future__ import annotations

import argparse

from beforehand.commands.shell.console import Commands, add_command, add_json, print_json
from beforehand.errors import EXIT_VALID, InputError, choose, visible

EXAMPLE = "beforehand logs csv"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "logs", "list the formats of logs that verify reads", EXAMPLE)
    parser.add_argument("name", nargs="?", help="show one format only")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.logs.formats import all_formats

    formats = {form.name: form for form in all_formats()}
    if args.name is not None and args.name not in formats:
        raise InputError(f"no such format: `{args.name}`", hint=choose(args.name, formats))
    shown = [form for form in formats.values() if args.name in (None, form.name)]
    if args.json:
        keys = ("name", "title", "causality", "example")
        print_json([{key: getattr(form, key) for key in keys} for form in shown])
        return EXIT_VALID
    for form in shown:
        print(f"{form.name}: {form.title}")
        for line in form.example.splitlines():
            print(f"    {visible(line)}")
    return EXIT_VALID
