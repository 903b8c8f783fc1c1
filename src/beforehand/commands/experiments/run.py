"""`beforehand run`: run a scenario on Spark, from mobility to report."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from beforehand.commands.experiments.scenarios import show
from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    add_spark,
    note,
    print_json,
    print_table,
    show_page,
    whole,
)
from beforehand.commands.shell.interrupt import Interruption, interruptible
from beforehand.errors import EXIT_VALID, InputError
from beforehand.events import PLAY_FILE
from beforehand.scenario.head import SEEDS_MAX
from beforehand.scenario.shipped import find_scenario

EXAMPLE = "beforehand run city-bus --seeds 3 --set network.announce=5s"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "run", "run a scenario: mobility, simulations, verdicts, report", EXAMPLE
    )
    parser.add_argument(
        "scenario", nargs="?", help="a TOML file, or a name of `beforehand scenarios`"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: out/NAME")
    parser.add_argument(
        "--seeds", type=whole(1, SEEDS_MAX), metavar="N", help="instead of the scenario's own"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    add_spark(parser)
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--no-report", action="store_true", help="leave out the page")
    page.add_argument("--open", action="store_true", help="show the page in a browser")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the finished and the missing datasets"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.scenario is None:
        return show(as_json=args.json)
    args.scenario = find_scenario(args.scenario)
    with interruptible() as interruption:
        try:
            return _run(args, interruption)
        except (Exception, KeyboardInterrupt):
            if not interruption.asked.is_set():
                raise
            return interruption.exit_code  # after a signal, any exception is a consequence of it


def _run(args: argparse.Namespace, interruption: Interruption) -> int:
    from beforehand.pipeline.jobs import run_scenario
    from beforehand.spark.conf import check_addresses, read_conf
    from beforehand.verify.verdict import EXIT_CODES

    conf = read_conf(args.conf)
    check_addresses(args.master, args.remote)
    out = args.out if args.out is not None else Path("out") / args.scenario.stem
    if args.dry_run:
        return _look_ahead(args, out)
    summary = run_scenario(
        args.scenario,
        out,
        seeds=args.seeds,
        overrides=args.settings,
        master=args.master,
        remote=args.remote,
        conf=conf,
        ship=args.ship,
        note=interruption.unless_asked(note),
    )
    path = played = None
    if not args.no_report:
        from beforehand.lab.report import write_report

        note("report")
        played = _write_play(out)
        path = write_report(out)
    if args.json:
        print_json(
            {
                "scenario": summary.name,
                "verdict": summary.state,
                "computed": summary.computed,
                "out": str(out),
                "report": str(path) if path else None,
                "play": str(played) if played else None,
                summary.experiment.noun: summary.rows,
            }
        )
    else:
        print_table(summary.title, *summary.experiment.table(summary.rows))
        print(f"verdict: {summary.state}")
        if path is not None:
            print(f"report:  {path}")
        if played is not None:
            print(f"play:    {played}")
    if path is not None and args.open:
        show_page(path)
    return EXIT_CODES[summary.state]


def _write_play(out: Path) -> Path | None:
    """Write the page that plays the first run: 2 s of CPU for 215,000 events. None if it cannot."""
    from beforehand.commands.event_logs.played import gather_results, is_playable
    from beforehand.play.page import write_page

    target = out / PLAY_FILE
    target.unlink(missing_ok=True)  # the report would link the page of an earlier scenario
    if not is_playable(out):
        return None
    try:
        write_page(gather_results(out), target)
    except InputError as error:
        note(f"no page that plays a run: {error.problem}")
        return None
    return target


def _look_ahead(args: argparse.Namespace, out: Path) -> int:
    """Print the progress of each stage. Write nothing and start nothing."""
    from beforehand.pipeline.jobs import look_ahead

    stages = look_ahead(args.scenario, out, seeds=args.seeds, overrides=args.settings)
    if args.json:
        print_json([asdict(stage) for stage in stages])
    else:
        rows = [(s.stage, str(s.there), str(s.wanted - s.there)) for s in stages]
        print_table(f"{args.scenario} in {out}", ("stage", "there", "to do"), rows)
    return EXIT_VALID
