"""Group commit: one transaction for the writes of many steps, and the effects that wait for it.

The core runs ahead of the disk. Its writes are collected while an earlier transaction is running
and form the next one. The effects of a step (frames, deliveries, results for the application) are
held back until the writes of that step and of all earlier steps are durable.

The event loop itself commits as long as the disk is fast. Handing work to a thread takes up to 5 ms
each way on a busy loop, because both need the interpreter lock. Most disks are faster than that.
After several slow commits in a row, a thread commits for the next second, so that a slow disk does
not delay heartbeats until peers cut their links.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from beforehand.protocols.contract.tables import Rows, Table
from beforehand.runtime.storage.store import DiskStore, Durability, SaveKey

QUICK_SECONDS = 0.02
"""Commits up to this duration do not delay the event loop noticeably."""
SLOW_MAX = 3
"""Consecutive slow commits that make a disk count as slow. A single one may be a checkpoint."""
APART_SECONDS = 1.0
"""How long a thread commits after that, before the event loop tries again."""
GATHER_SECONDS = 0.001
"""Minimum time between the starts of two transactions, so that writes in between are batched."""
PAUSE_SECONDS_MAX = 0.02
"""Maximum pause after a transaction (adaptive group commit). The pause is as long as the last
transaction took, counted from its due time. So an idle node commits almost at once, and a busy one
batches more per transaction before its queues grow."""
PAUSE_ROWS = 256
"""Rows that are batch enough: the transaction starts without that pause."""
SYNC_SECONDS = 1.0
"""With durability `os`: the longest time until a write is synced, which a power loss may cost."""

Action = Callable[[], None]


class Batch:
    """The rows of one transaction, and the actions to run once it is committed."""

    __slots__ = ("actions", "again", "rows")

    def __init__(self) -> None:
        self.rows: dict[SaveKey, Any] = {}
        """The last value of each row; earlier values within the transaction are not written."""
        self.again: set[SaveKey] = set()
        """Rows to delete before they are inserted, because they were deleted and saved again. So
        they come after all rows saved earlier."""
        self.actions: list[Action] = []
        """Run in order after the commit."""


def collect(batch: Batch, saves: Iterable[tuple[str, object, object]]) -> None:
    """Add the writes of one step."""
    rows = batch.rows
    for table, key, value in saves:
        place = (table, key)
        if value is not None and rows.get(place, place) is None:
            del rows[place]
            batch.again.add(place)
        rows[place] = value


class GroupCommit:
    """The store that a driver writes to (a `RowStore`), in front of a `DiskStore`."""

    def __init__(
        self,
        disk: DiskStore,
        *,
        durable: Durability,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """on_failure: called when the disk or an action fails. No action runs after that."""
        self.error: Exception | None = None
        """The failure that ended it, or None."""
        self.transactions = 0
        """Committed transactions."""
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
        """Consecutive commits that were slow."""
        self._apart_until = self._began_at = 0.0
        self._due_at = self._free_at = 0.0
        """`_due_at`: when the last transaction was due. `_free_at`: when the next one may start."""
        self._is_sync_due = False
        """Whether SYNC_SECONDS have passed since the first write that is not synced."""
        self._sync_timer: asyncio.TimerHandle | None = None

    # ---- the store of a driver ------------------------------------------------------------------

    def save(self, saves: Iterable[tuple[str, object, object]]) -> None:
        """Add the writes of one step to the next transaction. A step is never split."""
        collect(self._open, saves)
        self._schedule()
        if len(self._open.rows) >= PAUSE_ROWS:
            self.hurry()

    def load(self, tables: Sequence[Table]) -> Rows:
        """Load tables from the disk. Call it before the first save."""
        return self._disk.load(tables)

    def count(self) -> int:
        """Return the number of rows that are not committed yet."""
        return len(self._open.rows) + (len(self._flying.rows) if self._flying else 0)

    # ---- actions that wait ----------------------------------------------------------------------

    def after(self, action: Action) -> None:
        """Run `action` once everything saved so far is durable.

        Actions run in the order of these calls, and never from within the call.
        """
        if self._flying is not None and not self._open.rows and not self._open.actions:
            self._flying.actions.append(action)
        else:
            self._open.actions.append(action)
            self._schedule()

    def before_next(self, action: Action) -> None:
        """Run `action` when no transaction is running, right before the next one starts.

        Writes would have to wait for that anyway, so the caller can batch more of them until then.
        """
        self._before.append(action)
        self._schedule()

    def hurry(self) -> None:
        """Start the next transaction without the adaptive pause: it is large enough."""
        if not self._is_enough:
            self._is_enough = True
            if self._scheduled is not None:
                self._scheduled.cancel()
                self._scheduled = None
                self._schedule()

    async def settled(self) -> None:
        """Wait until everything saved so far is durable and all actions before this call have run.

        Raise the failure if that never happens.
        """
        if self.error is not None:
            raise self.error
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        self.after(lambda: None if waiter.done() else waiter.set_result(None))
        await waiter

    async def close(self) -> None:
        """Commit until nothing is left, then close the file.

        Actions may save rows themselves, so several transactions may follow.
        """
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
        """Schedule the next transaction, unless one is scheduled or running."""
        if self._scheduled is None and self._flying is None and self.error is None:
            at = self._began_at + GATHER_SECONDS
            if not self._is_enough:
                at = max(at, self._free_at)
            self._due_at = max(at, self._loop.time())
            self._scheduled = self._loop.call_at(at, self._start)

    def _start(self) -> None:
        """Start a transaction with the collected rows; without rows, run the actions at once."""
        self._scheduled, self._is_enough = None, False
        if self._is_closed:
            return
        if self._flying is not None:
            return  # a step called this while a transaction runs; `_land` schedules again
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
        """Commit in the event loop, or in the thread while the disk counts as slow."""
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
        """Finish a transaction: run its actions and schedule the next one."""
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
            # Stop at any error: a later action must not overtake a failed one.
            except Exception as error:
                self._fail(error)

    def _sync(self) -> None:
        """Request an fsync: with the next transaction, or alone if there is none."""
        self._sync_timer = None
        self._is_sync_due = True
        self._schedule()

    def _fail(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
            for waiter in [waiter for waiter in self._waiters if not waiter.done()]:
                waiter.set_exception(error)
            self._on_failure(error)
