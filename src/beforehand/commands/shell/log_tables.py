"""Show what was understood of logs of other systems, and the verdicts on them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import print_table
from beforehand.errors import visible

if TYPE_CHECKING:
    from beforehand.logs.model import Reading
    from beforehand.verify.foreign.judge import LogVerdict
    from beforehand.verify.verdict import Verdict

HEADINGS = (
    *("run", "format", "nodes", "events", "messages", "edges"),
    *("causality from", "skew", "violations", "verdict"),
)
SHOWN_MAX = 10


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that tell how a log of another system is read."""
    parser.add_argument(
        "--map",
        nargs="+",
        default=[],
        metavar="ROLE=FIELD",
        help="the fields of another system's log: node=host.name message=attributes.id kind=event",
    )
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="a TOML file that maps the log"
    )


def log_as_dict(run: LogVerdict) -> dict[str, object]:
    """Return the verdict on a run as a JSON object."""
    return {
        "run": run.run,
        "verdict": run.state,
        "reason": run.reason,
        "promise": run.promise,
        "promise_from": run.promise_from,
        "format": run.format,
        "causality": run.causality,
        "nodes": run.nodes,
        "events": run.events,
        "messages": run.messages,
        "edges": run.edges,
        "skew": run.skew,
        "broadcasts": run.broadcasts,
        "deliveries": run.deliveries,
        "violations": run.counts,
        "notes": run.notes,
    }


def reading_as_dict(reading: Reading) -> dict[str, object]:
    """Return what was understood of files as a JSON object."""
    return {
        "format": reading.format,
        "why": reading.why,
        "files": reading.files,
        "skipped": dict(reading.skipped),
        "assumed": reading.assumed,
    }


def print_readings(title: str, verdict: Verdict) -> None:
    """Print the verdicts on logs of other systems, and what was read, skipped and assumed."""
    from beforehand.verify.foreign.judge import LogVerdict

    runs = [run for run in verdict.runs if isinstance(run, LogVerdict)]
    print_table(title, HEADINGS, [_row(run) for run in runs])
    for reading in verdict.readings:
        count = len(reading.files)
        files = reading.files[0] if count == 1 else f"{count:,} files"
        print(visible(f"read {files} as {reading.format}: {reading.why}"))
        for reason, many in reading.skipped.most_common(SHOWN_MAX):
            print(visible(f"skipped {many:,}: {reason}"))
        for assumed in reading.assumed[:SHOWN_MAX]:
            print(visible(f"assumed: {assumed}"))
    for run in runs:
        for note in run.notes[:SHOWN_MAX]:
            print(visible(f"{run.run}: note: {note}"))


def _row(run: LogVerdict) -> tuple[str, ...]:
    counts = (run.nodes, run.events, run.messages, run.edges)
    violations = ", ".join(f"{count:,} {kind}" for kind, count in run.counts.items()) or "0"
    return (
        *(run.run, run.format, *(f"{count:,}" for count in counts)),
        *(run.causality, f"{run.skew:,}", violations, run.state),
    )
