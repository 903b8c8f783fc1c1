"""Crash and restart: the state that an order and the epidemic layer must save."""

import pytest
from tests.protocols.nets import make

from beforehand.check.net.signer import make_proofs
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.epidemic.frames import Data
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import PURGE_AT_MIN, Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector

MINUTE = 60_000_000
TEN_MINUTES = Lifetimes(10 * MINUTE, 10 * MINUTE, skew_us=2 * MINUTE)


def ids(messages):
    return [message.id for message in messages]


def speak(order, now_us=0):
    return order.on_broadcast(now_us, b"", Outbox())


def durable(order):
    """Make an order durable, as the epidemic layer does."""
    order.durable = True
    return order


def restored(order, store):
    durable(order).restore(store.load(order.tables))
    return order


def do(store, take_in, *args):
    """Give one input, apply its saves, and return its deliveries."""
    out = Outbox()
    take_in(*args, out)
    store.save(out.saves)
    return ids(out.deliveries)


# ---- orders -------------------------------------------------------------------------------------


def test_a_restored_node_continues_where_it_stopped():
    ann, bob, store = Barrier("ann"), durable(Barrier("bob")), Store()
    do(store, bob.on_broadcast, 0, b"")
    do(store, bob.on_receive, 0, [speak(ann)])
    again = restored(Barrier("bob"), store)
    message = speak(again)
    assert message.id == ("bob", 2)
    assert set(message.past) == {("bob", 1), ("ann", 1)}
    assert do(store, again.on_receive, 0, [Message(("ann", 1), (), b"")]) == []


def test_a_restored_vector_continues_where_it_stopped():
    ann, bob, store = Vector("ann"), durable(Vector("bob")), Store()
    do(store, bob.on_broadcast, 0, b"")
    first = speak(ann)
    do(store, bob.on_receive, 0, [first])
    again = restored(Vector("bob"), store)
    message = speak(again)
    assert message.id == ("bob", 2)
    assert set(message.past) == {("bob", 1), ("ann", 1)}
    assert do(store, again.on_receive, 0, [first]) == []


def test_the_saved_barrier_equals_the_barrier():
    ann, eve = Barrier("ann"), Barrier("eve")
    bob, store = durable(Barrier("bob")), Store()
    question = speak(ann)
    do(store, bob.on_receive, 0, [question])
    out = Outbox()
    answer = bob.on_broadcast(0, b"", out)
    store.save(out.saves)
    eve.on_receive(0, [question, answer], Outbox())
    do(store, bob.on_receive, 0, [speak(eve)])
    assert store.load(bob.tables)["barrier"] == bob._barrier == {"eve": 1}


@pytest.mark.parametrize("speaks", [True, False])
def test_a_predecessor_that_expired_on_every_clock_is_not_named_after_a_restart(speaks):
    """Whether it was taken out of the barrier by a broadcast, or because there were many."""
    lifetimes = Lifetimes(100, 100, skew_us=10)
    bob, store = durable(Barrier("bob", lifetimes)), Store()
    heard = [Message((n, 50 if n else 90), (), b"") for n in range(PURGE_AT_MIN + 1)]
    do(store, bob.on_receive, 0, heard)
    do(store, bob.on_broadcast, 70, b"") if speaks else do(store, bob.on_timer, 70)
    assert store.load(bob.tables)["barrier"] == bob._barrier
    assert set(bob._barrier) == {"bob" if speaks else 0}


def given_up(store):
    """A node that delivered the effect after the deadline of the cause; and the cause."""
    ann, dan = Barrier("ann", TEN_MINUTES), Barrier("dan", TEN_MINUTES)
    bob = durable(Barrier("bob", TEN_MINUTES))
    cause = speak(ann, now_us=0)
    dan.on_receive(0, [cause], Outbox())
    effect = speak(dan, now_us=9 * MINUTE)
    assert effect.past == (cause.id,)
    assert do(store, bob.on_receive, cause.seq, [effect]) == [effect.id]
    return bob, cause


def test_an_expired_message_stays_expired_when_the_clock_is_set_back():
    bob, cause = given_up(Store())
    assert do(Store(), bob.on_receive, cause.seq - MINUTE, [cause]) == []
    assert bob.counters.stale == 1


def test_an_expired_message_is_not_accepted_when_the_clock_is_set_back():
    bob, cause = given_up(Store())
    assert bob.screen(cause.seq - MINUTE, [cause]) == []


def test_a_message_expired_before_a_crash_stays_expired_when_clocks_fall():
    store = Store()
    _, cause = given_up(store)
    again = restored(Barrier("bob", TEN_MINUTES), store)
    late_us = cause.seq - MINUTE  # the clock was set back, within the agreed skew
    assert again.screen(late_us, [cause]) == []
    assert do(store, again.on_receive, late_us, [cause]) == []


def test_a_forgotten_delivery_is_not_repeated_after_a_restart_in_the_past():
    bob, store = durable(Barrier("bob", TEN_MINUTES)), Store()
    many = [Message((n, 10 * MINUTE), (), b"") for n in range(PURGE_AT_MIN - 1)]
    assert len(do(store, bob.on_receive, 0, many)) == PURGE_AT_MIN - 1
    do(store, bob.on_broadcast, 0, b"")  # from here on, the barrier is empty but for this one
    do(store, bob.on_receive, 10 * MINUTE, [])
    assert list(store.load(bob.tables)["delivered"]) == ["bob"]
    again = restored(Barrier("bob", TEN_MINUTES), store)
    assert again.screen(9 * MINUTE, [many[0]]) == []
    assert do(store, again.on_receive, 9 * MINUTE, [many[0]]) == []


def test_a_cause_that_was_left_out_before_a_restart_is_not_delivered_after_the_next_message():
    """Causes leave the barrier by bob's clock. It is set back, and bob broadcasts."""
    bob, store = durable(Barrier("bob", TEN_MINUTES)), Store()
    origins = range(2 * PURGE_AT_MIN)
    do(store, bob.on_receive, 0, [Message((n, 9 * MINUTE), (), b"") for n in origins])
    for _ in range(2):
        do(store, bob.on_broadcast, 0, b"")
    causes = [Message((n, 10 * MINUTE - 1), (), b"") for n in origins[:PURGE_AT_MIN]]
    do(store, bob.on_receive, 0, causes)
    do(store, bob.on_timer, 12 * MINUTE + 1)
    assert len(store.load(bob.tables)["delivered"]) == len(origins) + 1  # of these, none went
    again = restored(Barrier("bob", TEN_MINUTES), store)
    effect = speak(again, now_us=9 * MINUTE)
    assert effect.past == ()
    carl = Barrier("carl", TEN_MINUTES)
    assert do(Store(), carl.on_receive, 9 * MINUTE, [effect]) == []
    assert do(Store(), carl.on_receive, 9 * MINUTE, causes[:1]) == [causes[0].id]


def forgotten(store):
    """A node that delivered many messages and forgot them when they expired; and one of them."""
    bob = durable(Unordered("bob", TEN_MINUTES))
    many = [Message((n, 10 * MINUTE), (), b"") for n in range(PURGE_AT_MIN)]
    assert len(do(store, bob.on_receive, 0, many)) == PURGE_AT_MIN
    do(store, bob.on_receive, 10 * MINUTE, [])
    assert bob.gauges(0)["delivered"] == 0
    return bob, many[0]


def test_without_order_too_forgotten_messages_stay_forgotten_when_the_clock_is_set_back():
    bob, message = forgotten(Store())
    assert do(Store(), bob.on_receive, 9 * MINUTE, [message]) == []
    assert bob.counters.stale == 1


def test_without_order_too_forgotten_messages_are_not_accepted_when_the_clock_is_set_back():
    bob, message = forgotten(Store())
    assert bob.screen(9 * MINUTE, [message]) == []


def test_without_order_too_messages_forgotten_before_a_crash_are_not_delivered_after_it():
    store = Store()
    _, message = forgotten(store)
    again = restored(Unordered("bob", TEN_MINUTES), store)
    assert again.screen(9 * MINUTE, [message]) == []
    assert do(store, again.on_receive, 9 * MINUTE, [message]) == []


@pytest.mark.parametrize("kind", [Barrier, Unordered])
def test_a_message_alive_for_another_second_is_not_forgotten(kind):
    order = kind("bob", TEN_MINUTES)
    heard = [Message((n, 10 * MINUTE), (), b"") for n in range(2 * PURGE_AT_MIN)]
    order.on_receive(0, heard, Outbox())
    assert do(Store(), order.on_receive, 10 * MINUTE - 1, heard) == []
    assert order.counters.duplicate == 2 * PURGE_AT_MIN


# ---- the layer ----------------------------------------------------------------------------------


def test_a_restored_node_holds_its_messages_and_delivers_pending_ones():
    alive = Barrier(0)
    first, second = speak(alive), speak(alive)
    again, store, out = make(1, order=Barrier(1), durable=True), Store(), Outbox()
    store.save([("message", second.id, second)])
    again.restore(0, store.load(again.tables), out)
    assert out.deliveries == []
    again.on_link(0, 0, True, out)
    out.clear()
    again.on_message(0, 0, Data((first,)), out)
    assert [message.id for message in out.deliveries] == [first.id, second.id]
    assert again.holds(0) == {first.id, second.id}


def test_evicted_messages_are_not_held_again_after_a_restart():
    def core():
        return make(1, Options(capacity=2), Barrier(1), durable=True)

    bob, store = core(), Store()
    for _ in range(5):
        do(store, bob.on_broadcast, 0, b"")
    again = core()
    again.restore(0, store.load(again.tables), Outbox())
    assert again.holds(0) == bob.holds(0) == {(1, 4), (1, 5)}


@pytest.mark.parametrize("kind", [Barrier, Unordered, Vector])
def test_a_durable_layer_makes_its_order_durable(kind):
    """Otherwise a restart would deliver its own message again, and drop the next one."""
    bob, store = make(1, order=kind(1), durable=True), Store()
    assert do(store, bob.on_broadcast, 0, b"") == [(1, 1)]
    again = make(1, order=kind(1), durable=True)
    assert do(store, again.restore, 0, store.load(again.tables)) == []
    assert do(store, again.on_broadcast, 0, b"") == [(1, 2)]
    assert again.holds(0) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("kind", [Barrier, Unordered, Vector])
def test_a_layer_that_is_not_durable_saves_nothing(kind):
    bob, store = make(1, order=kind(1)), Store()
    do(store, bob.on_broadcast, 0, b"")
    assert bob.tables == ()
    assert store.count() == 0


def test_messages_expired_before_a_crash_are_not_offered_when_the_clock_falls_back():
    bob, store = make(1, order=Barrier(1, TEN_MINUTES), durable=True), Store()
    do(store, bob.on_broadcast, 0, b"")
    do(store, bob.on_broadcast, 10 * MINUTE, b"")  # the first has expired
    again = make(1, order=Barrier(1, TEN_MINUTES), durable=True)
    do(store, again.restore, 9 * MINUTE, store.load(again.tables))
    assert again.holds(9 * MINUTE) == {(1, 20 * MINUTE)}


def test_without_order_expired_messages_stay_expired_after_a_restart_with_the_clock_back():
    lifetimes = Lifetimes(1000, 1000, skew_us=2000)
    bob, store, out = make(0, order=Unordered(0, lifetimes), durable=True), Store(), Outbox()
    bob.on_broadcast(5000, b"", out)
    store.save(out.saves)
    assert bob.explain((1, 4000)).state == "expired"
    again = make(0, order=Unordered(0, lifetimes), durable=True)
    again.restore(3500, store.load(again.tables), Outbox())
    assert again.explain((1, 4000)).state == "expired"


def test_a_core_that_saved_nothing_starts_from_nothing():
    for order in (Barrier(0), Vector(0), Unordered(0)):
        core = make(0, order=order)
        core.restore(0, {}, Outbox())
        assert core.on_broadcast(0, b"", Outbox()) == (0, 1)


def test_forgotten_own_messages_are_accepted_and_recorded_once():
    order = durable(Barrier("ann", TEN_MINUTES))
    order.proofs = object()  # the layer has checked what it hands on
    lost, other = Message(("ann", 5 * MINUTE), (), b""), Message(("bob", 6 * MINUTE), (), b"")
    saved = []
    for message in (lost, other):
        (welcome,) = order.screen(0, [message])
        out = Outbox()
        order.on_receive(0, [welcome], out)
        assert ids(out.deliveries) == [message.id]
        saved += [row for row in out.saves if row[1] == "forgotten"]
    assert saved == [("own", "forgotten", 5 * MINUTE)]
    assert order.last_seq() == order.forgotten == 5 * MINUTE
    assert (order.counters.regained, order.counters.refused) == (1, 0)


@pytest.mark.parametrize("lifetimes", [None, TEN_MINUTES])
def test_a_node_whose_own_message_came_back_does_not_reuse_its_seq_after_a_restart(lifetimes):
    """The cause of the message is missing, so nothing is delivered that would save it too."""
    order, store = durable(Barrier("ann", lifetimes)), Store()
    order.proofs = object()  # the layer has checked what it hands on
    lost = Message(("ann", 11 * MINUTE), (("bob", 5 * MINUTE),), b"")
    assert do(store, order.on_receive, 0, order.screen(0, [lost])) == []
    again = restored(Barrier("ann", lifetimes), store)
    assert again.last_seq() == again.forgotten == lost.seq
    assert speak(again, now_us=0).seq == lost.seq + 1


def test_a_node_does_not_broadcast_while_its_regained_messages_wait_for_causes():
    """Else `effect`, which names the lost message, would be delivered before the lost cause."""
    order = durable(Barrier("ann"))
    order.proofs = make_proofs("sound", "ann", 0)
    cause = Message(("bob", 1), (), b"")
    lost = Message(("ann", 1), (("bob", 1),), b"")
    effect = Message(("carol", 1), (("ann", 1),), b"")
    order.on_receive(0, order.screen(0, [effect, lost]), Outbox())
    out = Outbox()
    with pytest.raises(LocalError, match="before it lost its state wait for their causes"):
        order.on_broadcast(0, b"", out)
    assert out == Outbox()
    order.on_receive(0, order.screen(0, [cause]), out)
    assert ids(out.deliveries) == [cause.id, lost.id, effect.id]
    assert order.on_broadcast(0, b"", Outbox()).id == ("ann", 2)
