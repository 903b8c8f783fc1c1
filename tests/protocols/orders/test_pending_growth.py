"""The work per message does not grow with the number of waiting messages.

Comparisons are counted instead of seconds: the counts are the same on every machine.
"""

import pytest

from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders import pending
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes

LIFETIMES = Lifetimes(1 << 40, 1 << 40, skew_us=0)
START = 1 << 20
SMALL, LARGE = 250, 4_000
GROWTH_MAX = 2
"""A heap compares log2(LARGE) / log2(SMALL) = 1.5 times as often per message; a scan 16 times."""


class Tally:
    count = 0


class Seq(int):
    """A seq that counts how often it is compared."""

    __hash__ = int.__hash__

    def __lt__(self, other):
        Tally.count += 1
        return int(self) < int(other)

    def __le__(self, other):
        Tally.count += 1
        return int(self) <= int(other)

    def __gt__(self, other):
        Tally.count += 1
        return int(self) > int(other)

    def __ge__(self, other):
        Tally.count += 1
        return int(self) >= int(other)

    def __eq__(self, other):
        Tally.count += 1
        return int(self) == int(other)


class Entry(pending.Pending, eq=False):
    """An entry that counts how often it is compared."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        Tally.count += 1
        return self is other


def chain(count):
    """Of one origin: each message waits for the one before it."""
    seqs = [Seq(START + n) for n in range(count + 1)]
    return [Message(("ann", seqs[n]), (("ann", seqs[n - 1]),), b"") for n in range(1, count + 1)]


def crowd(count):
    """Of many origins: all wait for one message."""
    return [Message((n, Seq(2 * START)), (("ann", Seq(START)),), b"") for n in range(count)]


def rows(count):
    """Of many origins: each message waits for another one of a single origin."""
    return [Message((n, Seq(2 * START)), (("ann", Seq(START + n)),), b"") for n in range(count)]


def wake(order, messages):
    """One delivery sets all of them free in turn; of rows, as many deliveries as messages."""
    causes = dict.fromkeys(int(seq) for message in messages for _, seq in message.past[:1])
    first = [START] if messages[-1].origin == "ann" else causes
    out = Outbox()
    for seq in first:
        order.on_receive(0, [Message(("ann", Seq(seq)), (), b"")], out)
    return len(out.deliveries) - len(first)


def expire(order, messages):
    """All causes expire, one after the other."""
    out = Outbox()
    for now_us in sorted({int(seq) for message in messages for _, seq in message.past}):
        order.on_timer(now_us, out)
    return len(out.deliveries)


def expire_at_once(order, messages):
    out = Outbox()
    order.on_timer(START + len(messages) - 1, out)
    return len(out.deliveries) + len(out.losses)


def drop(order, messages):
    """The cache evicts all of them, the latest first."""
    out = Outbox()
    order.on_evict(0, [message.id for message in reversed(messages)], out)
    return len(out.losses)


def comparisons_per_message(make, end, lifetimes, count):
    order, messages = Barrier("bob", lifetimes), make(count)
    order.on_receive(0, messages, Outbox())
    assert len(order.pending()) == count
    Tally.count = 0
    assert end(order, messages) == count
    assert not order.pending()
    return Tally.count / count


@pytest.mark.parametrize("make", [chain, crowd, rows])
@pytest.mark.parametrize(
    ("end", "lifetimes"),
    [
        *((wake, None), (wake, LIFETIMES), (expire, LIFETIMES), (expire_at_once, LIFETIMES)),
        *((drop, None), (drop, LIFETIMES)),
    ],
)
def test_many_waiting_messages_cost_no_more_each_than_few(make, end, lifetimes, monkeypatch):
    monkeypatch.setattr(pending, "Pending", Entry)
    few = comparisons_per_message(make, end, lifetimes, SMALL)
    many = comparisons_per_message(make, end, lifetimes, LARGE)
    assert many <= GROWTH_MAX * max(few, 1)
