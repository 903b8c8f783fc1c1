"""Stations and hosts on loopback: everybody gets everything once, in causal order, and moves."""

from __future__ import annotations

from contextlib import AsyncExitStack

from beforehand.verify.verdict import verify_events
from tests.runtime.cells import host, station, write_stations
from tests.runtime.memory_mesh import run, take, until


def verified(folder, deliveries):
    (judged,) = verify_events(folder / "logs").runs
    assert (judged.state, judged.reason, judged.deliveries) == ("valid", "", deliveries)


def test_hosts_of_three_cells_hear_each_other(tmp_path):
    cells = write_stations(tmp_path, "north", "mid", "south")

    async def play():
        async with AsyncExitStack() as stack:
            for name in cells:
                await stack.enter_async_context(station(tmp_path, name))
            hosts = [
                await stack.enter_async_context(host(tmp_path, name, cells[cell]))
                for name, cell in (("ann", "north"), ("bob", "mid"), ("cid", "south"))
            ]
            await until(lambda: all(one.is_connected for one in hosts))
            ann, bob, cid = hosts
            assert [one.station for one in hosts] == ["north", "mid", "south"]
            await ann.broadcast(b"who is there?")
            assert await take(cid, 1) == [b"who is there?"]
            await cid.broadcast(b"cid")
            assert await take(bob, 2) == [b"who is there?", b"cid"]
            assert await take(ann, 1) == [b"cid"]
            await until(lambda: all(one.counters.messages.delivered == 2 for one in hosts))

    run(play)
    verified(tmp_path, 6)
