"""A group in memory: what a program sees of it."""

from __future__ import annotations

from tests.runtime.memory_mesh import Net, member, run, take


def test_what_one_says_another_reads(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            id = await ann.broadcast(b"fog at pier 4")
            message = await anext(bob)
            assert (message.id, message.origin, message.payload) == (id, "ann", b"fog at pier 4")
            assert bob.explain(id).state == "delivered"
            await bob.broadcast(b"seen")
            assert await take(ann, 1) == [b"seen"]

    run(play)


def test_what_was_said_alone_is_carried_to_who_comes_later_through_a_third(tmp_path):
    async def play():
        net = Net()
        net.apart.add(frozenset(("ann", "eve")))
        async with member(net, tmp_path, "bob") as bob:
            async with member(net, tmp_path, "ann") as ann:
                await ann.broadcast(b"one")
                await ann.broadcast(b"two")
                assert await take(bob, 2) == [b"one", b"two"]
            async with member(net, tmp_path, "eve") as eve:
                assert await take(eve, 2) == [b"one", b"two"]

    run(play)
