"""A member names members by their keys, and accepts nothing of a key that it has blocked."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.fixtures.tcp_members import tcp_member


def test_a_blocked_key_gets_no_link_and_delivers_nothing_also_after_a_restart(tmp_path):
    async def play():
        ann = tcp_member(tmp_path, "ann")
        async with ann, tcp_member(tmp_path, "bob", ann) as bob:
            await until(lambda: ann.peers and bob.peers)
            key = bob.key
            assert [peer.key for peer in ann.peers] == [key]
            assert (ann.key_of("bob"), ann.key_of("eve")) == (bob.key, None)
            await bob.broadcast(b"one")
            assert await take(ann, 1) == [b"one"]
            await ann.block(bob.key)
            await until(lambda: ann.counters.links.blocked >= 2 and not ann.peers)
            # Another member forwards a message of bob; it is refused, and the link stays.
            async with tcp_member(tmp_path, "carol", ann, bob) as carol:
                await bob.broadcast(b"two")
                assert b"two" in await take(carol, 2)
                await until(lambda: ann.counters.trust.blocked)
                await carol.broadcast(b"three")
                assert [peer.name for peer in ann.peers] == ["carol"]
        async with tcp_member(tmp_path, "ann") as ann:
            assert ann.blocked == [key]
            async with tcp_member(tmp_path, "bob", ann) as bob:
                await until(lambda: ann.counters.links.blocked)
                assert not ann.peers
                await ann.unblock(bob.key)
                await until(lambda: ann.peers)
                assert b"two" in await take(ann, 1)

    run(play)


@pytest.mark.parametrize("key", ["", "xyz", "00" * 31, None, b"x", "00" * 33])
def test_a_text_that_is_no_public_key_is_not_blocked(tmp_path, key):
    async def play():
        async with tcp_member(tmp_path, "ann") as ann:
            with pytest.raises(InputError, match="not a public key"):
                await ann.block(key)
            with pytest.raises(InputError, match="cannot block its own key"):
                await ann.block(ann.key)
            assert ann.blocked == []

    run(play)
