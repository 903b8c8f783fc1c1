"""Frames on their way to the wire."""

from __future__ import annotations

import asyncio

from beforehand.core.frames import Announce, Reached, Request
from beforehand.core.wire import OPPORTUNISTIC
from beforehand.runtime import outgoing as module
from beforehand.runtime.lanes import PacedLane
from beforehand.runtime.outgoing import LATER_SECONDS, Outgoing

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
        lanes = {"bob": PacedLane("ann")}
        failures = []
        outgoing = Outgoing(lanes, OPPORTUNISTIC, 100, failures.append, failures.append)
        outgoing.wire = wire = Wire(room)
        await test(lanes, outgoing, wire)
        assert not failures

    asyncio.run(run())


def test_what_was_for_a_link_that_broke_does_not_go_over_the_next_one():
    async def test(lanes, outgoing, wire):
        old, lanes["bob"] = lanes["bob"], PacedLane("ann")
        outgoing.put([("bob", old, ASK)])
        outgoing.put([("eve", old, ASK)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not wire.sent

    play(test)


def test_frames_of_one_turn_go_out_together_as_far_as_there_is_room():
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


def test_news_of_others_goes_out_later_and_once():
    async def test(lanes, outgoing, wire):
        for seq in (1, 2):
            news = Announce(seq, frozenset([("eve", seq)]))
            outgoing.put([("bob", lanes["bob"], news)])
        await asyncio.sleep(0)
        assert not wire.sent
        await asyncio.sleep(2 * LATER_SECONDS[1])
        assert [frame.ids for frame in wire.sent] == [frozenset([("eve", 1), ("eve", 2)])]
        outgoing.stop()

    play(test)


def test_marks_go_out_later_than_news_and_once(monkeypatch):
    monkeypatch.setattr(module, "MARKS_SECONDS", (0.15, 0.2))

    async def test(lanes, outgoing, wire):
        lane = lanes["bob"]
        for seq in (1, 2):
            outgoing.put([("bob", lane, Reached(frozenset([("eve", seq)])))])
        outgoing.put([("bob", lane, Announce(1, frozenset([("eve", 9)])))])
        await asyncio.sleep(2 * LATER_SECONDS[1])
        assert [type(frame) for frame in wire.sent] == [Announce]
        await asyncio.sleep(0.3)
        assert wire.sent[1:] == [Reached(frozenset([("eve", 2)]))]
        outgoing.stop()

    play(test)
