"""No registry grows for ever: each is bounded by what is alive, and a gauge shows it."""

import random

import pytest

from beforehand.core.barrier import Barrier
from beforehand.core.base import Message
from beforehand.core.cache import Cache
from beforehand.core.epidemic import EVICTED_MAX, RETRY_TIMER, Epidemic, Options
from beforehand.core.frames import Announce, Data, Request
from beforehand.core.order import PURGE_AT_MIN, Lifetimes
from beforehand.core.outbox import Outbox
from beforehand.core.tables import Store
from beforehand.core.unordered import Unordered
from beforehand.core.vector import Vector
from beforehand.core.waiting import DEADLINES_MIN

SECOND = 1_000_000
BRIEF = Lifetimes(60, 60, skew_us=0)
LONG = Lifetimes(600 * SECOND, 600 * SECOND, skew_us=0)


def make(order, options=None, **extra):
    """In contact with node 7."""
    core = Epidemic(order.node, order, random.Random(1), options, **extra)
    core.on_link(0, 7, True, Outbox())
    return core


def messages(count, past=(), *, first=1, origin="ann"):
    return [Message((origin, first + n), past, b"") for n in range(count)]


# ---- what waits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lifetimes", [None, LONG])
def test_what_is_evicted_and_comes_again_while_its_cause_never_does_is_parked_once(lifetimes):
    order, cause = Barrier("bob", lifetimes), ("eve", 100 * SECOND)
    waits = messages(20, (cause,), first=200 * SECOND)
    for _ in range(200):
        order.on_receive(0, waits, Outbox())
        order.on_evict(0, [message.id for message in waits], Outbox())
    gauges = order.gauges(0)
    assert (gauges["pending"], gauges["parked"]) == (0, 0)
    assert gauges["deadlines"] <= 1


@pytest.mark.parametrize("lifetimes", [None, LONG])
def test_the_causes_of_what_was_evicted_are_not_watched_for_ever(lifetimes):
    """Each of them another one, alive for minutes and never to come."""
    order = Barrier("bob", lifetimes)
    for n in range(5_000):
        message = Message((f"ann{n}", 200 * SECOND), ((f"eve{n}", 100 * SECOND),), b"")
        order.on_receive(0, [message], Outbox())
        order.on_evict(0, [message.id], Outbox())
    gauges = order.gauges(0)
    assert (gauges["pending"], gauges["parked"]) == (0, 0)
    assert gauges["deadlines"] <= DEADLINES_MIN
    assert len(order._waiting._waiters) <= DEADLINES_MIN


def test_what_expired_before_its_cause_is_not_parked_until_the_cause_expires():
    """From careless peers, each message names a cause that is to live for minutes."""
    order = Barrier("bob", LONG)
    for now_us in range(5_000):
        message = Message((now_us, now_us + 60), ((f"eve{now_us}", 100 * SECOND),), b"")
        order.on_receive(now_us, [message], Outbox())
    gauges = order.gauges(5_000)
    assert gauges["pending"] == gauges["parked"] == 60
    assert gauges["deadlines"] <= DEADLINES_MIN + 4 * 60
    assert len(order._waiting._careless) <= 2 * 60
    assert order.counters.expired == 5_000 - 60
