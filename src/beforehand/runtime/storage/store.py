"""The SQLite file of one member: the durable state of its core, its key, and its name bindings.

It is in WAL mode, and one process at a time holds its lock. Every row has a checksum, because
SQLite detects a malformed page but not a flipped bit inside a row. A new file is completed under a
temporary name first. So an incomplete file is never taken for the store of a new member.

Failures of the disk or the file (disk full, no write permission, corruption) raise `InputError`.
After such a failure nothing more is written.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from beforehand.errors import InputError, LocalError
from beforehand.files import sync_folder
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.runtime.storage.about import CREATE, add_checksums, read_fact, write_fact
from beforehand.runtime.storage.row_batches import (
    Damaged,
    RowBatches,
    checksum_of,
    put_into_batches,
)
from beforehand.runtime.storage.wal import log_of, lost_commits
from beforehand.temporary import own_name

Durability = Literal["disk", "os"]
"""*disk*: saved rows are synced (fsync). *os*: they are synced within a second; until then they
survive a crash of the process, but not a power loss."""

APPLICATION_ID = 0x62666864  # "bfhd": no other program's database passes for a store
SCHEMA = 4
HEADER_BYTES = 100
"""The header of an SQLite file: magic at 0, schema version at 60, application id at 68."""
PAGE_BYTES = 8192
"""Twice SQLite's default: about 10 % less work for short messages, 20 % for long ones."""
LOG_PAGES = 2000
"""Pages of the WAL at which SQLite checkpoints: 16 MB. With SQLite's default, a quarter of that,
long messages cost a third more."""
SaveKey = tuple[str, Any]
"""(table, key)"""

_TABLES = f"""
{CREATE}
CREATE TABLE rows (
    place INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    checksum INTEGER NOT NULL, UNIQUE (kind, key));
"""
_DELETE = "DELETE FROM rows WHERE kind = ? AND key = ?"
_UPSERT = """
INSERT INTO rows (kind, key, value, checksum) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum
"""
_HINTS = {
    "SQLITE_BUSY": "one process at a time: stop the other one, or give each a store of its own",
    "SQLITE_FULL": "make room on the disk and start again: nothing that was acknowledged is lost",
    "SQLITE_READONLY": "give this user write permission on the file and its folder",
    "SQLITE_CANTOPEN": "the folder must exist, and this user must be allowed to write there",
    "SQLITE_NOTADB": "give another file: this one is no store",
    "SQLITE_CORRUPT": "start anew with another name and another file: an older copy of this one "
    "would deliver again what it has forgotten",
    "SQLITE_IOERR": "check the disk and start again: nothing that was acknowledged is lost",
}

_encode = msgspec.msgpack.encode


class DiskStore:
    """Typed rows in an SQLite file. Only one thread at a time may call its methods."""

    def __init__(
        self,
        path: Path,
        *,
        group: str,
        name: str,
        durable: Durability = "disk",
        batched: Table | None = None,
    ) -> None:
        """Open the store, or create it if there is none.

        Raise `InputError` if it belongs to another member or group, is open elsewhere, is damaged,
        or cannot be read or written.

        batched: the table whose rows share SQLite rows (`row_batches`). The same at every start.
        """
        self.path = path = Path(os.path.realpath(path))  # SQLite's WAL lies beside the real path
        self.is_new = not path.exists()
        """Whether there was no store at this path."""
        self._durable = durable
        self._is_synced = self._is_ours = True
        with self._translated_errors():
            self._refuse_log()
            if self.is_new:
                self._make(group, name)
            self._refuse_stranger()
            self._database = _connect(path)
            self._row_batches = None if batched is None else RowBatches(self._database, batched)
            self._batched = None if batched is None else batched.name
            try:
                self._open(group, name)
            except BaseException:
                self._database.close()
                raise
        _OPENED.add(self)

    def load(self, tables: Sequence[Table]) -> Rows:
        """Return all rows of the tables, decoded, in the order in which they were first saved."""
        with self._translated_errors():
            return {table.name: self._load(table) for table in tables}

    def stage(
        self, rows: Mapping[SaveKey, Any], again: Collection[SaveKey] = (), *, sync: bool = True
    ) -> None:
        """Begin a transaction and write these rows; a value of None deletes the row.

        again: rows to delete before they are inserted, so that they come after all others.
        sync: whether the commit waits for an fsync, with durability `os`.

        This call does not wait for the disk; `commit` may.
        """
        with self._translated_errors():
            self._set_synced(sync)
            self._database.execute("BEGIN")
            try:
                self._stage_batched(rows, again)
                self._database.executemany(_DELETE, _deleted(rows, again, self._batched))
                self._database.executemany(_UPSERT, _saved(rows, self._batched))
            except BaseException:
                self._roll_back()
                raise

    def _stage_batched(self, rows: Mapping[SaveKey, Any], again: Collection[SaveKey]) -> None:
        """Write the rows of the batched table."""
        if self._row_batches is None:
            return
        name = self._batched
        come = {key: value for (kind, key), value in rows.items() if kind == name}
        gone = [key for key, value in come.items() if value is None]
        for key in gone:
            del come[key]
        gone += [key for kind, key in again if kind == name]
        if come or gone:
            self._row_batches.change(gone, come)

    def commit(self) -> None:
        """Commit the staged transaction atomically; roll back on failure."""
        with self._translated_errors():
            try:
                self._database.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def note(self, key: str) -> bytes | None:
        """Return the value saved by `keep`, or None."""
        with self._translated_errors():
            return read_fact(self._database, key)

    def keep(self, key: str, value: bytes) -> None:
        """Save a fact about this member that never changes, such as its key."""
        with self._translated_errors():
            write_fact(self._database, key, value)

    def sync(self) -> None:
        """Sync everything written so far to the disk."""
        with self._translated_errors():
            self._set_synced(True)
            self._database.execute("REPLACE INTO about VALUES ('synced', x'', 0)")

    def close(self) -> None:
        """Close the file and release its lock, except in a forked process."""
        if self._is_ours:
            with self._translated_errors():
                self._database.close()

    def leave_to_parent(self) -> None:
        """Disown the connection in a forked process.

        If the child closed SQLite's connection, it would delete the WAL that the parent still
        writes to. So the connection stays open until the child exits.
        """
        import ctypes  # imported here: it costs 1 MB of memory

        self._is_ours = False
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))

    def _set_synced(self, sync: bool) -> None:
        """Choose whether the next commits wait for an fsync; only for durability `os`."""
        if self._durable == "os" and sync != self._is_synced:
            self._database.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
            self._is_synced = sync

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._database.execute("ROLLBACK")

    def _make(self, group: str, name: str) -> None:
        """Create the file under a temporary name, then publish it."""
        partial = self.path.with_name(f".{self.path.name}.{own_name()}")
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            database = _connect(partial)
            try:
                database.executescript(f"BEGIN; {_TABLES}")
                database.execute(f"PRAGMA application_id={APPLICATION_ID}")
                database.execute(f"PRAGMA user_version={SCHEMA}")
                write_fact(database, "group", group.encode())
                write_fact(database, "name", name.encode())
                database.execute("COMMIT")
            finally:
                database.close()
            _publish(partial, self.path)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _refuse_stranger(self) -> None:
        """Raise `InputError` if the file is no store. SQLite would modify a file that it opens."""
        with self.path.open("rb") as opened:
            head = opened.read(HEADER_BYTES)
        if not head:
            raise self._refusal("an empty file, and no store", _HINTS["SQLITE_CORRUPT"])
        if head[:16] != b"SQLite format 3\0" or head[68:72] != APPLICATION_ID.to_bytes(4):
            raise self._refusal("not a store of beforehand", _HINTS["SQLITE_NOTADB"])
        if (version := int.from_bytes(head[60:64])) > SCHEMA:
            hint = "run that version again, or start with another store and another name"
            raise self._refusal(f"a store of a newer version: its schema is {version}", hint)

    def _refuse_log(self) -> None:
        """Raise `InputError` for a WAL that SQLite would misuse.

        SQLite would apply a WAL left behind by a deleted store, and would silently skip frames that
        it cannot read.
        """
        log = log_of(self.path)
        if self.is_new and log.exists():
            hint = f"bring the store back, or take away `{log.name}` too and choose another name"
            raise self._refusal("the store is gone, and its log is still there", hint)
        if self._durable == "disk" and (lost := lost_commits(log, self._page_bytes())):
            problem = f"broken: {lost:,} transactions in `{log.name}` cannot be read"
            raise self._refusal(problem, _HINTS["SQLITE_CORRUPT"])

    def _page_bytes(self) -> int:
        if self.is_new:
            return PAGE_BYTES
        with self.path.open("rb") as opened:
            return int.from_bytes(opened.read(HEADER_BYTES)[16:18])

    def _open(self, group: str, name: str) -> None:
        """Check integrity and owner, migrate an older schema, and take the lock."""
        (state,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise self._refusal(f"broken: {state}", _HINTS["SQLITE_CORRUPT"])
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        for what, wanted in (("group", group), ("name", name)):
            saved = read_fact(self._database, what, is_checked=version >= SCHEMA)
            found = (saved or b"").decode(errors="replace")
            if found != wanted:
                hint = f"give another file, or the {what} `{found}`"
                raise self._refusal(f"the store of the {what} `{found}`, not of `{wanted}`", hint)
        if version < SCHEMA:
            _migrate(self._database, version, self._batched)
        self.sync()  # takes the lock, and fails now if the file is not writable

    def _load(self, table: Table) -> dict[Any, Any]:
        try:
            if self._row_batches is not None and table.name == self._batched:
                return self._row_batches.load()
            return dict(self._load_rows(table))
        except msgspec.DecodeError as error:
            hint = "it was written by another version; start with a new store and a new name"
            problem = f"a saved row of `{table.name}` cannot be read: {error}"
            raise self._refusal(problem, hint) from error

    def _load_rows(self, table: Table) -> Iterator[tuple[Any, Any]]:
        found = self._database.execute(
            "SELECT key, value, checksum FROM rows WHERE kind = ? ORDER BY place", (table.name,)
        )
        for key, value, checksum in found:
            if checksum_of(table.name, key, value) != checksum:
                raise Damaged(table.name)
            typed_key = msgspec.msgpack.decode(key, type=table.key)
            yield typed_key, msgspec.msgpack.decode(value, type=table.value)

    def _refusal(self, problem: str, hint: str) -> InputError:
        return InputError(problem, where=str(self.path), hint=hint)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert errors of the disk to `InputError`; refuse use in a forked process."""
        if not self._is_ours:
            hint = "open a group of its own, with another store, after the fork"
            raise LocalError("the store belongs to the process that opened it", hint=hint)
        try:
            yield
        except sqlite3.Error as error:
            # SQLITE_IOERR_WRITE is a subtype of SQLITE_IOERR.
            kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
            hint = _HINTS.get(kind, "check the disk and the file")
            problem = "open elsewhere" if kind == "SQLITE_BUSY" else str(error)
            raise self._refusal(f"the store cannot be used: {problem}", hint) from error
        except Damaged as error:
            raise self._refusal(str(error), _HINTS["SQLITE_CORRUPT"]) from error
        except OSError as error:
            problem = f"the store cannot be used: {error.strerror or error}"
            raise self._refusal(problem, _HINTS["SQLITE_CANTOPEN"]) from error


def _leave_to_parent() -> None:
    for store in list(_OPENED):
        store.leave_to_parent()


_OPENED: weakref.WeakSet[DiskStore] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _connect(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + "?mode=rw"
    database = sqlite3.connect(
        uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        # EXCLUSIVE: SQLite holds the lock until close or the death of the process, and uses no
        # shared-memory file.
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute(f"PRAGMA page_size={PAGE_BYTES}")  # only for new files
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        database.execute("PRAGMA synchronous=FULL")
        # macOS: fsync alone leaves the disk's cache unwritten
        database.execute("PRAGMA fullfsync=ON")
    except BaseException:
        database.close()
        raise
    return database


def _publish(partial: Path, path: Path) -> None:
    """Give the file its final name. If another process was faster, keep that process's file."""
    try:
        os.link(partial, path)
    except FileExistsError:
        return
    except OSError:  # a filesystem without hard links
        partial.rename(path)
    sync_folder(path.parent)


def _migrate(database: sqlite3.Connection, version: int, batched: str | None) -> None:
    """Migrate to the current schema in one transaction."""
    database.create_function("checksum", 3, checksum_of, deterministic=True)
    database.execute("BEGIN")
    try:
        if version < 2:
            database.execute("ALTER TABLE rows ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
            database.execute("UPDATE rows SET checksum = checksum(kind, key, value)")
        if version < 3 and batched is not None:
            put_into_batches(database, batched)
        add_checksums(database)
        database.execute(f"PRAGMA user_version={SCHEMA}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _deleted(
    rows: Mapping[SaveKey, Any], again: Collection[SaveKey], batched: str | None
) -> Iterator[tuple[str, bytes]]:
    """Yield kind and key of the rows to delete, other than those of the batched table."""
    for (kind, key), value in rows.items():
        if value is None and kind != batched:
            yield kind, _encode(key)
    for kind, key in again:
        if kind != batched:
            yield kind, _encode(key)


def _saved(
    rows: Mapping[SaveKey, Any], batched: str | None
) -> Iterator[tuple[str, bytes, bytes, int]]:
    """Yield the rows to write, other than those of the batched table."""
    for (kind, key), value in rows.items():
        if value is not None and kind != batched:
            place, content = _encode(key), _encode(value)
            yield kind, place, content, checksum_of(kind, place, content)
