"""Tables of a scenario file that hold plain keys, each with its kind of value and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from beforehand.scenario.document import Document
from beforehand.scenario.values import Parse


@dataclass(frozen=True)
class Option:
    """A key of a table."""

    parse: Parse
    default: Any = None


Reader = Callable[[Document], Any]
"""What a table comes to; what is wrong with it goes to the document."""
Table = Mapping[str, Option] | Reader
"""The keys that a table may hold, or a reader of its own where it is more than that."""


def read_table(document: Document, name: str, table: Table) -> Any:
    """Every key that the table knows, as written or by default; or what its reader makes of it."""
    if callable(table):
        return table(document)
    written = document.table(name, table)
    return {
        key: document.value(written, (name, key), option.parse, option.default)
        for key, option in table.items()
    }
