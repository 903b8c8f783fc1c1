"""What the commands share. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

FILE_COLUMNS = 160
Commands = Any  # argparse does not name the type of what add_subparsers returns


def add_command(
    commands: Commands, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """A sub-command whose help ends with an example."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_COLUMNS)  # else 80 are assumed, and numbers cut off
    if title:
        # Not the table's own title, which is wrapped at the width of the table.
        console.print(Text(title, style="bold"))
    console.print(table)


def note(text: str) -> None:
    print(text, file=sys.stderr)


def progress() -> Progress:
    """A progress bar on stderr; silent where stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
