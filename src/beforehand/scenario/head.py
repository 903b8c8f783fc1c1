"""Read a scenario file (TOML): what to run. `docs/pipeline.md` describes its keys.

All problems of a file are reported together, with line numbers, before anything runs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.options import Option, Table, read_table
from beforehand.scenario.sweep import Point, grid, take_axes

DEFAULT_WORLD = "contacts"
SEEDS_MAX = 100_000


@dataclass(frozen=True)
class Scenario:
    """A scenario that was read without problems."""

    name: str
    title: str
    paper: str | None
    """The key of the published figures to compare with."""
    world: str
    seeds: tuple[int, ...]
    points: tuple[Point, ...]
    """The points of the sweep; without swept keys one point."""
    document: Mapping[str, Any]
    """The whole content of the file, with the overrides of `--set`."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the values of each table of the world by table name, including `sweep`, at the
        first point."""
        return self.points[0].options


def world_of(document: Document) -> str:
    """Return the world of a scenario; the default is contacts."""
    head = document.content.get("scenario", {})
    return str(head.get("world", DEFAULT_WORLD)) if isinstance(head, dict) else DEFAULT_WORLD


def read_head(
    document: Document,
    tables: Mapping[str, Table],
    seeds: int,
    papers: Sequence[str] = (),
    swept: Sequence[str] = (),
) -> Scenario:
    """Return the whole scenario.

    tables: the tables of its world.
    seeds: the default number of seeds.
    papers: keys of published figures that its world can be compared with.
    swept: the tables whose keys `[sweep]` can sweep.
    """
    head = {
        "name": Option(values.plain_name, document.path.stem),
        "title": Option(values.line),
        "paper": Option(values.one_of(*papers)),
        "world": Option(values.text, DEFAULT_WORLD),
    }
    sweep = {
        "seeds": Option(values.whole(1, SEEDS_MAX), seeds),
        # The first of them, for seeds with which no parameter was chosen.
        "first_seed": Option(values.whole(1, SEEDS_MAX), 1),
    }
    every = {"scenario": head, **tables, "sweep": {**sweep, **_keys(tables.get("sweep"))}}
    document.check_tables(every)
    written = copy.deepcopy(document.content)
    axes = take_axes(document, swept)
    points = []
    for values_here in grid(document, axes):
        found = {name: read_table(document, name, table) for name, table in every.items()}
        about = found.pop("scenario")
        points.append(Point(values_here, found))
    document.check()
    if len({repr(point.options) for point in points}) < len(points):
        hint = "leave out values that mean the same"
        document.add(InputError("two points of the sweep are the same", hint=hint), ("sweep",))
        document.check()
    return Scenario(
        name=about["name"],
        title=about["title"] or about["name"],
        paper=about["paper"],
        world=about["world"],
        seeds=_seeds(**{key: found["sweep"][key] for key in sweep}),
        points=tuple(points),
        document=written,
    )


def _seeds(seeds: int, first_seed: int) -> tuple[int, ...]:
    return tuple(range(first_seed, first_seed + seeds))


def _keys(table: Table | None) -> Mapping[str, Option]:
    """Return the keys that a world adds to `[sweep]`."""
    assert not callable(table), "`sweep` holds plain keys, whatever the world"
    return table or {}
