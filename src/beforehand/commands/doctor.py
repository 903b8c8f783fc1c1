"""`beforehand doctor`: report what is installed, what is missing, and how to get it."""

from __future__ import annotations

import argparse

from beforehand.commands.shell.console import Commands, add_command, add_json, print_json
from beforehand.errors import EXIT_UNKNOWN, EXIT_VALID


def add_parser(commands: Commands) -> None:
    summary = "list what is installed, and how to get what is missing"
    parser = add_command(commands, "doctor", summary, "beforehand doctor")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import msgspec

    from beforehand.doctor import examine

    findings = examine()
    if args.json:
        print_json([msgspec.structs.asdict(finding) for finding in findings])
    else:
        # Plain lines, because this command must work even if the table printer is not installed.
        for finding in findings:
            print(f"{finding.state:<8}{finding.name:<20}{finding.value}")
            if finding.hint:
                print(f"{'':<8}{'':<20}hint: {finding.hint}")
    return EXIT_UNKNOWN if any(f.state == "missing" for f in findings) else EXIT_VALID
