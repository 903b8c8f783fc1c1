"""Helpers that all commands share. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from beforehand.errors import InputError, choose, visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.text import Text

ShowStage = Callable[[str, int, int | None], None]
"""Called with a stage, how much of it is done, and the total; None if the total is unknown."""
FILE_COLUMNS = 160
Commands = Any  # argparse does not name the return type of add_subparsers
SEED_MAX = 2**63 - 1
STDOUT = Path("-")
CELL_MAX = 80
"""The maximum characters per cell; longer names would leave no room for other columns."""
CHOICE = re.compile(r"argument (.+?): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)

_volume = {"quiet": False}


NO_VALUE = re.compile(r"argument (--[\w-]+): expected one argument")


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InputError for an invalid command line."""

    def print_help(self, file: Any = None) -> None:
        """Print the help like argparse, but raise if it cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        if found := CHOICE.fullmatch(message):
            what, word, names = found.groups()
            hint = choose(word, [name.strip("' ") for name in names.split(",")])
            noun = "command" if what == "COMMAND" else f"choice for {what}"
            raise InputError(f"no such {noun}: `{word}`", where=self.prog, hint=hint)
        hint = f"`{self.prog} --help` shows what there is"
        if found := NO_VALUE.fullmatch(message):
            hint = f"a value that starts with `-` needs `=`: `{found[1]}=-5m`"
        raise InputError(message, where=self.prog, hint=hint)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a parser for `type=` that accepts integers within these bounds."""

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
    """Set whether notes are suppressed; results and errors are always shown."""
    _volume["quiet"] = quiet


def add_command(
    commands: Commands, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a sub-command whose help ends with an example."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for short, name in (("-q", "--quiet"), ("-v", "--verbose")):
        hide = argparse.SUPPRESS  # the main help lists them; they may also follow a command
        parser.add_argument(short, name, action="store_true", default=hide, help=hide)
    parser.set_defaults(parser=parser)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Add the options for where and how Spark runs."""
    parser.add_argument("--master", metavar="URL", help="a Spark cluster; default: embedded")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )
    parser.add_argument(
        "--ship", action="store_true", help="send this package to the machines of the cluster"
    )


def refuse_json(args: argparse.Namespace, flag: str) -> None:
    """Refuse `--json` if a file already goes to stdout."""
    if args.json:
        problem = "both would go to stdout: the file and the JSON"
        raise InputError(problem, where=f"{flag} -, --json", hint="give one of them a file")


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    are_texts: bool = False,
) -> None:
    """Print a table. are_texts: align all columns left; else all but the first are numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for index, heading in enumerate(headings):
        is_left = are_texts or not index
        table.add_column(heading, justify="left" if is_left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_cell, row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_COLUMNS)  # otherwise rich truncates at 80 columns
    # Write the captured text ourselves: on a broken pipe rich exits with code 1, which here means a
    # violation.
    with console.capture() as captured:
        if title:
            # Not the table's own title, which is wrapped at the width of the table.
            console.print(Text(visible(title), style="bold"))
        console.print(table)
    sys.stdout.write(captured.get())


def _cell(text: str) -> Text:
    """Return the text without markup: rich would parse `[/x]` in a string and crash."""
    from rich.text import Text

    shown = visible(text)
    return Text(shown if len(shown) <= CELL_MAX else f"{shown[: CELL_MAX - 3]}...")


def note(text: str) -> None:
    if not _volume["quiet"]:
        print_error(text)


def show_page(path: Path) -> None:
    """Open a page in the browser, or print where it is."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        note(f"no browser here: open {path} yourself")


def print_error(text: str) -> None:
    """Print to stderr. If stderr cannot be written, work continues, and the exit code shows the
    result."""
    try:
        print(visible(text, keep="\n\t"), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """Redirect a broken stream to /dev/null, so that Python's flush at exit does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_closed_streams() -> None:
    """Open closed standard streams on /dev/null. Otherwise the next opened file would get, say, fd
    2.

    Reading a closed stdin or writing to a closed stderr does no harm. A closed stdout would lose
    the result, so it is refused.
    """
    had_stdout = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if not had_stdout:
        hint = "leave `>&-` out, or use `>/dev/null`"
        raise InputError("stdout is closed: there is no place for the result", hint=hint)


@contextmanager
def noted_warnings() -> Iterator[None]:
    """Show the warnings of this package as notes, without a line of its source."""
    show = warnings.showwarning

    def show_note(
        message: Warning | str, category: type[Warning], *place: Any, **more: Any
    ) -> None:
        if category.__module__.startswith("beforehand."):
            note(f"warning: {message}")
        else:
            show(message, category, *place, **more)

    warnings.showwarning = show_note
    try:
        yield
    finally:
        warnings.showwarning = show


def note_rest(count: int, noun: str) -> None:
    """Report how many entries of a list were left out, if any."""
    if count > 0:
        note(f"{count:,} more {noun} not shown")


@contextmanager
def stage_bars() -> Iterator[ShowStage]:
    """Show a bar for each stage: how much is done, the total, and the remaining time.

    A stage starts again when it is called with `done` equal to zero.
    """
    tasks: dict[str, TaskID] = {}
    with progress() as bar:

        def show_stage(stage: str, done: int, of: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=of)
            elif not done:
                bar.reset(tasks[stage], total=of)
            bar.update(tasks[stage], completed=done, total=of)

        yield show_stage


def progress() -> Progress:
    """Return a progress bar on stderr; it is hidden if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    is_hidden = _volume["quiet"] or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=is_hidden)
