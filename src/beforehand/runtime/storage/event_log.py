"""What one real node writes down of itself, for `beforehand verify`: Parquet, whole files only.

The events of a step go into the node's own store, in the transaction of that step: what is written
down happened, and what happened is written down, wherever a crash falls. From there they move into
a file when there are enough of them on the disk, or when they are old enough; a crash in between
makes the same file again. A node without a store loses what is in no file yet when it is killed,
and its log has no end, which is how `verify` knows.

Each file also has the roster: the members that the node knew when the file was due. `verify` unites
the rosters of all nodes. A member without a log is a doubt, also where no node delivered anything
of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from beforehand.errors import InputError
from beforehand.files import check_folder_target, replaced
from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.outbox import LossKind
from beforehand.protocols.contract.tables import Rows, Store, Table

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("broadcast", "receive", "deliver", "expire", "drop", "start", "stop")
(BROADCAST, RECEIVE, DELIVER, EXPIRE, DROP, START, STOP) = range(len(KINDS))
LOSSES: dict[LossKind, int] = {"expire": EXPIRE, "drop": DROP}
METADATA = "beforehand"
"""Under this key a file says what its run promised; `verify` reads it."""

Event = tuple[int, int, int | str, int, int]
"""t_us, kind, origin, seq, value."""
EVENTS = Table("event_log", int, tuple[Event, ...])
"""By the number of the first of them."""
LIFE = Table("event_log_life", str, int | str)
"""`id`: of the store, so that a name that is used again is not taken for the same node. `first`:
the number of the first event that is in no file yet."""

ROSTER = Table("event_log_roster", str, int)
"""The names of the members that this node ever had a link with or received a message of. The value
means nothing."""
ROSTER_MAX = 10_000
"""A host hears names that nobody has proven: a member that invents them fills neither the store nor
the files. Invented names have no logs, so the verdict is unknown long before this."""

ROWS_MAX = 20_000
"""A file of so many takes about 20 ms to write, in which the node does nothing else."""
AGE_US_MAX = 600 * 1_000_000


class Rowed(Protocol):
    """What it needs of a store."""

    def save(self, saves: Sequence[tuple[str, object, object]]) -> None: ...
    def load(self, tables: Sequence[Table]) -> Rows: ...
    def after(self, action: Callable[[], None]) -> None: ...


class EventLog:
    """Hears of what happens at a node, as its `Port` does and in the same order."""

    def __init__(
        self,
        folder: Path,
        node: str,
        *,
        run: str = "group",
        promise: str | None = "causal",
        store: Rowed | None = None,
        incarnation: int = 1,
        members: Sequence[str] | None = None,
        name_of: Callable[[NodeId], str] = str,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        rows_max: int = ROWS_MAX,
        age_us_max: int = AGE_US_MAX,
    ) -> None:
        """store: the node's own; what is saved there while one input is carried out must be one
        transaction. incarnation: how often the node was started with it, with a log or without.
        members: all members, where they are known from the start; without it, the log learns them
        from links and messages. name_of: an origin, as people call it."""
        _require_arrow()
        check_folder_target(folder)
        self.node, self.run, self.promise = node, run, promise
        self.folder = folder
        self._store: Rowed = Store() if store is None else store
        self._name_of, self._now_us = name_of, now_us
        self._rows_max, self._age_us_max = rows_max, age_us_max
        self._noted: list[Event] = []  # not saved yet: nothing that anybody could have seen
        self._told_before: set[MessageId] = set()
        self._events: list[Event] = []  # saved, and in no file yet
        self._saved: list[int] = []  # the keys under which
        self._is_rotating = False
        self._is_learning = members is None
        self._members = {node, *(members or ())}
        self._origins: set[NodeId] = {""}  # whose names are in the roster
        self._life, self._first = self._load()
        self._stem = f"{_plain(run)}.{_plain(node)}.{self._life}"
        self._began_us = now_us()
        self._note(START, ("", 0), incarnation)
        self._keep()

    def met(self, member: str) -> None:
        """A link to this member came up."""
        is_new = self._is_learning and member not in self._members
        if is_new and len(self._members) < ROSTER_MAX:
            self._members.add(member)
            self._store.save([(ROSTER.name, member, 1)])

    def broadcasted(self, message: MessageId, deliveries: Sequence[Message]) -> None:
        """A broadcast is made. Of `deliveries`, which are to come, those that lie before the
        message itself precede it."""
        for delivery in deliveries:
            if delivery.id == message:
                break
            self._note(DELIVER, delivery.id)
            self._told_before.add(delivery.id)
        self._note(BROADCAST, message)
        self._keep()

    def received(self, messages: Sequence[Message]) -> None:
        """These came in for the first time. Nobody has seen anything of it yet."""
        for message in messages:
            self._note(RECEIVE, message.id)

    def delivered(self, messages: Sequence[Message]) -> None:
        """These go to the application now, for the first time: what an inbox hands over again was
        written down when it was delivered."""
        for message in messages:
            if message.id not in self._told_before:
                self._note(DELIVER, message.id)
        self._told_before.clear()
        self._keep()

    def lost(self, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        """These were given up."""
        for kind, message in losses:
            self._note(LOSSES[kind], message)

    def close(self) -> None:
        """The node stops, and has told everything. The last file is there when all that was saved
        up to now is on the disk."""
        self._note(STOP, ("", 0))
        self._save()
        self._rotate_soon()

    def _note(self, kind: int, message: MessageId, value: int = 0) -> None:
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
        self._save()
        is_old = not 0 <= self._now_us() - self._began_us < self._age_us_max
        if (len(self._events) >= self._rows_max or is_old) and not self._is_rotating:
            self._rotate_soon()

    def _rotate_soon(self) -> None:
        """Put what there is into a file, when it is on the disk: what is lost in a crash did not
        happen, and must not be in a file either."""
        self._is_rotating = True
        end = self._first + len(self._events)
        members = sorted(self._members)  # what joins it until then may be lost in a crash
        self._store.after(lambda: self._rotate(end, members))

    def _rotate(self, end: int, members: Sequence[str]) -> None:
        count = end - self._first
        self._is_rotating = False
        if count <= 0:
            return
        path = self.folder / f"{self._stem}.{self._first:012d}.node.parquet"
        _write(self._table(self._events[:count], members), path)
        deleted = [(EVENTS.name, first, None) for first in self._saved if first < end]
        self._store.save([*deleted, (LIFE.name, "first", end)])
        self._events, self._first = self._events[count:], end
        self._saved = self._saved[len(deleted) :]
        self._began_us = self._now_us()

    def _load(self) -> tuple[str, int]:
        rows = self._store.load((EVENTS, LIFE, ROSTER))
        life = rows[LIFE.name]
        if not life:
            life = {"id": secrets.token_hex(8), "first": 0}
            self._store.save([(LIFE.name, key, value) for key, value in life.items()])
        self._members |= rows[ROSTER.name].keys() if self._is_learning else set()
        self._saved = sorted(rows[EVENTS.name])
        self._events = [e for at in self._saved for e in rows[EVENTS.name][at]]
        return str(life["id"]), int(life["first"])

    def _table(self, events: Sequence[Event], members: Sequence[str]) -> pa.Table:
        """Of the first ones."""
        import pyarrow as pa

        t_us, kind, origin, seq, value = zip(*events, strict=True)
        names = {one: self._name_of(one) if one != "" else "" for one in set(origin)}
        size = len(events)
        columns = {
            "run": pa.array([self.run] * size).dictionary_encode(),
            "node": pa.array([self.node] * size).dictionary_encode(),
            "life": pa.array([self._life] * size).dictionary_encode(),
            "step": pa.array(range(self._first, self._first + size), pa.int64()),
            "t_us": pa.array(t_us, pa.int64()),
            "kind": pa.array([KINDS[one] for one in kind]).dictionary_encode(),
            "origin": pa.array([names[one] for one in origin]).dictionary_encode(),
            "seq": pa.array(seq, pa.int64()),
            "value": pa.array(value, pa.int64()),
        }
        about: dict[str, object] = {"members": members}
        if self.promise:
            about["promise"] = self.promise
        metadata = {METADATA: json.dumps({"runs": {self.run: about}})}
        return pa.table(columns).replace_schema_metadata(metadata)


def _require_arrow() -> None:
    """Or a node would find out in the middle of its work."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        hint = "`pip install pyarrow`, or go without a log"
        raise InputError("an event log needs `pyarrow`", hint=hint) from error
    pa.array([0])  # now it looks for pandas, which takes long, and not when there are links


def _plain(name: str) -> str:
    """For the name of a file: what can be read of a name, and a mark that tells two apart."""
    mark = hashlib.blake2b(name.encode(), digest_size=3).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:40]}-{mark}"


def _write(table: pa.Table, path: Path) -> None:
    """On the disk when it returns: the store forgets these events."""
    import pyarrow.parquet as pq

    with replaced(path) as partial, partial.open("wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
