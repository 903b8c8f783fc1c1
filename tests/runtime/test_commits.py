"""Group commit: nothing is carried out before all that it waits for is on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from beforehand.core.epidemic import MESSAGES
from beforehand.runtime.commits import Commits
from beforehand.runtime.store import DiskStore


def run(playing: Coroutine[None, None, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(3):
            await playing

    asyncio.run(bounded())


def test_what_waits_for_a_transaction_went_out_with_the_one_before_it(tmp_path):
    """An end that begins the next transaction, while another beginning was asked for already."""
    log = []

    class Disk(DiskStore):
        def commit(self):
            super().commit()
            log.append("committed")

    async def play():
        disk = Disk(tmp_path / "ann.db", group="harbour", name="ann")
        commits = Commits(disk, durable="disk", on_failure=log.append)
        loop = asyncio.get_running_loop()

        def save(key: int) -> None:
            commits.save([("own", str(key), key)])
            commits.after(lambda: log.append(key))

        def on_first() -> None:
            loop.call_soon(save, 3)
            save(2)

        commits.save([("own", "1", 1)])
        commits.after(on_first)
        await asyncio.sleep(0)
        save(0)  # so that the end of the first transaction begins another one
        await commits.settled()
        await commits.close()

    run(play())
    assert log == ["committed", "committed", 0, 2, "committed", 3]


def test_what_is_to_come_before_the_next_transaction_is_part_of_it(tmp_path):
    async def play():
        disk = DiskStore(tmp_path / "ann.db", group="harbour", name="ann")
        commits = Commits(disk, durable="disk", on_failure=print)
        commits.save([("own", "1", 1)])
        await asyncio.sleep(0)
        for key in range(10):
            commits.before_next(lambda key=key: commits.save([("own", str(key), key)]))
            assert commits.count() == 1
        await commits.settled()  # the first one: these are not saved before it ends
        await commits.settled()
        assert commits.transactions == 2
        await commits.close()

    run(play())


def test_what_is_on_its_way_is_not_saved(tmp_path):
    async def play():
        disk = DiskStore(tmp_path / "ann.db", group="harbour", name="ann")
        commits = Commits(disk, durable="disk", on_failure=print)
        one, other = ("ann", 1), ("ann", 2)
        commits.save([("message", one, 1)])
        assert not commits.is_saved(MESSAGES, [other, one])
        assert commits.is_saved(MESSAGES, [other])
        await asyncio.sleep(0)
        commits.save([("message", other, 1)])
        assert not commits.is_saved(MESSAGES, [one]), "it is under way"
        await commits.settled()
        assert commits.is_saved(MESSAGES, [one, other])
        await commits.close()

    run(play())


def test_with_the_durability_os_the_last_transaction_is_synced_after_a_second(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("beforehand.runtime.commits.SYNC_SECONDS", 0.05)
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
        commits = Commits(disk, durable="os", on_failure=print)
        for _ in range(2):
            for _ in range(3):
                commits.save([("own", "1", 1)])
                await commits.settled()
            await asyncio.sleep(0.2)
        assert synced == [False, False, False, "alone"] * 2
        while len(synced) < 1000 and True not in synced:
            commits.save([("own", "1", 1)])
            await asyncio.sleep(0)
        assert synced[-1] is True  # with what is written anyway
        await commits.close()

    run(play())
