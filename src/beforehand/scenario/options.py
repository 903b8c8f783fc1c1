"""Tables of a scenario file with plain keys, each with a parser and a default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from beforehand.scenario.document import Document
from beforehand.scenario.values import Parse


@dataclass(frozen=True)
class Option:
    """The parser and the default of a key."""

    parse: Parse
    default: Any = None


Reader = Callable[[Document], Any]
"""A function that returns the value of a table and adds its problems to the document."""
Table = Mapping[str, Option] | Reader
"""The keys that a table may hold, or a reader for a table that needs more."""


def read_table(document: Document, name: str, table: Table) -> Any:
    """Return every known key of the table, written or default, or the result of its reader."""
    if callable(table):
        return table(document)
    written = document.table(name, table)
    return {
        key: document.value(written, (name, key), option.parse, option.default)
        for key, option in table.items()
    }
