"""Stations and hosts on loopback: moving hosts deliver every message once, in causal order."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests.runtime.fixtures.cells import host, new_cell, station, write_stations
from tests.runtime.fixtures.memory_mesh import run, take, until

from beforehand.errors import InputError, LocalError
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.radio import multicast as airs
from beforehand.runtime.radio.cell_settings import PAYLOAD_BYTES_MAX, fit, read_stations
from beforehand.verify.verdict import verify_events


def verified(folder, deliveries):
    (judged,) = verify_events(folder / "logs").runs
    assert (judged.state, judged.reason, judged.deliveries) == ("valid", "", deliveries)


@asynccontextmanager
async def town(folder, stations, **hosts):
    """Stations in a chain, and hosts that are connected."""
    cells = write_stations(folder, *stations)
    async with AsyncExitStack() as stack:
        there = [await stack.enter_async_context(station(folder, name)) for name in stations]
        here = [
            await stack.enter_async_context(host(folder, name, cells[cell]))
            for name, cell in hosts.items()
        ]
        await until(lambda: all(one.is_connected for one in here))
        yield cells, there, here


def test_hosts_of_three_cells_exchange_broadcasts(tmp_path):
    async def play():
        stations = ("north", "mid", "south")
        async with town(tmp_path, stations, ann="north", bob="mid", cid="south") as (_, _, hosts):
            ann, bob, cid = hosts
            assert [one.station for one in hosts] == ["north", "mid", "south"]
            id = await ann.broadcast(b"who is there?")
            assert id == ("ann", 1)
            assert ann.explain(id).state == "waiting"  # until it is back from the station
            assert await take(cid, 1) == [b"who is there?"]
            await cid.broadcast(b"cid")
            assert await take(bob, 2) == [b"who is there?", b"cid"]
            assert await take(ann, 1) == [b"cid"]
            await until(lambda: all(one.counters.messages.delivered == 2 for one in hosts))

    run(play)
    verified(tmp_path, 6)


def test_a_stranger_cannot_send_under_the_name_of_a_known_host(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north", bob="north") as (cells, there, hosts):
            ann, bob = hosts
            await ann.broadcast(b"it is me")
            assert await take(bob, 1) == [b"it is me"]
            await ann.close()
            thief = host(tmp_path, "ann", cells["north"], store=tmp_path / "thief.db")
            async with thief:
                thief._parts.node.driver.core._ses = 50  # or it would be taken for an old one
                await thief.move(cells["north"], "127.0.0.1")
                await until(lambda: thief.is_connected)
                await thief.broadcast(b"pay eve")
                await until(lambda: there[0].counters.trust.wrong_key)
                assert there[0].counters.messages.refused
                assert bob.counters.messages.received == 1

    run(play)


def test_two_hosts_of_one_name_in_one_cell_are_both_notified(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north") as (cells, there, (ann,)):
            async with host(tmp_path, "ann", cells["north"], store=tmp_path / "other.db") as other:
                await until(lambda: ann.counters.air.namesakes)
                await ann.broadcast(b"it is me")
                await until(lambda: other.counters.air.namesakes)
            assert not there[0].counters.air.namesakes

    run(play)


def test_a_host_that_moves_while_messages_flow_gets_each_once(tmp_path):
    async def play():
        async with town(tmp_path, ("north", "south"), ann="north", bob="south") as parts:
            cells, _, (ann, bob) = parts

            async def speak():
                for turn in range(60):
                    await ann.broadcast(b"%d" % turn)
                    await asyncio.sleep(0.02)

            speaking = asyncio.create_task(speak())
            got = await take(bob, 10)
            await bob.move(cells["north"], "127.0.0.1")
            got += await take(bob, 15)
            assert bob.station == "north"
            await bob.move(cells["south"], "127.0.0.1")
            got += await take(bob, 35)
            await speaking
            assert got == [b"%d" % turn for turn in range(60)]
            await bob.broadcast(b"here")
            assert await take(ann, 1) == [b"here"]
            with pytest.raises(InputError, match="no cell there"):
                await bob.move(cells["north"], "192.0.2.1")
            assert bob.station == "south", "it is still where it was"
            await until(lambda: ann.counters.messages.delivered == 61)
            await until(lambda: bob.counters.messages.delivered == 61)

    run(play)
    verified(tmp_path, 122)


def test_a_host_of_a_silent_station_registers_at_an_audible_one(tmp_path):
    """Both on one segment."""

    async def play():
        cells = write_stations(tmp_path, "north", "south")
        text = (tmp_path / "port.toml").read_text().replace(cells["south"], cells["north"])
        (tmp_path / "port.toml").write_text(text)
        async with station(tmp_path, "north") as north, AsyncExitStack() as stack:
            ann = await stack.enter_async_context(host(tmp_path, "ann", cells["north"]))
            await until(lambda: ann.is_connected)
            await stack.enter_async_context(station(tmp_path, "south"))
            await ann.broadcast(b"one")
            await until(lambda: ann.counters.messages.delivered == 1)
            assert ann.station == "north", "who is heard is not left"
            north._air.close()
            await ann.broadcast(b"two")
            await until(lambda: ann.counters.messages.delivered == 2)
            assert ann.station == "south"

    run(play)
    verified(tmp_path, 2)


def test_wires_that_break_under_load_neither_lose_nor_duplicate(tmp_path):
    async def play():
        async with town(tmp_path, ("north", "south"), ann="north", bob="south") as parts:
            _, (north, _), (ann, bob) = parts
            for turn in range(30):
                await ann.broadcast(b"%d" % turn)
                if turn % 5 == 4:
                    await until(lambda: north._mesh._open)
                    broken = list(north._mesh._open)
                    for link in broken:
                        link._transport.abort()
                    await until(lambda links=broken: north._mesh._open.isdisjoint(links))
            assert await take(bob, 30) == [b"%d" % turn for turn in range(30)]
            assert north.counters.links.links > 3
            await until(lambda: ann.counters.messages.delivered == 30)

    run(play)
    verified(tmp_path, 60)


def test_a_host_that_returns_with_its_store_gets_missed_messages_once(tmp_path):
    async def play():
        async with town(tmp_path, ("north", "south"), ann="north") as (cells, _, (ann,)):
            async with host(tmp_path, "bob", cells["south"]) as bob:
                await until(lambda: bob.is_connected)
                await ann.broadcast(b"one")
                assert await take(bob, 1) == [b"one"]
            await ann.broadcast(b"two")
            await ann.broadcast(b"three")
            async with host(tmp_path, "bob", cells["north"]) as bob:
                assert await take(bob, 2) == [b"two", b"three"]
                assert bob.station == "north"
                await until(lambda: ann.counters.messages.delivered == 3)

    run(play)
    verified(tmp_path, 6)


def test_broadcasts_outside_all_cells_are_sent_on_entering_one(tmp_path):
    async def play():
        here = town(tmp_path, ("north",), ann="north")
        async with here as (cells, _, (ann,)), host(tmp_path, "bob", new_cell()) as bob:
            await bob.broadcast(b"nobody hears me")
            assert bob.station is None
            await bob.move(cells["north"], "127.0.0.1")
            assert await take(ann, 1) == [b"nobody hears me"]
            await until(lambda: bob.counters.messages.delivered == 1)

    run(play)
    verified(tmp_path, 2)


def test_an_application_that_does_not_read_gets_missed_messages_again(tmp_path, monkeypatch):
    monkeypatch.setattr("beforehand.runtime.queues.inbox.UNREAD_MAX", 8)

    async def play():
        async with town(tmp_path, ("north",), ann="north", bob="north") as (_, _, (ann, bob)):
            for turn in range(40):
                await ann.broadcast(b"%d" % turn)
            await until(lambda: len(bob._parts.reading._queue) >= 8)
            assert await take(bob, 40) == [b"%d" % turn for turn in range(40)]

    run(play)


def test_replayed_datagrams_of_a_cell_are_ignored(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north", bob="north") as parts:
            _, (north,), (ann, bob) = parts
            recorded = []
            heard = north._air.datagram_received

            def record(data, addr):
                recorded.append(data)
                heard(data, addr)

            north._air.datagram_received = record
            await ann.broadcast(b"one")
            assert await take(bob, 1) == [b"one"]
            await until(lambda: ann.counters.messages.delivered == 1)
            await asyncio.sleep(0.3)
            segment = north._stations.segments["north"]
            before = north.counters.air.received
            with airs._open(segment) as thrower:
                for data in [*recorded, b"nonsense", bytes(9000)]:
                    thrower.sendto(data, (segment.cell.host, segment.cell.port))
            await until(lambda: bob.counters.air.repeated and north.counters.air.foreign >= 2)
            assert north.counters.air.repeated
            assert north.counters.air.received - before < 5, "beats of hosts, and no replay"
            await ann.broadcast(b"two")
            assert await take(bob, 1) == [b"two"]
            # A station that never heard ann and bob takes replayed frames as new; the tick is old.
            north._air._opener._senders.clear()
            north._ticks.clear()
            north._ticks.append(1)
            for data in recorded:
                heard(data, None)
            assert north.counters.air.stale

    run(play)


def recording(air, kinds: tuple[str, ...]):
    """Return the list in which the encrypted datagrams of these kinds are recorded from now on."""
    recorded, seal = [], air._sealer.seal

    def sealed(kind, tick, frame):
        datagram = seal(kind, tick, frame)
        if kind in kinds:
            recorded.append(datagram)
        return datagram

    air._sealer.seal = sealed
    return recorded


def throw(cell: str, datagrams) -> None:
    segment = airs.Segment.parse(cell, "127.0.0.1")
    with airs._open(segment) as thrower:
        for data in datagrams:
            thrower.sendto(data, (segment.cell.host, segment.cell.port))


def test_replayed_beacons_captured_a_host(tmp_path):
    """A host that never heard the station took recorded beacons for it, and stayed in its cell."""

    async def play():
        cell = write_stations(tmp_path, "north")["north"]
        async with station(tmp_path, "north") as north:
            beacons = recording(north._air, ("beacon",))
            await until(lambda: len(beacons) >= 4)
        async with host(tmp_path, "ann", cell) as ann:
            throw(cell, beacons)
            await until(lambda: ann.counters.air.stale >= len(beacons))
            assert ann.station is None
            async with station(tmp_path, "north"):
                await until(lambda: ann.is_connected)

    run(play)


def test_a_replayed_beacon_of_an_earlier_start_made_a_host_deaf(tmp_path):
    """The host took it for a restart, and the datagrams of the living station for old ones."""

    async def play():
        cell = write_stations(tmp_path, "north")["north"]
        async with station(tmp_path, "north") as north:
            beacons = recording(north._air, ("beacon",))
            await until(lambda: beacons)
        async with station(tmp_path, "north"), host(tmp_path, "ann", cell) as ann:
            await until(lambda: ann.is_connected)
            before = ann.counters.air.stale
            throw(cell, beacons)
            await until(lambda: ann.counters.air.stale >= before + len(beacons))
            assert ann.counters.air.restarted == 0
            received = ann.counters.air.received
            await until(lambda: ann.counters.air.received > received + 4)
            assert ann.is_connected

    run(play)


def test_a_replayed_datagram_of_an_earlier_start_kept_a_host_out_of_its_station(tmp_path):
    async def play():
        cell = write_stations(tmp_path, "north")["north"]
        async with station(tmp_path, "north") as north:
            async with host(tmp_path, "ann", cell) as ann:
                await until(lambda: ann.is_connected)
                said = recording(ann._opened().network._air, ("up",))
                await ann.broadcast(b"one")
                await until(lambda: said and ann.unacked == 0)
            async with host(tmp_path, "ann", cell) as ann, host(tmp_path, "bob", cell) as bob:
                await until(lambda: ann.is_connected and bob.is_connected)
                north._ticks.clear()
                north._ticks.append(1)
                throw(cell, said)
                await until(lambda: north.counters.air.stale)
                await ann.broadcast(b"two")
                assert await take(bob, 1) == [b"two"]

    run(play)


def test_a_host_with_another_key_is_not_registered(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north") as (cells, (north,), _):
            (tmp_path / "other").mkdir()
            new_group("port").write(tmp_path / "other" / "port.key")
            async with host(tmp_path / "other", "eve", cells["north"]) as eve:
                await until(lambda: eve.counters.air.foreign >= 2)
                assert eve.station is None
            assert north.counters.gauges["guests"] == 1

    run(play)


def test_a_restarted_station_reports_it_and_its_wired_station_refuses_it(tmp_path):
    async def play():
        write_stations(tmp_path, "north", "south")
        async with station(tmp_path, "north") as north:
            async with station(tmp_path, "south") as south:
                await until(lambda: north._wires["south"]._is_met)
            with pytest.raises(InputError, match="knows an earlier incarnation"):
                async with station(tmp_path, "south") as south:
                    await south.failed()
            assert north.counters.malformed

    run(play)


def test_a_station_that_restarted_at_once_silently_lost_its_hosts(tmp_path):
    """The hosts took its new numbers for old ones, and missed messages until they sent one."""

    async def play():
        cell = write_stations(tmp_path, "north")["north"]
        async with host(tmp_path, "ann", cell) as ann, host(tmp_path, "bob", cell) as bob:
            async with station(tmp_path, "north"):
                await until(lambda: ann.is_connected and bob.is_connected)
                for index in range(3):
                    await ann.broadcast(b"%d" % index)
                assert await take(bob, 3) == [b"0", b"1", b"2"]
                await until(lambda: ann.unacked == 0)
            async with station(tmp_path, "north"):
                await until(lambda: ann.counters.air.restarted == bob.counters.air.restarted == 1)
                await until(lambda: ann.is_connected and bob.is_connected)
                for index in range(3, 9):
                    await ann.broadcast(b"%d" % index)
                assert await take(bob, 6) == [b"%d" % index for index in range(3, 9)]

    run(play)


def test_a_broadcast_too_long_for_a_radio_is_refused_at_its_host(tmp_path):
    async def play():
        async with host(tmp_path, "ann", new_cell()) as ann:
            with pytest.raises(LocalError, match="1,000 are allowed"):
                await ann.broadcast(bytes(PAYLOAD_BYTES_MAX + 1))
            await ann.broadcast(bytes(PAYLOAD_BYTES_MAX))

    write_stations(tmp_path, "north")
    run(play)
    with pytest.raises(InputError, match="too long a name"):
        host(tmp_path, "a" * 49, new_cell())
    for cell in ("10.0.0.1:7700", "239.1.1.1:0", "239.1.1.1", "ff02::1:7700"):
        with pytest.raises(InputError):
            host(tmp_path, "ann", cell)


def test_frames_that_do_not_fit_are_split_or_omit_optional_fields():
    from beforehand.protocols.mobile.was.frames import (
        BroadcastAck,
        Connect,
        HostAck,
        Place,
        StationAck,
    )

    visits = tuple((f"station-{at:040d}", at) for at in range(256))
    (connect,) = fit(Connect("north", "ann", 3, Place(), 1, visits))
    assert connect.visits is None
    (short,) = fit(Connect("north", "ann", 3, Place(), 1, visits[:3]))
    assert short.visits == visits[:3]
    heard = tuple(BroadcastAck(f"host-{at:040d}", 1, at) for at in range(400))
    assert [ack.acks for ack in fit(StationAck("north", heard))] == [(one,) for one in heard]
    assert [*fit(StationAck("north", heard[:2]))] == [StationAck("north", heard[:2])]
    assert [*fit(HostAck("north", "ann", Place()))] == [HostAck("north", "ann", Place())]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("wires = ['south']", "wires = []", "no tree|not those of the stations"),
        ("wires = ['south']", "wires = ['west']", "no tree|not those of the stations"),
        ("239.77", "10.77", "not a cell"),
        ('name = "south"', 'name = "north"', "two entries are named `north`"),
        ("group", "grup", "not a valid file"),
        ("127.0.0.1:", ":", "an unreachable address"),
    ],
)
def test_a_file_that_is_no_tree_of_stations_is_refused_with_its_position(
    tmp_path, old, new, problem
):
    write_stations(tmp_path, "north", "south")
    path = tmp_path / "port.toml"
    assert read_stations(path).peers_of("north") == ["south"]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=problem) as caught:
        read_stations(path)
    assert "port.toml" in caught.value.where


def test_two_stations_at_one_address_are_refused(tmp_path):
    write_stations(tmp_path, "north", "south")
    path = tmp_path / "port.toml"
    path.write_text(re.sub(r"127.0.0.1:\d+", "127.0.0.1:7001", path.read_text()))
    with pytest.raises(InputError, match="two stations have the same address"):
        read_stations(path)
