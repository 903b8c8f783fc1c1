"""Every registry is bounded by the live messages, and a gauge shows its size."""

import random

import pytest

from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.epidemic.cache import EVICTED_MAX, Cache
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Announce, Data, Request
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import KNOWN_TO_PEER_MIN
from beforehand.protocols.epidemic.sender import RETRY_TIMER
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import PURGE_AT_MIN, Lifetimes
from beforehand.protocols.orders.pending import DEADLINES_MIN
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector

SECOND = 1_000_000
BRIEF = Lifetimes(60, 60, skew_us=0)
LONG = Lifetimes(600 * SECOND, 600 * SECOND, skew_us=0)


def make(order, options=None, **extra):
    """Return a core that is in contact with node 7."""
    core = Epidemic(order.node, order, random.Random(1), options, **extra)
    core.on_link(0, 7, True, Outbox())
    return core


def messages(count, past=(), *, first=1, origin="ann"):
    return [Message((origin, first + n), past, b"") for n in range(count)]


# ---- what waits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lifetimes", [None, LONG])
def test_an_evicted_message_that_returns_without_its_cause_is_parked_once(lifetimes):
    order, cause = Barrier("bob", lifetimes), ("eve", 100 * SECOND)
    waits = messages(20, (cause,), first=200 * SECOND)
    for _ in range(200):
        order.on_receive(0, waits, Outbox())
        order.on_evict(0, [message.id for message in waits], Outbox())
    gauges = order.gauges(0)
    assert (gauges["pending"], gauges["parked"]) == (0, 0)
    assert gauges["deadlines"] <= 1


@pytest.mark.parametrize("lifetimes", [None, LONG])
def test_the_causes_of_evicted_messages_are_not_watched_for_ever(lifetimes):
    """Each of them another one, alive for minutes and never to come."""
    order = Barrier("bob", lifetimes)
    order.on_receive(0, [Message(("dan", 200 * SECOND), (("eve", 50 * SECOND),), b"")], Outbox())
    for n in range(5_000):
        message = Message((f"ann{n}", 200 * SECOND), ((f"eve{n}", 100 * SECOND),), b"")
        order.on_receive(0, [message], Outbox())
        order.on_evict(0, [message.id], Outbox())
    gauges = order.gauges(0)
    assert (gauges["pending"], gauges["parked"]) == (1, 1)
    assert gauges["deadlines"] <= DEADLINES_MIN + 4
    assert len(order._waiting._waiters) <= DEADLINES_MIN + 4


def test_a_message_that_expired_before_its_cause_is_not_parked_until_the_cause_expires():
    """From careless peers, each message names a cause that is to live for minutes."""
    order = Barrier("bob", LONG)
    for now_us in range(1_000):
        message = Message((now_us, now_us + 60), ((f"eve{now_us}", 100 * SECOND),), b"")
        order.on_receive(now_us, [message], Outbox())
    gauges = order.gauges(1_000)
    assert gauges["pending"] == gauges["parked"] == 60
    assert gauges["deadlines"] <= DEADLINES_MIN + 4 * 60
    assert len(order._waiting._careless) <= 2 * 60
    assert order.counters.expired == 1_000 - 60


@pytest.mark.parametrize("kind", [Barrier, Vector])
def test_a_message_overtaken_by_a_later_one_of_its_origin_is_counted_and_forgotten(kind):
    """From a peer that left its own last message out."""
    order = kind("bob")
    for n in range(0, 300, 2):
        older, newer = ("ann", n + 1), ("ann", n + 2)
        out = Outbox()
        order.on_receive(0, [Message(older, (("eve", n + 1),), b""), Message(newer, (), b"")], out)
        order.on_receive(0, [Message(("eve", n + 1), (), b"")], out)
        assert out.losses == [("drop", older)]
    assert order._waiting.late == []
    assert order.counters.late == 150


# ---- what was delivered, and what is named next -------------------------------------------------


def test_a_node_that_never_broadcasts_forgets_its_barrier():
    core, store = make(Barrier("bob", BRIEF), durable=True), Store()
    for now_us in range(5_000):
        out = Outbox()
        core.on_message(now_us, 7, Data((Message((now_us, now_us + 60), (), b""),)), out)
        store.save(out.saves)
    gauges = core.gauges(5_000)
    assert core.counters.delivered == 5_000
    assert gauges["barrier"] <= 2 * 60 + PURGE_AT_MIN
    assert store.count() <= 3 * (2 * 60 + PURGE_AT_MIN) + 2


def test_the_own_deliveries_of_a_node_that_only_broadcasts_are_forgotten_on_expiry():
    order, store = Unordered("bob", BRIEF), Store()
    core = make(order, durable=True)
    for now_us in range(5_000):
        out = Outbox()
        core.on_broadcast(now_us, b"", out)
        store.save(out.saves)
    assert core.gauges(5_000)["delivered"] <= 2 * 60 + PURGE_AT_MIN
    assert store.count() <= 2 * (2 * 60 + PURGE_AT_MIN) + 2


@pytest.mark.parametrize("kind", [Barrier, Unordered])
@pytest.mark.parametrize("capacity", [None, 20])
def test_the_saved_rows_of_a_long_run_are_those_of_live_messages(kind, capacity):
    """Two nodes that exchange messages of many origins, of which a few have to wait."""
    cores = {n: make(kind(n, BRIEF), Options(capacity=capacity), durable=True) for n in (0, 1)}
    stores = {n: Store() for n in (0, 1)}
    counts = []
    for now_us in range(3_000):
        node = now_us % 2
        out = Outbox()
        spoken = cores[node].on_broadcast(now_us, b"", out) if now_us % 3 == 0 else None
        stores[node].save(out.saves)
        lost = ((f"eve{now_us}", now_us + 30),) if now_us % 5 == 0 else ()
        for target, core in cores.items():
            own = core.node == node and spoken is not None
            heard = Message((f"ann{now_us}", now_us + 60), lost, b"")
            out = Outbox()
            core.on_message(now_us, 7, Data(() if own else (heard,)), out)
            stores[target].save(out.saves)
        counts.append(max(store.count() for store in stores.values()))
    assert max(counts) <= 3 * (2 * 60 + PURGE_AT_MIN) + 2
    assert max(counts[2_000:]) <= max(counts[:1_000]), "they still grow"


# ---- what is held -------------------------------------------------------------------------------


def test_slots_below_the_capacity_are_those_of_held_messages():
    cache = Cache(1_000, "random", random.Random(1))
    for now_us in range(5_000):
        cache.add(messages(1, first=now_us + 60))
        cache.purge(now_us)
        assert not cache.evict(now_us)
        assert cache.gauges()["stored"] <= 2 * 60 + 64
        assert cache.gauges()["places"] <= 2 * (2 * 60 + 64)


# ---- what is known of neighbours ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [Barrier, Unordered, Vector])
@pytest.mark.parametrize("past", [(), (("eve", 1),)])
def test_evicted_ids_of_a_long_contact_are_remembered_up_to_a_bound(kind, past):
    """Whether it was delivered before, or waited."""
    core = make(kind("bob"), Options(capacity=10))
    for message in messages(3 * EVICTED_MAX, past):
        core.on_message(0, 7, Data((message,)), Outbox())
        assert core.gauges(0)["evicted"] <= EVICTED_MAX
    assert core.counters.evicted == 3 * EVICTED_MAX - 10


def test_announcements_of_expired_messages_are_not_remembered():
    core = make(Unordered("bob", BRIEF))
    for n in range(200):
        out = Outbox()
        core.on_message(1_000, 7, Announce(n, frozenset({("ann", n), ("ann", 1_000 - n)})), out)
        assert out.sends == []
    assert core.gauges(1_000)["theirs"] == 0


def test_a_peer_that_sends_refused_or_expired_messages_costs_bounded_memory():
    core = make(Barrier("bob", BRIEF))
    for now_us in range(200, 5_000):
        stale, wild = Message(("ann", now_us - 1), (), b""), Message(("eve", now_us << 20), (), b"")
        core.on_message(now_us, 7, Data((stale, wild)), Outbox())
    assert core.counters.stale + core.counters.refused == 2 * 4_800
    assert core.gauges(5_000)["theirs"] <= KNOWN_TO_PEER_MIN


def test_a_peer_that_announces_evicted_messages_again_costs_bounded_memory():
    core = make(Unordered("bob"), Options(capacity=10))
    for message in messages(5 * EVICTED_MAX):
        core.on_message(0, 7, Data((message,)), Outbox())
    for message in messages(5 * EVICTED_MAX):
        core.on_message(0, 7, Announce(1, frozenset({message.id})), Outbox())
    assert core.gauges(0)["theirs"] <= KNOWN_TO_PEER_MIN + 2 * 10


def test_unacked_of_a_peer_that_never_acknowledges_is_bounded_by_held_messages():
    core, heard = make(Unordered("bob", BRIEF), Options(retry_us=50)), []
    for now_us in range(3_000):
        out = Outbox()
        core.on_broadcast(now_us, b"", out)
        if now_us % 50 == 49:
            core.on_timer(now_us, RETRY_TIMER, out)
        heard += [frame for _, frame in out.sends]
        assert core.gauges(now_us)["unheard"] <= 60 + 50
    assert max(len(frame.ids) for frame in heard) <= 60
    core.on_message(3_000, 7, Request(heard[-1].number, frozenset()), Outbox())
    assert core.gauges(3_000)["unheard"] < 60 + 50


def test_a_copy_of_an_expired_message_counts_as_stale_purged_or_not():
    core, out = make(Unordered(0, Lifetimes(100, 100, skew_us=0))), Outbox()
    message = Message((9, 50), (), b"", stamp=0)
    for now_us in (10, 20, 60):
        core.on_message(now_us, 7, Data((message,)), out)
    assert core.counters.received == 1
    assert core.counters.duplicate == 1
    assert core.counters.stale == 1


def test_a_request_for_an_expired_message_is_not_repeated():
    core, out = make(Unordered(0, Lifetimes(100, 100, skew_us=0)), Options(retry_us=30)), Outbox()
    core.on_message(10, 7, Announce(1, frozenset({(9, 50), (9, 90)})), out)
    out.clear()
    core.on_timer(60, RETRY_TIMER, out)
    assert [frame.ids for _, frame in out.sends] == [frozenset({(9, 90)})]
    assert core.gauges(60)["asking"] == 1
    out.clear()
    core.on_timer(95, RETRY_TIMER, out)
    assert (out.sends, out.timers) == ([], [])
