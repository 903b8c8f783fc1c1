"""`beforehand simulate`: simulate one run on a contact trace."""

from __future__ import annotations

import argparse
import io
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from beforehand.commands.shell.console import (
    SEED_MAX,
    STDOUT,
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
    refuse_json,
    stage_bars,
    whole,
)
from beforehand.commands.tracing import (
    add_trace_options,
    given_trace_options,
    load_movement,
    parse_range,
    report_trace,
    trace_json,
)
from beforehand.errors import EXIT_VALID, EXIT_VIOLATION, InputError
from beforehand.events import BESIDE, LINKS_SUFFIX, PASTS_SUFFIX, POSITIONS_SUFFIX
from beforehand.files import check_file_target, refuse_device, refuse_same
from beforehand.scenario.settings import FLAGS, flag_of, parse_flag, with_settings
from beforehand.units import format_duration, parse_duration, show_duration, show_share

if TYPE_CHECKING:
    from beforehand.mobility.positions import Positions
    from beforehand.mobility.trace import Trace
    from beforehand.sim.contacts.engines import MeasuredRun
    from beforehand.sim.contacts.run import Spec, Totals
    from beforehand.sim.log_writer import EventWriter

NOT_PARQUET = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".gz", ".arrow", ".feather")
ENGINE_NAMES = {"cores": "the protocol cores", "twin": "the compiled twin"}
EXAMPLE = "beforehand simulate meetings.txt --protocol delta --lifetime 20m --seed 7"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "simulate", "simulate one protocol over a mobility trace", EXAMPLE
    )
    shown = "a mobility trace of any known format, or `-`"
    parser.add_argument("input", nargs="?", type=Path, help=shown)
    add_trace_options(parser)
    parser.add_argument("--example", action="store_true", help="use the built-in crowd instead")
    shown = "a delivery order: causal, delta, ... (docs/barrier.md); default: causal"
    parser.add_argument("--protocol", default="causal", help=shown)
    parser.add_argument("--lifetime", metavar="TIME", help="lifetime of messages: 90s, 20m, 2h")
    parser.add_argument("--seed", type=whole(0, SEED_MAX), default=0)
    for name, setting in FLAGS.items():
        parser.add_argument(f"--{flag_of(name)}", metavar=setting.flag, help=setting.help or None)
    shown = "broadcast the messages of a file: time, source, size"
    parser.add_argument("--messages", type=Path, metavar="FILE", help=shown)
    parser.add_argument(
        "--literal", action="store_true", help="deadlines exactly as printed in the paper"
    )
    parser.add_argument(
        "--engine",
        default="auto",
        help="cores, twin (compiled) or auto, which takes the twin where it covers the run",
    )
    parser.add_argument(
        "--events",
        type=Path,
        metavar="FILE.parquet",
        help="write the event log; links, causes and places beside it; `-`: the log to stdout",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    spec = read_spec(args)
    spec.check()
    from beforehand.sim.contacts.engines import check_engine, play_measured

    check_engine(args.engine)
    if args.events is not None:
        _check_events_target(args)
    with stage_bars() as show_stage:
        show_stage("reading the trace", 0, None)
        trace, places = read_movement(args)

    from beforehand.sim.contacts.traffic import check_traffic

    check_traffic(trace, spec.traffic, where="--period")
    report_trace(trace)

    from beforehand.protocols.registry import find_order

    buffer = io.BytesIO()
    with stage_bars() as show_stage:
        played = play_measured(
            trace,
            spec,
            args.engine,
            open_writer=partial(_writer, args, trace, spec, buffer),
            on_done=partial(show_stage, "simulating"),
            note=note,
        )
    if args.events is not None:
        if args.events == STDOUT:
            sys.stdout.buffer.write(buffer.getbuffer())
        note(f"wrote {played.rows} events to {args.events}")
        if args.events != STDOUT:
            _write_beside(args.events, trace, places, played.totals)
    summary, violations = _summarise(trace, spec, played), played.violations
    promise = find_order(spec.protocol).promise
    if args.json:
        print_json({"protocol": spec.protocol, "seed": spec.seed, **summary})
    elif args.events != STDOUT:  # otherwise the table would corrupt the event log on stdout
        _print_summary(trace, spec, summary)
    # The same rule as that of `verify`.
    is_broken = any(violations[kind] for kind in promise.broken_by)
    if promise.orders and not promise.is_sure:
        note(promise.describe_late(violations["late"], summary["deliveries"]))
    return EXIT_VIOLATION if is_broken else EXIT_VALID


def _summarise(trace: Trace, spec: Spec, played: MeasuredRun) -> dict[str, Any]:
    """Return all that the command tells about a run."""
    totals = played.totals
    return {
        **played.summary,
        "frames": totals.frames_sent,
        "bytes": totals.bytes_sent,
        "frames_aborted": totals.frames_aborted,
        "evictions": None if totals.evictions is None else len(totals.evictions),
        "violations": played.violations,
        "engine": played.engine,
        "engine_why": played.why,
        "transfer_model": spec.transfer_model,
        "trace_changes": dict(trace.changes),
        "read": trace_json(trace),
    }


def _check_events_target(args: argparse.Namespace) -> None:
    """Check the target of `--events` before any work starts."""
    if args.events == STDOUT:
        refuse_json(args, "--events")
        if sys.stdout.isatty():
            hint = "pipe it: `beforehand simulate ... --events - | beforehand verify -`"
            raise InputError(
                "an event log is binary: a terminal cannot show it", where="--events -", hint=hint
            )
        return
    if args.events.suffix.casefold() in NOT_PARQUET:
        hint = f"name it `{args.events.with_suffix('.parquet')}`"
        raise InputError(
            "an event log is a Parquet file", where=f"--events {args.events}", hint=hint
        )
    check_file_target(args.events)  # `beside` needs a path with a name
    for target in (args.events, *(beside(args.events, suffix) for suffix in BESIDE)):
        check_file_target(target)
        if args.input is not None:
            refuse_same(target, args.input)


def beside(events: Path, suffix: str) -> Path:
    """Return where another table of a run is, beside its event log."""
    return events.with_name(events.name.removesuffix(".parquet") + suffix)


def _writer(
    args: argparse.Namespace, trace: Trace, spec: Spec, buffer: io.BytesIO
) -> AbstractContextManager[EventWriter | None]:
    """Return what writes the event log to the target of `--events`, or to the buffer if that is
    the standard output."""
    if args.events is None:
        return nullcontext()
    from beforehand.protocols.registry import find_order
    from beforehand.sim.log_writer import event_writer

    return event_writer(
        buffer if args.events == STDOUT else args.events,
        f"{spec.protocol}-{spec.seed}",
        promise=find_order(spec.protocol).written,
        names=trace.names,
        about=msgspec.structs.replace(spec.about(), range_m=parse_range(args.range)),
    )


def _write_beside(target: Path, trace: Trace, places: Positions | None, totals: Totals) -> None:
    """Write the links, the causes and the places. Remove the places of an earlier run there."""
    import pyarrow as pa

    from beforehand.sim.log import links_table, pasts_table, write_events

    write_events(links_table(trace.contacts), beside(target, LINKS_SUFFIX))
    note(f"wrote {2 * len(trace.contacts)} changes of links to {beside(target, LINKS_SUFFIX)}")
    write_events(pasts_table(totals.pasts), beside(target, PASTS_SUFFIX))
    note(f"wrote {len(totals.pasts)} named causes to {beside(target, PASTS_SUFFIX)}")
    at = beside(target, POSITIONS_SUFFIX)
    if places is None:
        at.unlink(missing_ok=True)
        return
    write_events(pa.table(places.segments._asdict()), at)
    note(f"wrote {len(places.node)} ways of nodes to {at}")


def read_spec(args: argparse.Namespace) -> Spec:
    from beforehand.protocols.registry import present_name
    from beforehand.sim.contacts.run import Spec

    lifetime_us = None
    if args.lifetime is not None:
        lifetime_us = parse_duration(args.lifetime, positive=True, where="--lifetime")
    spec = Spec(present_name(args.protocol), args.seed, lifetime_us, literal_deadlines=args.literal)
    written = {name: getattr(args, name) for name in FLAGS}
    found = {
        FLAGS[name].field: parse_flag(name, text)
        for name, text in written.items()
        if text is not None
    }
    from beforehand.scenario.traffic import check_flags, read_events

    check_flags(found, has_file=args.messages is not None)
    if args.messages is not None:
        refuse_device(args.messages)
        found |= {"traffic.law": "file", "traffic.events": read_events(args.messages)}
    return with_settings(spec, found)


def read_movement(args: argparse.Namespace) -> tuple[Trace, Positions | None]:
    if args.example == (args.input is not None):
        raise InputError("give a mobility trace, or `--example`", hint=EXAMPLE)
    if args.example:
        if written := given_trace_options(args):
            problem = f"the built-in crowd is no file: {', '.join(written)} cannot apply"
            raise InputError(problem, where="--example", hint="leave them out")
        from beforehand.mobility.generators import crowd

        return crowd.generate(args.seed, nodes_mean=400, hours=1), None
    refuse_device(args.input)
    return load_movement(args)


def _print_summary(trace: Trace, spec: Spec, summary: dict[str, Any]) -> None:
    lifetime = format_duration(spec.lifetime_us) if spec.lifetime_us else "none"
    title = (
        f"{spec.protocol}, lifetime {lifetime}, seed {spec.seed}: {trace.nodes_count} nodes, "
        f"{len(trace.contacts)} contacts, {format_duration(trace.end_us - trace.start_us)}"
    )
    counts = [
        ("broadcasts", f"{summary['broadcasts']:,}"),
        ("receptions", f"{summary['receptions']:,}"),
        ("reach", show_share(summary["reach"])),
        ("deliveries", f"{summary['deliveries']:,}"),
        ("delivery ratio", show_share(summary["delivery_ratio"])),
        ("expired undelivered", f"{summary['expired']:,}"),
        ("dropped undelivered", f"{summary['dropped']:,}"),
        ("waiting at the end", f"{summary['waiting']:,}"),
        ("received again", f"{summary['again']:,}"),
        *([("evicted", f"{summary['evictions']:,}")] if spec.layer.is_bounded else []),
        ("aborted transfers", f"{summary['frames_aborted']:,}"),
        ("causal violations", f"{sum(summary['violations'].values()):,}"),
        ("bytes sent", f"{summary['bytes']:,}"),
    ]
    print_table(title, ("events", "count"), counts)
    rows = [
        (
            label,
            *(show_duration(summary[key][part]) for part in ("min", "max", "avg", "stdev")),
        )
        for label, key in (
            ("broadcast to reception", "delay_us"),
            ("reception to delivery", "latency_us"),
            ("age at delivery", "age_us"),
        )
    ]
    print_table("", ("time", "min", "max", "avg", "stdev"), rows)
    if not summary["broadcasts"]:
        stays_us = trace.presence[:, 2] - trace.presence[:, 1]
        first = show_duration(spec.traffic.first_us)
        why = f": none was present for longer than {first} (`--first`)"
        is_short = int(stays_us.max(initial=0)) <= spec.traffic.first_us
        note(f"no node broadcast anything{why if is_short else ''}")
    note(f"transfer model: {summary['transfer_model']}")
    reason = f": {summary['engine_why']}" if summary["engine_why"] else ""
    note(f"engine: {ENGINE_NAMES[summary['engine']]}{reason}")
