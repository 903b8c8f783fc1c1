"""Members on one network find each other, and their announcements reveal nothing to others."""

from __future__ import annotations

import asyncio

import ifaddr
import pytest
from tests.runtime.fixtures.meshes import KEY, Recorder, run, started, until
from zeroconf import NotRunningException, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from beforehand.runtime.config import wall_clock_us
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.transport import discovery
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.discovery import (
    NONCE_BYTES,
    SERVICE,
    Discovery,
    instance_name,
    local_hosts,
    secret_of,
)

LOOPBACK = ["127.0.0.1"]


async def multicast_works() -> None:
    """Skip, and say so, where loopback carries no multicast."""
    try:
        network = AsyncZeroconf(interfaces=LOOPBACK)
    except OSError as error:
        pytest.skip(f"no multicast DNS on loopback here: {error}")
    await network.async_close()


NOW_US = 10**15


def test_only_a_holder_of_the_secret_recognises_an_announcement():
    nonce = bytes(NONCE_BYTES)
    name = instance_name(KEY, nonce, NOW_US)
    assert secret_of(KEY, name) == KEY.newest
    assert len(name) == 49  # one label of DNS has 63 at most
    assert secret_of(new_group(KEY.name), name) is None
    assert secret_of(KEY.rotate(is_quiet=True), name) is None
    for wrong in ("", "x", name[:-1], name + "0", name.upper(), "é" * 16 + name[16:], "-" + name):
        assert secret_of(KEY, wrong) is None
    assert KEY.name not in name
    other = instance_name(KEY, b"\1" * NONCE_BYTES, NOW_US)
    assert other.partition("-")[2] != name.partition("-")[2]


def test_members_with_old_and_new_secret_recognise_each_other_during_an_overlap():
    new, nonce = KEY.rotate(10**9), bytes(NONCE_BYTES)
    now_us = new.made_us
    assert secret_of(KEY, instance_name(new, nonce, now_us)) == KEY.newest
    assert secret_of(new, instance_name(KEY, nonce, now_us)) == new.older[0]
    assert secret_of(new, instance_name(new, nonce, now_us)) == new.newest
    # After the overlap the old secret is not announced, and still recognised.
    assert secret_of(KEY, instance_name(new, nonce, now_us + 2 * 10**9)) is None
    assert secret_of(new, instance_name(KEY, nonce, now_us)) in new.ended(now_us + 2 * 10**9)


def test_the_second_tag_does_not_show_whether_a_rotation_is_under_way():
    nonce = bytes(NONCE_BYTES)
    tags = {instance_name(KEY, nonce, NOW_US)[-16:] for _ in range(20)}
    assert len(tags) == 20
    assert len(instance_name(KEY.rotate(10**12), nonce, NOW_US)) == 49


def test_members_find_each_other_and_not_another_group():
    async def scene() -> None:
        await multicast_works()
        options = {"discover": True, "interfaces": LOOPBACK}
        ann, bob = Recorder("ann", **options), Recorder("bob", **options)
        eve = Recorder("eve", key=new_group("harbour"), **options)
        async with started(ann, bob, eve):
            await until(lambda: ann.linked() == {"bob"} and bob.linked() == {"ann"})
            ann.mesh.send("bob", [b"found"])
            await until(lambda: bob.frames == [("ann", b"found")])
            await asyncio.sleep(0.3)
            assert eve.events == []
            assert ann.counters.wrong_key == eve.counters.turned_away == 0  # no member dialed
            assert ann.counters.own_address == 0

    run(scene())


def test_announcements_reveal_neither_group_nor_member_nor_machine():
    async def scene() -> None:
        await multicast_works()
        seen: list[str] = []
        found: list[AsyncServiceInfo] = []

        def on_change(
            zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
        ) -> None:
            seen.append(name)

        ann = Recorder("ann-of-the-harbour", discover=True, interfaces=LOOPBACK)
        stranger = AsyncZeroconf(interfaces=LOOPBACK)
        browser = AsyncServiceBrowser(stranger.zeroconf, SERVICE, handlers=[on_change])
        try:
            async with started(ann):
                await until(lambda: seen)
                info = AsyncServiceInfo(SERVICE, seen[0])
                assert await info.async_request(stranger.zeroconf, 3000)
                found.append(info)
        finally:
            await browser.async_cancel()
            await stranger.async_close()
        (info,) = found
        nonce = seen[0].partition("-")[0]
        assert info.server == f"{nonce}.local."
        assert info.port == ann.mesh._listen[0].port or info.port
        assert info.properties == {}
        assert "ann" not in seen[0]
        assert KEY.name not in seen[0]

    run(scene())


def test_discovered_peers_that_leave_are_forgotten_and_configured_ones_kept():
    async def scene() -> None:
        await multicast_works()
        gone: list[Address] = []
        found: list[Address] = []
        watcher = Discovery(
            KeyRing(KEY, wall_clock_us),
            LOOPBACK,
            look_again_seconds=30,
            on_found=lambda address, _: found.append(address),
            on_gone=gone.append,
            on_late=lambda: None,
            on_unannounced=pytest.fail,
            on_failure=lambda problem: pytest.fail(problem),
        )
        watcher.start([])
        try:
            ann = Recorder("ann", discover=True, interfaces=LOOPBACK)
            async with started(ann):
                address = ann.address
                await until(lambda: found == [address])
            await until(lambda: gone == [address])
        finally:
            await watcher.close()
        bob = Recorder("bob", address)
        async with started(bob):
            bob.mesh._forget(address)
            assert address in bob.mesh._dialer._tasks

    run(scene())


def test_closing_without_awaiting_the_goodbye_left_sockets_open(monkeypatch):
    networks = []

    class Network(discovery.AsyncZeroconf):
        def __init__(self, **options: object) -> None:
            super().__init__(**options)
            networks.append(self)

    class Browser(AsyncServiceBrowser):
        async def async_cancel(self) -> None:
            await asyncio.sleep(0.02)  # so that the second one falls in here
            await super().async_cancel()

    monkeypatch.setattr(discovery, "AsyncZeroconf", Network)
    monkeypatch.setattr(discovery, "AsyncServiceBrowser", Browser)

    async def scene() -> None:
        await multicast_works()
        watcher = Discovery(
            KeyRing(KEY, wall_clock_us),
            LOOPBACK,
            look_again_seconds=30,
            on_found=lambda *_: None,
            on_gone=lambda _: None,
            on_late=lambda: None,
            on_unannounced=pytest.fail,
            on_failure=pytest.fail,
        )
        watcher.start([Address("127.0.0.1", 7400)])
        await until(lambda: networks and networks[0].zeroconf.listeners)  # it browses
        for _ in range(3):
            watcher._task.cancel()
            await asyncio.sleep(0.01)
        await until(watcher._task.done)
        engine = networks[0].zeroconf.engine
        await until(lambda: networks[0].zeroconf.done and watcher._ending.done())
        assert all(way.transport.is_closing() for way in (*engine.readers, *engine.senders))

    run(scene())


def test_a_machine_in_another_network_announces_itself_there(monkeypatch):
    async def scene() -> None:
        hosts = [["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"]]
        stays: list[list[str]] = []

        async def stay(self: Discovery, listening: object, there: list[str]) -> None:
            stays.append(there)

        monkeypatch.setattr(discovery, "local_hosts", lambda _: hosts.pop(0) if hosts else [])
        monkeypatch.setattr(Discovery, "_stay", stay)
        watcher = Discovery(
            KeyRing(KEY, wall_clock_us),
            (),
            look_again_seconds=0.01,
            on_found=pytest.fail,
            on_gone=pytest.fail,
            on_late=pytest.fail,
            on_unannounced=pytest.fail,
            on_failure=pytest.fail,
        )
        watcher.start([])
        await until(lambda: not hosts)
        await watcher.close()
        assert stays == [["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"]]

    run(scene())


def test_a_listener_on_loopback_announced_nothing_and_did_not_report_it(monkeypatch):
    async def scene() -> None:
        await multicast_works()
        monkeypatch.setattr(discovery, "_reachable", lambda *_: [])
        ann = Recorder("ann", discover=True, interfaces=LOOPBACK)
        async with started(ann):
            await until(lambda: ann.counters.not_announced)
            problem = ann.mesh.disconnects()[-1].problem
            assert f"listens at {ann.address} alone" in problem

    run(scene())


def test_an_address_of_loopback_is_not_one_of_the_network():
    assert discovery._reachable("127.0.0.1", ["10.0.0.1"]) == []
    assert discovery._reachable("10.0.0.1", ["10.0.0.1"]) == ["10.0.0.1"]
    assert discovery._reachable("0.0.0.0", ["10.0.0.1", "fd77::1"]) == ["10.0.0.1"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(19, "No such device"),
        RuntimeError("No adapter found for IP address: No such device"),
        NotRunningException("No such device"),
    ],
)
def test_missing_multicast_is_reported_and_retried(monkeypatch, error):
    """An interface that went away at the wrong moment ended the search for good."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(discovery, "AsyncZeroconf", fail)

    async def scene() -> None:
        ann = Recorder("ann", discover=True, interfaces=LOOPBACK)
        async with started(ann):
            await until(lambda: ann.counters.no_discovery >= 2)
            assert "No such device" in ann.mesh.disconnects()[-1].problem

    run(scene())


def test_an_address_of_one_link_is_dialed_only_with_its_interface():
    hosts = ["fe80::1", "fe80::1%eth0", "fd77::1", "10.0.0.1", "169.254.1.1"]
    assert discovery.dialable(hosts) == ["fe80::1%eth0", "fd77::1", "10.0.0.1", "169.254.1.1"]


def adapters(*hosts):
    ips = [ifaddr.IP((host, 0, 0) if ":" in host else host, 24, "") for host in hosts]
    return [ifaddr.Adapter("one", "one", ips)]


def test_loopback_is_announced_where_there_is_nothing_else_or_it_is_named(monkeypatch):
    monkeypatch.setattr("ifaddr.get_adapters", lambda: adapters("127.0.0.1", "::1", "10.0.0.1"))
    assert local_hosts(()) == ["10.0.0.1"]
    assert local_hosts(LOOPBACK) == LOOPBACK
    monkeypatch.setattr("ifaddr.get_adapters", lambda: adapters("127.0.0.1", "::1"))
    assert local_hosts(()) == LOOPBACK
    monkeypatch.undo()
    assert local_hosts(LOOPBACK) == LOOPBACK
    assert local_hosts(["192.0.2.7"]) == []
