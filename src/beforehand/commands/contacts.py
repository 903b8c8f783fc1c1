"""`beforehand contacts`: convert any mobility trace into a clean list of contacts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from beforehand.commands.shell.console import (
    STDOUT,
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
    refuse_json,
)
from beforehand.commands.tracing import add_trace_options, load_trace, report_trace, trace_json
from beforehand.errors import EXIT_VALID
from beforehand.files import check_file_target, refuse_device, refuse_same, replaced
from beforehand.units import format_duration

EXAMPLE = "beforehand contacts feed.zip --range 200m --out contacts.csv"


def add_parser(commands: Commands) -> None:
    summary = "read a mobility trace, find its contacts, and list the repairs"
    parser = add_command(commands, "contacts", summary, EXAMPLE)
    parser.add_argument("input", type=Path, help="a file or folder of any known format, or `-`")
    add_trace_options(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write contacts and presence, as CSV or `.parquet`; `-`: to stdout",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.mobility.formats.contacts_list import contact_lines, write_contacts
    from beforehand.mobility.formats.parquet import write_contacts_parquet
    from beforehand.mobility.statistics import describe

    if args.out == STDOUT:
        refuse_json(args, "--out")
    elif args.out is not None:
        check_file_target(args.out)
        refuse_same(args.out, args.input)
    refuse_device(args.input)
    found = load_trace(args)
    report_trace(found)
    if args.out == STDOUT:
        sys.stdout.writelines(contact_lines(found))
        return EXIT_VALID
    if args.out is not None:
        with replaced(args.out) as partial:
            if args.out.suffix == ".parquet":
                write_contacts_parquet(found, partial)
            else:
                write_contacts(found, partial, packed=args.out.suffix == ".gz")
        stays = len(found.presence)
        note(f"wrote {len(found.contacts)} contacts and {stays} stays to {args.out}")
    statistics: dict[str, float | None] = dict(describe(found))
    if not len(found.contacts):  # without contacts, their duration is undefined and not zero
        statistics |= dict.fromkeys(
            (n for n in statistics if n.startswith(("contact_s", "between_s"))), None
        )
    if args.json:
        print_json({**statistics, "changes": dict(found.changes), "read": trace_json(found)})
    else:
        rows = [(_label(name), _shown(name, value)) for name, value in statistics.items()]
        print_table(str(args.input), ("trace", "value"), rows)
    return EXIT_VALID


def _label(name: str) -> str:
    """Return a label without the unit `_s`, which only programs need; people see it in the
    value."""
    return name.replace("_s_", " ").removesuffix("_s").replace("_", " ")


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    return format_duration(round(1e6 * value)) if "_s" in name else f"{value:,.0f}"
