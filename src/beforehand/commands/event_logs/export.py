"""`beforehand export`: write an event log as a report of The ONE."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from beforehand.commands.shell.console import STDOUT, Commands, add_command, note
from beforehand.errors import EXIT_VALID
from beforehand.files import check_file_target, refuse_device, refuse_same, write_text

EXAMPLE = "beforehand export run.parquet --as EventLogReport --out report.txt"
REPORTS = ("EventLogReport", "MessageStatsReport")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "export", "write an event log as a report of The ONE", EXAMPLE)
    parser.add_argument("events", type=Path, help="the event log of `simulate --events`")
    parser.add_argument("--as", dest="report", choices=REPORTS, required=True, help="the report")
    parser.add_argument("--run", help="the name of the run, if the log has several", dest="chosen")
    parser.add_argument("--out", type=Path, metavar="FILE", help="by default stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    refuse_device(args.events)
    if args.out is not None and args.out != STDOUT:
        check_file_target(args.out)
        refuse_same(args.out, args.events)
    lines = [f"{line}\n" for line in _lines(args)]
    if args.out is None or args.out == STDOUT:
        sys.stdout.writelines(lines)
    else:
        write_text(args.out, "".join(lines))
        note(f"wrote {len(lines):,} lines to {args.out}")
    return EXIT_VALID


def _lines(args: argparse.Namespace) -> Iterator[str]:
    from beforehand.export.one_reports import event_log_report, message_stats_report
    from beforehand.export.run_log import read_links, read_run

    log = read_run(args.events, args.chosen)
    if args.report == "EventLogReport":
        return event_log_report(log, read_links(args.events))
    return message_stats_report(log, args.events.stem)
