"""The command line: parse the arguments, run one command, report errors."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import traceback
import zipfile
from collections.abc import Sequence
from contextlib import suppress

from beforehand import __version__
from beforehand.commands import contacts, doctor, fuzz, observe, simulate
from beforehand.commands.event_logs import diagram, export, logs, play, verify
from beforehand.commands.experiments import diff, report, run, scenarios, status
from beforehand.commands.nodes import chat, gateway, group, host, node, station
from beforehand.commands.shell import completion
from beforehand.commands.shell.console import (
    Parser,
    be_quiet,
    forget,
    noted_warnings,
    open_closed_streams,
    print_error,
)
from beforehand.commands.shell.interrupt import Signals, Terminated
from beforehand.errors import (
    EXIT_CRASH,
    EXIT_INTERRUPTED,
    EXIT_NO_READER,
    EXIT_TERMINATED,
    BeforehandError,
    InputError,
    closest,
)

COMMANDS = (
    *(
        run,
        scenarios,
        simulate,
        contacts,
        export,
        verify,
        logs,
        play,
        diagram,
        report,
        diff,
        status,
        fuzz,
        observe,
        doctor,
    ),
    *(group, chat, node, gateway, station, host, completion),
)
CODES = "0 valid, 1 violation, 2 bad input, 3 unknown, 4 internal error, 130 stopped"
START = """start here:
  beforehand run                  list the scenarios; `run city-bus` runs one
  beforehand verify run.parquet   judge a log; `logs` lists the formats
  beforehand group new harbour    make a key; then `chat harbour --name ann`"""
TRACEBACK = "BEFOREHAND_TRACEBACK"
"""If this environment variable is set, a crash shows its traceback, as with `-v`."""


def dispatch(arguments: Sequence[str] | None) -> int:
    """Run a command and return the exit code, as in `CODES`. Show no traceback unless asked for.

    arguments: None for those of this process.
    """
    args = argparse.Namespace(debug=False, verbose=False)
    signals = Signals()
    try:
        signals.install()
        open_closed_streams()
        try:
            args = _parse(arguments)
        except SystemExit:
            sys.stdout.flush()  # after help or version; raises if the reader has closed the pipe
            raise
        be_quiet(args.quiet)
        with noted_warnings():
            code = int(args.run(args))
        sys.stdout.flush()
        return code
    except (Exception, KeyboardInterrupt) as error:
        if args.debug:
            raise
        shown = signals.interrupt or error  # after a signal, any exception is a consequence of it
        return _report(shown, with_traceback=args.verbose or bool(os.environ.get(TRACEBACK)))
    finally:
        signals.restore()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    args, rest = make_parser().parse_known_args(arguments)
    if rest:
        chosen: Parser = args.parser
        known = [option for action in chosen._actions for option in action.option_strings]
        guess = closest(rest[0].partition("=")[0], known)
        problem = (
            f"no such option: `{rest[0]}`"
            if rest[0][0:1] == "-"
            else f"unknown argument: `{rest[0]}`"
        )
        hint = " ".join(filter(None, (guess, f"`{chosen.prog} --help` shows what there is")))
        raise InputError(problem, where=chosen.prog, hint=hint)
    return args


def _report(error: BaseException, *, with_traceback: bool) -> int:
    """Report the error, as far as stdout and stderr can be written, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        forget(sys.stdout)
        return EXIT_NO_READER
    try:
        if isinstance(error, KeyboardInterrupt):
            print_error("interrupted")
            return EXIT_TERMINATED if isinstance(error, Terminated) else EXIT_INTERRUPTED
        is_ours = getattr(error, "exit_code", None) == EXIT_CRASH
        shown = error if isinstance(error, BeforehandError) and not is_ours else _outside(error)
        if shown is not None:
            print_error(shown.render())
            return shown.exit_code
        print_error(_crash(error))
        if with_traceback:
            print_error("".join(traceback.format_exception(error)))
        return EXIT_CRASH
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()


def _outside(error: BaseException) -> InputError | None:
    """Return an error caused by the system, a disk or file content; None for a bug in this
    package."""
    if isinstance(error, OSError):
        forget(sys.stdout)  # stdout may be on the full disk
        where = str(error.filename) if error.filename else ""
        hint = "check the path, its permissions and the free space"
        return InputError(error.strerror or str(error), where=where, hint=hint)
    if isinstance(error, UnicodeError | csv.Error | zipfile.BadZipFile):
        return InputError(f"a file of another kind than expected: {error}", hint="check the path")
    if isinstance(error, MemoryError):
        return InputError("not enough memory", hint="use less: fewer seeds, a shorter trace")
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("beforehand"):
        hint = "`beforehand doctor` lists missing packages and how to install them"
        return InputError(f"not installed: {error.name}", hint=hint)
    return None


def _crash(error: BaseException) -> str:
    """Return the error text for a bug: the exception, and its location in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "beforehand" in frame.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"
    summary = (str(error).splitlines() or [""])[0]
    line = f"beforehand {__version__}, {place}: {type(error).__name__}: {summary}"
    return (
        f"error: internal error: the fault is in Beforehand and not in your input\n  at {line}\n\n"
        f"hint: please report that line; `-v` or `{TRACEBACK}=1` adds what led to it"
    )


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="beforehand",
        description="Causal broadcast for networks that come and go: use it, study it, prove it.",
        epilog=f"{START}\n\nexit codes:\n  {CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"beforehand {__version__}")
    parser.add_argument("--debug", action="store_true", help="let exceptions through")
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes and no progress")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print the traceback of a crash"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
