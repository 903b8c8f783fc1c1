"""No effect leaves a node before its saves are on the disk; restarts; failing disks."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.runtime.fixtures.memory_mesh import Net, member, run, take, until
from tests.waiting import SECONDS_MAX

from beforehand.errors import InputError
from beforehand.protocols.contract.driver import INBOX
from beforehand.runtime.storage.store import DiskStore


@pytest.fixture
def gate(monkeypatch, slow_disk):
    """Writes wait until it is open."""
    opened = threading.Event()
    opened.set()
    commit = DiskStore.commit

    def wait_and_commit(self):
        assert opened.wait(SECONDS_MAX)
        commit(self)

    monkeypatch.setattr(DiskStore, "commit", wait_and_commit)
    yield opened
    opened.set()


async def quiet(net):
    """Wait until no node has sent anything for a while, and clear the record of sent frames."""
    while net.log:
        net.log.clear()
        await asyncio.sleep(0.2)


def test_nothing_of_a_step_leaves_before_it_is_on_the_disk(tmp_path, gate):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            await ann.broadcast(b"warm")
            await take(bob, 1)
            await quiet(net)
            gate.clear()
            saying = [asyncio.create_task(ann.broadcast(b"%d" % i)) for i in range(5)]
            await asyncio.sleep(0.1)
            assert not net.log, "a frame left before its commit"
            assert not any(task.done() for task in saying), "the program was told too early"
            before = ann.counters.transactions
            gate.set()
            await asyncio.gather(*saying)
            assert ann.counters.transactions - before <= 2, "they share a transaction"
            assert await take(bob, 5) == [b"%d" % i for i in range(5)]

    run(play)


def test_nothing_is_delivered_before_it_is_on_the_disk(tmp_path, gate):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            net.part("ann", "bob")
            await ann.broadcast(b"one")
            gate.clear()
            net.heal()
            await until(lambda: bob.counters.messages.delivered == 1)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(bob), 0.1)
            gate.set()
            assert await take(bob, 1) == [b"one"]

    run(play)


async def crash(group, net):
    """Crash the node: unsaved state is lost, and nothing more is written."""
    parts = group._parts
    parts.group_commit.error = RuntimeError("crashed")
    parts.node.stop()
    net.isolate(group.name)
    net.meshes.pop(group.name)
    await parts.group_commit.close()


def test_after_a_crash_no_delivery_is_repeated_and_ids_continue(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann:
            bob = member(net, tmp_path, "bob")
            await bob.open()
            first = await bob.broadcast(b"b1")
            for index in range(20):
                await ann.broadcast(b"%d" % index)
            assert await take(bob, 20) == [b"%d" % index for index in range(20)]
            await crash(bob, net)
            async with member(net, tmp_path, "bob") as bob:
                await ann.broadcast(b"new")
                assert await take(bob, 1) == [b"new"]
                assert await bob.broadcast(b"b2") > first
                assert await take(ann, 2) == [b"b1", b"b2"]

    run(play)


def test_with_an_inbox_a_message_comes_again_until_it_is_acknowledged(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann:
            bob = member(net, tmp_path, "bob", inbox=True)
            await bob.open()
            await bob.broadcast(b"own ones are not in it")
            for index in range(4):
                await ann.broadcast(b"%d" % index)
            first, second = await anext(bob), await anext(bob)
            await bob.acknowledge([first.id])
            second.ack()
            await bob.broadcast(b"with what is saved next")
            await crash(bob, net)
            async with member(net, tmp_path, "bob", inbox=True) as bob:
                assert await take(bob, 2) == [b"2", b"3"]
            async with member(net, tmp_path, "bob", inbox=True) as bob:
                messages = [await anext(bob) for _ in range(2)]
                assert [message.payload for message in messages] == [b"2", b"3"]
                await bob.acknowledge(message.id for message in messages)
                await bob.acknowledge([("ann", 1)])  # no node broadcast that
            async with member(net, tmp_path, "bob", inbox=True) as bob:
                await ann.broadcast(b"new")
                assert await take(bob, 1) == [b"new"]
            disk = DiskStore(tmp_path / "bob.db", group="harbour", name="bob")
            assert [id[0] for id in disk.load((INBOX,))["inbox"]] == ["ann"], "and no own ones"
            disk.close()

    run(play)


def test_without_its_store_a_member_cannot_use_its_name(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "bob") as bob:
            async with member(net, tmp_path, "ann") as ann:
                await ann.broadcast(b"one")
                await take(bob, 1)
            async with member(net, tmp_path, "ann", store=tmp_path / "other.db") as ann:
                await ann.broadcast(b"in the name of another")
                await until(lambda: bob.counters.messages.refused)
            assert bob.counters.trust.wrong_key

    run(play)


def fill_up(monkeypatch, store_name):
    """Make the disk of this store full from now on."""
    commit = DiskStore.commit

    def refuse(self):
        if self.path.name != store_name:
            return commit(self)
        raise InputError("the store cannot be used: database or disk is full")

    monkeypatch.setattr(DiskStore, "commit", refuse)


def test_a_disk_that_fails_ends_the_group_and_what_it_had_delivered_can_still_be_read(
    tmp_path, monkeypatch
):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann:
            bob = member(net, tmp_path, "bob")
            await bob.__aenter__()
            await ann.broadcast(b"saved")
            await until(lambda: bob.counters.messages.delivered == 1)
            await bob._parts.group_commit.settled()
            fill_up(monkeypatch, "bob.db")
            await ann.broadcast(b"not saved")
            await until(lambda: bob._error)
            assert await take(bob, 1) == [b"saved"]
            with pytest.raises(InputError, match="full"):
                await anext(bob)
            with pytest.raises(InputError, match="full"):
                await bob.broadcast(b"nobody hears this")
            with pytest.raises(InputError, match="full"):
                await bob.__aexit__(None, None, None)
            assert "bob" not in net.meshes, "it has left the network"
            monkeypatch.undo()
            async with member(net, tmp_path, "bob") as bob:
                assert await take(bob, 1) == [b"not saved"], "it comes again, and alone"

    run(play)


def test_a_broadcast_that_meets_a_full_disk_is_not_made(tmp_path, monkeypatch):
    async def play():
        net = Net()
        async with member(net, tmp_path, "bob") as bob:
            ann = member(net, tmp_path, "ann")
            await ann.open()
            await ann.broadcast(b"one")
            fill_up(monkeypatch, "ann.db")
            with pytest.raises(InputError, match="full"):
                await ann.broadcast(b"two")
            await ann.close()
            monkeypatch.undo()
            async with member(net, tmp_path, "ann") as ann:
                await ann.broadcast(b"three")
                assert await take(bob, 2) == [b"one", b"three"]

    run(play)


async def back_to_an_older_copy(net, tmp_path, durable):
    """Return `bob`, and `ann` with a store that lacks her last message."""
    bob = await member(net, tmp_path, "bob").__aenter__()
    async with member(net, tmp_path, "ann") as ann:
        await ann.broadcast(b"first")
    older = (tmp_path / "ann.db").read_bytes()
    async with member(net, tmp_path, "ann") as ann:
        await ann.broadcast(b"second")
        assert await take(bob, 2) == [b"first", b"second"]
    (tmp_path / "ann.db").write_bytes(older)
    ann = await member(net, tmp_path, "ann", durable=durable).__aenter__()
    await until(lambda: ann.counters.messages.regained)
    return bob, ann


def test_a_member_with_an_older_copy_of_its_store_stops_broadcasting(tmp_path):
    async def play():
        bob, ann = await back_to_an_older_copy(Net(), tmp_path, "disk")
        with pytest.raises(InputError, match="an older copy: others have message"):
            await ann.broadcast(b"third")
        await bob.broadcast(b"can you hear me")
        assert await take(ann, 1) == [b"can you hear me"], "it comes after what she has forgotten"
        await ann.close()
        async with member(Net(), tmp_path, "ann", durable="disk") as ann:
            with pytest.raises(InputError, match="an older copy: others have message"):
                await ann.broadcast(b"third")
        await bob.close()

    run(play)


def test_after_a_power_loss_a_periodically_synced_member_continues(tmp_path):
    async def play():
        bob, ann = await back_to_an_older_copy(Net(), tmp_path, "os")
        await ann.broadcast(b"third")
        assert await take(bob, 1) == [b"third"]
        await ann.close()
        await bob.close()

    run(play)


def test_own_broadcasts_no_longer_held_do_not_indicate_an_older_copy(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "bob") as bob:
            async with member(net, tmp_path, "ann", capacity=1) as ann:
                for turn in range(3):
                    await ann.broadcast(b"%d" % turn)
                await take(bob, 3)
            async with member(net, tmp_path, "ann", capacity=1) as ann:
                await until(lambda: ann.peers)
                await bob.broadcast(b"last")
                assert await take(ann, 1) == [b"last"]
                await ann.broadcast(b"fine")

    run(play)
