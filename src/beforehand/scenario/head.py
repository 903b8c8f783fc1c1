"""A scenario file: what to run, as TOML. `docs/pipeline.md` says what may be in it.

All that is wrong with a file is told at once, with line numbers, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.options import Option, Table, read_table

DEFAULT_WORLD = "contacts"
SEEDS_MAX = 100_000


@dataclass(frozen=True)
class Scenario:
    """A scenario without a mistake."""

    name: str
    title: str
    paper: str | None
    """The key of the published figures to compare with."""
    world: str
    seeds: tuple[int, ...]
    options: Mapping[str, Any]
    """What each table of the world came to, by its name; `sweep` is among them."""
    document: Mapping[str, Any]
    """All that was written, `--set` included."""


def world_of(document: Document) -> str:
    """The world that a scenario is for; what says nothing is for contacts."""
    head = document.content.get("scenario", {})
    return str(head.get("world", DEFAULT_WORLD)) if isinstance(head, dict) else DEFAULT_WORLD


def read_head(
    document: Document, tables: Mapping[str, Table], seeds: int, papers: Sequence[str] = ()
) -> Scenario:
    """The whole scenario. tables: those of its world. seeds: how many, unless it says so. papers:
    keys of published figures that its world can be compared with."""
    head = {
        "name": Option(values.plain_name, document.path.stem),
        "title": Option(values.text),
        "paper": Option(values.one_of(*papers)),
        "world": Option(values.text, DEFAULT_WORLD),
    }
    sweep = {"seeds": Option(values.whole(1, SEEDS_MAX), seeds)}
    every = {"scenario": head, **tables, "sweep": {**sweep, **_keys(tables.get("sweep"))}}
    document.check_tables(every)
    found = {name: read_table(document, name, table) for name, table in every.items()}
    document.check()
    about = found.pop("scenario")
    return Scenario(
        name=about["name"],
        title=about["title"] or about["name"],
        paper=about["paper"],
        world=about["world"],
        seeds=tuple(range(1, found["sweep"]["seeds"] + 1)),
        options=found,
        document=document.content,
    )


def _keys(table: Table | None) -> Mapping[str, Option]:
    """What a world adds to `[sweep]`."""
    assert not callable(table), "`sweep` holds plain keys, whatever the world"
    return table or {}
