"""What a durable core saves: tables of rows, with the types of their keys and values.

The types are what lets a row survive storage. An encoder that knows nothing of them gives back
lists for tuples and plain values for structs, and no key would be found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from beforehand.errors import InputError

Rows = Mapping[str, Mapping[Any, Any]]
"""Saved state: table -> key -> value, with the types that the tables declare."""

_encode = msgspec.msgpack.encode


class Table(msgspec.Struct, frozen=True):
    """One kind of rows."""

    name: str
    key: Any
    """The type of its keys."""
    value: Any


class Store:
    """Rows as bytes, in memory. A database has the same methods."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, bytes]] = {}

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        """One transaction: the saves of one step, all of them or none."""
        for table, key, value in saves:
            rows = self._rows.setdefault(table, {})
            if value is None:
                rows.pop(_encode(key), None)
            else:
                rows[_encode(key)] = _encode(value)

    def load(self, tables: Sequence[Table]) -> Rows:
        """Everything, typed again, in the order in which the rows were first saved: an inbox is
        handed over in it. A row that does not fit its table is an error, not a guess."""
        return {table.name: self._load(table) for table in tables}

    def after(self, action: Callable[[], None]) -> None:
        """Carry this out when what was saved will not be lost any more: here, at once."""
        action()

    def count(self) -> int:
        return sum(map(len, self._rows.values()))

    def _load(self, table: Table) -> dict[Any, Any]:
        try:
            return {
                msgspec.msgpack.decode(key, type=table.key): msgspec.msgpack.decode(
                    value, type=table.value
                )
                for key, value in self._rows.get(table.name, {}).items()
            }
        except msgspec.DecodeError as error:
            raise InputError(
                f"a saved row of `{table.name}` cannot be read: {error}",
                hint="it was written by another version; start with an empty store and a new name",
            ) from error
