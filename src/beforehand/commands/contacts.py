"""`beforehand contacts`: from any mobility trace to a clean list of contacts."""

from __future__ import annotations

import argparse
from pathlib import Path

from beforehand.commands.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_VALID, InputError
from beforehand.files import check_file_target, refuse_device, replaced
from beforehand.units import format_duration, parse_distance

EXAMPLE = "beforehand contacts feed.zip --range 200m --out contacts.csv"


def add_parser(commands: Commands) -> None:
    summary = "read a mobility trace, find its contacts, and say what was mended"
    parser = add_command(commands, "contacts", summary, EXAMPLE)
    parser.add_argument("input", type=Path, help="a file or folder of any known format")
    parser.add_argument("--format", help="if it cannot be told from the content")
    parser.add_argument("--range", metavar="DISTANCE", help="where the trace has places: 200m")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write `a,b,start,end` lines")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.mobility.contacts_list import write_contacts
    from beforehand.mobility.positions import Positions
    from beforehand.mobility.read import read
    from beforehand.mobility.statistics import describe

    if args.out is not None:
        check_file_target(args.out)
    range_m = None
    if args.range is not None:
        range_m = parse_distance(args.range, positive=True, where="--range")
    refuse_device(args.input)
    found = read(args.input, args.format)
    if isinstance(found, Positions):
        if range_m is None:
            hint = "pass `--range 200m`: who is that close is in contact"
            raise InputError("the trace has places, not contacts", where=str(args.input), hint=hint)
        found = found.contacts_within(range_m)
    if args.out is not None:
        with replaced(args.out) as partial:
            write_contacts(found, partial)
        note(f"wrote {len(found.contacts)} contacts to {args.out}")
    statistics = describe(found)
    if args.json:
        print_json({**statistics, "changes": dict(found.changes)})
    else:
        rows = [(_label(name), _shown(name, value)) for name, value in statistics.items()]
        print_table(str(args.input), ("trace", "value"), rows)
        for kind, count in found.changes.items():
            note(f"mended: {kind} {count}")
    return EXIT_VALID


def _label(name: str) -> str:
    """`contact_s_avg` is in seconds for programs; people see a unit beside the number."""
    return name.replace("_s_", " ").removesuffix("_s").replace("_", " ")


def _shown(name: str, value: float) -> str:
    return format_duration(round(1e6 * value)) if "_s" in name else f"{value:,.0f}"
