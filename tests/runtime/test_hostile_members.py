"""A live member of a group or an overlay that holds the key and attacks the others.

Each test is named after the symptom that the attack had. `docs/security.md` lists them.
"""

from __future__ import annotations

import asyncio

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.codec import BYTES_MAX
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.frames import Announce, Push
from beforehand.protocols.vcube.frames import Answer, Known
from beforehand.runtime.config import wall_clock_us
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.group import SKEW_US
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.fixtures.overlays import opened, write_members
from tests.runtime.fixtures.tcp_members import tcp_member

MINUTE_US = 60_000_000


def linked(*members):
    return until(lambda: all(one.peers for one in members))


def send(eve, peer, frame) -> None:
    """Send a frame past the core of `eve`, which would never send it."""
    eve._parts.network.send(peer, [OPPORTUNISTIC.encode(frame)])


def signed(eve, payload: bytes, *, deadline_us: int = 0, stamp_us: int = 0) -> Message:
    """Return a message with a valid proof of `eve`, as its core would never make it."""
    stamp_us = stamp_us or wall_clock_us()
    id = (eve.name, deadline_us or stamp_us + MINUTE_US)
    return eve._core()._proofs.prove(Message(id, (), payload, stamp=stamp_us))


async def check_both_deliver(ann, bob, text: bytes) -> None:
    """Check that two honest members deliver each other's broadcasts."""
    for one, other in ((ann, bob), (bob, ann)):
        await one.broadcast(text)
        assert await take(other, 1) == [text]


def test_a_push_of_exactly_1_mib_ended_every_node_again_at_each_restart(tmp_path):
    """It fitted into its own frame, and with the fields of a data frame into none."""

    async def play():
        async with tcp_member(tmp_path, "ann") as ann, tcp_member(tmp_path, "bob", ann) as bob:
            async with tcp_member(tmp_path, "eve", ann) as eve:
                await linked(ann, bob, eve)
                rest = len(OPPORTUNISTIC.encode(Push((signed(eve, bytes(BYTES_MAX // 2)),))))
                largest = Push((signed(eve, bytes(BYTES_MAX * 3 // 2 - rest)),))
                assert len(OPPORTUNISTIC.encode(largest)) == BYTES_MAX
                send(eve, "ann", largest)
                await until(lambda: ann.counters.messages.refused)
                await check_both_deliver(ann, bob, b"after it")
            assert ann.counters.node.unsendable == bob.counters.node.unsendable == 0
        async with tcp_member(tmp_path, "ann") as ann, tcp_member(tmp_path, "bob", ann) as bob:
            await linked(ann, bob)
            await check_both_deliver(ann, bob, b"after the restart")

    run(play)


def test_2200_names_of_494_bytes_ended_every_node_again_at_each_restart(tmp_path):
    """Their requests, and the version vector after a restart, fitted into no frame."""
    names = [f"{number:06d}" + "\U0001d538" * 122 for number in range(2_200)]
    assert {len(name.encode()) for name in names} == {494}
    deadline_us = wall_clock_us() + 20 * MINUTE_US

    def made_by(name: str) -> Message:
        proofs = Proofs("harbour", Trust(name, new_member(), {}, lambda *_: None).sign, never)
        return proofs.prove(Message((name, deadline_us), (), b"x", stamp=wall_clock_us()))

    async def play():
        async with tcp_member(tmp_path, "ann") as ann, tcp_member(tmp_path, "bob", ann) as bob:
            async with tcp_member(tmp_path, "eve", ann) as eve:
                await linked(ann, bob, eve)
                for start in range(0, len(names), 550):
                    part = names[start : start + 550]
                    ids = frozenset((name, deadline_us + 1) for name in part)
                    send(eve, "ann", Announce(1, ids))
                    send(eve, "ann", Push(tuple(map(made_by, part))))
                await asyncio.gather(*(take(one, len(names)) for one in (ann, bob)))
                with pytest.raises(LocalError, match="2,200 causes"):
                    await ann.broadcast(b"docs/security.md says so")
            assert ann.counters.node.unsendable == bob.counters.node.unsendable == 0
        async with tcp_member(tmp_path, "cid") as cid:
            await cid.broadcast(b"after the restart")  # before it delivers 2,200 causes
            async with (
                tcp_member(tmp_path, "ann", cid) as ann,
                tcp_member(tmp_path, "bob", ann) as bob,
            ):
                assert await take(ann, 1) == await take(bob, 1) == [b"after the restart"]
                await until(lambda: cid.held == len(names) + 1)
                assert ann.counters.node.unsendable == bob.counters.node.unsendable == 0

    run(play)


def never(*_) -> bool:
    return False


def test_a_deadline_at_the_edge_of_the_skew_made_an_honest_member_unheard(tmp_path):
    """The effects of such a message had later deadlines than their origin's clock allows."""

    async def play():
        async with tcp_member(tmp_path, "ann") as ann, tcp_member(tmp_path, "bob", ann) as bob:
            async with tcp_member(tmp_path, "eve", ann) as eve:
                await linked(ann, bob, eve)
                stamp_us = wall_clock_us() + SKEW_US
                latest_us = ann._lifetimes.latest_us(stamp_us)
                edge = signed(eve, b"edge", deadline_us=latest_us, stamp_us=stamp_us)
                send(eve, "ann", Push((edge,)))
                assert await take(ann, 1) == await take(bob, 1) == [b"edge"]
            for text in (b"one", b"two", b"three"):
                await check_both_deliver(ann, bob, text)
            assert ann.counters.messages.refused == bob.counters.messages.refused == 0

    run(play)


HUGE = 1 << 60


@pytest.mark.parametrize("frame", [Known(HUGE), Answer((HUGE,) * 3)], ids=["known", "answer"])
def test_17_bytes_silenced_an_overlay_for_ever(tmp_path, frame):
    """The frame claimed messages that no member had sent, and all waited for them."""
    names = ("ann", "bob", "eve")
    write_members(tmp_path, names)

    async def play():
        async with opened(tmp_path, names) as (ann, bob, eve):
            await until(lambda: all(len(one.peers) == 2 for one in (ann, bob, eve)))
            eve._parts.node.send("eve", [(name, frame) for name in ("ann", "bob")])
            await eve.broadcast(b"I am here")  # it arrives after the frame
            assert await take(ann, 1) == await take(bob, 1) == [b"I am here"]
            await check_both_deliver(ann, bob, b"after it")
            assert ann.counters.messages.missed == bob.counters.messages.missed == 0
        async with opened(tmp_path, names[:2]) as (ann, bob):
            await check_both_deliver(ann, bob, b"after the restart")

    run(play)
