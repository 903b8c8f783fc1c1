"""Messages in the store of a member, many per SQLite row.

SQLite's cost is per row: 64 short messages in rows of their own, each in the table and in its
index, cost clearly more than one row. Messages arrive in batches, never change, and are mostly
deleted in the order of arrival. So the messages of a transaction share rows, called *row batches*.
A batch is deleted when all of its messages are. When some of them are deleted, it is rewritten
without them.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import GenericAlias
from typing import Any

import msgspec

from beforehand.protocols.contract.tables import Table

BATCH_ROWS, BATCH_BYTES = 64, 64 << 10
"""Upper limits of a batch, which has at least one message. Deleting one message may rewrite this
much."""

Changes = dict[bytes, msgspec.Raw | None]
"""The new encoded value by encoded key; None deletes the message."""

_encode = msgspec.msgpack.encode
_decode_pairs = msgspec.msgpack.Decoder(list[tuple[msgspec.Raw, msgspec.Raw]]).decode


class Damaged(Exception):
    """A row differs from what was written: its checksum does not match."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a saved row of `{kind}` has changed on the disk")


class RowBatches:
    """The messages of one table, in batches. A batch has the key of its first message."""

    def __init__(self, database: sqlite3.Connection, table: Table) -> None:
        self._database, self._table = database, table
        pair = GenericAlias(tuple, (table.key, table.value))
        self._decoder = msgspec.msgpack.Decoder(GenericAlias(list, (pair,)))
        self._places: dict[Any, int] | None = None
        """The batch of each key; None until `load` was called."""
        self._counts: dict[int, int] = {}
        """The number of messages of each batch."""

    def load(self) -> dict[Any, Any]:
        """Return all messages, in the order in which they were first saved."""
        rows: dict[Any, Any] = {}
        places: dict[Any, int] = {}
        found = self._database.execute(
            "SELECT place, key, value, checksum FROM rows WHERE kind = ? ORDER BY place",
            (self._table.name,),
        )
        for place, key, content, checksum in found:
            self._check(key, content, checksum)
            pairs = self._decoder.decode(content)
            rows.update(pairs)
            places.update(dict.fromkeys([key for key, _ in pairs], place))
            self._counts[place] = len(pairs)
        self._places = places
        return rows

    def change(self, gone: Iterable[Any], rows: Mapping[Any, Any]) -> None:
        """Delete `gone`, then save `rows`, within the caller's transaction.

        A key that exists already keeps its place in the order.
        """
        if self._places is None:
            self.load()
        places = self._places
        assert places is not None, "can't happen: it was just looked for"
        touched: defaultdict[int, Changes] = defaultdict(dict)
        for key in gone:
            if (place := places.pop(key, None)) is not None:
                touched[place][_encode(key)] = None
        fresh = []
        for key, value in rows.items():
            if (place := places.get(key)) is None:
                fresh.append((key, value))
            else:
                touched[place][_encode(key)] = msgspec.Raw(_encode(value))
        for place, changes in touched.items():
            self._write_anew(place, changes)
        self._insert(fresh, places)

    def _write_anew(self, place: int, changes: Changes) -> None:
        """Delete a batch, or rewrite it with the changes."""
        if list(changes.values()) == [None] * self._counts[place]:
            self._database.execute("DELETE FROM rows WHERE place = ?", (place,))
            del self._counts[place]
            return
        found = self._database.execute(
            "SELECT key, value, checksum FROM rows WHERE place = ?", (place,)
        )
        key, content, checksum = found.fetchone()
        self._check(key, content, checksum)  # a rewrite would give damaged content a valid checksum
        pairs = [(key, changes.get(bytes(key), value)) for key, value in _decode_pairs(content)]
        left = [pair for pair in pairs if pair[1] is not None]
        key, content = bytes(left[0][0]), _encode(left)
        self._database.execute(
            "UPDATE rows SET key = ?, value = ?, checksum = ? WHERE place = ?",
            (key, content, checksum_of(self._table.name, key, content), place),
        )
        self._counts[place] = len(left)

    def _insert(self, rows: list[tuple[Any, Any]], places: dict[Any, int]) -> None:
        """Append messages in new batches."""
        kind = self._table.name
        for keys, pairs in _cut(rows):
            key, content = _encode(keys[0]), _encode(pairs)
            place = self._database.execute(
                "INSERT INTO rows (kind, key, value, checksum) VALUES (?, ?, ?, ?)",
                (kind, key, content, checksum_of(kind, key, content)),
            ).lastrowid
            assert place is not None, "can't happen: it was just inserted"
            places.update(dict.fromkeys(keys, place))
            self._counts[place] = len(keys)

    def _check(self, key: bytes, content: bytes, checksum: int) -> None:
        """Raise `Damaged` unless the checksum matches."""
        if checksum_of(self._table.name, key, content) != checksum:
            raise Damaged(self._table.name)


def put_into_batches(database: sqlite3.Connection, kind: str) -> None:
    """Migrate to schema 3: turn each row of this kind into a batch of one message."""
    found = database.execute("SELECT place FROM rows WHERE kind = ?", (kind,))
    for (place,) in found.fetchall():
        row = database.execute("SELECT key, value, checksum FROM rows WHERE place = ?", (place,))
        key, value, checksum = row.fetchone()
        if checksum_of(kind, key, value) != checksum:
            raise Damaged(kind)
        content = _encode([(msgspec.Raw(key), msgspec.Raw(value))])
        database.execute(
            "UPDATE rows SET value = ?, checksum = ? WHERE place = ?",
            (content, checksum_of(kind, key, content), place),
        )


def checksum_of(kind: str, key: bytes, value: bytes) -> int:
    """Return the CRC-32 of a row."""
    return zlib.crc32(value, zlib.crc32(key, _checksum_of_kind(kind)))


@cache
def _checksum_of_kind(kind: str) -> int:
    """Return the CRC-32 of the kind, with which each row's checksum begins."""
    return zlib.crc32(kind.encode())


def _cut(rows: list[tuple[Any, Any]]) -> Iterator[tuple[list[Any], list[msgspec.Raw]]]:
    """Yield batches: the keys of each, and its messages as they are written."""
    keys: list[Any] = []
    pairs: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        encoded = _encode(row)
        size += len(encoded)
        if keys and (len(keys) == BATCH_ROWS or size > BATCH_BYTES):
            yield keys, pairs
            keys, pairs, size = [], [], len(encoded)
        keys.append(row[0])
        pairs.append(msgspec.Raw(encoded))
    if keys:
        yield keys, pairs
