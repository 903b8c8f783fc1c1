"""Messages in the file of a member, many to a row.

To SQLite a row is a row: 64 short messages as rows of their own, each in a table and in its index,
cost clearly more than as one. Messages come together, are never changed, and mostly
go in the order in which they came. So those of a transaction share rows, *bundles*. A bundle of
which all is gone is deleted; one of which a part is gone is written anew, without that part.
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

BUNDLE_ROWS, BUNDLE_BYTES = 64, 64 << 10
"""Of one bundle, at most; but one message at least. So much is written when one of them goes."""

Changes = dict[bytes, msgspec.Raw | None]
"""By key, as they are written: what stands there now, if anything."""

_encode = msgspec.msgpack.encode
_decode_pairs = msgspec.msgpack.Decoder(list[tuple[msgspec.Raw, msgspec.Raw]]).decode


class Damaged(Exception):
    """A row is not what was written."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a saved row of `{kind}` has changed on the disk")


class RowBatches:
    """The rows of one table. The key of a bundle is that of its first row."""

    def __init__(self, database: sqlite3.Connection, table: Table) -> None:
        self._database, self._table = database, table
        pair = GenericAlias(tuple, (table.key, table.value))
        self._decoder = msgspec.msgpack.Decoder(GenericAlias(list, (pair,)))
        self._places: dict[Any, int] | None = None
        """By key, the bundle; None until somebody has looked."""
        self._counts: dict[int, int] = {}
        """Rows of each bundle."""

    def load(self) -> dict[Any, Any]:
        """All rows, in the order in which they were first saved."""
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
        """Within a transaction: first `gone` go, then `rows` come. What is there and comes once
        more keeps its place."""
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
        if list(changes.values()) == [None] * self._counts[place]:
            self._database.execute("DELETE FROM rows WHERE place = ?", (place,))
            del self._counts[place]
            return
        found = self._database.execute(
            "SELECT key, value, checksum FROM rows WHERE place = ?", (place,)
        )
        key, content, checksum = found.fetchone()
        self._check(key, content, checksum)  # or what has changed would get a new checksum
        pairs = [(key, changes.get(bytes(key), value)) for key, value in _decode_pairs(content)]
        left = [pair for pair in pairs if pair[1] is not None]
        key, content = bytes(left[0][0]), _encode(left)
        self._database.execute(
            "UPDATE rows SET key = ?, value = ?, checksum = ? WHERE place = ?",
            (key, content, checksum_of(self._table.name, key, content), place),
        )
        self._counts[place] = len(left)

    def _insert(self, rows: list[tuple[Any, Any]], places: dict[Any, int]) -> None:
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
        if checksum_of(self._table.name, key, content) != checksum:
            raise Damaged(self._table.name)


def put_into_bundles(database: sqlite3.Connection, kind: str) -> None:
    """Each row of this kind becomes a bundle of its own: they were none before schema 3."""
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
    return zlib.crc32(value, zlib.crc32(key, _checksum_of_kind(kind)))


@cache
def _checksum_of_kind(kind: str) -> int:
    """There are few of them."""
    return zlib.crc32(kind.encode())


def _cut(rows: list[tuple[Any, Any]]) -> Iterator[tuple[list[Any], list[msgspec.Raw]]]:
    """Into bundles: the keys of each, and its rows as they are written."""
    keys: list[Any] = []
    pairs: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        encoded = _encode(row)
        size += len(encoded)
        if keys and (len(keys) == BUNDLE_ROWS or size > BUNDLE_BYTES):
            yield keys, pairs
            keys, pairs, size = [], [], len(encoded)
        keys.append(row[0])
        pairs.append(msgspec.Raw(encoded))
    if keys:
        yield keys, pairs
