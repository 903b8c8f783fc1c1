"""Attacks by strangers, by an attacker on the path and by members, and their counted effects.

docs/security.md names these tests beside what it promises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.runtime.fixtures.meshes import (
    KEY,
    QUICK,
    Recorder,
    in_the_middle,
    listening,
    run,
    started,
    until,
)

from beforehand.runtime.crypto.handshake import (
    ANSWER_BYTES,
    COOKIE_BYTES,
    DialerHandshake,
    Introduction,
    pad,
    unpad,
)
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.transport import places
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection import drain
from beforehand.runtime.transport.connection.link import FIRST_RECORD_BYTES_MAX, LENGTH_BYTES
from beforehand.runtime.transport.limits import Limits


@pytest.fixture(autouse=True)
def drain_briefly(monkeypatch):
    """Close the connections of strangers after a time that fits into tests."""
    assert drain.DRAIN_SECONDS == (1.0, 5.0)
    monkeypatch.setattr(drain, "DRAIN_SECONDS", (0.05, 0.1))


async def say(address: Address, data: bytes, *, to_the_end: bool = False) -> bytes:
    """Send bytes as a stranger; return the answer to them until the node closes the connection."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        await reader.readexactly(COOKIE_BYTES)
        writer.write(data)
        if to_the_end:
            writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


def against_ann(scene: Callable[[Recorder], Awaitable[None]], limits: Limits = QUICK) -> None:
    """Yield a node under attack, and check afterwards that it still works."""

    async def whole() -> None:
        ann = Recorder("ann", limits=limits)
        async with started(ann):
            await scene(ann)
            bob = Recorder("bob-the-last", ann.address, limits=limits)
            async with started(bob):
                await until(lambda: "bob-the-last" in ann.linked() and bob.linked())

    run(whole())


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"b" * 5, b"\n"])
def test_a_peer_without_the_group_secret_gets_no_reply(data):
    async def scene(ann: Recorder) -> None:
        assert await say(ann.address, data, to_the_end=True) == b""
        assert ann.counters.no_key + ann.counters.wrong_key == 1
        assert ann.events == []

    against_ann(scene)


def test_a_peer_that_connects_and_hangs_up_is_counted():
    async def scene(ann: Recorder) -> None:
        _, writer = await asyncio.open_connection(ann.address.host, ann.address.port)
        writer.close()
        await writer.wait_closed()
        await until(lambda: ann.counters.no_key == 1)

    against_ann(scene)


def test_a_silent_connection_is_closed():
    async def scene(ann: Recorder) -> None:
        assert await say(ann.address, b"half a hello") == b""
        assert ann.counters.slow_handshake == 1

    against_ann(scene, Limits(handshake_seconds=0.2))


def test_another_protocol_version_is_reported_as_such():
    async def scene(ann: Recorder) -> None:
        assert await say(ann.address, b"bfh\n\x01" + bytes(60)) == b""
        assert ann.counters.another_version == 1
        assert "version 1" in ann.mesh.disconnects()[-1].problem

    against_ann(scene)


@pytest.mark.parametrize(
    "rotated", [KEY.rotate(is_quiet=True), msgspec.structs.replace(KEY, name="port")]
)
def test_a_peer_with_another_or_a_rotated_secret_gets_no_reply(rotated):
    async def scene(ann: Recorder) -> None:
        old = Recorder("old", ann.address, key=rotated)
        async with started(old):
            await until(lambda: ann.counters.wrong_key >= 2 and old.counters.turned_away >= 2)
            assert ann.events == old.events == []
            assert "before a rotation" in ann.mesh.disconnects()[-1].problem
            assert "another secret" in old.mesh.disconnects()[-1].problem
        # The other way round: the one with the old secret is called.
        old = Recorder("old", key=rotated)
        async with started(old):
            ann.mesh._dialer.add(old.address)
            await until(lambda: old.counters.wrong_key and ann.counters.turned_away)
        assert ann.events == []

    against_ann(scene)


async def recorded_link(ann: Recorder) -> tuple[Recorder, bytes, bytes]:
    """Return bob, who had a link to ann, and the bytes that he and ann sent on it."""
    async with in_the_middle(ann.address) as (proxy, address):
        bob = Recorder("bob", address)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            bob.mesh.send("ann", [b"once"])
            await until(lambda: ann.frames)
        await until(lambda: not ann.linked())
    return bob, proxy.connections[0][True], proxy.connections[0][False]


def test_a_replayed_connection_is_refused():
    async def scene(ann: Recorder) -> None:
        bob, said, answered = await recorded_link(ann)
        assert await say(ann.address, said) == b""
        assert ann.counters.wrong_key == 1
        # To the dialer: what was said then answers another hello.
        async with listening(lambda _, writer: _play(writer, answered)) as address:
            back = Recorder("bob", address, member=bob.member)
            async with started(back):
                await until(lambda: back.counters.wrong_key)
                assert back.events == []
        assert ann.frames == [("bob", b"once")]

    against_ann(scene)


def test_a_recorded_hello_replayed_to_another_node_drew_181_bytes():
    async def scene(ann: Recorder) -> None:
        _, said, _ = await recorded_link(ann)
        carol = Recorder("carol", limits=QUICK)
        async with started(carol):
            for replayed in (said, said[:48]):
                assert await say(carol.address, replayed) == b""
            assert carol.counters.wrong_key == 2
            assert carol.events == []

    against_ann(scene)


def test_66_replayed_hellos_kept_a_member_out_for_16_seconds(monkeypatch):
    """Each replay held a place among the handshakes until its time was up."""
    monkeypatch.setattr(drain, "DRAIN_SECONDS", (60.0, 60.0))

    async def scene(ann: Recorder) -> None:
        _, said, _ = await recorded_link(ann)
        carol = Recorder("carol", limits=Limits(backoff_min_seconds=0.02, handshake_seconds=60))
        async with started(carol):
            place = carol.address.host, carol.address.port
            opened = [await asyncio.open_connection(*place) for _ in range(66)]
            for _, writer in opened:
                writer.write(said[:48])
            await until(lambda: carol.counters.wrong_key + carol.counters.too_many_connections > 65)
            assert carol.counters.wrong_key >= 48
            dan = Recorder("dan", carol.address)
            async with started(dan):
                await until(lambda: carol.linked() == {"dan"})
                assert dan.counters.turned_away == 0
            for _, writer in opened:
                writer.transport.abort()
            await asyncio.sleep(0)

    against_ann(scene)


def test_a_stranger_is_read_and_closed_after_a_random_time(monkeypatch):
    monkeypatch.setattr(drain, "DRAIN_SECONDS", (0.2, 0.4))

    async def scene(ann: Recorder) -> None:
        time = asyncio.get_running_loop().time
        began = time()
        assert await say(ann.address, bytes(1000)) == b""
        assert time() - began >= 0.2
        assert ann.counters.wrong_key == 1
        await until(lambda: not ann.mesh._open)

    against_ann(scene)


def test_strangers_that_are_read_are_bounded_in_number_and_bytes(monkeypatch):
    monkeypatch.setattr(drain, "DRAIN_SECONDS", (60.0, 60.0))
    monkeypatch.setattr(drain, "DRAIN_BYTES_MAX", 1 << 16)
    monkeypatch.setattr(places, "DRAINING_MAX", 2)

    async def scene(ann: Recorder) -> None:
        place = ann.address.host, ann.address.port
        opened = [await asyncio.open_connection(*place) for _ in range(4)]
        for _, writer in opened:
            writer.write(bytes(48))
        await until(lambda: ann.counters.wrong_key == 4)
        await until(lambda: len(ann.mesh._open) == 2)
        for _, writer in opened:
            writer.write(bytes(1 << 17))
        await until(lambda: not ann.mesh._open)
        for _, writer in opened:
            writer.transport.abort()
        await asyncio.sleep(0)

    against_ann(scene)


async def _play(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
    await asyncio.sleep(0.05)


def flip(unit: bytes) -> list[bytes]:
    return [unit[:-1] + bytes([unit[-1] ^ 1])]


ON_THE_PATH = {
    "altered": flip,
    "left out": lambda _: [],
    "doubled": lambda unit: [unit, unit],
    "longer": lambda unit: [(len(unit) - 3).to_bytes(4, "little"), unit[4:]],
    "shorter": lambda unit: [(len(unit) - 5).to_bytes(4, "little"), unit[4:]],
    "noise before": lambda unit: [b"\x14\0\0\0" + bytes(20), unit],
    "empty before": lambda unit: [bytes(4), unit],
}


@pytest.mark.parametrize("attack", list(ON_THE_PATH))
@pytest.mark.parametrize("target", [1, 2, 5])
def test_tampered_records_end_the_link_and_deliver_nothing(attack, target):
    """Of the records of the dialer, the introduction among them; then the path is left alone."""
    attacked: list[int] = []

    def change(is_dialers: bool, number: int, unit: bytes) -> list[bytes]:
        if is_dialers and number == target and not attacked:
            attacked.append(number)
            return ON_THE_PATH[attack](unit)
        return [unit]

    limits = Limits(handshake_seconds=0.3, backoff_min_seconds=0.02)

    async def scene(ann: Recorder) -> None:
        def refusals() -> int:
            # An introduction that never comes is waited for, and nothing comes after it.
            return ann.counters.altered + (target == 1 and ann.counters.slow_handshake)

        async with in_the_middle(ann.address, change) as (_, address):
            bob = Recorder("bob", address)
            async with started(bob):
                await until(lambda: bob.linked() or refusals())
                for number in range(10):
                    if not refusals():
                        bob.mesh.send("ann", [b"%d" % number])
                        await asyncio.sleep(0.01)
                await until(refusals)
                got = [int(frame) for _, frame in ann.frames]
                assert got == list(range(max(target - 2 + (attack == "doubled"), 0)))
                await until(lambda: ann.linked() and bob.linked())
                bob.mesh.send("ann", [b"again"])
                await until(lambda: ann.frames and ann.frames[-1] == ("bob", b"again"))
                assert refusals() == 1

    against_ann(scene, limits)


def test_reordered_records_end_the_link():
    held: list[bytes] = []

    def swap(is_dialers: bool, number: int, unit: bytes) -> list[bytes]:
        if is_dialers and number == 2:
            held.append(unit)
            return []
        if is_dialers and number == 3 and len(held) == 1:
            return [unit, held[0]]
        return [unit]

    async def scene(ann: Recorder) -> None:
        async with in_the_middle(ann.address, swap) as (_, address):
            bob = Recorder("bob", address)
            async with started(bob):
                await until(lambda: bob.linked())
                for number in (b"1", b"2"):
                    bob.mesh.send("ann", [number])
                    await asyncio.sleep(0.02)
                await until(lambda: ann.counters.altered == 1)
                assert ann.frames == []

    against_ann(scene)


def test_a_truncated_stream_is_distinguished_from_a_goodbye():
    cut: list[bytes] = []

    def stop(is_dialers: bool, number: int, unit: bytes) -> list[bytes] | None:
        if is_dialers and number == 3 and not cut:
            cut.append(unit)
            return None
        if is_dialers and number == 2 and not cut:
            return [unit, b"\x40\0\0\0half a record"]
        return [unit]

    async def scene(ann: Recorder) -> None:
        async with in_the_middle(ann.address, stop) as (_, address):
            bob = Recorder("bob", address)
            async with started(bob):
                await until(lambda: bob.linked())
                for number in (b"1", b"2"):
                    bob.mesh.send("ann", [number])
                    await asyncio.sleep(0.02)
                await until(lambda: ann.counters.truncated == 1)
                assert ann.frames == [("bob", b"1")]
                assert bob.counters.broken == 1

    against_ann(scene)


def test_a_tampered_hello_is_refused_on_both_ends():
    for is_dialers in (True, False):

        def change(way: bool, number: int, unit: bytes, wanted: bool = is_dialers) -> list[bytes]:
            return flip(unit) if number == 0 and way == wanted else [unit]

        async def scene(ann: Recorder, change=change, wanted: bool = is_dialers) -> None:
            async with in_the_middle(ann.address, change) as (_, address):
                bob = Recorder("bob", address)
                async with started(bob):
                    refusing = ann if wanted else bob
                    await until(lambda: refusing.counters.wrong_key)
                    assert ann.events == bob.events == []

        against_ann(scene)


def test_no_peer_can_take_the_name_of_a_known_member():
    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            eve = Recorder("bob", ann.address)
            async with started(eve):
                await until(lambda: ann.counters.wrong_name >= 2)
                assert ann.events == [("bob", True)]
                assert eve.events == []
                told = [ending.problem for ending in eve.mesh.disconnects()]
                assert "the other end closed the connection, giving the reason: wrong_name" in told
            bob.mesh.send("ann", [b"still me"])
            await until(lambda: ann.frames == [("bob", b"still me")])
        assert ann.bound == {"bob": bob.member.public}
        assert ann.trust.counters.wrong_key >= 2

    against_ann(scene)


def test_no_peer_can_take_the_name_of_the_node_itself():
    async def scene(ann: Recorder) -> None:
        eve = Recorder("ann", ann.address)
        async with started(eve):
            await until(lambda: ann.counters.wrong_name or eve.counters.wrong_name)
            assert ann.events == eve.events == []
            assert ann.counters.own_address == 0

    against_ann(scene)


async def greet(address: Address, handshake: DialerHandshake):
    """Connect as a member without a mesh; return its streams and their AEAD states."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(handshake.on_cookie(await reader.readexactly(COOKIE_BYTES)))
    sealer, opener = handshake.on_answer(await reader.readexactly(ANSWER_BYTES))
    return reader, writer, sealer, opener


def record(sealed: bytes) -> bytes:
    return len(sealed).to_bytes(4, "little") + sealed


def test_an_identity_without_its_private_key_is_refused():
    async def scene(ann: Recorder) -> None:
        eve, bob = new_member(), new_member()
        handshake = DialerHandshake(KEY, "bob", eve)
        reader, writer, sealer, _ = await greet(ann.address, handshake)
        said = msgspec.msgpack.decode(unpad(handshake.introduction()), type=Introduction)
        forged = msgspec.structs.replace(said, public=bob.public)
        writer.write(record(sealer.seal(b"\1" + pad(msgspec.msgpack.encode(forged)))))
        await reader.read()
        writer.transport.abort()
        await until(lambda: ann.counters.forged == 1)
        assert ann.bound == {}
        assert ann.events == []

    against_ann(scene)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\2", b"\3\1\0\0\0\1\0\0\0x", b"\5", b"\6", b"\x63", b"\7", b"\1", b"\1\x93"],
)
def test_an_out_of_state_frame_ends_the_connection(content):
    async def scene(ann: Recorder) -> None:
        handshake = DialerHandshake(KEY, "Zoe", new_member())  # the smaller of the two
        for is_introduced in (False, True):
            handshake = DialerHandshake(KEY, "Zoe", new_member())
            reader, writer, sealer, _ = await greet(ann.address, handshake)
            if is_introduced:
                writer.write(record(sealer.seal(b"\1" + handshake.introduction())))
                if content == b"\2":
                    writer.write(record(sealer.seal(content)))  # may decide, but once
            writer.write(record(sealer.seal(content)))
            await reader.read()
            writer.transport.abort()
        await until(lambda: ann.counters.malformed == 2)
        assert ann.frames == []

    against_ann(scene)


def test_a_peer_that_takes_the_decision_of_the_other_end_loses_the_connection():
    async def scene(ann: Recorder) -> None:
        handshake = DialerHandshake(KEY, "zoe", new_member())
        reader, writer, sealer, _ = await greet(ann.address, handshake)
        writer.write(record(sealer.seal(b"\1" + handshake.introduction())))
        writer.write(record(sealer.seal(b"\2")))
        await reader.read()
        writer.transport.abort()
        await until(lambda: ann.counters.malformed == 1)

    against_ann(scene)


def test_a_flood_closes_the_link_and_bans_its_sender_for_a_while():
    limits = Limits(frames_per_second_max=1000, backoff_max_seconds=0.5, backoff_min_seconds=0.02)

    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address, limits=limits)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            time = asyncio.get_running_loop().time
            began = time()
            bob.mesh.send("ann", [b"x"] * 1500)
            await until(lambda: len(ann.frames) == 1500)
            assert ann.linked() == {"bob"}  # a burst is no flood
            for _ in range(20):
                bob.mesh.send("ann", [b"x"] * 1000)
                await asyncio.sleep(0)
            await until(lambda: ann.counters.flood == 1 and not bob.linked())
            assert len(ann.frames) <= 2500 + 1000 * (time() - began)
            await until(lambda: ann.counters.shunned)
            await until(lambda: ann.linked() and bob.linked())
            assert ann.events == [("bob", True), ("bob", False), ("bob", True)]

    against_ann(scene, limits)


def test_a_flood_of_records_without_frames_counts_too():
    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            for _ in range(3000):
                bob.mesh._links["ann"].ping()
            await until(lambda: ann.counters.flood == 1)

    against_ann(scene, Limits(frames_per_second_max=1000, backoff_max_seconds=0.3))


def test_a_frame_that_is_too_large_costs_the_link():
    small = Limits(frame_bytes_max=1000, backoff_max_seconds=0.3)

    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address)
        async with started(bob):
            for turn, frame in enumerate((bytes(1001), bytes(1 << 20)), 1):
                await until(lambda: ann.linked() and bob.linked())
                bob.mesh.send("ann", [b"good"])
                bob.mesh.send("ann", [frame])
                await until(lambda turn=turn: ann.counters.too_large == turn)
            assert set(ann.frames) <= {("bob", b"good")}

    against_ann(scene, small)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(FIRST_RECORD_BYTES_MAX + 1, id="one too many"),
        pytest.param(2**32 - 1, id="all that can be written"),
    ],
)
def test_a_length_of_four_gigabytes_reserves_nothing(size):
    async def scene(ann: Recorder) -> None:
        handshake = DialerHandshake(KEY, "zoe", new_member())
        reader, writer, _, _ = await greet(ann.address, handshake)
        writer.write(size.to_bytes(LENGTH_BYTES, "little"))
        await reader.read()
        writer.transport.abort()
        assert ann.counters.too_large == 1

    against_ann(scene, Limits(handshake_seconds=3, backoff_min_seconds=0.02))


def test_a_dead_peer_is_detected_by_both_ends_and_an_idle_one_stays():
    limits = Limits(heartbeat_seconds=0.1, silence_seconds=2, backoff_min_seconds=0.02)

    async def scene(ann: Recorder) -> None:
        async with in_the_middle(ann.address) as (proxy, address):
            bob = Recorder("bob", address, limits=limits)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())
                await asyncio.sleep(1.25 * limits.silence_seconds)
                assert ann.events == [("bob", True)]  # heartbeats alone
                proxy.is_deaf = True
                await until(lambda: ann.counters.silent == 1 and bob.counters.silent == 1)
                assert ann.events[-1] == ("bob", False)

    against_ann(scene, limits)


def test_a_slow_reader_is_disconnected_and_stalls_no_other_peer():
    limits = Limits(frame_bytes_max=100_000, queue_bytes_max=1_000_000, backoff_max_seconds=0.3)

    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address, limits=limits)
        slow = Recorder("slow", ann.address, limits=limits)
        async with started(bob, slow):
            await until(lambda: ann.linked() == {"bob", "slow"} and bob.linked() and slow.linked())
            slow.mesh.pause("ann")
            sent = 0
            for sent in range(1, 2000):
                for peer in ("slow", "bob"):
                    ann.mesh.send(peer, [bytes(50_000)])
                    assert ann.mesh.room(peer) >= 0
                await until(lambda sent=sent: len(bob.frames) == sent)  # at its own speed
                if ann.counters.overflow:
                    break
            assert ann.counters.overflow == 1
            assert ("slow", False) in ann.events
            assert ("bob", False) not in ann.events
            assert slow.frames == []

    against_ann(scene, limits)


def test_a_peer_that_requests_and_never_reads_is_answered_once():
    async def scene(ann: Recorder) -> None:
        bob = Recorder("bob", ann.address)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            theirs, ours = bob.mesh._links["ann"], ann.mesh._links["bob"]
            ours.pause_writing()  # as the transport says when what it holds does not leave
            before_in, before_out = ours.bytes_in, ours.bytes_out
            for _ in range(1000):
                theirs.ping()
            await until(lambda: ours.bytes_in - before_in >= 1000 * 21)
            ours.beat()
            assert ours.bytes_out == before_out
            ours.resume_writing()
            assert ours.bytes_out - before_out == 4 + 1 + 16

    against_ann(scene)


def test_connections_of_strangers_keep_no_member_out():
    limits = Limits(handshakes_max=5, connections_per_address_max=20, backoff_min_seconds=0.02)

    async def scene(ann: Recorder) -> None:
        host, port = ann.address.host, ann.address.port
        opened = [await asyncio.open_connection(host, port) for _ in range(12)]
        await until(lambda: ann.counters.too_many_connections == 8)
        assert len(ann.mesh._open) == 4  # the fifth place is for known addresses
        bob = Recorder("bob", ann.address)
        async with started(bob):
            await until(lambda: ann.linked() and bob.linked())
            assert ann.counters.slow_handshake == 0  # nobody had to wait for their time to be up
            assert bob.counters.turned_away == 0
        for _, writer in opened:
            writer.transport.abort()
        await asyncio.sleep(0)

    against_ann(scene, limits)


def test_one_address_takes_no_more_than_its_share_and_no_node_more_than_it_can():
    limits = Limits(connections_per_address_max=3, connections_max=2, backoff_min_seconds=0.02)

    async def scene() -> None:
        ann = Recorder("ann", limits=limits)
        async with started(ann):
            others = [Recorder(f"n{n}", ann.address) for n in range(5)]
            async with started(*others):
                await until(lambda: ann.counters.too_many_connections >= 5)
                assert len(ann.linked()) == 2
                assert len(ann.mesh._open) <= 5
                told = [e.problem for other in others for e in other.mesh.disconnects()]
                assert any("too_many_connections" in problem for problem in told)
            await until(lambda: not ann.linked())
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() == {"bob"})

    run(scene())
