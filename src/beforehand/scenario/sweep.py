"""The swept keys of `[sweep]`: a grid of values for keys of other tables.

`network.capacity = [50, 100]` below `[sweep]` runs everything once with each value. Several such
keys make a grid. Each point of the grid is read like a scenario of its own, so that every value is
checked like a value in its table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from beforehand.errors import InputError, choose
from beforehand.scenario.document import Document
from beforehand.scenario.lines import KeyPath

POINTS_MAX = 1_000
PARTS = {"layer": "network", "links": "network", "clocks": "network"}
"""The parts of `Spec` whose fields are keys of `[network]`: `links.bandwidth` is
`network.bandwidth`."""


class Axis(NamedTuple):
    """A swept key and its values, as written."""

    table: str
    key: str
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        return f"{self.table}.{self.key}"


@dataclass(frozen=True)
class Point:
    """One point of the grid."""

    values: Mapping[str, Any]
    """The value of each swept key (`network.capacity`), as written; empty without a sweep."""
    options: Mapping[str, Any]
    """The values of each table of the world, as in `Scenario.options`."""

    @property
    def name(self) -> str:
        """Return the values in words: `capacity 50, period 5m`; empty without a sweep."""
        return ", ".join(f"{key.partition('.')[2]} {show(v)}" for key, v in self.values.items())


def show(value: object) -> str:
    """Return a value of a scenario file as short text."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def take_axes(document: Document, tables: Sequence[str]) -> list[Axis]:
    """Remove the swept keys from `[sweep]` and return them. Report keys that cannot be swept.

    tables: the tables whose keys can be swept.
    """
    section = document.content.get("sweep")
    axes = []
    for path, value in list(_keys(section)) if isinstance(section, dict) and tables else ():
        place: KeyPath = ("sweep", *path)
        table, _, key = ".".join(map(str, path)).partition(".")
        table = PARTS.get(table, table)
        if table not in tables:
            error = InputError(f"no table to sweep: `{table}`", hint=choose(table, tables))
            document.add(error, place)
        elif not isinstance(value, list) or not value:
            hint = f"write `{table}.{key} = [...]` with the values in it"
            document.add(InputError(f"`{key}`: not a list of values: `{value}`", hint=hint), place)
        elif key in document.table(table, None):
            hint = f"leave it out of `[{table}]`"
            document.add(InputError(f"`{key}` is swept and set", hint=hint), place)
        else:
            axes.append(Axis(table, key, tuple(value)))
            document.moved[table, key] = place
    if isinstance(section, dict) and tables:
        document.content["sweep"] = {
            key: value
            for key, value in section.items()
            if not isinstance(value, dict) and "." not in key
        }
    if (count := _size(axes)) > POINTS_MAX:
        problem = f"the grid has {count:,} points, of which {POINTS_MAX:,} can be run"
        document.add(InputError(problem, hint="sweep fewer keys or values"), ("sweep",))
        return []
    return axes


def grid(document: Document, axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Yield the values of each point, while the document has these values in its tables."""
    for values in itertools.product(*(axis.values for axis in axes)):
        for axis, value in zip(axes, values, strict=True):
            section = document.content.setdefault(axis.table, {})
            if isinstance(section, dict):
                section[axis.key] = value
        yield {axis.name: value for axis, value in zip(axes, values, strict=True)}


def _keys(section: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    """Yield (path below `[sweep]`, value) of each dotted key, with or without quotes."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from (((key, inner), found) for inner, found in value.items())
        elif "." in key:
            yield (key,), value


def _size(axes: Sequence[Axis]) -> int:
    count = 1
    for axis in axes:
        count *= len(axis.values)
    return count
