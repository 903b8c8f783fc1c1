"""Frames on their way to the wire."""

from __future__ import annotations

import asyncio

from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.epidemic.frames import Request
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.send_queue import FrameQueue

ASK = Request(0, frozenset([("bob", 1)]))


class Wire:
    def __init__(self, room):
        self.free, self.sent = room, []

    def room(self, peer):
        return self.free

    def send(self, peer, frames):
        self.free -= sum(map(len, frames))
        self.sent += [OPPORTUNISTIC.decode(frame) for frame in frames]


def play(test, room=100):
    async def run():
        lanes = {"bob": HeldFrames()}
        failures = []
        outgoing = FrameQueue(
            lanes, OPPORTUNISTIC, 100, failures.append, lambda *told: failures.append(told)
        )
        outgoing.wire = wire = Wire(room)
        await test(lanes, outgoing, wire)
        assert not failures

    asyncio.run(run())


def test_frames_for_a_broken_link_are_not_sent_over_the_next_one():
    async def test(lanes, outgoing, wire):
        old, lanes["bob"] = lanes["bob"], HeldFrames()
        outgoing.put([("bob", old, ASK)])
        outgoing.put([("eve", old, ASK)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not wire.sent

    play(test)


def test_frames_of_one_turn_are_sent_together_within_the_window():
    async def test(lanes, outgoing, wire):
        for _ in range(20):
            outgoing.put([("bob", lanes["bob"], ASK)])
        assert not wire.sent
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sent = len(wire.sent)
        assert 0 < sent < 20
        assert wire.free < 50, "so that the link tells when there is room again"
        wire.free = 100
        outgoing.put_on_wire("bob")
        assert len(wire.sent) == 2 * sent

    play(test)


def test_an_unencodable_frame_is_reported_with_its_peer_and_blocks_no_other():
    async def run():
        told = []
        lanes = {"bob": HeldFrames(), "eve": HeldFrames()}
        outgoing = FrameQueue(lanes, OPPORTUNISTIC, 100, print, lambda peer, _: told.append(peer))
        outgoing.wire = wire = Wire(100)
        outgoing.put([("bob", lanes["bob"], Request(-1, frozenset())), ("eve", lanes["eve"], ASK)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert told == ["bob"]
        assert wire.sent == [ASK]

    asyncio.run(run())
