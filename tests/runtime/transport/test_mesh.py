"""Meshes on loopback: links come up, carry frames, go down and come back, one for each pair."""

from __future__ import annotations

import asyncio
import gc
import math
import socket
from contextlib import suppress

import pytest
from tests.runtime.fixtures.meshes import LOCAL, QUICK, Recorder, in_the_middle, run, started, until

from beforehand.errors import InputError, LocalError
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.limits import Limits


def free_port() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address(*server.getsockname())


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_two_members_are_linked_and_frames_arrive_in_order_and_unchanged():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() == {"bob"} and bob.linked() == {"ann"})
                sent = [bytes([n % 251]) * (n % 700 + 1) for n in range(2000)]
                sent.append(b"x" * (1 << 20))
                bob.mesh.send("ann", sent)
                ann.mesh.send("bob", [b"hello"])
                ann.mesh.send("carol", [b"nobody"])
                await until(lambda: len(ann.frames) == len(sent) and bob.frames)
                assert [frame for _, frame in ann.frames] == sent
                assert bob.frames == [("ann", b"hello")]
                (peer,) = ann.mesh.peers()
                assert (peer.name, peer.frames_in, peer.frames_out) == ("bob", len(sent), 1)
                assert peer.bytes_in > sum(map(len, sent))
                assert not peer.is_dialed
                assert peer.since_us > 1_700_000_000_000_000
            await until(lambda: not ann.linked())
            assert ann.events == [("bob", True), ("bob", False)]
            assert ann.bound == {"bob": bob.member.public}
            assert ann.mesh.disconnects() == []  # a goodbye is no fault

    run(scene())


@pytest.mark.parametrize("names", [("ann", "bob"), ("bob", "ann")])
def test_when_both_ends_dial_both_keep_the_same_one(names):
    async def scene() -> None:
        ports = [free_port(), free_port()]
        ends = [Recorder(name, *ports, listen=own) for name, own in zip(names, ports, strict=True)]
        async with started(*ends):
            first, second = ends
            await until(lambda: first.linked() and second.linked())
            # Each has dialed itself too, and has given that up for good.
            await until(lambda: first.counters.own_address and second.counters.own_address)
            await asyncio.sleep(0.3)
            (one,), (two,) = first.mesh.peers(), second.mesh.peers()
            assert one.is_dialed != two.is_dialed
            first.mesh.send(second.name, [b"over the one"])
            await until(lambda: second.frames)
            for end in ends:
                assert len(end.mesh._open) == 1
                assert end.counters.own_address == 2  # once dialed, once called
                assert end.counters.links == 1, end.mesh.disconnects()

    run(scene())


def test_many_members_that_start_together_are_linked_pairwise():
    async def scene() -> None:
        ports = [free_port() for _ in range(6)]
        ends = [Recorder(f"n{n}", *ports, listen=own) for n, own in enumerate(ports)]
        async with started(*ends):
            await until(lambda: all(len(end.linked()) == 5 for end in ends))
            for end in ends:
                end.mesh.send("n0", [end.name.encode()])
            await until(lambda: len(ends[0].frames) == 5)
            assert all(peer.encode() == frame for peer, frame in ends[0].frames)

    run(scene())


def test_a_member_that_restarts_is_linked_again():
    async def scene() -> None:
        ann = Recorder("ann", listen=free_port())
        bob = Recorder("bob", Address(ann.mesh._listen[0].host, ann.mesh._listen[0].port))
        async with started(bob):
            for turn in range(3):
                ann = Recorder("ann", listen=ann.mesh._listen[0], member=ann.member)
                async with started(ann):
                    await until(lambda: bob.linked() == {"ann"})
                    ann.mesh.send("bob", [b"%d" % turn])
                    await until(lambda: len(bob.frames) == turn + 1)  # noqa: B023
                await until(lambda: not bob.linked())
            assert bob.events == [("ann", True), ("ann", False)] * 3

    run(scene())


@pytest.mark.parametrize("names", [("ann", "bob"), ("bob", "ann")])
@pytest.mark.parametrize("is_dialer_back", [True, False])
def test_a_new_connection_replaces_one_that_has_died_unnoticed(names, is_dialer_back):
    """One end reconnects after the path dropped everything; the other end noticed nothing."""
    limits = Limits(heartbeat_seconds=0.2, silence_seconds=60, backoff_min_seconds=0.02)

    async def scene() -> None:
        lost = Recorder(names[0], limits=limits)
        async with started(lost), in_the_middle(lost.address) as (proxy, address):
            first = Recorder(names[1], address, limits=limits)
            async with started(first):
                await until(lambda: lost.linked() and first.linked())
                proxy.is_deaf = True
                direct = lost.address if is_dialer_back else free_port()
                peers = [direct] if is_dialer_back else []
                listen = LOCAL if is_dialer_back else direct
                back = Recorder(names[1], *peers, limits=limits, member=first.member, listen=listen)
                async with started(back):
                    if not is_dialer_back:
                        lost.mesh._dialer.add(direct)
                    await until(lambda: len(lost.events) == 3 and back.linked())
                    back.mesh.send(names[0], [b"here again"])
                    await until(lambda: lost.frames == [(names[1], b"here again")])
                    assert lost.counters.replaced == 1

    run(scene())


def test_a_second_process_with_the_same_key_does_not_take_a_living_link_away():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", ann.address)
            twin = Recorder("bob", ann.address, member=bob.member)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())
                async with started(twin):
                    await until(lambda: ann.counters.redundant >= 2)
                    assert ann.events == [("bob", True)]
                    assert bob.linked() == {"ann"}

    run(scene())


def test_nothing_comes_while_reading_is_paused_and_all_of_it_after():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())

                def stop_at_ten(peer: str, frame: bytes) -> None:
                    if len(ann.frames) == 10:
                        ann.mesh.pause("bob")

                ann.on_frame = stop_at_ten
                sent = [b"%d" % n for n in range(1000)]
                bob.mesh.send("ann", sent)
                await until(lambda: len(ann.frames) >= 10)
                bob.mesh.send("ann", [b"more"])
                await asyncio.sleep(0.05)
                assert len(ann.frames) == 10
                ann.on_frame = lambda *_: None
                ann.mesh.resume("bob")
                assert len(ann.frames) == 10  # never from within
                await until(lambda: len(ann.frames) == 1001)
                assert [frame for _, frame in ann.frames] == [*sent, b"more"]

    run(scene())


def test_pausing_and_resuming_within_a_frame_keeps_the_order():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())

                def blink(peer: str, frame: bytes) -> None:
                    ann.mesh.pause("bob")
                    ann.mesh.resume("bob")

                ann.on_frame = blink
                sent = [b"%d" % n for n in range(1000)]
                for frame in sent:
                    bob.mesh.send("ann", [frame])
                await until(lambda: len(ann.frames) == 1000)
                assert [frame for _, frame in ann.frames] == sent

    run(scene())


def test_a_link_can_be_cut_from_within_a_frame_and_nothing_follows():
    async def scene() -> None:
        ann = Recorder("ann", limits=Limits(backoff_max_seconds=60))
        async with started(ann):
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())
                ann.on_frame = lambda peer, _: ann.mesh.cut(peer, "not a frame of ours")
                bob.mesh.send("ann", [b"1", b"2", b"3"])
                await until(lambda: bob.counters.turned_away >= 2)
                assert ann.frames == [("bob", b"1")]
                assert ann.events == [("bob", True), ("bob", False)]
                assert ann.counters.unwanted == 1
                told = [ending.problem for ending in bob.mesh.disconnects()]
                assert "the other end closed the connection, giving the reason: unwanted" in told
                assert "the other end closed the connection, giving the reason: shunned" in told

    run(scene())


def test_the_mesh_reports_the_free_room_of_a_queue_and_its_growth():
    limits = Limits(frame_bytes_max=100_000, queue_bytes_max=1_000_000)

    async def scene() -> None:
        ann = Recorder("ann", limits=limits)
        async with started(ann):
            bob = Recorder("bob", ann.address, limits=limits)
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())
                assert bob.mesh.room("ann") == 1_000_000
                assert bob.mesh.room("nobody") == 0
                ann.mesh.pause("bob")
                sent = 0
                while bob.mesh.room("ann") > 400_000:
                    bob.mesh.send("ann", [bytes(50_000)])
                    sent += 1
                    await asyncio.sleep(0)
                assert bob.rooms == []
                ann.mesh.resume("bob")
                await until(lambda: bob.rooms == ["ann"])
                assert bob.mesh.room("ann") >= 500_000
                await until(lambda: len(ann.frames) == sent)

    run(scene())


def test_invalid_frames_are_an_error_of_the_caller():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            for frame in (b"", bytes((1 << 20) + 1)):
                with pytest.raises(LocalError, match="a frame of"):
                    ann.mesh.send("bob", [b"good", frame])
            ann.mesh.send("bob", [])

    run(scene())


def test_a_taken_port_is_reported_and_nothing_is_left_open():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", listen=ann.address)
            with pytest.raises(InputError, match="cannot listen") as found:
                await bob.mesh.start()
            assert found.value.where == str(ann.address)

    run(scene())


def test_an_unused_address_costs_occasional_attempts():
    async def scene() -> None:
        bob = Recorder("bob", free_port(), free_port())
        async with started(bob):
            await until(lambda: bob.counters.unreachable >= 4)
            time, before = asyncio.get_running_loop().time, bob.counters.unreachable
            began = time()
            await asyncio.sleep(1)
            attempts = (time() - began) / (QUICK.backoff_max_seconds / 2) + 1
            assert bob.counters.unreachable <= before + 2 * attempts

    run(scene())


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 on loopback")
def test_a_member_with_a_taken_name_reconnected_several_times_a_second_for_ever():
    """The member with the smaller name considers a link up before the other end has checked that
    name."""

    async def scene() -> None:
        limits = Limits(backoff_min_seconds=0.02, backoff_max_seconds=30)
        bob = Recorder("bob")
        async with started(bob):
            ann = Recorder("ann", bob.address)
            async with started(ann):
                await until(lambda: bob.linked() == {"ann"})
                other = Recorder("ann", bob.address, limits=limits)
                async with started(other):
                    time = asyncio.get_running_loop().time
                    began = time()
                    await until(lambda: other.counters.turned_away)
                    await asyncio.sleep(1.0)
                    # Each pause is twice as long as the one before.
                    assert other.counters.turned_away <= 7 + math.log2(time() - began)

    run(scene())


def test_links_go_over_ipv6():
    async def scene() -> None:
        ann = Recorder("ann", listen=Address("::1", 0))
        async with started(ann):
            assert str(ann.address).startswith("[::1]:")
            bob = Recorder("bob", Address.parse(str(ann.address)), listen=Address("::1", 0))
            async with started(bob):
                await until(lambda: ann.linked() and bob.linked())
                bob.mesh.send("ann", [b"six"])
                await until(lambda: ann.frames == [("bob", b"six")])

    run(scene())


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 on loopback")
def test_a_node_listening_on_all_addresses_is_reachable_over_ipv4_and_ipv6():
    async def scene() -> None:
        ann = Recorder("ann", listen=Address("", 0))
        async with started(ann):
            four, six = ann.mesh.addresses()
            assert (four.host, six.host, four.port) == ("0.0.0.0", "::", six.port)
            for host in ("127.0.0.1", "::1"):
                bob = Recorder("bob", Address(host, four.port), member=new_member())
                ann.trust._keys.pop("bob", None)
                async with started(bob):
                    await until(lambda: ann.linked() and bob.linked())  # noqa: B023
                await until(lambda: not ann.linked())

    run(scene())


@pytest.mark.parametrize("turns", range(6))
def test_connections_to_a_closing_mesh_are_closed(turns):
    async def scene() -> None:
        ann = Recorder("ann")
        with socket.socket() as late:
            async with started(ann):
                late.connect((ann.address.host, ann.address.port))
                for _ in range(turns):
                    await asyncio.sleep(0)
            assert not ann.mesh._open
            late.settimeout(0)  # it is over, and not only going to be
            with suppress(ConnectionResetError):
                while late.recv(64):  # the cookie, if it was let in before the end
                    pass

    run(scene())
    gc.collect()  # a transport that was left open says so
