"""Sabotaged nodes, which the soak test must detect. One is only slow, and must pass."""

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
    """Slow the disk down, which is no error; code that does not wait for the disk then shows."""
    commit = DiskStore.commit

    def commit_slowly(self: DiskStore) -> None:
        time.sleep(DISK_SECONDS)
        commit(self)

    DiskStore.commit = commit_slowly  # type: ignore[method-assign]


def _let_out_too_early() -> None:
    """Let frames, deliveries and answers out before the disk has committed."""
    _slow_down()

    def at_once(self: GroupCommit, action: Callable[[], None]) -> None:
        self._loop.call_soon(action)

    GroupCommit.after = at_once  # type: ignore[method-assign]


def _forget_delivered() -> None:
    """Let a restarted node forget what it has delivered."""
    restore = Barrier.restore

    def forget(self: Barrier, rows: Rows) -> None:
        restore(self, {**rows, "delivered": {}})

    Barrier.restore = forget  # type: ignore[method-assign]


def _forget_inbox() -> None:
    """Do not redeliver unacknowledged messages."""
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
    """Sabotage all nodes that are started from now on; none if `how` is empty."""
    if how:
        SABOTAGES[how]()
