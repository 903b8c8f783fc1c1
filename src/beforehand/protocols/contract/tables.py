"""The saved state of a durable core: tables of rows, with the types of their keys and values.

A store needs the types to restore a row. Without them the decoder would return lists for tuples and
plain values for structs, and the core would not find its keys again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from beforehand.errors import InputError

Rows = Mapping[str, Mapping[Any, Any]]
"""Saved state: table -> key -> value, with the types that the tables declare."""

_encode = msgspec.msgpack.encode


class Table(msgspec.Struct, frozen=True):
    """The name of a table, and the types of its keys and values."""

    name: str
    key: Any
    """The type of the keys."""
    value: Any
    """The type of the values."""


class RowStore(Protocol):
    """The operations of a store that a driver uses."""

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        """Save the rows (table, key, value) of one step in one transaction: all of them, or none.

        A value of None deletes the row.
        """
        ...

    def load(self, tables: Sequence[Table]) -> Rows:
        """Return all rows of the tables, in the order in which they were first saved."""
        ...

    def after(self, action: Callable[[], None]) -> None:
        """Call `action` when all saves so far are durable."""
        ...


class Store:
    """Holds rows as bytes, in memory: a `RowStore` for simulations, checkers and tests."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, bytes]] = {}

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        """Save the rows of one step in one transaction: all of them, or none."""
        for table, key, value in saves:
            rows = self._rows.setdefault(table, {})
            if value is None:
                rows.pop(_encode(key), None)
            else:
                rows[_encode(key)] = _encode(value)

    def load(self, tables: Sequence[Table]) -> Rows:
        """Return all rows, with the types of their tables. Raise InputError if a row does not fit.

        The rows of a table come in the order in which they were first saved, because the driver
        delivers an inbox in that order.
        """
        return {table.name: self._load(table) for table in tables}

    def after(self, action: Callable[[], None]) -> None:
        """Call `action` when all saves so far are durable. In memory that is at once."""
        action()

    def count(self) -> int:
        return sum(map(len, self._rows.values()))

    def snapshot(self) -> tuple[Any, ...]:
        """Return all that the store holds, hashable; `set_back` returns to it."""
        return tuple((table, tuple(rows.items())) for table, rows in self._rows.items())

    def set_back(self, snapshot: tuple[Any, ...]) -> None:
        """Return to the state of a `snapshot`."""
        self._rows = {table: dict(rows) for table, rows in snapshot}

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
