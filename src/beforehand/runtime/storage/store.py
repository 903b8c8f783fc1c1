"""The file of one member: what its core must not forget, its key, and whose key is whose.

SQLite in WAL mode, held by one process at a time. Every row has a checksum: SQLite notices a page
that is no page, but not a bit that has fallen over inside a row. A file is made whole under another
name first, so that an empty one is never taken for a new member.

What the disk does to us (no room, no right to write, a broken file) is an `InputError`; after one
nothing more is written.
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
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.epidemic.epidemic import MESSAGES
from beforehand.runtime.storage.row_batches import (
    Damaged,
    RowBatches,
    checksum_of,
    put_into_bundles,
)
from beforehand.runtime.storage.wal import log_of, lost_commits
from beforehand.temporary import own_name

Durability = Literal["disk", "os"]
"""*disk*: what was saved has been synced. *os*: within a second; until then it survives the process
but not the loss of power."""

APPLICATION_ID = 0x62666864  # "bfhd", so that nobody's photographs are taken for a store
SCHEMA = 3
HEADER_BYTES = 100
"""Of every SQLite file: what it is at 0, the schema's version at 60, whose it is at 68."""
PAGE_BYTES = 8192
"""Twice SQLite's default: a tenth less to do for short messages, a fifth for long ones."""
LOG_PAGES = 2000
"""So long SQLite's log grows before it goes into the file: 16 MB. A quarter of that, its default,
costs a third more for long messages."""
SaveKey = tuple[str, Any]
"""(table, key)"""

_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
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
    "SQLITE_READONLY": "let this user write to the file and to its folder",
    "SQLITE_CANTOPEN": "the folder must exist, and this user must be allowed to write there",
    "SQLITE_NOTADB": "give another file: this one is no store",
    "SQLITE_CORRUPT": "start anew with another name and another file: an older copy of this one "
    "would deliver again what it has forgotten",
    "SQLITE_IOERR": "check the disk and start again: nothing that was acknowledged is lost",
}

_encode = msgspec.msgpack.encode


class DiskStore:
    """Rows in a file. Its methods are called by one thread at a time."""

    def __init__(self, path: Path, *, group: str, name: str, durable: Durability = "disk") -> None:
        """Opened, or made if there is none. It is refused if it belongs to another member, to
        another group, or is open elsewhere."""
        self.path = path = Path(os.path.realpath(path))  # where SQLite has its log, too
        self.is_new = not path.exists()
        self._durable = durable
        self._is_synced = self._is_ours = True
        with self._told():
            self._refuse_log()
            if self.is_new:
                self._make(group, name)
            self._refuse_stranger()
            self._database = _connect(path)
            self._row_batches = RowBatches(self._database, MESSAGES)
            try:
                self._open(group, name)
            except BaseException:
                self._database.close()
                raise
        _OPENED.add(self)

    def load(self, tables: Sequence[Table]) -> Rows:
        """Everything, typed again, in the order in which the rows were first saved."""
        with self._told():
            return {table.name: self._load(table) for table in tables}

    def stage(
        self, rows: Mapping[SaveKey, Any], again: Collection[SaveKey] = (), *, sync: bool = True
    ) -> None:
        """Begin a transaction of these rows; a value of None deletes the row. `again`: those that
        were deleted before they were saved, and so come after all others. sync: for the durability
        `os`. It takes no more than the work itself: what may wait for the disk is `commit`."""
        with self._told():
            self._set_synced(sync)
            self._database.execute("BEGIN")
            try:
                self._stage_messages(rows, again)
                self._database.executemany(_DELETE, _deleted(rows, again))
                self._database.executemany(_UPSERT, _saved(rows))
            except BaseException:
                self._roll_back()
                raise

    def _stage_messages(self, rows: Mapping[SaveKey, Any], again: Collection[SaveKey]) -> None:
        name = MESSAGES.name
        come = {key: value for (kind, key), value in rows.items() if kind == name}
        gone = [key for key, value in come.items() if value is None]
        for key in gone:
            del come[key]
        gone += [key for kind, key in again if kind == name]
        if come or gone:
            self._row_batches.change(gone, come)

    def commit(self) -> None:
        """All that was staged is on the disk, or nothing of it."""
        with self._told():
            try:
                self._database.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def note(self, key: str) -> bytes | None:
        """What `keep` was told."""
        with self._told():
            found = self._database.execute("SELECT value FROM about WHERE key = ?", (key,))
            row = found.fetchone()
        return None if row is None else bytes(row[0])

    def keep(self, key: str, value: bytes) -> None:
        """A fact about this member that is told once, as is its key."""
        with self._told():
            self._database.execute("INSERT INTO about VALUES (?, ?)", (key, value))

    def sync(self) -> None:
        """All that was written is on the disk."""
        with self._told():
            self._set_synced(True)
            self._database.execute("REPLACE INTO about VALUES ('synced', x'')")

    def close(self) -> None:
        if self._is_ours:
            with self._told():
                self._database.close()

    def leave_to_parent(self) -> None:
        """In a process that was forked: whoever closes SQLite's connection there takes the log away
        from under the parent, which writes on and loses it. So it stays open to the very end."""
        import ctypes  # 1 MB that others need not have

        self._is_ours = False
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))

    def _set_synced(self, sync: bool) -> None:
        """Whether the next transactions wait until they are on the disk."""
        if self._durable == "os" and sync != self._is_synced:
            self._database.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
            self._is_synced = sync

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._database.execute("ROLLBACK")

    def _make(self, group: str, name: str) -> None:
        partial = self.path.with_name(f".{self.path.name}.{own_name()}")
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            database = _connect(partial)
            try:
                database.executescript(f"BEGIN; {_TABLES}")
                database.execute(f"PRAGMA application_id={APPLICATION_ID}")
                database.execute(f"PRAGMA user_version={SCHEMA}")
                owner = [("group", group.encode()), ("name", name.encode())]
                database.executemany("INSERT INTO about VALUES (?, ?)", owner)
                database.execute("COMMIT")
            finally:
                database.close()
            _publish(partial, self.path)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _refuse_stranger(self) -> None:
        """By its first bytes: SQLite itself would change what it opens."""
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
        """SQLite would take up that of a store which is gone, and pass over what it cannot read."""
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
        (state,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise self._refusal(f"broken: {state}", _HINTS["SQLITE_CORRUPT"])
        for what, wanted in (("group", group), ("name", name)):
            found = (self.note(what) or b"").decode(errors="replace")
            if found != wanted:
                hint = f"give another file, or the {what} `{found}`"
                raise self._refusal(f"the store of the {what} `{found}`, not of `{wanted}`", hint)
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version < SCHEMA:
            _migrate(self._database, version)
        self.sync()  # this takes the lock, and shows now whether it can be written to

    def _load(self, table: Table) -> dict[Any, Any]:
        try:
            if table.name == MESSAGES.name:
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
    def _told(self) -> Iterator[None]:
        if not self._is_ours:
            hint = "open a group of its own, with another store, after the fork"
            raise LocalError("the store belongs to the process that opened it", hint=hint)
        try:
            yield
        except sqlite3.Error as error:
            # SQLITE_IOERR_WRITE is a kind of SQLITE_IOERR.
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
        # Held until it is closed or its process has died; and no shared memory beside the file.
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file; others stay as they are
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("PRAGMA fullfsync=ON")  # where syncing alone stops at the disk's own cache
    except BaseException:
        database.close()
        raise
    return database


def _publish(partial: Path, path: Path) -> None:
    """Under its own name, unless another process was faster: then that one's stays."""
    try:
        os.link(partial, path)
    except FileExistsError:
        return
    except OSError:  # a filesystem without links
        partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _migrate(database: sqlite3.Connection, version: int) -> None:
    """From the schema that it has, step by step; all of it or nothing."""
    database.create_function("checksum", 3, checksum_of, deterministic=True)
    database.execute("BEGIN")
    try:
        if version < 2:
            database.execute("ALTER TABLE rows ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
            database.execute("UPDATE rows SET checksum = checksum(kind, key, value)")
        put_into_bundles(database, MESSAGES.name)
        database.execute(f"PRAGMA user_version={SCHEMA}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _deleted(
    rows: Mapping[SaveKey, Any], again: Collection[SaveKey]
) -> Iterator[tuple[str, bytes]]:
    for (kind, key), value in rows.items():
        if value is None and kind != MESSAGES.name:
            yield kind, _encode(key)
    for kind, key in again:
        if kind != MESSAGES.name:
            yield kind, _encode(key)


def _saved(rows: Mapping[SaveKey, Any]) -> Iterator[tuple[str, bytes, bytes, int]]:
    for (kind, key), value in rows.items():
        if value is not None and kind != MESSAGES.name:
            place, content = _encode(key), _encode(value)
            yield kind, place, content, checksum_of(kind, place, content)
