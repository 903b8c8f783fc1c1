"""Broadcasts made during one transaction are one step, each caused by the one before."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.runtime.fixtures.memory_mesh import Net, member, run, take
from tests.waiting import SECONDS_MAX

from beforehand.errors import InputError, LocalError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES
from beforehand.runtime.storage import group_commit
from beforehand.runtime.storage.store import DiskStore


def test_simultaneous_broadcasts_are_ordered_and_share_a_transaction_and_proofs(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            before = ann.counters.transactions
            ids = await asyncio.gather(*(ann.broadcast(b"%d" % i) for i in range(40)))
            assert ann.counters.transactions - before <= 2
            assert ids == sorted(ids)
            assert await take(bob, 40) == [b"%d" % i for i in range(40)]
            frames = [OPPORTUNISTIC.decode(frame) for _, _, frame in net.log]
            messages = [m for frame in frames for m in getattr(frame, "messages", ())]
            assert all(len(message.proof) > PROOF_HEAD_BYTES for message in messages)
            pasts = {message.id: message.past for message in messages}
            assert all((ids[i],) == pasts[ids[i + 1]] for i in range(39))

    run(play)


def test_an_invalid_broadcast_fails_alone(tmp_path):
    async def play():
        async with member(Net(), tmp_path, "ann") as ann:
            node = ann._parts.node
            said = [node.broadcast(b"x", us) for us in (None, -5, None)]
            first, wrong, last = await asyncio.gather(*said, return_exceptions=True)
            assert isinstance(wrong, LocalError)
            assert first < last
            assert ann.counters.messages.broadcast == 2

    run(play)


def test_a_failure_is_reported_to_every_waiting_broadcast(tmp_path, monkeypatch):
    async def play():
        async with member(Net(), tmp_path, "ann") as ann:

            def fall_over(*_):
                raise InputError("no signatures today")

            monkeypatch.setattr(ann._parts.node.driver.core, "on_broadcasts", fall_over)
            said = [ann.broadcast(b"x") for _ in range(3)]
            found = await asyncio.gather(*said, return_exceptions=True)
            assert [error.problem for error in found] == ["no signatures today"] * 3

    with pytest.raises(InputError, match="no signatures today"):
        run(play)


def test_broadcasts_while_the_disk_is_busy_share_the_next_transaction(
    tmp_path, monkeypatch, slow_disk
):
    monkeypatch.setattr(
        group_commit, "PAUSE_SECONDS_MAX", 0.0
    )  # the first of them is broadcast at once
    opened, commit = threading.Event(), DiskStore.commit

    def wait_and_commit(self):
        assert opened.wait(SECONDS_MAX)
        commit(self)

    async def play():
        async with member(Net(), tmp_path, "ann") as ann:
            await ann._parts.group_commit.settled()
            monkeypatch.setattr(DiskStore, "commit", wait_and_commit)
            before = ann.counters.transactions
            saying = []
            for _ in range(30):
                saying.append(asyncio.create_task(ann.broadcast(b"x")))
                await asyncio.sleep(0.001)
            assert ann.counters.messages.broadcast == 1
            opened.set()
            await asyncio.gather(*saying)
            assert ann.counters.transactions - before == 2

    run(play)


def test_queued_broadcasts_are_made_when_the_group_closes(tmp_path, monkeypatch, slow_disk):
    commit = DiskStore.commit

    def commit_slowly(self):
        time.sleep(0.05)
        commit(self)

    monkeypatch.setattr(DiskStore, "commit", commit_slowly)

    async def play():
        ann = member(Net(), tmp_path, "ann")
        await ann.open()
        saying = []
        for _ in range(3):
            saying.append(asyncio.create_task(ann.broadcast(b"last words")))
            await asyncio.sleep(0.001)
        await ann.close()
        assert [(await said)[0] for said in saying] == ["ann"] * 3

    run(play)


def test_saved_broadcasts_are_answered_when_the_group_closes(tmp_path):
    async def play():
        ann = member(Net(), tmp_path, "ann")
        await ann.open()
        saying = asyncio.create_task(ann.broadcast(b"last words"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await ann.close()
        assert (await saying)[0] == "ann"

    run(play)
