"""The event log of one real node, which `beforehand verify` reads: complete Parquet files only.

The events of a step are saved in the node's own store, in the transaction of that step. So the log
and the node's state agree, wherever a crash falls. When enough events are durable, or the oldest is
old enough, they move from the store into a file. If the node crashes in between, it writes the same
file again. A node without a store loses the events that are in no file when it is killed. Its log
then has no `stop` event, which tells `verify` that it is incomplete.

Each file also contains the roster: the members that the node knew when the file was due. `verify`
merges the rosters of all nodes. A member without a log makes the verdict uncertain, even if no node
delivered any message of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.errors import InputError
from beforehand.events import (
    BROADCAST,
    DELIVER,
    NODE_COLUMNS,
    NODE_KINDS,
    NODE_LOSSES,
    NODE_SUFFIX,
    RECEIVE,
    START,
    STOP,
    About,
    metadata_of,
)
from beforehand.files import check_folder_target, replaced, sync_folder
from beforehand.promises import DEFAULT_PROMISE
from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.outbox import LossKind
from beforehand.protocols.contract.tables import RowStore, Store, Table

if TYPE_CHECKING:
    import pyarrow as pa

Event = tuple[int, int, int | str, int, int]
"""(t_us, kind, origin, seq, value)"""
EVENTS = Table("event_log", int, tuple[Event, ...])
"""Saved events that are in no file yet. The key is the number of the first event of the row."""
INCARNATION = Table("event_log_life", str, int | str)
"""`id`: identifies the store, so that a new node under a reused name is a different one. `first`:
the number of the first event that is in no file yet."""

ROSTER = Table("event_log_roster", str, int)
"""Names of the members that this node ever had a link with or received a message of. The value is
unused."""
ROSTER_MAX = 10_000
"""Names in a roster. A host hears names without proof of identity, so a malicious member could
otherwise fill the store and the files. Invented names have no logs, so the verdict is `unknown`
long before this limit."""

ROWS_MAX = 20_000
"""Events per file. Writing this many blocks the event loop for about 20 ms."""
AGE_US_MAX = 600 * 1_000_000
"""Age of the oldest event at which a file is written."""


class EventLog:
    """Records what happens at a node: it gets the calls of the node's `Port`, in the same order."""

    def __init__(
        self,
        folder: Path,
        node: str,
        *,
        run: str = "group",
        promise: str | None = DEFAULT_PROMISE,
        store: RowStore | None = None,
        incarnation: int = 1,
        members: Sequence[str] | None = None,
        name_of: Callable[[NodeId], str] = str,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        rows_max: int = ROWS_MAX,
        age_us_max: int = AGE_US_MAX,
    ) -> None:
        """Record the start of the node.

        store: the node's own. Everything saved there during one step must be in one transaction.
        incarnation: how often the node was started with this store, with a log or without.
        members: all members, if they are known from the start. Otherwise the log learns them from
            links and messages.
        name_of: returns the displayed name of an origin.

        Raise `InputError` if pyarrow is not installed or the folder cannot be used.
        """
        _require_arrow()
        check_folder_target(folder)
        self.node, self.run, self.promise = node, run, promise
        self.folder = folder
        self._store: RowStore = Store() if store is None else store
        self._name_of, self._now_us = name_of, now_us
        self._rows_max, self._age_us_max = rows_max, age_us_max
        # Not saved yet. No effect of these events has left the node.
        self._noted: list[Event] = []
        self._recorded: set[MessageId] = set()
        self._events: list[Event] = []  # saved, but in no file yet
        self._saved: list[int] = []  # the keys of their rows in the store
        self._is_rotating = False
        self._is_learning = members is None
        self._members = {node, *(members or ())}
        self._origins: set[NodeId] = {""}  # origins already added to the roster
        self._incarnation, self._first = self._load()
        self._stem = f"{_plain(run)}.{_plain(node)}.{self._incarnation}"
        self._began_us = now_us()
        self._note(START, ("", 0), incarnation)
        self._keep()

    def met(self, member: str) -> None:
        """Add a member to the roster: a link to it came up."""
        is_new = self._is_learning and member not in self._members
        if is_new and len(self._members) < ROSTER_MAX:
            self._members.add(member)
            self._store.save([(ROSTER.name, member, 1)])

    def broadcasted(self, message: MessageId, deliveries: Sequence[Message]) -> None:
        """Record a broadcast.

        `deliveries` are about to be reported. Those before the message itself precede the broadcast
        in the log as well.
        """
        for delivery in deliveries:
            if delivery.id == message:
                break
            self._note(DELIVER, delivery.id)
            self._recorded.add(delivery.id)
        self._note(BROADCAST, message)
        self._keep()

    def received(self, messages: Sequence[Message]) -> None:
        """Record messages received for the first time. `_keep` saves these events with the next
        ones."""
        for message in messages:
            self._note(RECEIVE, message.id)

    def delivered(self, messages: Sequence[Message]) -> None:
        """Record messages handed to the application for the first time.

        Redeliveries of an inbox are not reported here, because the first delivery was recorded.
        """
        for message in messages:
            if message.id not in self._recorded:
                self._note(DELIVER, message.id)
        self._recorded.clear()
        self._keep()

    def lost(self, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        """Record messages that were dropped or that expired."""
        for kind, message in losses:
            self._note(NODE_LOSSES[kind], message)

    def close(self) -> None:
        """Record the stop of the node, after all other events.

        The last file is written once everything saved so far is durable.
        """
        self._note(STOP, ("", 0))
        self._save()
        self._rotate_soon()

    def _note(self, kind: int, message: MessageId, value: int = 0) -> None:
        """Remember an event until the next save, and add its origin to the roster."""
        self._noted.append((self._now_us(), kind, *message, value))
        if message[0] not in self._origins:
            self._origins.add(message[0])
            self.met(self._name_of(message[0]))

    def _save(self) -> None:
        if self._noted:
            first = self._first + len(self._events)
            self._saved.append(first)
            self._events += self._noted
            self._store.save([(EVENTS.name, first, tuple(self._noted))])
            self._noted.clear()

    def _keep(self) -> None:
        """Save the new events, and write a file if there are enough events or old ones."""
        self._save()
        is_old = not 0 <= self._now_us() - self._began_us < self._age_us_max
        if (len(self._events) >= self._rows_max or is_old) and not self._is_rotating:
            self._rotate_soon()

    def _rotate_soon(self) -> None:
        """Write all events to a file once they are durable.

        A step that is lost in a crash did not happen, so its events must not reach a file.
        """
        self._is_rotating = True
        end = self._first + len(self._events)
        members = sorted(self._members)  # members added later may be lost in a crash
        self._store.after(lambda: self._rotate(end, members))

    def _rotate(self, end: int, members: Sequence[str]) -> None:
        """Write the events before `end` to a file and delete them from the store."""
        count = end - self._first
        self._is_rotating = False
        if count <= 0:
            return
        path = self.folder / f"{self._stem}.{self._first:012d}{NODE_SUFFIX}"
        _write(self._table(self._events[:count], members), path)
        deleted = [(EVENTS.name, first, None) for first in self._saved if first < end]
        self._store.save([*deleted, (INCARNATION.name, "first", end)])
        self._events, self._first = self._events[count:], end
        self._saved = self._saved[len(deleted) :]
        self._began_us = self._now_us()

    def _load(self) -> tuple[str, int]:
        """Load unfiled events and the roster; return the store's id and the first number."""
        rows = self._store.load((EVENTS, INCARNATION, ROSTER))
        incarnation = rows[INCARNATION.name]
        if not incarnation:
            incarnation = {"id": secrets.token_hex(8), "first": 0}
            self._store.save([(INCARNATION.name, key, value) for key, value in incarnation.items()])
        self._members |= rows[ROSTER.name].keys() if self._is_learning else set()
        self._saved = sorted(rows[EVENTS.name])
        self._events = [e for at in self._saved for e in rows[EVENTS.name][at]]
        return str(incarnation["id"]), int(incarnation["first"])

    def _table(self, events: Sequence[Event], members: Sequence[str]) -> pa.Table:
        """Return the Parquet table of the oldest unfiled events."""
        import pyarrow as pa

        t_us, kind, origin, seq, value = zip(*events, strict=True)
        names = {one: self._name_of(one) if one != "" else "" for one in set(origin)}
        size = len(events)
        columns = {
            "run": pa.array([self.run] * size).dictionary_encode(),
            "node": pa.array([self.node] * size).dictionary_encode(),
            "life": pa.array([self._incarnation] * size).dictionary_encode(),
            "step": pa.array(range(self._first, self._first + size), pa.int64()),
            "t_us": pa.array(t_us, pa.int64()),
            "kind": pa.array([NODE_KINDS[one] for one in kind]).dictionary_encode(),
            "origin": pa.array([names[one] for one in origin]).dictionary_encode(),
            "seq": pa.array(seq, pa.int64()),
            "value": pa.array(value, pa.int64()),
        }
        about = About(members=tuple(members), promise=self.promise)
        table = pa.table([columns[name] for name in NODE_COLUMNS], names=list(NODE_COLUMNS))
        return table.replace_schema_metadata(metadata_of(self.run, about))


def _require_arrow() -> None:
    """Raise `InputError` if pyarrow is missing, at the start and not in the middle of the work."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        hint = "`pip install pyarrow`, or go without a log"
        raise InputError("an event log needs `pyarrow`", hint=hint) from error
    # The first array imports pandas, which takes long. Do that before there are links.
    pa.array([0])


def _plain(name: str) -> str:
    """Return a file-name part: the readable characters of a name, and a hash against collisions."""
    mark = hashlib.blake2b(name.encode(), digest_size=3).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:40]}-{mark}"


def _write(table: pa.Table, path: Path) -> None:
    """Write the file durably: afterwards the store deletes these events."""
    import pyarrow.parquet as pq

    with replaced(path) as partial, partial.open("wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
