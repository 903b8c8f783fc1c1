"""`beforehand diagram`: draw the events around a violation or a message, for papers and reports."""

from __future__ import annotations

import argparse
from pathlib import Path

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    stage_bars,
)
from beforehand.commands.shell.log_tables import add_reading
from beforehand.errors import EXIT_VALID, InputError
from beforehand.files import check_file_target, refuse_device, refuse_same

EXAMPLE = "beforehand diagram events.parquet --out late.svg"
STDIN = Path("-")


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "diagram", "draw the events around a violation or a message", EXAMPLE
    )
    parser.add_argument("log", type=Path, help="a log that `verify` reads, or a results folder")
    parser.add_argument(
        "--around",
        metavar="MESSAGE",
        help="`L6-5 #12`, `L6-5:SEQ`, or an id of the log; default: the first violation, else the "
        "message that waited longest",
    )
    parser.add_argument("--run", metavar="NAME", dest="wanted", help="which run of several")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        default=Path("diagram.svg"),
        help="a file that ends with .svg, .png, .txt, .mmd (Mermaid) or .tex (TikZ); default: "
        "diagram.svg",
    )
    add_reading(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.diagram.read import read_story
    from beforehand.diagram.write import check_suffix, write_diagram

    if args.log == STDIN:
        raise InputError("a diagram needs a file", where="-", hint="write the log to a file")
    check_suffix(args.out, "--out")
    refuse_device(args.log)
    check_file_target(args.out)
    refuse_same(args.out, args.log)
    with stage_bars() as show_stage:
        show_stage("reading the log", 0, None)
        reading = {"mapping": args.map, "profile": args.profile}
        story = read_story(args.log, args.wanted, args.around, **reading)
        write_diagram(story, args.out)
    for text in story.notes:
        note(text)
    if args.json:
        shown = {"diagram": str(args.out), "about": story.summary, "notes": story.notes}
        print_json({**shown, "nodes": story.nodes, "events": len(story.steps)})
    else:
        print(args.out)
    return EXIT_VALID
