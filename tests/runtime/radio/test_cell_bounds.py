"""The length of messages in real cells: no message of one host blocks another host."""

from __future__ import annotations

import msgspec
import pytest
from tests.runtime.fixtures.cells import host
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.radio.test_cells import town

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.mobile.bounds import message_bytes
from beforehand.protocols.mobile.was.frames import Connect, HostBroadcast, Place
from beforehand.runtime.radio.cell_settings import (
    FRAME_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX,
    RADIO,
    fit,
)


def without_bounds(one, bytes_max=1 << 16):
    """A hostile host that sends every message that fits into its own datagram."""
    one.payload_bytes_max = bytes_max
    core = one._parts.node.driver.core
    core._message_bytes_max = None
    return core


def say_of(core, payload):
    """Return the frame that the host would send for its next message."""
    message = core._proofs.prove(Message((core.node, core._next_broadcast), (), payload))
    return HostBroadcast(core.cell, core.node, core._ses, message)


FAR = "far" * 16
"""The longest name of a station."""


@pytest.mark.parametrize("payload_bytes", [7_800, "as much as fits"])
def test_a_broadcast_of_7800_bytes_blocked_the_cells_where_it_did_not_fit(tmp_path, payload_bytes):
    """It fits into the datagram of its host, and not into that of a station with a longer name."""

    async def play():
        async with town(tmp_path, ("n", FAR), ann="n", bob=FAR, cid="n") as (_, there, hosts):
            near, away = there
            ann, bob, cid = hosts
            core, size = without_bounds(ann), payload_bytes
            if not isinstance(size, int):
                size = FRAME_BYTES_MAX - len(RADIO.encode(say_of(core, bytes(7_000)))) + 7_000
            assert len(RADIO.encode(say_of(core, bytes(size)))) <= FRAME_BYTES_MAX
            await ann.broadcast(bytes(size))
            await until(lambda: near.counters.messages.received + near.counters.messages.refused)
            await cid.broadcast(b"still here?")
            assert await take(bob, 1) == [b"still here?"]
            await bob.broadcast(b"yes")
            assert await take(cid, 1) == [b"yes"]
            assert near.counters.air.too_large == away.counters.air.too_large == 0
            assert near.counters.messages.refused
            assert ann.unacked == 1, "it has lost its own message, and nothing else"

    run(play)


def test_the_longest_message_that_a_station_accepts_reaches_every_cell(tmp_path):
    async def play():
        async with town(tmp_path, ("n", FAR), ann="n", bob=FAR) as (cells, there, (ann, bob)):
            core = without_bounds(ann)
            rest = message_bytes(say_of(core, bytes(7_000)).message) - 7_000
            longest = bytes(MESSAGE_BYTES_MAX - rest)
            await ann.broadcast(longest)
            assert await take(bob, 1) == [longest]
            await bob.move(cells["n"], "127.0.0.1")
            await until(lambda: bob.is_connected and bob.station == "n")
            await ann.broadcast(longest)
            assert await take(bob, 1) == [longest]
            assert [one.counters.air.too_large for one in there] == [0, 0]
            assert [one.counters.messages.refused for one in there] == [0, 0]

    run(play)


def test_a_correct_host_refuses_a_too_long_broadcast_before_sending(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north", bob="north") as (_, there, hosts):
            ann, bob = hosts
            ann.payload_bytes_max = 1 << 16  # so that the core decides
            with pytest.raises(LocalError, match=f"; {MESSAGE_BYTES_MAX:,} are allowed"):
                await ann.broadcast(bytes(MESSAGE_BYTES_MAX))
            await ann.broadcast(b"shorter")
            assert await take(bob, 1) == [b"shorter"]
            assert there[0].counters.messages.refused == 0

    run(play)


def test_frames_of_a_host_with_a_too_long_name_are_ignored(tmp_path):
    async def play():
        async with town(tmp_path, ("north",), ann="north") as (cells, (north,), (ann,)):
            long = host(tmp_path, "bob", cells["north"])
            long.name = "b" * (NAME_BYTES_MAX + 1)  # as one that does not look
            async with long:
                await until(lambda: north.counters.malformed)
                assert north.counters.gauges["guests"] == 1
            await ann.broadcast(b"x")
            await until(lambda: ann.counters.messages.delivered == 1)

    run(play)


def test_a_frame_that_is_one_byte_too_long_with_its_version_ended_its_host():
    """The version byte of the codec was not counted."""

    def connect(last):
        visits = ((("x" * 100, 1),) * 75) + (("x" * last, 1),)
        return Connect("n", "ann", 3, Place(), 1, visits)

    packed = {last: len(msgspec.msgpack.encode(connect(last))) for last in range(32, 129)}
    (last,) = [last for last, size in packed.items() if size == FRAME_BYTES_MAX]
    (fitting,) = fit(connect(last))
    assert len(RADIO.encode(fitting)) <= FRAME_BYTES_MAX
    assert fit(connect(last - 1)) == [connect(last - 1)]
