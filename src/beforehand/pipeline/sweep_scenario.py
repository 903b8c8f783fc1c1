"""The scenario file of a sweep: a head, seeds, and one table of the world's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.values import Parse

DEFAULT_SEEDS = 3


@dataclass(frozen=True)
class SweepScenario:
    """A scenario of a sweep, without a mistake."""

    name: str
    title: str
    paper: str | None
    world: str
    seeds: tuple[int, ...]
    options: Mapping[str, Any]
    """The table of the world: every key that it knows, as written or by default."""
    document: Mapping[str, Any]
    """All that was written, `--set` included."""


@dataclass(frozen=True)
class Option:
    """A key of a world's own table."""

    parse: Parse
    default: Any


def read_sweep_scenario(
    path: Path,
    world: str,
    options: Mapping[str, Option],
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
) -> SweepScenario:
    """The scenario of a file; all that is wrong with it is told at once, with line numbers.

    options: what the table `[<world>]` may hold. seeds: instead of its own. overrides:
    `section.key=value`.
    """
    document = Document(path, seeds=seeds, overrides=overrides)
    head = {
        "name": Option(values.plain_name, path.stem),
        "title": Option(values.text, None),
        "paper": Option(values.text, None),
        "world": Option(values.one_of(world), world),
    }
    sweep = {"seeds": Option(values.whole(1), DEFAULT_SEEDS)}
    tables = {"scenario": head, "sweep": sweep, world: options}
    document.check_tables(tables)
    found = {name: _read_table(document, name, options) for name, options in tables.items()}
    document.check()
    about = found["scenario"]
    return SweepScenario(
        name=about["name"],
        title=about["title"] or about["name"],
        paper=about["paper"],
        world=world,
        seeds=tuple(range(1, found["sweep"]["seeds"] + 1)),
        options=found[world],
        document=document.content,
    )


def world_of(path: Path) -> str:
    """The world that a scenario is for; what says nothing is for contacts."""
    head = Document(path).content.get("scenario", {})
    return str(head.get("world", "contacts")) if isinstance(head, dict) else "contacts"


def _read_table(document: Document, name: str, options: Mapping[str, Option]) -> dict[str, Any]:
    table = document.table(name, options)
    return {
        key: document.value(table, (name, key), option.parse, option.default)
        for key, option in options.items()
    }


def list_of(parse: Parse) -> Parse:
    """A list with something in it, nothing twice."""

    def parse_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not value:
            raise InputError(f"not a list with something in it: `{value}`", hint="write `[...]`")
        items = tuple(parse(item) for item in value)
        if len(set(items)) < len(items):
            raise InputError(f"something is in it twice: `{value}`")
        return items

    return parse_list
