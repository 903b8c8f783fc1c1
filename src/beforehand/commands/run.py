"""`beforehand run`: a scenario from mobility to report, on Spark."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from beforehand.commands.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_UNKNOWN, EXIT_VALID, EXIT_VIOLATION, InputError
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.pipeline.jobs import Summary
    from beforehand.pipeline.sweeps import SweepSummary

Rows = list[dict[str, Any]]
Grid = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Headings and lines."""

EXAMPLE = "beforehand run scenarios/city-bus.toml --seeds 3 --set network.announce=5s"
EXIT_CODES = {"valid": EXIT_VALID, "invalid": EXIT_VIOLATION, "unknown": EXIT_UNKNOWN}


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "run", "run a scenario, from mobility to a report", EXAMPLE)
    parser.add_argument("scenario", type=Path, help="a TOML file; see scenarios/")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: out/NAME-OF-THE-FILE")
    parser.add_argument("--seeds", type=int, metavar="N", help="instead of the scenario's own")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster; default: embedded")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server")
    parser.add_argument("--no-report", action="store_true", help="leave out the page")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.pipeline.sweep_scenario import world_of

    world = world_of(args.scenario)
    if world not in WORLDS:
        known = ", ".join(f"`{name}`" for name in WORLDS)
        raise InputError(f"no such world: `{world}`", where=str(args.scenario), hint=f"use {known}")
    out = args.out if args.out is not None else Path("out") / args.scenario.stem
    summary, rows = WORLDS[world].compute(
        args.scenario,
        out,
        seeds=args.seeds,
        overrides=args.settings,
        master=args.master,
        remote=args.remote,
        tell=note,
    )
    page = None
    if not args.no_report:
        from beforehand.report.page import write_report

        note("report")
        page = write_report(out)
    if args.json:
        print_json(
            {
                "scenario": summary.name,
                "verdict": summary.state,
                "computed": summary.computed,
                "out": str(out),
                "report": str(page) if page else None,
                WORLDS[world].noun: rows,
            }
        )
    else:
        print_table(summary.title, *WORLDS[world].table(rows))
        print(f"verdict: {summary.state}")
        if page is not None:
            print(f"report:  {page}")
    return EXIT_CODES[summary.state]


def _compute_contacts(*args: Any, **options: Any) -> tuple[Summary, Rows]:
    from beforehand.pipeline.jobs import run_scenario

    summary = run_scenario(*args, **options)
    return summary, summary.runs


def _compute_drift(*args: Any, **options: Any) -> tuple[SweepSummary, Rows]:
    from beforehand.pipeline.drift_sweep import run_drift

    summary = run_drift(*args, **options)
    return summary, summary.rows


def _compute_overlay(*args: Any, **options: Any) -> tuple[SweepSummary, Rows]:
    from beforehand.pipeline.overlay_sweep import run_overlay

    summary = run_overlay(*args, **options)
    return summary, summary.rows


def _contacts_table(rows: Rows) -> Grid:
    return HEADINGS, [_row(row) for row in rows]


def _claims_table(rows: Rows) -> Grid:
    """A line per claim, a column per reading of the paper."""
    readings = list(dict.fromkeys(row["reading"] for row in rows))
    lines: dict[str, tuple[str, ...]] = {}
    for row in rows:
        before = lines.get(row["claim"], (row["claim"], row["figure"]))
        lines[row["claim"]] = (*before, row["verdict"])
    return ("claim", "figure", *readings), list(lines.values())


def _overlay_table(rows: Rows) -> Grid:
    """Means over the seeds."""
    groups: dict[tuple[int, str, int], Rows] = {}
    for row in rows:
        key = (row["nodes"], row["system"], row["payload_bytes"])
        groups.setdefault(key, []).append(row)
    lines = [
        (
            system,
            str(nodes),
            str(payload),
            str(len(runs)),
            *(f"{fmean(run[name] for run in runs):,.0f}" for name in ("packets", "bytes")),
            format_duration(round(fmean(run["reception_us_avg"] for run in runs))),
            format_duration(round(fmean(run["delivery_us_avg"] for run in runs))),
            f"{sum(run['violations'] + run['missing'] for run in runs):,}",
        )
        for (nodes, system, payload), runs in groups.items()
    ]
    return OVERLAY_HEADINGS, lines


class World(NamedTuple):
    """How a kind of scenario is run and what is printed of it."""

    compute: Callable[..., tuple[Summary | SweepSummary, Rows]]
    table: Callable[[Rows], Grid]
    noun: str
    """What its rows are."""


WORLDS = {
    "contacts": World(_compute_contacts, _contacts_table, "runs"),
    "drift": World(_compute_drift, _claims_table, "claims"),
    "overlay": World(_compute_overlay, _overlay_table, "runs"),
}
OVERLAY_HEADINGS = (
    *("system", "nodes", "payload", "seeds", "packets", "bytes"),
    *("reception", "delivery", "broken"),
)
HEADINGS = (
    "protocol",
    "lifetime",
    "seed",
    "receptions",
    "deliveries",
    "ratio",
    "delay",
    "latency",
    "verdict",
)


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    return (
        run["protocol"],
        format_duration(run["lifetime_us"]) if run["lifetime_us"] else "none",
        str(run["seed"]),
        f"{run['receptions']:,}",
        f"{run['deliveries']:,}",
        f"{100 * run['delivery_ratio']:.2f} %",
        format_duration(round(run["delay_us_avg"])),
        format_duration(round(run["latency_us_avg"])),
        run["verdict"],
    )
