"""The vector-clock yardstick."""

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message, MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.vector import Vector


def hear(order, *messages):
    out = Outbox()
    order.on_receive(3, messages, out)
    return [message.id for message in out.deliveries]


def speak(order):
    return order.on_broadcast(0, b"", Outbox())


def test_a_message_carries_everything_its_sender_delivered():
    ann, bob, eve = (Vector(name) for name in ("ann", "bob", "eve"))
    first = speak(ann)
    hear(bob, first)
    second = speak(bob)
    hear(eve, first, second)
    assert set(speak(eve).past) == {("ann", 1), ("bob", 1)}


def test_an_effect_waits_for_its_cause_and_explain_names_it():
    ann, bob, eve = (Vector(name) for name in ("ann", "bob", "eve"))
    first = speak(ann)
    hear(bob, first)
    second = speak(bob)
    assert hear(eve, second) == []
    assert eve.explain(second.id) == MessageStatus("waiting", (first.id,), 3)
    assert hear(eve, first) == [first.id, second.id]
    assert hear(eve, first, second) == []


def test_a_message_that_comes_again_while_it_waits_waits_on_since_it_first_came():
    ann, bob = Vector("ann"), Vector("bob")
    first, second = speak(ann), speak(ann)
    hear(bob, second)
    bob.on_receive(9, [second], Outbox())
    assert bob.explain(second.id) == MessageStatus("waiting", (first.id,), 3)
    assert bob.counters.duplicate == 1
    assert hear(bob, first) == [first.id, second.id]


def test_the_own_sequence_is_kept():
    ann, bob = Vector("ann"), Vector("bob")
    first, second = speak(ann), speak(ann)
    assert hear(bob, second) == []
    assert hear(bob, first) == [first.id, second.id]


def test_there_are_no_lifetimes():
    with pytest.raises(LocalError):
        Vector("ann").on_broadcast(0, b"", Outbox(), 5)


def test_a_foreign_message_under_the_own_origin_is_refused():
    ann = Vector("ann")
    assert ann.screen(0, [Message(("ann", 1), (), b"")]) == []
    assert ann.counters.refused == 1
