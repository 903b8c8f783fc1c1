"""The roster in the logs of nodes: a member without a log is a doubt, even if it was silent."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pyarrow.parquet as pq
import pytest

from beforehand.protocols.contract.tables import Store
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.group import Group
from beforehand.runtime.storage.event_log import ROSTER, EventLog
from beforehand.verify.verdict import verify_events
from tests.runtime.fixtures.cells import host, station, write_stations
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.fixtures.overlays import QUICK, opened, write_members
from tests.runtime.fixtures.processes import Process
from tests.runtime.storage.test_event_log import Transactions, message


def rosters(folder):
    """Return the roster of each file, in order."""
    for path in sorted(folder.glob("*.node.parquet")):
        about = json.loads(pq.read_schema(path).metadata[b"beforehand"])
        yield about["runs"]["group"]["members"]


def judged(folder):
    (run_verdict,) = verify_events(folder).runs
    return run_verdict.state, run_verdict.reason


def forget(folder, name, run="harbour"):
    """Delete the logs of one node."""
    found = [path for path in folder.iterdir() if path.name.startswith(f"{run}-")]
    lost = [path for path in found if path.name.split(".")[1].startswith(f"{name}-")]
    assert lost
    for path in lost:
        path.unlink()


def group(folder, name, *peers):
    key = folder / "harbour.key"
    if not key.exists():
        new_group("harbour").write(key)
    options = {"listen": "127.0.0.1:0", "peers": [*map(str, peers)], "discover": False}
    options |= {"durable": "os", "lifetime": "20m", "limits": QUICK, "log": folder / "logs"}
    return Group("harbour", name=name, store=folder / f"{name}.db", key=key, **options)


def test_a_missing_log_of_a_silent_member_was_valid(tmp_path):
    """A line ann - bob - cid on real sockets: only bob ever had a link with cid."""

    async def play():
        async with AsyncExitStack() as stack:
            ann = await stack.enter_async_context(group(tmp_path, "ann"))
            bob = await stack.enter_async_context(group(tmp_path, "bob", ann.addresses[0]))
            cid = await stack.enter_async_context(group(tmp_path, "cid", bob.addresses[0]))
            await until(lambda: len(bob.peers) == 2)
            await ann.broadcast(b"fog")
            assert await take(cid, 1) == [b"fog"]
            assert [peer.name for peer in ann.peers] == ["bob"]

    run(play)
    logs = tmp_path / "logs"
    assert judged(logs) == ("valid", "")
    forget(logs, "cid")
    assert judged(logs) == ("unknown", "members without a log: `cid`")
    forget(logs, "bob")  # ann knows bob, and nobody is left who knows cid
    assert judged(logs) == ("unknown", "members without a log: `bob`")


def test_an_overlay_knows_all_its_members_from_the_start(tmp_path):
    write_members(tmp_path, ("ann", "bob", "cid"))

    async def play():
        async with opened(tmp_path, ("ann", "bob")) as (ann, bob):
            await until(lambda: len(ann.peers) == 1)
            await ann.broadcast(b"x")
            assert await take(bob, 1) == [b"x"]

    run(play)
    assert judged(tmp_path / "logs") == ("unknown", "members without a log: `cid`")


def test_the_roster_of_a_host_lists_hosts_in_range_and_no_station(tmp_path):
    async def play():
        cell = write_stations(tmp_path, "north")["north"]
        async with (
            station(tmp_path, "north"),
            host(tmp_path, "ann", cell) as ann,
            host(tmp_path, "bob", cell) as bob,
        ):
            await until(lambda: ann.is_connected and bob.is_connected)
            await ann.broadcast(b"x")
            assert await take(bob, 1) == [b"x"]
            await until(lambda: ann.counters.messages.delivered == 1)

    run(play)
    logs = tmp_path / "logs"
    assert judged(logs) == ("valid", "")
    forget(logs, "bob", run="port")
    assert judged(logs) == ("unknown", "members without a log: `bob`")


def test_a_roster_has_links_and_origins_and_itself(tmp_path):
    log = EventLog(tmp_path, "ann", rows_max=3)
    log.met("bob")
    log.met("bob")
    log.received([message("cid", 1)])
    log.delivered([message("cid", 1)])
    log.lost([("drop", ("dan", 1))])
    log.met("eve")
    log.close()
    assert [*rosters(tmp_path)] == [["ann", "bob", "cid"], ["ann", "bob", "cid", "dan", "eve"]]


def test_a_list_of_all_members_is_not_extended_by_strangers(tmp_path):
    log = EventLog(tmp_path, "ann", members=("ann", "bob"))
    log.met("mallory")
    log.close()
    assert [*rosters(tmp_path)] == [["ann", "bob"]]


def test_invented_names_fill_neither_the_store_nor_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("beforehand.runtime.storage.event_log.ROSTER_MAX", 3)
    store = Store()
    log = EventLog(tmp_path, "ann", store=store)
    for number in range(1000):
        log.met(f"phantom-{number}")
    log.close()
    assert [*rosters(tmp_path)] == [["ann", "phantom-0", "phantom-1"]]
    assert len(store.load((ROSTER,))[ROSTER.name]) == 2


def test_numbered_origins_are_in_the_roster_by_their_names(tmp_path):
    log = EventLog(tmp_path, "ann", name_of=("ann", "bob").__getitem__)
    log.delivered([message(1, 7)])
    log.close()
    assert [*rosters(tmp_path)] == [["ann", "bob"]]


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_roster_survives_a_kill_as_far_as_its_step_was_saved(tmp_path, is_saved):
    disk = Store()
    store = Transactions(disk)
    log = EventLog(tmp_path, "ann", store=store)
    log.met("bob")
    store.commit()
    log.met("cid")
    if is_saved:
        store.commit()
    # Killed here: no file was written. The next incarnation writes the only one.
    again = Transactions(disk)
    EventLog(tmp_path, "ann", store=again, incarnation=2).close()
    again.commit()
    assert [*rosters(tmp_path)] == [["ann", "bob", "cid"] if is_saved else ["ann", "bob"]]


def test_a_file_does_not_name_a_member_that_a_crash_may_still_undo(tmp_path):
    store = Transactions()
    log = EventLog(tmp_path, "ann", store=store, rows_max=2)
    log.delivered([message("bob", 1)])  # a file is due when this is on the disk
    store.open, later = [], store.open
    log.met("cid")  # in the next transaction
    store.open, later = later, store.open
    store.commit()
    store.open = later
    assert [*rosters(tmp_path)] == [["ann", "bob"]]


KILLED = """
import asyncio, sys
import beforehand

async def main(name, *peers):
    async with beforehand.Group("harbour", name=name, store=f"{name}.db", key="harbour.key",
                                lifetime="20m", listen="127.0.0.1:0", peers=peers,
                                discover=False, log="logs") as member:
        print("at", member.addresses[0])
        if name == "ann":
            await member.broadcast(b"alone")
            while not member.peers:
                await asyncio.sleep(0.01)
            await member.broadcast(b"not alone")  # on the disk: and so is the link before it
            print("linked")
        while True:
            await asyncio.sleep(1)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_member_remembers_its_peers_after_kill_9(tmp_path):
    """bob never broadcasts, and his log is lost with his disk."""
    new_group("harbour").write(tmp_path / "harbour.key")
    script = tmp_path / "member.py"
    script.write_text(KILLED)
    with Process(script, "ann", folder=tmp_path) as ann:
        address = ann.wait_for("at ").split()[1]
        with Process(script, "bob", address, folder=tmp_path) as bob:
            ann.wait_for("linked")
            ann.kill()
            bob.kill()

    async def come_back_alone():
        async with group(tmp_path, "ann"):
            pass

    run(come_back_alone)
    assert judged(tmp_path / "logs") == ("unknown", "members without a log: `bob`")
