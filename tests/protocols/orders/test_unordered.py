"""The baseline: delivery on reception, once."""

from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.unordered import Unordered


def hear(order, *messages, now_us=0):
    out = Outbox()
    order.on_receive(now_us, messages, out)
    return [message.id for message in out.deliveries]


def test_delivers_in_the_order_of_arrival_and_never_twice():
    order = Unordered("bob")
    second, first = Message(("ann", 2), (), b""), Message(("ann", 1), (), b"")
    assert hear(order, second, first, second) == [("ann", 2), ("ann", 1)]
    assert order.counters.duplicate == 1


def test_forgets_what_has_expired_and_does_not_deliver_it():
    order = Unordered("bob", Lifetimes(10, 10, skew_us=0))
    for seq in range(1, 500):
        assert hear(order, Message(("ann", seq + 10), (), b""), now_us=seq)
    assert len(order._delivered) <= 64
    assert hear(order, Message(("ann", 20), (), b""), now_us=499) == []
    assert order.counters.stale == 1
