"""`beforehand play`: write a page that plays a run, a log or a trace."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    show_page,
    stage_bars,
)
from beforehand.commands.shell.log_tables import add_reading
from beforehand.commands.tracing import (
    add_trace_options,
    given_trace_options,
    load_movement,
    parse_range,
    report_trace,
)
from beforehand.errors import EXIT_VALID, InputError
from beforehand.events import PLAY_FILE
from beforehand.files import check_file_target, refuse_device, refuse_same
from beforehand.units import parse_duration

if TYPE_CHECKING:
    from beforehand.play.run import Run

EXAMPLE = "beforehand play out/city-bus --open"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "play", "write an offline page that plays a run, a log or a trace", EXAMPLE
    )
    shown = "a results folder, an event log, or a mobility trace of any known format"
    parser.add_argument("input", type=Path, help=shown)
    parser.add_argument("--run", metavar="NAME", dest="wanted", help="which run of several")
    parser.add_argument("--from", metavar="TIME", dest="begin", help="since the start: 90m")
    parser.add_argument("--to", metavar="TIME", dest="end", help="since the start: 2h")
    parser.add_argument("--nodes", metavar="NAMES", help="only events of these nodes: a,b,c")
    shown = "a map below the nodes: WKT in metres, or OpenStreetMap (.osm)"
    parser.add_argument("--background", type=Path, metavar="FILE", help=shown)
    shown = "place of the plane's origin in degrees, for OpenStreetMap"
    parser.add_argument("--centre", metavar="LON,LAT", help=shown)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: play.html")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    add_reading(parser)
    add_trace_options(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.play.background import with_map
    from beforehand.play.page import write_page
    from beforehand.play.restrict import restrict

    refuse_device(args.input)
    window_us, centre = _window(args), _centre(args)
    target = args.out or _default_target(args.input)
    check_file_target(target)
    refuse_same(target, args.input)
    with stage_bars() as show_stage:
        show_stage("reading the run", 0, None)
        shown = _gather(args)
        shown = restrict(shown, window_us, args.nodes)
        if args.background is not None:
            shown = with_map(shown, args.background, centre)
        size = write_page(shown, target)
    for text in shown.notes:
        note(text)
    if args.json:
        answer = {"page": str(target), "bytes": size, "run": shown.name, "notes": shown.notes}
        print_json({**answer, "nodes": len(shown.names), "events": len(shown.events)})
    else:
        print(target)
    if args.open:
        show_page(target)
    return EXIT_VALID


def _default_target(source: Path) -> Path:
    return source / PLAY_FILE if source.is_dir() else Path(PLAY_FILE)


def _window(args: argparse.Namespace) -> tuple[int, int | None] | None:
    if args.begin is None and args.end is None:
        return None
    begin_us = 0 if args.begin is None else parse_duration(args.begin, where="--from")
    end_us = None if args.end is None else parse_duration(args.end, where="--to")
    if end_us is not None and end_us <= begin_us:
        hint = "both count from the start of the run: `--from 1h --to 2h`"
        raise InputError("it ends before it begins", where="--from, --to", hint=hint)
    return begin_us, end_us


def _centre(args: argparse.Namespace) -> tuple[float, float] | None:
    """Return longitude and latitude of `--centre`."""
    if args.centre is None:
        return None
    try:
        lon, lat = map(float, args.centre.split(","))
    except ValueError:
        lon = lat = 999.0
    if not (-180 <= lon <= 180 and -90 < lat < 90):
        hint = "write longitude and latitude: `18.07,59.33`"
        raise InputError(f"no place: `{args.centre}`", where="--centre", hint=hint)
    return lon, lat


def _gather_named(args: argparse.Namespace) -> Run:
    """Return a run of a log whose fields the user named."""
    from beforehand.logs.mapping import fields_of
    from beforehand.play.foreign import foreign_run
    from beforehand.verify.foreign.entry import LogOptions

    if written := given_trace_options(args):
        problem = f"{', '.join(written)} cannot apply to a log whose fields are named"
        raise InputError(problem, where=str(args.input), hint="leave out one of the two")
    return foreign_run(args.input, args.wanted, LogOptions(fields_of(args.map), args.profile))


def _gather(args: argparse.Namespace) -> Run:
    from beforehand.commands.event_logs.played import gather_results
    from beforehand.play.foreign import foreign_run
    from beforehand.play.gather import gather_run, trace_run
    from beforehand.play.kinds import is_run
    from beforehand.verify.plan import PLAN_FILE

    if args.map or args.profile:
        return _gather_named(args)
    if is_run(args.input):
        if written := given_trace_options(args):
            problem = f"an event log is no mobility trace: {', '.join(written)} cannot apply"
            raise InputError(problem, where=str(args.input), hint="leave them out")
        if (args.input / PLAN_FILE).is_file():
            return gather_results(args.input, args.wanted)
        return gather_run(args.input, args.wanted)
    if args.wanted is not None:
        return foreign_run(args.input, args.wanted)
    try:
        trace, places = load_movement(args)
    except InputError:
        if given_trace_options(args):
            raise
        try:
            return foreign_run(args.input, None)
        except InputError:
            pass  # neither a trace nor a log: the error of the first reader is raised
        raise
    report_trace(trace)
    return trace_run(trace, places, parse_range(args.range), args.input.name)
