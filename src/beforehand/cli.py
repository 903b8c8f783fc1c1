"""The command line: parse, one call, render errors. Nobody imports this module."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from beforehand import __version__
from beforehand.commands import (
    contacts,
    doctor,
    fuzz,
    observe,
    report,
    run,
    simulate,
    status,
    verify,
)
from beforehand.errors import EXIT_BAD_INPUT, BeforehandError

COMMANDS = (run, simulate, contacts, verify, report, status, fuzz, observe, doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 valid, 1 violation, 2 bad input, 3 unknown."""
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except BeforehandError as error:
        if args.debug:
            raise
        print(error.render(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="beforehand",
        description="Causal broadcast for networks that come and go: use it, study it, prove it.",
        epilog="exit codes: 0 valid, 1 violation, 2 bad input, 3 unknown",
    )
    parser.add_argument("--version", action="version", version=f"beforehand {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
