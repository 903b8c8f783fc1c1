"""The facts about a member that never change, in a table of its store: owner and key."""

from __future__ import annotations

import sqlite3

from beforehand.runtime.storage.row_batches import Damaged, checksum_of

ABOUT = "about"
CREATE = f"""
CREATE TABLE {ABOUT} (key TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL)
WITHOUT ROWID;
"""


def read_fact(database: sqlite3.Connection, key: str, *, is_checked: bool = True) -> bytes | None:
    """Return a value, or None if there is none; raise `Damaged` if it has changed on the disk.

    is_checked: False for a store of a schema without checksums of facts.
    """
    columns = "value, checksum" if is_checked else "value, NULL"
    row = database.execute(f"SELECT {columns} FROM {ABOUT} WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    value = bytes(row[0])
    if is_checked and checksum_of(ABOUT, key.encode(), value) != row[1]:
        raise Damaged(ABOUT)
    return value


def write_fact(database: sqlite3.Connection, key: str, value: bytes) -> None:
    """Save a value that is not there yet."""
    row = (key, value, checksum_of(ABOUT, key.encode(), value))
    database.execute(f"INSERT INTO {ABOUT} VALUES (?, ?, ?)", row)


def add_checksums(database: sqlite3.Connection) -> None:
    """Add the checksums to a table that has none. The database has the function `checksum`."""
    database.execute(f"ALTER TABLE {ABOUT} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    database.execute(f"UPDATE {ABOUT} SET checksum = checksum('{ABOUT}', CAST(key AS BLOB), value)")
