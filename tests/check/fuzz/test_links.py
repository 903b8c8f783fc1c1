"""Garbage against a live socket: each connection is counted once, and nothing stays behind."""

from __future__ import annotations

import gc
import random
import sys

import msgspec
from tests.runtime.fixtures.meshes import KEY, Recorder, run, started, until

from beforehand.check.fuzz.links import damage, throw
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.transport.limits import Limits

LIMITS = Limits(backoff_min_seconds=0.001, backoff_max_seconds=0.001)
"""A refused dialer may come back at once."""
COUNT = 2000


def refusals(node: Recorder) -> int:
    return sum(msgspec.structs.asdict(node.counters).values()) - node.counters.links


def test_thousands_of_damaged_connections_are_counted_one_by_one_and_leave_nothing():
    async def scene() -> None:
        ann, zed = Recorder("ann", limits=LIMITS), new_member()
        async with started(ann):
            await throw(ann.address, KEY, zed, count=200, seed=1)  # what stays once, stays
            before, counted = blocks_without(ann), refusals(ann)
            throws = await throw(ann.address, KEY, zed, count=COUNT, seed=2)
            await until(lambda: not ann.mesh._open)
            assert refusals(ann) - counted == COUNT
            assert throws.unanswered == 0
            assert min(throws.hellos, throws.sealed, throws.records) > COUNT / 5
            for kind in ("no_key", "wrong_key", "altered", "malformed", "too_large"):
                assert getattr(ann.counters, kind), kind
            assert {peer for peer, _ in ann.frames} == {"Zed"}
            assert blocks_without(ann) - before < COUNT / 4

    run(scene(), seconds=150)


def blocks_without(node: Recorder) -> int:
    """Blocks of memory that are in use, but for what the test itself recorded."""
    node.check_events()
    node.events.clear()
    node.frames.clear()
    gc.collect()
    return sys.getallocatedblocks()


def test_damage_always_damages():
    rng = random.Random(1)
    for data in (b"\2", b"some bytes of a record", bytes(40)):
        assert all(damage(rng, data) != data for _ in range(2000))
