"""A group in memory, as the application sees it."""

from __future__ import annotations

import asyncio

import pytest

from beforehand.errors import InputError, LocalError
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.group import Group
from beforehand.runtime.queues.inbox import UNREAD_MAX
from beforehand.runtime.transport.address import Address
from tests.runtime.fixtures.memory_mesh import Net, member, run, take, until


def test_a_broadcast_of_one_member_is_read_by_another(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            id = await ann.broadcast(b"fog at pier 4")
            message = await anext(bob)
            assert (message.id, message.origin, message.payload) == (id, "ann", b"fog at pier 4")
            assert message.at.timestamp() == pytest.approx(message.at_us / 1e6)
            assert bob.explain(id).state == "delivered"
            await bob.broadcast(b"seen")
            assert await take(ann, 1) == [b"seen"], "one's own are not among them"

    run(play)


@pytest.mark.parametrize("turns", [0, 1, 3, 10, 100])
def test_a_group_that_is_closed_while_it_is_opening_is_closed(tmp_path, turns):
    async def play():
        ann = member(Net(), tmp_path, "ann")
        opening = asyncio.create_task(ann.open())
        for _ in range(turns + 1):
            await asyncio.sleep(0)
        was_open = opening.done()
        await ann.close()
        if not was_open:
            with pytest.raises(LocalError, match="it was closed while it was opening"):
                await opening
        with pytest.raises(LocalError, match="not open, but closed"):
            await ann.broadcast(b"x")
        async with member(Net(), tmp_path, "ann") as again:  # no other process holds the store
            await again.broadcast(b"x")

    run(play)


def test_a_message_has_its_send_time_also_when_it_is_delivered_later_and_after_a_restart(tmp_path):
    clock_us = 1_800_000_000_000_000

    async def play():
        nonlocal clock_us
        net, options = Net(), {"clock_us": lambda: clock_us}
        async with member(net, tmp_path, "ann", **options) as ann:
            await ann.broadcast(b"fog")
            clock_us += 60_000_000
            async with member(net, tmp_path, "bob", inbox=True, **options) as bob:
                message = await anext(bob)
                assert message.at_us - message.sent_us == 60_000_000
                assert message.sent_at.isoformat() == "2027-01-15T08:00:00+00:00"
            async with member(net, tmp_path, "bob", inbox=True, **options) as bob:
                assert (await anext(bob)).sent_us == message.sent_us

    run(play)


def test_broadcasts_made_alone_reach_a_later_member_through_a_third(tmp_path):
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


def test_an_effect_waits_for_its_cause_and_reports_it(tmp_path):
    async def play():
        net = Net()
        net.apart.add(frozenset(("ann", "eve")))
        names = ("ann", "bob", "eve")
        ann, bob, eve = (member(net, tmp_path, name, capacity=1) for name in names)
        async with ann, bob, eve:
            net.part("bob", "eve")
            question = await ann.broadcast(b"question")
            await take(bob, 1)
            answer = await bob.broadcast(b"answer")  # its cache of one has lost the question
            net.apart.discard(frozenset(("bob", "eve")))
            net.connect()
            await until(lambda: eve.pending)
            assert [(p.id, p.missing) for p in eve.pending] == [(answer, (question,))]
            assert eve.explain(answer).state == "waiting"
            assert eve.explain(question).state == "unknown"

    run(play)


def test_two_readers_share_the_messages(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            readers = [asyncio.create_task(take(bob, 3)) for _ in range(2)]
            for index in range(6):
                await ann.broadcast(b"%d" % index)
            found = await asyncio.gather(*readers)
            assert sorted(found[0] + found[1]) == [b"%d" % index for index in range(6)]

    run(play)


def test_close_ends_iterators_and_unread_messages_return_at_the_next_start(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann:
            bob = member(net, tmp_path, "bob")
            await bob.open()
            await ann.broadcast(b"read")
            assert await take(bob, 1) == [b"read"]
            await ann.broadcast(b"unread")
            await until(lambda: bob.counters.messages.delivered == 2)
            await bob.close()
            assert [message async for message in bob] == []
            async with member(net, tmp_path, "bob") as bob:
                assert await take(bob, 1) == [b"unread"]
                reader = asyncio.create_task(anext(bob))
                await asyncio.sleep(0)
                await bob.close()
                with pytest.raises(StopAsyncIteration):
                    await reader
            async with member(net, tmp_path, "bob") as bob:
                await ann.broadcast(b"new")
                assert await take(bob, 1) == [b"new"], "the unread one comes once"

    run(play)


def test_a_cancelled_reader_consumes_no_message(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(bob), 0.01)
            await ann.broadcast(b"one")
            await until(lambda: bob.counters.messages.delivered)
            assert await take(bob, 1) == [b"one"]

    run(play)


def test_a_broadcast_that_is_cancelled_leaves_a_working_group(tmp_path):
    async def play():
        net = Net()
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            task = asyncio.create_task(ann.broadcast(b"one"))
            await asyncio.sleep(0)
            task.cancel()
            await ann.broadcast(b"two")
            assert await take(bob, 2) == [b"one", b"two"]

    run(play)


def test_a_group_that_is_not_open_raises_not_open(tmp_path):
    async def play():
        ann = member(Net(), tmp_path, "ann")
        with pytest.raises(LocalError, match="not open, but new"):
            await ann.broadcast(b"early")
        async with ann:
            with pytest.raises(LocalError, match="open already"):
                await ann.open()
        with pytest.raises(LocalError, match="not open, but closed"):
            await ann.broadcast(b"late")
        await ann.close()
        assert ann.counters.messages.broadcast == 0

    run(play)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ("text", "a payload is bytes, and not str"),
        (bytes(Group.payload_bytes_max + 1), "65,537 bytes; 65,536 are allowed"),
    ],
)
def test_a_payload_too_large_for_peers_is_refused(tmp_path, payload, problem):
    async def play():
        async with member(Net(), tmp_path, "ann") as ann:
            with pytest.raises(LocalError, match=problem):
                await ann.broadcast(payload)
            with pytest.raises(InputError, match="lifetime"):
                await ann.broadcast(b"", lifetime="31d")
            await ann.broadcast(bytes(Group.payload_bytes_max))
            await ann.broadcast(bytearray(b"a buffer"), lifetime="1s")

    run(play)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "no name for a member"),
        ({"lifetime": "31d"}, "too long a lifetime"),
        ({"lifetime": "20"}, "not a duration"),
        ({"lifetime": True}, "not a lifetime: `True`"),
        ({"lifetime": 0}, "not a lifetime: `0`"),
        ({"name": 7}, "a name is text, and not int"),
        ({"listen": 7400}, "not an address: `7400`"),
        ({"peers": [("bob", 7400)]}, "not an address"),
        ({"durable": "no"}, "no such durability"),
        ({"listen": "everywhere"}, "not an address"),
        ({"peers": ["bob"]}, "not an address"),
        ({"capacity": 0}, "no room for messages"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(tmp_path, options, problem):
    with pytest.raises(InputError, match=problem):
        member(Net(), tmp_path, **{"name": "ann", **options})


def test_a_peer_may_be_given_alone(tmp_path):
    """It was taken apart, and `1` was no address."""
    alone = member(Net(), tmp_path, name="ann", peers="127.0.0.1:7400")
    assert alone._peers == [Address("127.0.0.1", 7400)]


@pytest.mark.parametrize("wrong", [("bob",), "bob", None, ("bob", "5"), ["bob", 5], (5, 5)])
def test_an_invalid_message_id_is_refused_and_not_ignored(tmp_path, wrong):
    """An application that gave one id in place of a list acknowledged nothing, without an error."""

    async def play():
        async with member(Net(), tmp_path, "ann", inbox=True) as ann:
            with pytest.raises(LocalError, match="not the id of a message"):
                ann.explain(wrong)
            with pytest.raises(LocalError, match="not the id of a message"):
                await ann.acknowledge([wrong])
            with pytest.raises(LocalError, match="not the id of a message") as refused:
                await ann.acknowledge(await ann.broadcast(b""))
            assert "[message.id]" in refused.value.hint

    run(play)


def test_the_key_of_another_group_is_refused_and_a_failed_start_leaves_nothing_open(tmp_path):
    async def play():
        new_group("island").write(tmp_path / "island.key")
        wrong = member(Net(), tmp_path, "ann")
        wrong._config.key = tmp_path / "island.key"
        with pytest.raises(InputError, match="the key of the group `island`, not of `harbour`"):
            await wrong.open()
        net = Net()

        class Broken(type(wrong)):
            def _make_mesh(self, *arguments, **options):
                raise InputError("no network today")

        broken = Broken(
            "harbour",
            name="ann",
            store=tmp_path / "ann.db",
            lifetime="1m",
            key=tmp_path / "harbour.key",
        )
        with pytest.raises(InputError, match="no network today"):
            await broken.open()
        async with member(net, tmp_path, "ann") as ann:  # the store is free again
            await ann.broadcast(b"one")

    run(play)


def test_an_application_that_does_not_read_stops_requests_and_loses_nothing(tmp_path):
    async def play():
        net, many = Net(), 4 * UNREAD_MAX
        async with member(net, tmp_path, "ann") as ann, member(net, tmp_path, "bob") as bob:
            for start in range(0, many, 512):
                await asyncio.gather(*(ann.broadcast(b"%d" % i) for i in range(start, start + 512)))
            await until(lambda: bob.counters.messages.delivered >= UNREAD_MAX)
            await asyncio.sleep(0.1)
            assert bob.counters.messages.delivered < many, "it went on asking"
            await bob.broadcast(b"still here")
            assert await take(ann, 1) == [b"still here"]
            assert await take(bob, many) == [b"%d" % i for i in range(many)]

    run(play)


def test_partitioned_members_converge_in_causal_order_after_healing(tmp_path):
    async def play():
        net = Net()
        ann, bob, eve = (member(net, tmp_path, name) for name in ("ann", "bob", "eve"))
        async with ann, bob, eve:
            net.part("ann", "eve")
            net.part("bob", "eve")
            await ann.broadcast(b"a1")
            await take(bob, 1)
            await bob.broadcast(b"b1 after a1")
            await take(ann, 1)
            await ann.broadcast(b"a2 after b1")
            await eve.broadcast(b"e1")
            net.heal()
            found = await take(eve, 3)
            assert found == [b"a1", b"b1 after a1", b"a2 after b1"]
            assert await take(ann, 1) == [b"e1"]
            assert sorted(await take(bob, 2)) == [b"a2 after b1", b"e1"]

    run(play)
