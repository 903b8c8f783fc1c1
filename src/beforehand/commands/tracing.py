"""Options and output shared by the commands that read a mobility trace."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from beforehand.commands.shell.console import note
from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.quantities import FLAGS
from beforehand.units import parse_duration

if TYPE_CHECKING:
    from beforehand.mobility.positions import Positions
    from beforehand.mobility.trace import Trace

RANGE_M_MAX = 20_037_508
"""Half of the Earth's circumference: no two places are farther apart."""


class ReaderFlag(NamedTuple):
    """A flag, and the reader option that it sets."""

    option: str
    metavar: str
    help: str
    is_time: bool = False


READER_FLAGS = {
    "columns": ReaderFlag("columns", "NAMES", "columns of a file without a header: a,b,time"),
    "presence": ReaderFlag(
        "presence", "whole|seen", "presence of nodes, where the contacts do not define it"
    ),
    "slot": ReaderFlag(FLAGS["slot"], "TIME", "how long a sighting counts: 20s", is_time=True),
    "gap": ReaderFlag(
        FLAGS["gap"], "TIME", "a node without a row for longer is absent", is_time=True
    ),
    "day": ReaderFlag("day", "DATE", "day of a timetable: 2014-06-02"),
    "blocks": ReaderFlag("blocks", "auto|infer|trip", "which trips one vehicle drives"),
    "places": ReaderFlag("places", "metres|degrees", "what x and y of SUMO are"),
    "layover": ReaderFlag(
        FLAGS["layover"], "TIME", "a vehicle without a trip for longer is absent", is_time=True
    ),
}


def add_trace_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--range", metavar="DISTANCE", help="radio range, for a trace with places: 200m"
    )
    parser.add_argument("--format", help="format of the input; default: detected")
    for name, flag in READER_FLAGS.items():
        parser.add_argument(f"--{name}", metavar=flag.metavar, help=flag.help)
    parser.add_argument("--strict", action="store_true", help="refuse input that needs repairs")


def given_trace_options(args: argparse.Namespace) -> list[str]:
    """Return the flags about an input file that are on the command line."""
    names = ("range", "format", *READER_FLAGS)
    written = [f"--{name}" for name in names if getattr(args, name) is not None]
    return written + (["--strict"] if args.strict else [])


def load_trace(args: argparse.Namespace) -> Trace:
    """Return the contacts of `args.input`. Check the flags before reading it."""
    return load_movement(args)[0]


def load_movement(args: argparse.Namespace) -> tuple[Trace, Positions | None]:
    """Return the contacts of `args.input`, and the places of the nodes if it has places."""
    from beforehand.mobility.positions import Positions
    from beforehand.mobility.read import format_of, has_places, opened, read

    range_m = parse_range(args.range)
    options = _reader_options(args)
    with opened(args.input) as path:
        format = format_of(path, args.format, args.columns)
        _check_applies(format, options)
        if has_places(format) and range_m is None:
            hint = "pass `--range 200m`: nodes that are this close are in contact"
            raise InputError("the trace has places, not contacts", where=str(args.input), hint=hint)
        if not has_places(format) and range_m is not None:
            problem = f"read as `{format}`, the file has contacts already: no range applies"
            hint = (
                "leave `--range` out; if these are places, name the columns in a first line "
                "`node,t,x,y`, or pass `--format`"
            )
            raise InputError(problem, where=f"--range, {args.input}", hint=hint)
        found = read(path, format, **options, strict=args.strict)
    places = found if isinstance(found, Positions) else None
    if not isinstance(found, Positions):
        trace = found
    else:
        assert range_m is not None
        trace = found.contacts_within(range_m)
    if args.strict and trace.changes:
        _refuse_mended(trace, args.input)
    return trace, places


def parse_range(written: str | None) -> float | None:
    if written is None:
        return None
    try:
        range_m = values.distance(written)
    except InputError as error:
        raise InputError(error.problem, where="--range", hint=error.hint) from error
    if range_m > RANGE_M_MAX:
        hint = "write for example `200m`"
        raise InputError(
            f"longer than half of the Earth's circumference: `{written}`",
            where="--range",
            hint=hint,
        )
    return range_m


def report_trace(trace: Trace) -> None:
    """Report the detected format and the repairs on stderr."""
    if trace.detected_format is not None:
        for sentence in trace.detected_format.sentences():
            note(sentence)
    for kind, count in trace.changes.items():
        note(f"mended: {kind} {count}")
    if trace.changes.get("zero_length"):
        note("contacts without duration were dropped: `--slot 20s` sets the duration of one")


def trace_json(trace: Trace) -> dict[str, Any] | None:
    return None if trace.detected_format is None else trace.detected_format.as_json()


def _reader_options(args: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, flag in READER_FLAGS.items():
        written = getattr(args, name)
        if written is not None:
            options[flag.option] = written
        if written is not None and flag.is_time:
            time_us = parse_duration(written, positive=True, where=f"--{name}")
            options[flag.option] = time_us / 1e6
    return options


def _check_applies(format: str, options: dict[str, Any]) -> None:
    from beforehand.mobility.read import options_of

    known = options_of(format)
    for name, flag in READER_FLAGS.items():
        if flag.option in options and flag.option not in known:
            taken = [f"`--{other}`" for other, f in READER_FLAGS.items() if f.option in known]
            hint = f"it takes {', '.join(taken)}" if taken else "leave it out"
            raise InputError(f"has no effect for format `{format}`", where=f"--{name}", hint=hint)


def _refuse_mended(trace: Trace, path: Path) -> None:
    """Refuse repairs that no reader has already refused with a line number."""
    from beforehand.mobility.repairs import LEGAL

    # Merging slots is part of the format, and the user chose the length of a sighting.
    is_slots = trace.detected_format is not None and trace.detected_format.format == "sociopatterns"
    fine = (*LEGAL, "lengthened", "merged") if is_slots else (*LEGAL, "lengthened")
    broken = {kind: count for kind, count in trace.changes.items() if kind not in fine}
    if broken:
        listed = ", ".join(f"{kind} {count}" for kind, count in broken.items())
        hint = "leave `--strict` out to have them repaired; docs/mobility.md explains each repair"
        raise InputError(f"the trace is not clean: {listed}", where=str(path), hint=hint)
