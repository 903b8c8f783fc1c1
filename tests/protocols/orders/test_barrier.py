"""Causal and Δ-causal order, one step at a time (OPP sections IV and V)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.check.rules.oracle import Oracle
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message, MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import CHAIN_GRACE_US, ORDER_TIMER, Lifetimes
from beforehand.protocols.orders.vector import Vector

MINUTE = 60_000_000
TEN_MINUTES = Lifetimes(10 * MINUTE, 20 * MINUTE, skew_us=0)


def ids(messages):
    return [message.id for message in messages]


def speak(order, now_us=0, lifetime_us=None):
    return order.on_broadcast(now_us, b"", Outbox(), lifetime_us)


def hear(order, *messages, now_us=0):
    """Receive a message, and return the deliveries."""
    out = Outbox()
    order.on_receive(now_us, messages, out)
    return ids(out.deliveries)


def test_a_broadcast_is_delivered_at_home_at_once():
    out = Outbox()
    message = Barrier("ann").on_broadcast(0, b"hello", out)
    assert message.id == ("ann", 1)
    assert out.deliveries == [message]
    assert out.sends == []


def test_a_message_names_what_its_sender_delivered_since_its_last_broadcast():
    ann, bob = Barrier("ann"), Barrier("bob")
    first, second = speak(ann), speak(ann)
    hear(bob, first, second)
    assert speak(bob).past == (("ann", 2),)
    assert speak(bob).past == (("bob", 1),)


def test_a_minimal_barrier_leaves_out_what_another_entry_reaches():
    ann, bob, eve = (Barrier(name) for name in ("ann", "bob", "eve"))
    question = speak(ann)
    hear(bob, question)
    answer = speak(bob)
    hear(eve, question, answer)
    assert speak(eve).past == (("bob", 1),)


def test_a_minimal_barrier_keeps_what_is_newer_than_the_cover():
    ann, bob, eve = (Barrier(name) for name in ("ann", "bob", "eve"))
    first = speak(ann)
    hear(bob, first)
    answer = speak(bob)  # names only the first
    second = speak(ann)
    hear(eve, first, second)
    hear(eve, answer)
    assert set(speak(eve).past) == {("ann", 2), ("bob", 1)}


def test_a_literal_barrier_names_everything_since_the_last_broadcast():
    ann, bob = Barrier("ann"), Barrier("bob")
    eve = Barrier("eve", literal_barriers=True)
    question = speak(ann)
    hear(bob, question)
    answer = speak(bob)
    hear(eve, question, answer)
    assert set(speak(eve).past) == {("ann", 1), ("bob", 1)}


def test_a_literal_barrier_is_emptied_by_the_own_broadcast():
    ann, bob = Barrier("ann"), Barrier("bob", literal_barriers=True)
    hear(bob, speak(ann))
    speak(bob)
    assert speak(bob).past == (("bob", 1),)


def test_an_effect_waits_for_its_cause():
    ann, bob, eve = (Barrier(name) for name in ("ann", "bob", "eve"))
    question = speak(ann)
    hear(bob, question)
    answer = speak(bob)
    assert hear(eve, answer, now_us=7) == []
    assert eve.explain(answer.id) == MessageStatus("waiting", (question.id,), 7)
    assert hear(eve, question) == [question.id, answer.id]
    assert eve.explain(answer.id) == MessageStatus("delivered")


def test_messages_of_one_origin_are_delivered_in_their_order():
    ann, bob = Barrier("ann"), Barrier("bob")
    first, second, third = speak(ann), speak(ann), speak(ann)
    assert hear(bob, third) == []
    assert hear(bob, second) == []
    assert hear(bob, first) == [first.id, second.id, third.id]


def test_a_message_that_comes_again_is_not_delivered_again():
    ann, bob = Barrier("ann"), Barrier("bob")
    first = speak(ann)
    assert hear(bob, first) == [first.id]
    assert hear(bob, first) == []
    assert bob.counters.duplicate == 1


def test_a_message_that_comes_again_while_it_waits_waits_on_since_it_first_came():
    ann, bob = Barrier("ann"), Barrier("bob")
    first, second = speak(ann), speak(ann)
    hear(bob, second, now_us=1)
    hear(bob, second, now_us=2)
    assert bob.counters.duplicate == 1
    assert bob.explain(second.id) == MessageStatus("waiting", (first.id,), 1)
    assert hear(bob, first, now_us=3) == [first.id, second.id]


def test_a_pending_message_that_is_evicted_is_dropped_and_may_return():
    ann, bob = Barrier("ann"), Barrier("bob")
    first, second = speak(ann), speak(ann)
    hear(bob, second)
    out = Outbox()
    bob.on_evict(0, [second.id], out)
    assert out.losses == [("drop", second.id)]
    assert bob.explain(second.id).state == "unknown"
    assert hear(bob, first) == [first.id]
    assert hear(bob, second) == [second.id]


def test_an_evicted_message_that_returns_waits_only_once():
    ann, bob = Barrier("ann"), Barrier("bob")
    first, second = speak(ann), speak(ann)
    hear(bob, second)
    bob.on_evict(0, [second.id], Outbox())
    assert hear(bob, second) == []
    assert hear(bob, first) == [first.id, second.id]


def test_a_lifetime_is_refused_where_there_are_none_and_where_it_is_too_long():
    with pytest.raises(LocalError, match="no message lifetimes"):
        speak(Barrier("ann"), lifetime_us=MINUTE)
    for wrong in (0, -1, 21 * MINUTE):
        with pytest.raises(LocalError, match="outside"):
            speak(Barrier("ann", TEN_MINUTES), lifetime_us=wrong)


def test_with_lifetimes_the_seq_is_the_deadline():
    ann = Barrier("ann", TEN_MINUTES)
    assert speak(ann, now_us=5).seq == 5 + 10 * MINUTE
    assert speak(ann, now_us=7, lifetime_us=20 * MINUTE).seq == 7 + 20 * MINUTE


def test_deadlines_of_one_origin_grow_strictly_even_at_one_instant():
    ann = Barrier("ann", TEN_MINUTES)
    seqs = [speak(ann, now_us=5).seq, speak(ann, now_us=5).seq]
    seqs.append(speak(ann, now_us=5, lifetime_us=1).seq)
    assert seqs == sorted(set(seqs))


def test_an_expired_predecessor_is_not_waited_for():
    ann, bob = Barrier("ann", TEN_MINUTES), Barrier("bob", TEN_MINUTES)
    first = speak(ann, now_us=0)
    second = speak(ann, now_us=MINUTE)
    assert hear(bob, second, now_us=2 * MINUTE) == []
    out = Outbox()
    bob.on_timer(first.seq, out)
    assert ids(out.deliveries) == [second.id]


def test_a_timer_is_set_for_the_first_predecessor_to_expire():
    ann, bob = Barrier("ann", TEN_MINUTES), Barrier("bob", TEN_MINUTES)
    first, second = speak(ann, now_us=0), speak(ann, now_us=MINUTE)
    out = Outbox()
    bob.on_receive(2 * MINUTE, [second], out)
    assert out.timers == [(ORDER_TIMER, first.seq)]


def test_after_one_deadline_the_timer_is_set_for_the_next():
    bob = Barrier("bob", TEN_MINUTES)
    effects = [Message(("ann", n + MINUTE), (("eve", n),), b"") for n in (5 * MINUTE, 7 * MINUTE)]
    hear(bob, *effects)
    for due_us, rest in ((5 * MINUTE, [(ORDER_TIMER, 7 * MINUTE)]), (7 * MINUTE, [])):
        out = Outbox()
        bob.on_timer(due_us, out)
        assert len(out.deliveries) == 1
        assert out.timers == rest


def test_an_expired_message_is_not_called_delivered_because_a_later_one_was():
    ann, bob = Barrier("ann", TEN_MINUTES), Barrier("bob", TEN_MINUTES)
    first, second, third = (speak(ann, now_us=n * MINUTE) for n in (0, 5, 8))
    assert hear(bob, second, now_us=first.seq) == [second.id]
    assert hear(bob, third, now_us=first.seq) == [third.id]
    states = [bob.explain(message.id).state for message in (first, second, third)]
    assert states == ["expired", "delivered", "delivered"]


def test_an_expired_message_is_not_delivered_when_its_last_predecessor_expires_with_it():
    bob = Barrier("bob", TEN_MINUTES)
    deadline = 10 * MINUTE
    careless = Message(("eve", deadline), (("ann", deadline),), b"")
    assert hear(bob, careless) == []
    out = Outbox()
    bob.on_timer(deadline, out)
    assert out.deliveries == []
    assert out.losses == [("expire", careless.id)]
    assert bob.counters.expired == 1
    assert bob.explain(careless.id).state == "expired"


def test_a_message_with_an_earlier_deadline_than_its_predecessor_expires_on_time():
    bob = Barrier("bob", TEN_MINUTES)
    careless = Message(("eve", 5 * MINUTE), (("ann", 9 * MINUTE),), b"")
    out = Outbox()
    bob.on_receive(0, [careless], out)
    assert out.timers == [(ORDER_TIMER, 5 * MINUTE)]
    out.clear()
    bob.on_timer(5 * MINUTE, out)
    assert out.losses == [("expire", careless.id)]


def test_a_message_past_its_deadline_is_stale():
    ann, bob = Barrier("ann", TEN_MINUTES), Barrier("bob", TEN_MINUTES)
    message = speak(ann)
    assert bob.screen(message.seq, [message]) == []
    assert hear(bob, message, now_us=message.seq) == []
    assert bob.counters.stale == 2


def test_a_deadline_too_far_ahead_is_refused_as_a_peers_error():
    bob = Barrier("bob", TEN_MINUTES)
    latest = 20 * MINUTE + CHAIN_GRACE_US
    fine = Message(("ann", latest), (), b"")
    wild = Message(("ann", latest + 1), (), b"")
    assert bob.screen(0, [fine, wild]) == [fine]
    assert bob.counters.refused == 1


def test_a_foreign_message_under_the_own_origin_is_refused():
    bob = Barrier("bob")
    speak(bob)
    assert bob.screen(0, [Message(("bob", 1), (), b""), Message(("bob", 2), (), b"")]) == [
        Message(("bob", 1), (), b"")
    ]
    assert bob.counters.refused == 1


@pytest.mark.parametrize("order", [Barrier("bob"), Barrier("bob", TEN_MINUTES), Vector("bob")])
def test_a_message_that_names_itself_as_its_cause_is_refused(order):
    """The message would wait for ever."""
    fine = Message(("ann", MINUTE), (("eve", 1),), b"")
    loop = Message(("ann", MINUTE), (("eve", 1), ("ann", MINUTE)), b"")
    assert order.screen(0, [fine]) == [fine]
    assert order.screen(0, [loop]) == []
    assert order.counters.refused == 1
    ours = Message(("bob", MINUTE), (), b"")  # with a company that must be looked at one by one
    assert order.screen(0, [loop, fine, ours]) == [fine]
    assert order.counters.refused == 3


def test_the_co_delivered_registry_shrinks_with_lifetimes_and_only_grows_without():
    mortal, immortal = Barrier("bob", TEN_MINUTES), Barrier("bob")
    for index in range(200):
        now_us = index * MINUTE
        for name, order, lifetimes in (("m", mortal, TEN_MINUTES), ("i", immortal, None)):
            hear(order, speak(Barrier(f"{name}{index}", lifetimes), now_us), now_us=now_us)
    assert mortal.gauges(200 * MINUTE)["delivered"] == 9
    assert len(mortal._waiting.delivered) <= 64
    assert immortal.gauges(200 * MINUTE)["delivered"] == 200


def test_a_clock_that_is_set_back_does_not_revive_expired_messages():
    ann, bob = Barrier("ann", TEN_MINUTES), Barrier("bob", TEN_MINUTES)
    first, second = speak(ann, now_us=0), speak(ann, now_us=9 * MINUTE)
    assert hear(bob, second, now_us=first.seq) == [second.id]
    assert hear(bob, first, now_us=first.seq - MINUTE) == []


@given(st.data())
def test_any_order_of_reception_gives_a_causal_order_of_delivery(data):
    """Lemma: whatever the network does, deliveries respect happened-before, none comes twice."""
    is_mortal = data.draw(st.booleans())
    lifetimes = Lifetimes(50, 50, skew_us=0) if is_mortal else None
    orders = [Barrier(node, lifetimes) for node in range(3)]
    oracle, sent, now_us = Oracle(), [], 0
    for _ in range(data.draw(st.integers(1, 30))):
        now_us += data.draw(st.integers(0, 20)) if is_mortal else 0
        node = data.draw(st.integers(0, 2))
        out = Outbox()
        if not sent or data.draw(st.booleans()):
            lifetime_us = data.draw(st.integers(1, 50)) if is_mortal else None
            message = orders[node].on_broadcast(now_us, b"", out, lifetime_us)
            sent.append(message)
        else:
            message = data.draw(st.sampled_from(sent))
            if message.origin != node:
                orders[node].on_receive(now_us, [message], out)
        for delivered in out.deliveries:
            if delivered.id == sent[-1].id and delivered.origin == node:
                oracle.see(node, "broadcast", delivered.id)
            oracle.see(node, "deliver", delivered.id)
    assert oracle.violations == []


@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_messages_received_in_time_are_delivered_in_time(gaps, rng):
    """Deadlines grow along causality: all that a message waits for expires before it does."""
    lifetimes = Lifetimes(100, 100, skew_us=0)
    speakers = [Barrier(node, lifetimes) for node in range(3)]
    listener, now_us, sent = Barrier(9, lifetimes), 0, []
    for gap in gaps:
        now_us += gap
        speaker = rng.choice(speakers)
        for message in sent:
            if rng.random() < 0.5 and message.origin != speaker.node and message.seq > now_us:
                hear(speaker, message, now_us=now_us)
        sent.append(speak(speaker, now_us, rng.randint(1, 100)))
    heard = [message for message in sent if rng.random() < 0.5 and message.seq > now_us]
    out = Outbox()
    listener.on_receive(now_us, heard, out)
    for due_us in range(now_us, now_us + 400):
        listener.on_timer(due_us, out)
    assert {message.id for message in heard} == set(ids(out.deliveries))
    assert out.losses == []
