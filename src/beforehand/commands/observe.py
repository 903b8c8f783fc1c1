"""`beforehand observe`: put events of many machines in causal order, exactly or approximately."""

from __future__ import annotations

import argparse
import math
import re
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    add_spark,
    note,
    print_json,
    print_table,
    whole,
)
from beforehand.commands.shell.interrupt import GOES_ON, Interruption, interruptible
from beforehand.errors import EXIT_UNKNOWN, EXIT_VALID, EXIT_VIOLATION, InputError
from beforehand.files import check_folder_target, first_folder, local_place
from beforehand.units import format_duration, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from beforehand.observe.files import Counts, Until
    from beforehand.observe.settings import Plan
    from beforehand.observe.tune import Point, Tuning

EXAMPLE = (
    "beforehand observe events --epsilon 5ms --delta 10ms --order cbd --wait 60% \\\n"
    "      --checkpoint state --out ordered\n"
    "  beforehand observe sample --epsilon 5ms --delta 10ms --tune --budget 1%"
)
NOT_KEPT = "nothing is kept of this run"
REJECTS_SHOWN = 5
FILES_LOOKED_FOR = 16
"""The number of input files that each executor must see: Spark silently skips missing files."""
BOUND_US_MAX = 366 * 24 * 3_600_000_000
PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)\s*%")


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "observe", "put the events of many machines in causal order", EXAMPLE
    )
    parser.add_argument(
        "input", type=local_place, help="a folder of JSON lines or Parquet files, or one of them"
    )
    parser.add_argument(
        "--epsilon", required=True, metavar="TIME", help="largest difference between two clocks"
    )
    parser.add_argument("--delta", required=True, metavar="TIME", help="longest delay of an event")
    parser.add_argument("--order", choices=("cbd", "dapw"), default="cbd", help="default: cbd")
    parser.add_argument(
        "--wait", default="100%", metavar="SHARE", help="part of the full wait; 100%%: no error"
    )
    parser.add_argument(
        "--elements",
        type=whole(0, 10**6),
        metavar="K",
        help="kn elements to use; default: all that were sent",
    )
    parser.add_argument(
        "--tick", metavar="TIME", help="unit of the stamps (1ms), or of `time` (1us)"
    )
    parser.add_argument(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        help="unit of whole numbers in `time` and `arrived`; default: us, and numbers that look"
        " like another unit are refused",
    )
    parser.add_argument(
        "--clock",
        choices=("arrival", "event", "wall"),
        help="the observer's clock: the column `arrived`, the largest stamp, or Spark's clock",
    )
    parser.add_argument("--out", type=local_place, metavar="DIR", help="write Parquet files there")
    add_spark(parser)
    _add_groups(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def _add_groups(parser: argparse.ArgumentParser) -> None:
    stream = parser.add_argument_group("follow a growing folder")
    stream.add_argument(
        "--checkpoint",
        type=local_place,
        metavar="DIR",
        help="keep the state there, and continue from it",
    )
    stream.add_argument("--once", action="store_true", help="stop when all files are read")
    stream.add_argument(
        "--flush", action="store_true", help="stop then, and deliver all held events"
    )
    stream.add_argument("--every", metavar="TIME", help="interval of the search for new files; 1s")
    stream.add_argument(
        "--idle", metavar="TIME", help="silence after which an observer delivers all; 10s"
    )
    stream.add_argument(
        "--files-per-batch", type=whole(1, 10**6), default=32, metavar="N", help="default: 32"
    )
    stream.add_argument(
        "--partitions",
        type=whole(1, 10**4),
        metavar="N",
        help="tasks of each batch; default: Spark's shuffle partitions, at most 8",
    )
    tuning = parser.add_argument_group("tune on a sample with vector clocks in the column `past`")
    tuning.add_argument("--tune", action="store_true", help="find the least wait and timestamp")
    tuning.add_argument("--budget", metavar="SHARE", help="allowed messages in violation: 1%%")


def run(args: argparse.Namespace) -> int:
    check(args)
    return run_tuning(args) if args.tune else run_ordering(args)


def check(args: argparse.Namespace) -> None:
    """Refuse flags that cannot be combined."""
    if args.tune:
        if args.budget is None:
            raise InputError("`--tune` without a budget", hint="pass `--budget 1%`")
        if args.out is not None or args.checkpoint is not None:
            raise InputError("`--tune` writes nothing", hint="leave `--out` and `--checkpoint` out")
        return
    if args.out is None:
        raise InputError("no folder for the output", hint="pass `--out DIR`")
    if args.budget is not None:
        raise InputError("a budget is for `--tune`", hint="pass `--wait` instead")
    of_streams = (args.once, args.flush, args.idle, args.every, args.partitions)
    if args.checkpoint is None and any(of_streams):
        raise InputError(
            "`--once`, `--flush`, `--every`, `--idle` and `--partitions` are for streams",
            hint="pass `--checkpoint DIR`, or leave them out: all that is there is ordered",
        )
    if args.checkpoint is not None and args.remote is not None:
        raise InputError(
            "a Connect server does not report what a stream delivered",
            hint="pass `--master URL`, or leave `--checkpoint` out: all that is there is ordered",
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
    bounds = {
        "--epsilon": parse_duration(args.epsilon, where="--epsilon"),
        "--delta": parse_duration(args.delta, positive=True, where="--delta"),
    }
    for flag, bound_us in bounds.items():
        if bound_us > BOUND_US_MAX:  # sums with the time of day must stay within 64 bits
            hint = f"at most {format_duration(BOUND_US_MAX)}"
            raise InputError("a wait of this length is not useful", where=flag, hint=hint)
    return Plan(
        epsilon_us=bounds["--epsilon"],
        delta_us=bounds["--delta"],
        wait_percent=int(wait),
        checks_queue=args.order == "cbd",
        elements=args.elements,
        tick_us=None if args.tick is None else _duration(args.tick, "--tick"),
        clock=args.clock,
        partitions=args.partitions,
        time_unit=args.time_unit,
    )


def parse_percent(text: str, where: str) -> float:
    match = PERCENT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"not a share: `{text}`", where=where, hint="write it as `60%`")
    return float(match[1])


def run_ordering(args: argparse.Namespace) -> int:
    idle_us = None if args.idle is None else _duration(args.idle, "--idle")
    pace = (_duration(args.every or "1s", "--every"), idle_us)

    plan = read_plan(args)
    with interruptible(NOT_KEPT if args.checkpoint is None else GOES_ON) as interruption:
        try:
            return _run_on_spark(args, plan, pace, interruption)
        except (Exception, KeyboardInterrupt):
            if not interruption.asked.is_set():
                raise
            return interruption.exit_code  # after a signal, any exception is a consequence of it


def _run_on_spark(
    args: argparse.Namespace,
    plan: Plan,
    pace: tuple[int, int | None],
    interruption: Interruption,
) -> int:
    from beforehand.observe.input import find_format, list_files
    from beforehand.observe.lock import check_unlocked
    from beforehand.observe.places import check_begun, check_places
    from beforehand.spark.conf import read_conf
    from beforehand.spark.executors import check_executors, has_executors
    from beforehand.spark.session import open_session

    # Run all these checks before Spark starts.
    conf = read_conf(args.conf)
    find_format(args.input)
    if args.checkpoint is not None and args.input.is_file():
        hint = "give its folder, or leave `--checkpoint` out: all of it is ordered"
        raise InputError("one file does not grow into more", where=str(args.input), hint=hint)
    check_folder_target(args.out)
    if args.checkpoint is not None:
        check_folder_target(args.checkpoint)
    check_places(args.input, args.out, args.checkpoint)
    if args.checkpoint is not None:
        check_unlocked(args.checkpoint)
        check_begun(args.checkpoint)
    place = {"app": "beforehand observe", "conf": conf, "ships": args.ship}
    with open_session(args.master, args.remote, **place) as spark:
        if has_executors(spark):
            places = [args.out, *([args.checkpoint] if args.checkpoint is not None else [])]
            files = list_files(args.input)[:FILES_LOOKED_FOR]
            check_executors(spark, *{first_folder(place) for place in places}, reads=files)
        if args.checkpoint is not None:
            # Let a running batch finish: the handler only sets the flag.
            interruption.break_off = partial(_silence_spark, spark)
        totals = _order(spark, args, plan, pace, interruption.asked)
    if interruption.asked.is_set():
        return interruption.exit_code
    return _show(totals, args)


def _order(
    spark: SparkSession,
    args: argparse.Namespace,
    plan: Plan,
    pace: tuple[int, int | None],
    stop: Event,
) -> Counts:
    from beforehand.observe.files import Stream, order_stream, order_table

    if args.checkpoint is None:
        # Absolute paths, because a Connect server has its own working directory.
        return order_table(spark, args.input.absolute(), args.out.absolute(), plan, note=note)
    every_us, idle_us = pace
    stream = Stream(
        folder=args.input,
        out=args.out,
        checkpoint=args.checkpoint,
        files_per_batch=args.files_per_batch,
        every_us=every_us,
        idle_us=idle_us,
    )
    until: Until = "empty" if args.flush else "read" if args.once else "stopped"
    if until == "stopped":
        note("waiting for files; Ctrl-C stops, and the same command goes on from there")
    return order_stream(
        spark, stream, plan, until=until, on_batch=_note_counts, stop=stop, note=note
    )


def _silence_spark(spark: SparkSession) -> None:
    """Turn Spark's log off: errors during shutdown are not of interest.

    The stream itself checks the stop flag.
    """
    # In another thread: from the handler, a call to Java would collide with the interrupted call.
    Thread(target=spark.sparkContext.setLogLevel, args=("OFF",), daemon=True).start()


def _show(totals: Counts, args: argparse.Namespace) -> int:
    """Print the totals. Return EXIT_UNKNOWN if no event was ordered by its stamp."""
    from beforehand.observe.rejects import folder_of_rejects

    rejects = folder_of_rejects(args.out)
    if args.json:
        print_json(totals | ({"rejects": str(rejects)} if totals["rejected"] else {}))
    else:
        rows = [(name.replace("_", " "), f"{count:,}") for name, count in totals.items()]
        print_table(f"{args.input} to {args.out}", ("events", "count"), rows)
    if totals["rejected"]:
        _note_rejects(totals["rejected"], rejects)
    held = totals.get("held", 0)
    if held:
        note(f"{held} events are held until more arrive; `--flush` delivers them")
    ordered = totals["delivered"] - totals["reset"]
    if not ordered and not held and totals["reset"] + totals["rejected"]:
        note("no event was ordered: all were reset or rejected; check ε, δ and the tick")
        return EXIT_UNKNOWN
    return EXIT_UNKNOWN if totals.get("gone") else EXIT_VALID


def _note_rejects(count: int, folder: Path) -> None:
    from beforehand.observe.rejects import read_rejects

    rows = "1 row" if count == 1 else f"{count} rows"
    note(f"not to be read: {rows}; what is in {folder} begins with")
    for row in read_rejects(folder, files_max=REJECTS_SHOWN)[:REJECTS_SHOWN]:
        note(f"  {row['file']}:{row['line'] or '?'}: {row['why']}")
    if count > REJECTS_SHOWN:
        note("  ...")


def _note_counts(totals: Counts) -> None:
    note(", ".join(f"{name} {count:,}" for name, count in totals.items()))


def run_tuning(args: argparse.Namespace) -> int:
    from beforehand.observe.input import guarantees_of, read_sample
    from beforehand.observe.tune import tune

    budget = parse_percent(args.budget, "--budget")
    if budget > 100:
        raise InputError(f"not a share of the messages: `{args.budget}`", hint="write `1%`")
    plan = read_plan(args)
    sample, tick_us = read_sample(args.input, plan.tick_us, plan.time_unit)
    epsilon, delta = (math.ceil(us / tick_us) for us in (plan.epsilon_us, plan.delta_us))
    guarantees = guarantees_of(sample, epsilon, max(delta, 1))
    found = tune(sample, guarantees, budget_percent=budget, checks_queue=plan.checks_queue)
    if args.json:
        import msgspec

        answer = msgspec.to_builtins(found)
        facts = {"messages": len(sample.arrival), "budget_percent": budget, "tick_us": tick_us}
        print_json({**facts, **answer})
    else:
        _print_tuning(found, args, tick_us)
    return EXIT_VALID if found.chosen is not None else EXIT_VIOLATION


def _print_tuning(found: Tuning, args: argparse.Namespace, tick_us: int) -> None:
    headings = ("wait", "stamp", "bytes", "in violation", "suspect", "waited")
    rows = [_row(point, tick_us) for point in (*found.waits, *found.stamps)]
    print_table(f"{args.order}, budget {args.budget}, first half of the sample", headings, rows)
    if found.chosen is None or found.confirmed is None:
        note("no wait keeps the budget in both halves of the sample: ε and δ may be too small")
        return
    chosen = found.chosen
    elements = f" --elements {chosen.elements}" if chosen.uses_c else ""
    tick = f"{tick_us}us" if tick_us % 1000 else f"{tick_us // 1000}ms"
    print(f"--order {args.order} --wait {chosen.wait_percent}%{elements} --tick {tick}")
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
