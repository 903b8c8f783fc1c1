"""`beforehand diff`: compare two finished runs of a scenario."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from beforehand.commands.shell.console import (
    Commands,
    add_command,
    add_json,
    note,
    print_json,
    print_table,
)
from beforehand.errors import EXIT_VALID, InputError
from beforehand.interval import margin_of
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.pipeline.experiment import Compared

EXAMPLE = "beforehand diff out/city-bus out/city-bus-5s"
Row = dict[str, Any]


@dataclass(frozen=True)
class Mean:
    """The mean over the seeds of one group."""

    mean: float
    half: float | None
    """Half the width of the 95 % confidence interval; None for a single seed."""
    seeds: int


@dataclass(frozen=True)
class Difference:
    """One figure of one group; a side is None if its folder lacks the figure."""

    group: Row
    figure: str
    first: Mean | None
    second: Mean | None
    difference: float | None
    apart: bool
    """Whether the confidence intervals do not overlap."""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "diff", "compare two finished runs of a scenario", EXAMPLE)
    parser.add_argument("first", type=Path, help="a folder that `beforehand run` wrote to")
    parser.add_argument("second", type=Path, help="another one, of the same world")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.pipeline.experiment import load_experiment

    world = _world_of(args.first, args.second)
    what = load_experiment(world, where=str(args.first)).compared
    sides = (_rows(args.first, what), _rows(args.second, what))
    found = compare(what, *sides, replicated=(_draws(args.first), _draws(args.second)))
    if args.json:
        folders = {"first": str(args.first), "second": str(args.second)}
        print_json({"world": world, **folders, "rows": [asdict(row) for row in found]})
        return EXIT_VALID
    shown = [
        (
            _name(row.group),
            row.figure.replace("_us", "").replace("_", " "),
            *(_show(row.figure, side) for side in (row.first, row.second)),
            f"{_signed(row.figure, row.difference)} {'*' if row.apart else ' '}",
        )
        for row in found
    ]
    title = (
        f"means over the seeds, with 95 % intervals\nfirst:  {args.first}\nsecond: {args.second}"
    )
    print_table(title, ("group", "figure", "first", "second", "difference"), shown)
    if any(row.apart for row in found):
        note("* the intervals do not overlap")
    return EXIT_VALID


def compare(
    what: Compared,
    first: list[Row],
    second: list[Row],
    *,
    replicated: tuple[bool, bool] = (True, True),
) -> list[Difference]:
    """Return each figure of each group that occurs on either side, in the order of the first
    side.

    replicated: whether the seeds of each side are replications; if not, it has no intervals.
    """
    sides = [_grouped(what, rows) for rows in (first, second)]
    found = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        for figure in what.figures:
            one, two = (
                _mean(side.get(key, ()), figure, is_replicated=is_replicated)
                for side, is_replicated in zip(sides, replicated, strict=True)
            )
            if one is None and two is None:
                continue
            group = dict(zip(what.keys, key, strict=True))
            gap = None if one is None or two is None else two.mean - one.mean
            found.append(Difference(group, figure, one, two, gap, _are_apart(one, two)))
    return found


def _world_of(first: Path, second: Path) -> str:
    from beforehand.report.datasets import read_scenario

    worlds = [read_scenario(folder).world for folder in (first, second)]
    if worlds[0] != worlds[1]:
        problem = f"two worlds: `{worlds[0]}` in {first}, `{worlds[1]}` in {second}"
        raise InputError(problem, where=str(second), hint="give two runs of one scenario")
    return worlds[0]


def _rows(folder: Path, what: Compared) -> list[Row]:
    from beforehand.report.datasets import HINT, read_table

    table = read_table(folder, what.table)
    rows: list[Row] = [] if table is None else table.to_pylist()
    if not rows:
        raise InputError("no finished run in this folder", where=str(folder), hint=HINT)
    return [row | what.add_keys(row) for row in rows]


def _grouped(what: Compared, rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in what.keys), []).append(row)
    return groups


def _draws(folder: Path) -> bool:
    """Return whether the seeds of a finished run draw something anew that matters."""
    from beforehand.report.datasets import read_scenario

    return read_scenario(folder).drawn != ()


def _mean(rows: Sequence[Row], figure: str, *, is_replicated: bool) -> Mean | None:
    values = [float(row[figure]) for row in rows if row[figure] is not None]
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return None
    return Mean(fmean(values), margin_of(values) if is_replicated else None, len(values))


def _are_apart(one: Mean | None, two: Mean | None) -> bool:
    if one is None or two is None or one.half is None or two.half is None:
        return False
    return abs(two.mean - one.mean) > one.half + two.half


def _name(group: Row) -> str:
    words = []
    for key, value in group.items():
        if value is None or value is False or value == "":
            continue
        if key.endswith("_us"):
            words.append(format_duration(value))
        elif isinstance(value, str):
            words.append(value)
        else:
            words.append(key if value is True else f"{key} {value:g}")
    return ", ".join(words)


def _show(figure: str, side: Mean | None) -> str:
    if side is None:
        return "–"
    spread = "" if side.half is None else f" ± {_number(figure, side.half)}"
    return f"{_number(figure, side.mean)}{spread}"


def _signed(figure: str, value: float | None) -> str:
    if value is None:
        return "–"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return f"{sign}{_number(figure, abs(value))}"


def _number(figure: str, value: float) -> str:
    if "_us" in figure:
        return format_duration(round(value))
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
