"""An overlay on real sockets: every member delivers each message once, in causal order, whichever
member fails."""

from __future__ import annotations

import asyncio

import pytest

from beforehand.errors import InputError
from beforehand.protocols.vcube.frames import Answer, Ask, Known
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.mesh_member import MeshMember
from beforehand.verify.verdict import verify_events
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.fixtures.overlays import opened, overlay, write_members

NAMES = ("ann", "bob", "cid", "dee", "eve")


def linked(*overlays):
    return until(lambda: all(len(one.peers) == len(overlays) - 1 for one in overlays))


def abort_links(one: MeshMember) -> None:
    """Abort all links without a goodbye, as a network does."""
    for link in list(one._parts.network._open):
        link._transport.abort()


def verified(folder, deliveries=None):
    (judged,) = verify_events(folder / "logs").runs
    assert (judged.state, judged.reason) == ("valid", "")
    assert deliveries in (None, judged.deliveries)


def test_every_member_delivers_every_broadcast_once_in_causal_order(tmp_path):
    write_members(tmp_path, NAMES)

    async def play():
        async with opened(tmp_path, NAMES) as all_of_them:
            await linked(*all_of_them)
            ann, bob, *_ = all_of_them
            first = await ann.broadcast(b"who is there?")
            assert await take(bob, 1) == [b"who is there?"]
            answer = await bob.broadcast(b"bob")
            for one in all_of_them[2:]:
                assert await take(one, 2) == [b"who is there?", b"bob"]
                assert one.explain(first).state == one.explain(answer).state == "delivered"
            assert (first, answer) == (("ann", 1), ("bob", 1))
            assert ann.members == NAMES
            assert {peer.name for peer in ann.peers} == {*NAMES} - {"ann"}

    run(play)
    verified(tmp_path, 10)


def test_broadcasts_before_other_members_start_are_delivered_when_they_start(tmp_path):
    write_members(tmp_path, NAMES[:3])

    async def play():
        async with overlay(tmp_path, "ann") as ann:
            await ann.broadcast(b"one")
            async with overlay(tmp_path, "bob") as bob:
                assert await take(bob, 1) == [b"one"]
                await bob.broadcast(b"two")
                assert await take(ann, 1) == [b"two"]
                async with overlay(tmp_path, "cid") as cid:
                    assert await take(cid, 2) == [b"one", b"two"]

    run(play)
    verified(tmp_path, 6)


def test_links_that_break_under_load_neither_lose_nor_duplicate(tmp_path):
    write_members(tmp_path, NAMES)

    async def play():
        async with opened(tmp_path, NAMES) as all_of_them:
            await linked(*all_of_them)
            for turn in range(40):
                speaker = all_of_them[turn % 5]
                await speaker.broadcast(b"%d" % turn)
                if turn % 4 == 3:
                    abort_links(all_of_them[turn // 4 % 5])
            for one in all_of_them:
                said = {b"%d" % turn for turn in range(40) if all_of_them[turn % 5] is not one}
                got = await take(one, 32)
                assert len(got) == len(set(got))
                assert set(got) == said
            links = sum(one.counters.links.links for one in all_of_them)
            assert links > 40, "links were broken, and came again"

    run(play)
    verified(tmp_path, 200)


def test_the_overlay_bypasses_a_failed_node_which_catches_up_on_return(tmp_path):
    write_members(tmp_path, NAMES)

    async def play():
        async with opened(tmp_path, [*NAMES[:2], *NAMES[3:]]) as others:
            async with overlay(tmp_path, "cid") as cid:
                await linked(*others, cid)
                await cid.broadcast(b"before")
                for one in others:
                    assert await take(one, 1) == [b"before"]
                await others[1].broadcast(b"to all")
                assert await take(cid, 1) == [b"to all"]
            for turn in range(10):
                await others[turn % 4].broadcast(b"%d" % turn)
            for at, one in enumerate(others):
                await take(one, 10 - len(range(at, 10, 4)) + (at != 1))
            async with overlay(tmp_path, "cid") as cid:
                assert sorted(await take(cid, 10)) == [b"%d" % turn for turn in range(10)]
                await cid.broadcast(b"again")
                assert await take(others[0], 1) == [b"again"]

    run(play)
    verified(tmp_path)


def test_two_partitions_continue_alone_and_converge_after_healing(tmp_path, monkeypatch):
    names = ("ann", "bob", "cid", "dee")
    write_members(tmp_path, names)

    async def play():
        async with opened(tmp_path, names) as (ann, bob, cid, dee):
            await linked(ann, bob, cid, dee)
            halves = {"ann": 0, "bob": 0, "cid": 1, "dee": 1}
            for one in (ann, bob, cid, dee):
                mesh = one._parts.network
                introduced = mesh.on_introduced

                def refuse(link, who, one=one, introduced=introduced):
                    if halves[who.name] == halves[one.name]:
                        introduced(link, who)
                    else:
                        link.end("unwanted", "parted")

                monkeypatch.setattr(mesh, "on_introduced", refuse)
                abort_links(one)
            await until(lambda: all(len(one.peers) == 1 for one in (ann, bob, cid, dee)))
            await ann.broadcast(b"left")
            await dee.broadcast(b"right")
            assert await take(bob, 1) == [b"left"]
            assert await take(cid, 1) == [b"right"]
            halves.update(dict.fromkeys(halves, 0))
            assert await take(ann, 1) == await take(bob, 1) == [b"right"]
            assert await take(cid, 1) == await take(dee, 1) == [b"left"]

    run(play)
    verified(tmp_path, 8)


def test_an_application_that_does_not_read_blocks_no_other_node(tmp_path, monkeypatch):
    monkeypatch.setattr("beforehand.runtime.node.UNREAD_SECONDS", 0.3)
    monkeypatch.setattr("beforehand.runtime.queues.inbox.UNREAD_MAX", 20)
    names = ("ann", "bob", "cid", "dee")
    write_members(tmp_path, names)

    async def play():
        async with opened(tmp_path, names) as (ann, bob, cid, dee):
            await linked(ann, bob, cid, dee)
            sent = [b"%d" % turn for turn in range(60)]

            async def speak():
                for payload in sent:
                    await ann.broadcast(payload)

            speaking = asyncio.ensure_future(speak())
            # In the tree of ann, dee gets what it gets through cid or bob.
            assert await take(dee, 60) == await take(cid, 60) == sent
            await speaking
            await until(lambda: bob.counters.node.unread)
            assert await take(bob, 60) == sent

    run(play)


def test_unread_messages_are_available_after_a_restart(tmp_path):
    write_members(tmp_path, ("ann", "bob"))

    async def play():
        async with overlay(tmp_path, "ann") as ann:
            async with overlay(tmp_path, "bob", inbox=True) as bob:
                await ann.broadcast(b"one")
                await ann.broadcast(b"two")
                message = await anext(bob)
                await bob.acknowledge([message.id])
                await until(lambda: bob.counters.messages.delivered == 2)
            async with overlay(tmp_path, "bob", inbox=True) as bob:
                assert await take(bob, 1) == [b"two"]

    run(play)
    verified(tmp_path, 4)


def test_a_stranger_with_the_key_is_no_member(tmp_path):
    write_members(tmp_path, ("ann", "bob"))
    (tmp_path / "other").mkdir()
    text = (tmp_path / "ring.toml").read_text().replace('"bob"', '"mallory"')
    (tmp_path / "other" / "ring.toml").write_text(text)
    (tmp_path / "other" / "ring.key").write_bytes((tmp_path / "ring.key").read_bytes())
    (tmp_path / "other" / "ring.key").chmod(0o600)

    async def play():
        async with overlay(tmp_path, "ann") as ann, overlay(tmp_path / "other", "mallory") as he:
            await he.broadcast(b"listen to me")
            await until(lambda: ann.counters.node.malformed)
            assert ann.counters.messages.delivered == 0

    run(play)


def test_a_false_claim_of_unsent_messages_silences_no_member(tmp_path):
    names, huge = NAMES[:3], 1 << 60
    forged = Answer((huge,) * 3)
    write_members(tmp_path, names)

    async def play():
        async with opened(tmp_path, names) as (ann, bob, liar):
            await linked(ann, bob, liar)
            liar._vcube._on_ask = lambda source, _, out: out.sends.append((source, forged))
            for frame in (forged, Ask((huge,) * 3), Known(huge)):
                sends = [(name, frame) for name in ("ann", "bob")]
                liar._parts.node.send("cid", sends)
            # The claim without proof costs the link. When the link is back, the liar is asked.
            await until(lambda: ann.counters.node.malformed and bob.counters.node.malformed)
            await linked(ann, bob, liar)
            await ann.broadcast(b"ann is here")
            assert await take(bob, 1) == [b"ann is here"]
            await bob.broadcast(b"so is bob")
            assert await take(ann, 1) == [b"so is bob"]
            assert ann.counters.messages.missed == bob.counters.messages.missed == 0

    run(play)


def test_a_store_of_other_members_is_refused(tmp_path):
    write_members(tmp_path, ("ann", "bob"))

    async def play():
        async with overlay(tmp_path, "ann"):
            pass
        write_members(tmp_path, ("bob", "ann"))
        with pytest.raises(InputError, match="other members, or in another order"):
            await overlay(tmp_path, "ann").open()

    run(play)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("group = 3", "not a valid file"),
        ('group = "x"\nmember = []', "0 members"),
        ('group = "x"\n[[member]]\nname = "ann"\naddress = "a"', "1 members"),
        (
            'group = "x"\n' + '[[member]]\nname = "ann"\naddress = "h:1"\n' * 2,
            "two entries are named `ann`",
        ),
        (
            'group = "x"\n[[member]]\nname = "ann"\naddress = "h:1"\n[[member]]\nname = "bob"\n'
            'address = "h:1"\n',
            "same address",
        ),
        ('group = "x"\n[[member]]\nname = "a"\naddress = ":1"\nport = 3', "not a valid file"),
        (
            'group = "x"\n[[member]]\nname = "ann"\naddress = ":1"\n[[member]]\nname = "bob"\n'
            'address = "h:1"\n',
            "an unreachable address",
        ),
    ],
)
def test_a_file_without_members_is_refused_with_its_path(tmp_path, text, problem):
    (tmp_path / "ring.toml").write_text(text)
    new_group("ring").write(tmp_path / "ring.key")
    with pytest.raises(InputError, match=problem) as caught:
        overlay(tmp_path, "ann")
    assert "ring.toml" in caught.value.where


def test_members_may_be_given_as_json_and_a_name_must_be_one_of_them(tmp_path):
    from beforehand.runtime.members_file import read_members

    toml = read_members(write_members(tmp_path, ("ann", "bob")))
    rows = zip(toml.names, toml.addresses, strict=True)
    listed = ", ".join(f'{{"name": "{name}", "address": "{at}"}}' for name, at in rows)
    (tmp_path / "ring.json").write_text(f'{{"group": "ring", "member": [{listed}]}}')
    assert read_members(tmp_path / "ring.json") == toml
    with pytest.raises(InputError, match="`eve` is not a member"):
        overlay(tmp_path, "eve")
