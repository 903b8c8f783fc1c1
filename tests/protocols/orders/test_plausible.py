"""Plausible clocks: R entries for any number of nodes, and an order with probability."""

import random

import pytest

from beforehand.check.rules.oracle import Oracle
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message, MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.plausible import Plausible
from beforehand.protocols.orders.vector import Vector


def hear(order, *messages):
    out = Outbox()
    order.on_receive(3, messages, out)
    return [message.id for message in out.deliveries]


def say(order):
    return order.on_broadcast(0, b"", Outbox())


def test_message_has_at_most_as_many_entries_as_the_clock():
    nodes = [Plausible(node, 3) for node in range(9)]
    for node in nodes:
        message = say(node)
        for other in nodes:
            if other is not node:
                hear(other, message)
    assert say(nodes[0]).past == ((-1, 3), (-2, 3), (-3, 3))


def test_effect_waits_for_its_cause_and_explains_the_missing_count():
    ann, bob, eve = (Plausible(node, 3) for node in range(3))
    first = say(ann)
    hear(bob, first)
    second = say(bob)
    assert hear(eve, second) == []
    assert eve.explain(second.id) == MessageStatus("waiting", ((-1, 1),), 3)
    assert eve.explain(first.id) == MessageStatus("unknown")
    assert eve.pending() == (second.id,)
    assert hear(eve, first) == [first.id, second.id]
    assert eve.explain(second.id) == MessageStatus("delivered")
    assert hear(eve, first, second) == []
    assert eve.counters.duplicate == 2


def test_message_of_the_same_entry_stands_in_for_a_cause_and_the_cause_comes_late():
    ann, bob, eve, dan = (Plausible(node, 2) for node in (0, 1, 3, 2))
    cause, other = say(ann), say(dan)  # both count in entry 0
    hear(bob, cause)
    effect = say(bob)
    assert hear(eve, other, effect, cause) == [other.id, effect.id, cause.id]


def test_own_broadcast_releases_a_message_that_waits_for_its_entry():
    ann, bob, dan = Plausible(0, 2), Plausible(1, 2), Plausible(2, 2)
    cause = say(ann)
    hear(bob, cause)
    effect = say(bob)
    assert hear(dan, effect) == []
    out = Outbox()
    own = dan.on_broadcast(5, b"", out)
    assert [message.id for message in out.deliveries] == [own.id, effect.id]


def test_evicted_message_is_reported_and_may_come_again():
    ann, bob = Plausible("ann", 4), Plausible("bob", 4)
    first, second = say(ann), say(ann)
    hear(bob, second)
    out = Outbox()
    bob.on_evict(4, [second.id, first.id], out)
    assert out.losses == [("drop", second.id)]
    assert hear(bob, second) == []
    assert hear(bob, first) == [first.id, second.id]


def test_counts_of_an_earlier_incarnation_come_back():
    ann, bob = Plausible("ann", 4), Plausible("bob", 4)
    bob.durable = True
    first, second, third = say(ann), say(ann), say(ann)
    out = Outbox()
    bob.on_receive(0, [first], out)
    own = bob.on_broadcast(0, b"", out)
    again = Plausible("bob", 4)
    again.restore({"delivered": {id: True for _, id, _ in out.saves}})
    assert again.has_delivered(first.id)
    assert hear(again, third, second) == [second.id, third.id]
    assert say(again).id == ("bob", own.seq + 1)


@pytest.mark.parametrize("past", [((0, 1),), (("ann", 1),), ((-9, 1),), ((-1, 0),)])
def test_clock_that_no_correct_node_sends_is_refused(past):
    bob = Plausible("bob", 8)
    assert bob.screen(0, [Message(("ann", 1), past, b"")]) == []
    assert bob.counters.refused == 1


def test_node_below_zero_is_refused_because_entries_are_written_so():
    with pytest.raises(LocalError):
        Plausible(-1)


def play(make, nodes, seed):
    """Deliver every message to every node in random order; return the oracle."""
    rng, oracle = random.Random(seed), Oracle()
    orders = [make(node) for node in range(nodes)]
    under_way = []

    def tell(node, out):
        for message in out.deliveries:
            oracle.see(node, "deliver", message.id)

    for _ in range(400):
        node = rng.randrange(nodes)
        if rng.random() < 0.15:
            out = Outbox()
            message = orders[node].on_broadcast(0, b"", out)
            oracle.see(node, "broadcast", message.id)
            tell(node, out)
            under_way += [(other, message) for other in range(nodes) if other != node]
        elif under_way:
            at = rng.randrange(len(under_way))
            under_way[at], under_way[-1] = under_way[-1], under_way[at]
            receive(orders, tell, *under_way.pop())
    rng.shuffle(under_way)
    for node, message in under_way:
        receive(orders, tell, node, message)
    return oracle


def receive(orders, tell, node, message):
    out = Outbox()
    assert orders[node].screen(0, [message]) == [message]
    orders[node].on_receive(0, [message], out)
    tell(node, out)


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_delivered_once_and_late_at_most(seed):
    oracle = play(lambda node: Plausible(node, 2), 6, seed)
    assert {violation.kind for violation in oracle.violations} <= {"late"}
    assert all(set(ids) == set(oracle.pasts) for ids in oracle.delivered.values())


@pytest.mark.parametrize("seed", range(20))
def test_with_an_entry_for_each_node_it_delivers_as_vector_clocks_do(seed):
    plausible, vector = play(lambda node: Plausible(node, 6), 6, seed), play(Vector, 6, seed)
    assert plausible.violations == vector.violations == []
    assert plausible.pasts == vector.pasts


def late_with(size):
    return sum(len(play(lambda node: Plausible(node, size), 12, s).violations) for s in range(10))


def test_fewer_entries_make_more_deliveries_late():
    late = [late_with(size) for size in (1, 2, 6, 12)]
    assert late == sorted(late, reverse=True)
    assert late[0] > late[2] > late[3] == 0
