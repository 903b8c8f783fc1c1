"""Group commit: the saves of many steps in one transaction, and all that waits for it.

A core runs ahead of the disk. What it saves is collected while an earlier transaction is under way,
and becomes the next one; what its steps let out (frames, deliveries, answers to a program) is held
back until the saves of that step, and of every step before it, are on the disk.

All of it runs in the event loop as long as the disk is quick. To hand something over to a thread
takes up to 5 ms each way where the loop is busy, since both need the interpreter's lock: longer
than most disks take. When some commits in a row have taken long, those of the next second go to a
thread, so that links do not fall silent for the sake of a slow disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from beforehand.protocols.contract.tables import Rows, Store, Table
from beforehand.runtime.storage.store import DiskStore, Durability, SaveKey

QUICK_SECONDS = 0.02
"""A commit that takes no longer than this hardly holds up the event loop."""
SLOW_MAX = 3
"""So many longer ones in a row, and the disk is a slow one: one alone may have tidied up."""
APART_SECONDS = 1.0
"""For so long a slow disk is written to by a thread, before the loop tries again."""
GATHER_SECONDS = 0.001
"""Transactions begin no faster than this: what comes in between is cheaper together."""
PAUSE_SECONDS_MAX = 0.02
"""As long as the last transaction took, from when it was due, the next one waits; but no longer
than this. So of a machine with little to do nobody waits, and on a busy one what is said and what
comes goes together, and costs less, before the queues are long."""
PAUSE_ROWS = 256
"""So many rows are a bundle already, and wait for nothing."""
SYNC_SECONDS = 1.0
"""With the durability `os`: a loss of power loses no more than this."""

Action = Callable[[], None]


class Batch:
    """What goes to the disk together, and what is carried out when it is there."""

    __slots__ = ("actions", "again", "rows")

    def __init__(self) -> None:
        self.rows: dict[SaveKey, Any] = {}
        """The last value of each row: the others are nobody's business."""
        self.again: set[SaveKey] = set()
        """Deleted first: they come after what was saved before them."""
        self.actions: list[Action] = []


def collect(batch: Batch, saves: Iterable[tuple[str, object, object]]) -> None:
    """Add the saves of one step."""
    rows = batch.rows
    for table, key, value in saves:
        place = (table, key)
        if value is not None and rows.get(place, place) is None:
            del rows[place]
            batch.again.add(place)
        rows[place] = value


class GroupCommit(Store):
    """The store of a driver, in front of a `DiskStore`."""

    def __init__(
        self,
        disk: DiskStore,
        *,
        durable: Durability,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """on_failure: the disk failed, or an action did. Nothing is carried out after that."""
        self.error: Exception | None = None
        self.transactions = 0
        self._disk = disk
        self._durable = durable
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "beforehand-store")
        self._open = Batch()
        self._flying: Batch | None = None
        self._before: list[Action] = []
        self._waiters: set[asyncio.Future[None]] = set()
        self._scheduled: asyncio.TimerHandle | None = None
        self._is_closed = self._is_enough = False
        self._slow = 0
        """Commits in a row that took long."""
        self._apart_until = self._began_at = 0.0
        self._due_at = self._free_at = 0.0
        """When the last transaction was to begin, and when the next one may."""
        self._is_sync_due = False
        """A second has passed since something was written that is not synced."""
        self._sync_timer: asyncio.TimerHandle | None = None

    # ---- the store of a driver ------------------------------------------------------------------

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        """The saves of one step. They share a transaction with others, but are never divided."""
        collect(self._open, saves)
        self._schedule()
        if len(self._open.rows) >= PAUSE_ROWS:
            self.hurry()

    def load(self, tables: Sequence[Table]) -> Rows:
        """What is on the disk; asked for before anything is saved."""
        return self._disk.load(tables)

    def count(self) -> int:
        """Rows that are not on the disk yet."""
        return len(self._open.rows) + (len(self._flying.rows) if self._flying else 0)

    # ---- what waits -----------------------------------------------------------------------------

    def after(self, action: Action) -> None:
        """Carry this out when all that was saved up to now is on the disk, in the order in which it
        was asked for, and never from within the call."""
        if self._flying is not None and not self._open.rows and not self._open.actions:
            self._flying.actions.append(action)
        else:
            self._open.actions.append(action)
            self._schedule()

    def before_next(self, action: Action) -> None:
        """Carry this out when no transaction is under way, just before the next one begins. What is
        to be saved would have to wait for that anyway; so it can be put together with more."""
        self._before.append(action)
        self._schedule()

    def hurry(self) -> None:
        """There is enough for a transaction: the next one need not wait for more."""
        if not self._is_enough:
            self._is_enough = True
            if self._scheduled is not None:
                self._scheduled.cancel()
                self._scheduled = None
                self._schedule()

    async def settled(self) -> None:
        """All that was saved up to now is on the disk, and carried out. It raises what kept it from
        getting there."""
        if self.error is not None:
            raise self.error
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        self.after(lambda: None if waiter.done() else waiter.set_result(None))
        await waiter

    async def close(self) -> None:
        """The last transactions, and the file: what waits for one may save something itself."""
        try:
            while self.error is None:
                await self.settled()
                if not self.count():
                    break
        finally:
            self._is_closed = True
            if self._sync_timer is not None:
                self._sync_timer.cancel()
            await self._loop.run_in_executor(self._thread, self._disk.close)
            self._thread.shutdown(wait=False)

    # ---- steps ----------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._scheduled is None and self._flying is None and self.error is None:
            at = self._began_at + GATHER_SECONDS
            if not self._is_enough:
                at = max(at, self._free_at)
            self._due_at = max(at, self._loop.time())
            self._scheduled = self._loop.call_at(at, self._start)

    def _start(self) -> None:
        """Write what has come together; or, if that is nothing, carry out what waits for it."""
        self._scheduled, self._is_enough = None, False
        if self._is_closed:
            return
        if self._flying is not None:
            return  # asked for within the step that began it; its end asks again
        before, self._before = self._before, []
        for action in before:
            action()
        batch, must_sync = self._open, self._durable == "disk" or self._is_sync_due
        if self.error is not None:
            return
        self._open = Batch()
        if batch.rows:
            try:
                self._disk.stage(batch.rows, batch.again, sync=must_sync)
            except Exception as error:
                self._fail(error)
                return
            self._fly(batch, self._disk.commit, is_synced=must_sync)
        elif self._is_sync_due:
            self._fly(batch, self._disk.sync, is_synced=True)
        else:
            self._carry_out(batch)

    def _fly(self, batch: Batch, write: Action, *, is_synced: bool) -> None:
        self._flying = batch
        if is_synced:
            self._is_sync_due = False
        elif self._sync_timer is None:
            self._sync_timer = self._loop.call_later(SYNC_SECONDS, self._sync)
        self._began_at = self._loop.time()
        if self._began_at < self._apart_until:
            writing = self._loop.run_in_executor(self._thread, write)
            writing.add_done_callback(lambda done: self._land(done.exception()))
            return
        try:
            write()
        except Exception as error:
            self._land(error)
            return
        is_slow = self._loop.time() - self._began_at > QUICK_SECONDS
        self._slow = min(SLOW_MAX, self._slow + 1) if is_slow else 0
        if self._slow == SLOW_MAX:
            self._apart_until = self._loop.time() + APART_SECONDS
        self._land(None)

    def _land(self, error: BaseException | None) -> None:
        batch, self._flying = self._flying, None
        if isinstance(error, Exception):
            self._fail(error)
            return
        assert batch is not None
        self.transactions += 1
        now = self._loop.time()
        self._free_at = now + min(now - self._due_at, PAUSE_SECONDS_MAX)
        self._carry_out(batch)
        if self._open.rows or self._open.actions or self._before or self._is_sync_due:
            self._schedule()

    def _carry_out(self, batch: Batch) -> None:
        for action in batch.actions:
            if self.error is not None:
                return
            try:
                action()
            except Exception as error:  # whatever it is, what comes after it must not overtake it
                self._fail(error)

    def _sync(self) -> None:
        """With the next transaction, or alone if there is none."""
        self._sync_timer = None
        self._is_sync_due = True
        self._schedule()

    def _fail(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
            for waiter in [waiter for waiter in self._waiters if not waiter.done()]:
                waiter.set_exception(error)
            self._on_failure(error)
