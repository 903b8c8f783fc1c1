"""`beforehand observe`: events of many machines in causal order, or nearly so."""

from __future__ import annotations

import argparse
import math
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
    whole,
)
from beforehand.errors import EXIT_VALID, EXIT_VIOLATION, InputError
from beforehand.files import check_folder_target
from beforehand.units import format_duration, parse_duration

if TYPE_CHECKING:
    from beforehand.observe.files import Counts, Until
    from beforehand.observe.settings import Plan
    from beforehand.observe.tune import Point, Tuning

EXAMPLE = (
    "beforehand observe events --epsilon 5ms --delta 10ms --order cbd --wait 60% \\\n"
    "      --checkpoint state --out ordered\n"
    "  beforehand observe sample --epsilon 5ms --delta 10ms --tune --budget 1%"
)
PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)\s*%")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "observe", "put a stream of events in causal order", EXAMPLE)
    parser.add_argument("input", type=Path, help="a folder of JSON lines or Parquet files")
    parser.add_argument("--epsilon", required=True, metavar="TIME", help="between any two clocks")
    parser.add_argument("--delta", required=True, metavar="TIME", help="the longest way to here")
    parser.add_argument("--order", choices=("cbd", "dapw"), default="cbd", help="default: cbd")
    parser.add_argument("--wait", default="100%", metavar="SHARE", help="of the wait for no error")
    parser.add_argument(
        "--elements", type=whole(0, 10**6), metavar="K", help="of kn; else all that were sent"
    )
    parser.add_argument("--tick", metavar="TIME", help="the unit of the stamps; 1ms")
    parser.add_argument(
        "--clock",
        choices=("arrival", "event", "wall"),
        help="the observer's: the column `arrived`, the largest stamp so far, or that of Spark",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="for Parquet files")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster; default: embedded")
    stream = parser.add_argument_group("a folder that grows")
    stream.add_argument("--checkpoint", type=Path, metavar="DIR", help="go on from here")
    stream.add_argument("--once", action="store_true", help="stop when all files are read")
    stream.add_argument("--flush", action="store_true", help="and deliver what is still held")
    stream.add_argument("--every", metavar="TIME", help="look for new files; default: 1s")
    stream.add_argument("--idle", metavar="TIME", help="of an observer, until it lets all out; 10s")
    stream.add_argument(
        "--files-per-batch", type=whole(1, 10**6), default=32, metavar="N", help="default: 32"
    )
    tuning = parser.add_argument_group("a sample with vector clocks in the column `past`")
    tuning.add_argument("--tune", action="store_true", help="find the least wait and timestamp")
    tuning.add_argument("--budget", metavar="SHARE", help="of messages in violation: 1%%")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    check(args)
    return run_tuning(args) if args.tune else run_ordering(args)


def check(args: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    if args.tune:
        if args.budget is None:
            raise InputError("no budget to tune for", hint="pass `--budget 1%`")
        if args.out is not None or args.checkpoint is not None:
            raise InputError("`--tune` writes nothing", hint="leave `--out` and `--checkpoint` out")
        return
    if args.out is None:
        raise InputError("no place for the result", hint="pass `--out DIR`")
    if args.budget is not None:
        raise InputError("a budget is for `--tune`", hint="pass `--wait` instead")
    if args.checkpoint is None and (args.once or args.flush or args.idle or args.every):
        raise InputError(
            "`--once`, `--flush`, `--every` and `--idle` are for streams",
            hint="pass `--checkpoint DIR`, or leave them out: all that is there is ordered",
        )
    if args.checkpoint is None and args.clock == "wall":
        raise InputError("a table has no wall clock", hint="pass `--checkpoint DIR`")
    if (args.idle or args.every) and (args.once or args.flush):
        raise InputError("a bounded run does not wait", hint="leave `--idle` and `--every` out")


def read_plan(args: argparse.Namespace) -> Plan:
    from beforehand.observe.settings import Plan

    wait = parse_percent(args.wait, "--wait")
    if not wait.is_integer() or wait > 100:
        raise InputError(f"not a share of the wait: `{args.wait}`", hint="write `0%` to `100%`")
    return Plan(
        epsilon_us=parse_duration(args.epsilon, where="--epsilon"),
        delta_us=parse_duration(args.delta, positive=True, where="--delta"),
        wait_percent=int(wait),
        checks_queue=args.order == "cbd",
        elements=args.elements,
        tick_us=None if args.tick is None else _duration(args.tick, "--tick"),
        clock=args.clock,
    )


def parse_percent(text: str, where: str) -> float:
    match = PERCENT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"not a share: `{text}`", where=where, hint="write it as `60%`")
    return float(match[1])


def run_ordering(args: argparse.Namespace) -> int:
    plan = read_plan(args)
    idle_us = None if args.idle is None else _duration(args.idle, "--idle")
    every_us = _duration(args.every or "1s", "--every")

    from beforehand.observe.files import Stream, order_stream, order_table
    from beforehand.observe.input import find_format
    from beforehand.spark.session import open_session

    find_format(args.input)  # before Spark is started
    check_folder_target(args.out)
    if args.checkpoint is None and args.out.exists():
        raise InputError(f"there is something already: {args.out}", hint="give another folder")
    if args.checkpoint is not None:
        check_folder_target(args.checkpoint)
    with open_session(args.master, app="beforehand observe") as spark:
        if args.checkpoint is None:
            totals = order_table(spark, args.input, args.out, plan)
        else:
            stream = Stream(
                folder=args.input,
                out=args.out,
                checkpoint=args.checkpoint,
                files_per_batch=args.files_per_batch,
                every_us=every_us,
                idle_us=idle_us,
            )
            until: Until = "empty" if args.flush else "read" if args.once else "stopped"
            with _stopped_by_signals(until) as stop:
                totals = order_stream(
                    spark, stream, plan, until=until, on_batch=_note_counts, stop=stop
                )
    if args.json:
        print_json(totals)
    else:
        rows = [(name, f"{count:,}") for name, count in totals.items()]
        print_table(f"{args.input} to {args.out}", ("events", "count"), rows)
    if totals.get("held"):
        note(f"{totals['held']} events are held until more come; `--flush` lets them out")
    return EXIT_VALID


@contextmanager
def _stopped_by_signals(until: Until) -> Iterator[threading.Event]:
    """Set by Ctrl-C and by a polite kill; Spark's own handler would break off what runs."""
    stop = threading.Event()
    if until != "stopped":
        yield stop
        return
    note("waiting for files; Ctrl-C stops, and the same command goes on from there")
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _note_counts(totals: Counts) -> None:
    note(", ".join(f"{name} {count:,}" for name, count in totals.items()))


def run_tuning(args: argparse.Namespace) -> int:
    from beforehand.observe.input import guarantees_of, read_sample
    from beforehand.observe.tune import tune

    budget = parse_percent(args.budget, "--budget")
    if budget > 100:
        raise InputError(f"more than all: `--budget {args.budget}`", hint="write `0%` to `100%`")
    plan = read_plan(args)
    tick_us = plan.tick_us or 1000
    sample = read_sample(args.input, tick_us)
    epsilon, delta = (math.ceil(us / tick_us) for us in (plan.epsilon_us, plan.delta_us))
    guarantees = guarantees_of(sample, epsilon, max(delta, 1))
    found = tune(sample, guarantees, budget_percent=budget, checks_queue=plan.checks_queue)
    if args.json:
        import msgspec

        answer = msgspec.to_builtins(found)
        print_json({"messages": len(sample.arrival), "budget_percent": budget, **answer})
    else:
        _print_tuning(found, args, tick_us)
    return EXIT_VALID if found.chosen is not None else EXIT_VIOLATION


def _print_tuning(found: Tuning, args: argparse.Namespace, tick_us: int) -> None:
    headings = ("wait", "stamp", "bytes", "in violation", "suspect", "waited")
    rows = [_row(point, tick_us) for point in (*found.waits, *found.stamps)]
    print_table(f"{args.order}, budget {args.budget}, first half of the sample", headings, rows)
    if found.chosen is None or found.confirmed is None:
        note("no wait keeps the budget: are ε and δ wide enough for this sample?")
        return
    chosen = found.chosen
    elements = f" --elements {chosen.elements}" if chosen.uses_c else ""
    print(f"--order {args.order} --wait {chosen.wait_percent}%{elements}")
    note(f"on the other half: {found.confirmed.violations_percent:.3f} % in violation")
    if not chosen.uses_c:
        note("the physical clock is enough: send it as the column `time`, without a stamp")


def _row(point: Point, tick_us: int) -> tuple[str, ...]:
    stamp = f"r, c, {point.elements} of kn" if point.uses_c else "r"
    return (
        f"{point.wait_percent} %",
        stamp,
        str(point.size_bytes),
        f"{point.violations_percent:.3f} %",
        f"{point.suspects_percent:.3f} %",
        format_duration(round(point.waited_mean * tick_us)),
    )


def _duration(text: str, where: str) -> int:
    return parse_duration(text, positive=True, where=where)
