"""Group commit: no effect is carried out before the saves that it depends on are on the disk."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine

from tests.waiting import SECONDS_MAX

from beforehand.runtime.storage.group_commit import PAUSE_ROWS, PAUSE_SECONDS_MAX, GroupCommit
from beforehand.runtime.storage.store import DiskStore


def run(playing: Coroutine[None, None, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await playing

    asyncio.run(bounded())


async def under_way(commits: GroupCommit) -> None:
    while commits._flying is None:
        await asyncio.sleep(0)


def test_effects_of_an_open_transaction_left_with_the_previous_one(tmp_path, slow_disk):
    """If a transaction begins while another one is in progress."""
    log, on_disk, gate = [], [], threading.Event()

    class Disk(DiskStore):
        def stage(self, rows, *again, **options):
            super().stage(rows, *again, **options)
            self.staged = [key for _, key in rows]

        def commit(self):
            assert gate.wait(SECONDS_MAX)
            super().commit()
            on_disk.extend(self.staged)

    async def play():
        disk = Disk(tmp_path / "ann.db", group="harbour", name="ann")
        commits = GroupCommit(disk, durable="disk", on_failure=log.append)

        def save(key: int) -> None:
            commits.save([("own", str(key), key)])
            commits.after(lambda: log.append((key, str(key) in on_disk)))

        commits.before_next(lambda: save(0))
        await under_way(commits)
        save(1)
        await asyncio.sleep(0.02)
        gate.set()
        save(2)
        await commits.settled()
        await commits.close()

    run(play())
    assert log == [(key, True) for key in range(3)]


def test_callbacks_before_the_next_transaction_are_part_of_it(tmp_path, slow_disk):
    async def play():
        disk = DiskStore(tmp_path / "ann.db", group="harbour", name="ann")
        commits = GroupCommit(disk, durable="disk", on_failure=print)
        commits.save([("own", "1", 1)])
        await under_way(commits)
        for key in range(10):
            commits.before_next(lambda key=key: commits.save([("own", str(key), key)]))
            assert commits.count() == 1
        await commits.settled()  # the first one: these are not saved before it ends
        await commits.settled()
        assert commits.transactions == 2
        await commits.close()

    run(play())


async def after_a_long_one(tmp_path, monkeypatch, seconds):
    """Make the last transaction one of this duration."""
    disk = DiskStore(tmp_path / "ann.db", group="harbour", name="ann")
    commits = GroupCommit(disk, durable="disk", on_failure=print)
    commit = DiskStore.commit
    monkeypatch.setattr(DiskStore, "commit", lambda self: time.sleep(seconds) or commit(self))
    commits.save([("own", "1", 1)])
    await commits.settled()
    monkeypatch.setattr(DiskStore, "commit", commit)
    return commits


def test_a_transaction_waits_as_long_as_the_previous_one_took(tmp_path, monkeypatch):
    async def play():
        commits = await after_a_long_one(tmp_path, monkeypatch, 0.01)
        commits.save([("own", "2", 2)])
        assert commits._scheduled.when() >= commits._began_at + 2 * 0.01
        await commits.settled()
        assert commits.transactions == 2
        await commits.close()

    run(play())


def test_the_wait_after_a_very_long_transaction_is_bounded(tmp_path, monkeypatch):
    async def play():
        commits = await after_a_long_one(tmp_path, monkeypatch, 0.3)
        commits.save([("own", "2", 2)])
        due_in = commits._scheduled.when() - asyncio.get_running_loop().time()
        assert due_in <= PAUSE_SECONDS_MAX
        await commits.close()

    run(play())


def test_the_first_write_after_an_idle_period_is_committed_at_once(tmp_path, monkeypatch):
    async def play():
        commits = await after_a_long_one(tmp_path, monkeypatch, 0.01)
        await asyncio.sleep(2 * PAUSE_SECONDS_MAX)
        commits.save([("own", "2", 2)])
        assert commits._scheduled.when() <= asyncio.get_running_loop().time()
        await commits.close()

    run(play())


def test_a_full_transaction_is_committed_at_once(tmp_path, monkeypatch):
    async def play():
        commits = await after_a_long_one(tmp_path, monkeypatch, 0.1)
        for key in range(PAUSE_ROWS):
            commits.save([("own", str(key), key)])
            waits = commits._scheduled.when() >= commits._began_at + 0.1
            assert waits == (key + 1 < PAUSE_ROWS)
        await commits.settled()
        assert not commits._is_enough
        await commits.close()

    run(play())


def test_with_the_durability_os_the_last_transaction_is_synced_after_a_second(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("beforehand.runtime.storage.group_commit.SYNC_SECONDS", 0.5)
    synced = []

    class Disk(DiskStore):
        def stage(self, *batch, sync=True):
            synced.append(sync)
            super().stage(*batch, sync=sync)

        def sync(self):
            synced.append("alone")
            super().sync()

    async def play():
        disk = Disk(tmp_path / "ann.db", group="harbour", name="ann", durable="os")
        synced.clear()
        commits = GroupCommit(disk, durable="os", on_failure=print)
        for _ in range(2):
            for _ in range(3):
                commits.save([("own", "1", 1)])
                await commits.settled()
            while synced[-1] != "alone":
                await asyncio.sleep(0.01)
        assert synced == [False, False, False, "alone"] * 2
        while True not in synced:
            commits.save([("own", "1", 1)])
            await asyncio.sleep(0.001)
        assert synced[-1] is True  # with what is written anyway
        await commits.close()

    run(play())


def test_a_slow_disk_is_written_to_by_a_thread_until_it_is_quick_again(tmp_path, monkeypatch):
    """By a clock that is set forward: what a commit takes on a busy machine changes nothing."""
    monkeypatch.setattr("beforehand.runtime.storage.group_commit.QUICK_SECONDS", 10)
    monkeypatch.setattr("beforehand.runtime.storage.group_commit.APART_SECONDS", 10)
    here, took, ahead = [], [0, 15, 0, 15, 15, 15, 0, 0], [0]

    class Disk(DiskStore):
        def commit(self):
            here.append(threading.current_thread() is threading.main_thread())
            ahead.append(ahead[-1] + took[len(here) - 1])
            super().commit()

    async def play():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + ahead[-1])
        disk = Disk(tmp_path / "ann.db", group="harbour", name="ann", durable="os")
        commits = GroupCommit(disk, durable="os", on_failure=print)
        for _ in took:
            if len(here) == 7:
                ahead.append(ahead[-1] + 15)
            commits.save([("own", "1", 1)])
            await commits.settled()
        await commits.close()
        monkeypatch.undo()

    run(play())
    assert here == [True] * 6 + [False, True]


def test_a_file_that_is_being_closed_is_not_synced(tmp_path):
    """The one in a thread and the other in the loop: the interpreter died of it."""
    log = []

    class Disk(DiskStore):
        def sync(self):
            log.append("synced")
            super().sync()

        def close(self):
            log.append("closing")
            time.sleep(0.05)
            super().close()

    async def play():
        disk = Disk(tmp_path / "ann.db", group="harbour", name="ann", durable="os")
        commits = GroupCommit(disk, durable="os", on_failure=log.append)
        commits.save([("own", "1", 1)])
        commits.after(commits._sync)  # a second is over just now
        await commits.close()

    run(play())
    assert log == ["synced", "closing"]  # the first when it was opened
