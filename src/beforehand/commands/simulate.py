"""`beforehand simulate`: one run over a contact trace."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beforehand.commands.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_VALID, EXIT_VIOLATION, InputError
from beforehand.units import format_duration, parse_distance, parse_duration

if TYPE_CHECKING:
    from beforehand.mobility.trace import Trace
    from beforehand.sim.run import Spec

EXAMPLE = "beforehand simulate meetings.txt --protocol delta --lifetime 20m --seed 7"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "simulate", "simulate one protocol over a mobility trace", EXAMPLE
    )
    parser.add_argument("input", nargs="?", type=Path, help="a mobility trace of any known format")
    parser.add_argument("--range", metavar="DISTANCE", help="where the trace has places: 200m")
    parser.add_argument("--example", action="store_true", help="use the built-in crowd instead")
    parser.add_argument("--protocol", default="causal", help="causal, delta, vector or none")
    parser.add_argument("--lifetime", metavar="TIME", help="of every message: 90s, 20m, 2h")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--period", default="1m", metavar="TIME", help="between two broadcasts")
    parser.add_argument("--first", default="20s", metavar="TIME", help="until the first broadcast")
    parser.add_argument("--payload", type=int, default=200, metavar="BYTES")
    parser.add_argument("--latency", default="2ms", metavar="TIME")
    parser.add_argument("--bandwidth", default="1000000", metavar="BYTES/S", help="or `endless`")
    parser.add_argument("--announce", default="1s", metavar="TIME", help="0s: at once")
    parser.add_argument("--loss", type=float, default=0.0, metavar="SHARE", help="of all frames")
    parser.add_argument("--retry", metavar="TIME", help="repeat what was not answered")
    parser.add_argument("--capacity", type=int, metavar="N", help="messages a node can hold")
    parser.add_argument("--skew", default="0s", metavar="TIME", help="between any two clocks")
    parser.add_argument(
        "--literal", action="store_true", help="deadlines to the letter of the paper"
    )
    parser.add_argument("--events", type=Path, metavar="FILE.parquet", help="write the event log")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    spec = read_spec(args)
    spec.check()
    if args.events is not None and not args.events.parent.is_dir():
        raise InputError(f"no such folder: {args.events.parent}", hint="create it first")
    trace = read_trace(args)

    from beforehand.sim.log import event_table, write_events
    from beforehand.sim.protocols import PROTOCOLS
    from beforehand.sim.run import run_one
    from beforehand.sim.summary import count_violations, summarise

    result = run_one(trace, spec)
    if args.events is not None:
        write_events(event_table(f"{spec.protocol}-{spec.seed}", result.columns), args.events)
        note(f"wrote {len(result.columns['t_us'])} events to {args.events}")
    summary = summarise(result.columns)
    summary["frames"], summary["bytes"] = result.frames_sent, result.bytes_sent
    summary["violations"] = count_violations(result.columns)
    summary["transfer_model"] = spec.transfer_model
    summary["trace_changes"] = dict(trace.changes)
    if args.json:
        print_json({"protocol": spec.protocol, "seed": spec.seed, **summary})
    else:
        _print_summary(trace, spec, summary)
    is_broken = PROTOCOLS[spec.protocol].is_causal and any(summary["violations"].values())
    return EXIT_VIOLATION if is_broken else EXIT_VALID


def read_spec(args: argparse.Namespace) -> Spec:
    from beforehand.sim.run import Spec

    def optional(text: str | None, flag: str) -> int | None:
        return None if text is None else parse_duration(text, positive=True, where=flag)

    bytes_per_s = None
    if args.bandwidth != "endless":
        if not args.bandwidth.isdecimal():
            raise InputError(
                f"not a bandwidth: `{args.bandwidth}`",
                where="--bandwidth",
                hint="write bytes per second, such as `1000000`, or `endless`",
            )
        bytes_per_s = int(args.bandwidth)
    return Spec(
        protocol=args.protocol,
        seed=args.seed,
        lifetime_us=optional(args.lifetime, "--lifetime"),
        first_us=parse_duration(args.first, where="--first"),
        period_us=parse_duration(args.period, positive=True, where="--period"),
        payload_bytes=args.payload,
        latency_us=parse_duration(args.latency, where="--latency"),
        bytes_per_s=bytes_per_s,
        loss=args.loss,
        skew_us=parse_duration(args.skew, where="--skew"),
        announce_us=parse_duration(args.announce, where="--announce"),
        retry_us=optional(args.retry, "--retry"),
        capacity=args.capacity,
        literal_deadlines=args.literal,
    )


def read_trace(args: argparse.Namespace) -> Trace:
    if args.example == (args.input is not None):
        raise InputError("give a mobility trace, or `--example`", hint=EXAMPLE)
    if args.example:
        from beforehand.mobility import crowd

        return crowd.generate(args.seed, nodes_mean=400, hours=1)
    from beforehand.mobility.positions import Positions
    from beforehand.mobility.read import read

    found = read(args.input)
    if isinstance(found, Positions):
        if args.range is None:
            hint = "pass `--range 200m`: who is that close is in contact"
            raise InputError("the trace has places, not contacts", where=str(args.input), hint=hint)
        return found.contacts_within(parse_distance(args.range, where="--range"))
    return found


def _print_summary(trace: Trace, spec: Spec, summary: dict[str, Any]) -> None:
    lifetime = format_duration(spec.lifetime_us) if spec.lifetime_us else "none"
    title = (
        f"{spec.protocol}, lifetime {lifetime}, seed {spec.seed}: {trace.nodes_count} nodes, "
        f"{len(trace.contacts)} contacts, {format_duration(trace.end_us - trace.start_us)}"
    )
    counts = [
        ("broadcasts", f"{summary['broadcasts']:,}"),
        ("receptions", f"{summary['receptions']:,}"),
        ("deliveries", f"{summary['deliveries']:,}"),
        ("delivery ratio", f"{100 * summary['delivery_ratio']:.2f} %"),
        ("expired undelivered", f"{summary['expired']:,}"),
        ("causal violations", f"{sum(summary['violations'].values()):,}"),
        ("bytes sent", f"{summary['bytes']:,}"),
    ]
    print_table(title, ("events", "count"), counts)
    rows = [
        (
            label,
            *(
                format_duration(round(summary[key][part]))
                for part in ("min", "max", "avg", "stdev")
            ),
        )
        for label, key in (
            ("broadcast to reception", "delay_us"),
            ("reception to delivery", "latency_us"),
            ("age at delivery", "age_us"),
        )
    ]
    print_table("", ("time", "min", "max", "avg", "stdev"), rows)
    note(f"transfer model: {summary['transfer_model']}")
    if summary["trace_changes"]:
        note(f"mended in the trace: {summary['trace_changes']}")
