"""Nodes that are broken on purpose: a soak that does not notice is worth nothing. One is slow only,
and must pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from beforehand.protocols.contract.driver import INBOX, Driver
from beforehand.protocols.contract.tables import Rows
from beforehand.protocols.orders.barrier import Barrier
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore

DISK_SECONDS = 0.05


def _slow_down() -> None:
    """Nothing is wrong with a slow disk; but what does not wait for it is seen."""
    commit = DiskStore.commit

    def commit_slowly(self: DiskStore) -> None:
        time.sleep(DISK_SECONDS)
        commit(self)

    DiskStore.commit = commit_slowly  # type: ignore[method-assign]


def _let_out_too_early() -> None:
    """Frames, deliveries and answers do not wait for the disk."""
    _slow_down()

    def at_once(self: GroupCommit, action: Callable[[], None]) -> None:
        self._loop.call_soon(action)

    GroupCommit.after = at_once  # type: ignore[method-assign]


def _forget_delivered() -> None:
    """A node that comes back does not know what it has delivered."""
    restore = Barrier.restore

    def forget(self: Barrier, rows: Rows) -> None:
        restore(self, {**rows, "delivered": {}})

    Barrier.restore = forget  # type: ignore[method-assign]


def _forget_inbox() -> None:
    """What was not acknowledged does not come again."""
    restart = Driver.restart

    def without_inbox(self: Driver[Any], now_us: int) -> None:
        assert self._store is not None
        rows = self._store.load((INBOX,))[INBOX.name]
        self._store.save([(INBOX.name, id, None) for id in rows])
        self._inbox, inbox = False, self._inbox
        restart(self, now_us)
        self._inbox = inbox

    Driver.restart = without_inbox  # type: ignore[method-assign]


SABOTAGES: dict[str, Callable[[], None]] = {
    "slow": _slow_down,
    "early": _let_out_too_early,
    "forgetful": _forget_delivered,
    "inbox": _forget_inbox,
}


def break_nodes(how: str) -> None:
    """All nodes that are started from now on; none if it is empty."""
    if how:
        SABOTAGES[how]()
