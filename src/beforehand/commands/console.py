"""What the commands share. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from beforehand.errors import InputError, choose, visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.text import Text

Tell = Callable[[str, int, int | None], None]
"""Hears a stage, how much of it is done, and of how much; None: nobody knows."""
FILE_COLUMNS = 160
Commands = Any  # argparse does not name the type of what add_subparsers returns
SEED_MAX = 2**63 - 1
STDOUT = Path("-")
CELL_MAX = 80
"""Characters. A longer name would leave no room for the columns beside it."""
CHOICE = re.compile(r"argument (.+?): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)

_volume = {"quiet": False}


class Parser(argparse.ArgumentParser):
    """One that raises what is wrong with a command line, as with any other input."""

    def print_help(self, file: Any = None) -> None:
        """As argparse does it, which says nothing where it cannot."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        if found := CHOICE.fullmatch(message):
            what, word, names = found.groups()
            hint = choose(word, [name.strip("' ") for name in names.split(",")])
            noun = "command" if what == "COMMAND" else f"choice for {what}"
            raise InputError(f"no such {noun}: `{word}`", where=self.prog, hint=hint)
        hint = f"`{self.prog} --help` shows what there is"
        raise InputError(message, where=self.prog, hint=hint)


def whole(least: int, most: int) -> Callable[[str], int]:
    """For `type=`: a whole number, within bounds that make sense."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            shown = text if len(text) <= 40 else f"{text[:40]}..."
            raise argparse.ArgumentTypeError(
                f"not a whole number from {least:,} to {most:,}: `{shown}`"
            )
        return value

    return parse


def be_quiet(quiet: bool) -> None:
    """Whether notes are left out; results and errors are not."""
    _volume["quiet"] = quiet


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
    for short, name in (("-q", "--quiet"), ("-v", "--verbose")):
        hide = argparse.SUPPRESS  # they are told with all commands, and may stand after one too
        parser.add_argument(short, name, action="store_true", default=hide, help=hide)
    parser.set_defaults(parser=parser)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Where Spark runs, and how."""
    parser.add_argument("--master", metavar="URL", help="a Spark cluster; default: embedded")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )


def refuse_json(args: argparse.Namespace, flag: str) -> None:
    """Where stdout is taken already."""
    if args.json:
        problem = "both would go to stdout: the file and the JSON"
        raise InputError(problem, where=f"{flag} -, --json", hint="give one of them a file")


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
        table.add_row(*map(_cell, row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_COLUMNS)  # else 80 are assumed, and numbers cut off
    # Written by us and not by rich, which ends the program with the code of a violation where
    # nobody reads any more.
    with console.capture() as captured:
        if title:
            # Not the table's own title, which is wrapped at the width of the table.
            console.print(Text(visible(title), style="bold"))
        console.print(table)
    sys.stdout.write(captured.get())


def _cell(text: str) -> Text:
    """As it is written: in a plain text rich would look for markup, and `[/x]` would be a crash."""
    from rich.text import Text

    shown = visible(text)
    return Text(shown if len(shown) <= CELL_MAX else f"{shown[: CELL_MAX - 3]}...")


def note(text: str) -> None:
    if not _volume["quiet"]:
        say(text)


def say(text: str) -> None:
    """To stderr. Where nobody can hear it, the work goes on, and its exit code tells."""
    try:
        print(visible(text, keep="\n\t"), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """So that Python does not try to write what is left, and complain, on its way out."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_closed_streams() -> None:
    """Without them, the next file that is opened would be taken for stderr.

    Nobody says what is read from a closed stdin, and nobody hears a closed stderr. What a closed
    stdout does not take is lost: that is refused.
    """
    had_stdout = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if not had_stdout:
        hint = "leave `>&-` out, or use `>/dev/null`"
        raise InputError("stdout is closed: there is no place for the result", hint=hint)


def note_rest(count: int, noun: str) -> None:
    """Say how many of a list were left out, if any were."""
    if count > 0:
        note(f"{count:,} more {noun} not shown")


@contextmanager
def told_stages() -> Iterator[Tell]:
    """A bar for each stage that is told of: how much of it is done, of how much, how long still.

    A stage begins anew when it is told that nothing of it is done.
    """
    tasks: dict[str, TaskID] = {}
    with progress() as bar:

        def tell(stage: str, done: int, of: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=of)
            elif not done:
                bar.reset(tasks[stage], total=of)
            bar.update(tasks[stage], completed=done, total=of)

        yield tell


def progress() -> Progress:
    """A progress bar on stderr; silent where stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    is_hidden = _volume["quiet"] or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=is_hidden)
