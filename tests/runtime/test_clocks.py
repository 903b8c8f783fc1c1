"""Clocks of members that are set while they run."""

from __future__ import annotations

import time

import pytest

from beforehand.commands.nodes.membership import clock_trouble
from beforehand.errors import InputError
from beforehand.units import UNITS_US
from tests.runtime.fixtures.memory_mesh import Net, member, run, take, until

HOUR_US, DAY_US = UNITS_US["h"], UNITS_US["d"]


class Clock:
    ahead_us = 0

    def __call__(self):
        return time.time_ns() // 1000 + self.ahead_us


def test_a_clock_hours_ahead_loses_the_broadcasts_meanwhile_and_is_reported(tmp_path):
    async def play():
        net, clock = Net(), Clock()
        ann = member(net, tmp_path, "ann", clock_us=clock)
        async with ann, member(net, tmp_path, "bob") as bob:
            clock.ahead_us = 10 * HOUR_US
            await bob.broadcast(b"shorter than that")
            await until(lambda: ann.counters.messages.stale == 1)
            await bob.broadcast(b"longer than that", lifetime="1d")
            assert await take(ann, 1) == [b"longer than that"]
            clock.ahead_us = 0
            assert 9 * HOUR_US < ann.clock_behind_us <= 10 * HOUR_US
            assert "was set back by 10h" in clock_trouble(ann)
            assert clock_trouble(bob) == ""
            await ann.broadcast(b"hours from now")
            await until(lambda: bob.counters.messages.early == 1)

    run(play)


def test_a_clock_weeks_ahead_silently_isolated_a_member(tmp_path):
    async def play():
        clock = Clock()
        async with member(Net(), tmp_path, "ann", clock_us=clock) as ann:
            clock.ahead_us = 40 * DAY_US
            await ann.broadcast(b"by a clock that is wrong")
            clock.ahead_us = 0
            with pytest.raises(InputError, match="was set back by 40d") as refused:
                await ann.broadcast(b"nobody would take it")
            assert "another store and another name" in refused.value.hint
            assert ann.counters.messages.broadcast == 1
        again = member(Net(), tmp_path, "ann", clock_us=clock)
        with pytest.raises(InputError, match="was set back by"):
            await again.open()
        clock.ahead_us = 40 * DAY_US
        async with member(Net(), tmp_path, "ann", clock_us=clock) as ann:
            await ann.broadcast(b"by the same clock")

    run(play)
