"""Several broadcasts as one input have the effects of single broadcasts."""

from __future__ import annotations

import random

import pytest

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Data
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector

LIFETIMES = Lifetimes(default_us=1000, longest_us=5000)
ORDERS = {
    "barrier": lambda: Barrier("ann"),
    "delta": lambda: Barrier("ann", LIFETIMES),
    "vector": lambda: Vector("ann"),
    "unordered": lambda: Unordered("ann", LIFETIMES),
}


def proofs():
    return Proofs("harbour", lambda _: b"1", lambda *_: True, lambda all_of: [b"n"] * len(all_of))


def core(kind, **options):
    return Epidemic("ann", ORDERS[kind](), random.Random(1), durable=True, **options)


@pytest.mark.parametrize("kind", ORDERS)
def test_batched_broadcasts_equal_single_ones(kind):
    together, alone = core(kind), core(kind)
    out, others = Outbox(), Outbox()
    said = [(b"a", None), (b"b", None), (b"c", None)]
    ids = together.on_broadcasts(10, said, out)
    assert ids == [alone.on_broadcast(10, payload, others) for payload, _ in said]
    assert out.deliveries == others.deliveries
    assert {(t, k): v for t, k, v in out.saves} == {(t, k): v for t, k, v in others.saves}


@pytest.mark.parametrize("kind", ["barrier", "delta"])
def test_proofs_of_a_batch_are_made_together_and_travel_with_each_message(kind):
    out = Outbox()
    told = core(kind, proofs=proofs())
    told.on_broadcasts(10, [(b"a", None), (b"b", None)], out)
    saved = [value for _, _, value in out.saves if isinstance(value, Message)]
    assert [message.proof for message in out.deliveries] == [b"n", b"n"]
    assert saved == out.deliveries
    told.on_broadcasts(10, [(b"c", None)], out)
    assert out.deliveries[-1].proof == b"1", "one alone needs no more"


@pytest.mark.parametrize("kind", ORDERS)
def test_one_invalid_broadcast_rejects_its_whole_batch(kind):
    out, told = Outbox(), core(kind)
    with pytest.raises(LocalError):
        told.on_broadcasts(10, [(b"a", None), (b"b", 999_999)], out)
    assert out == Outbox()
    assert told.counters.broadcast == 0


@pytest.mark.parametrize("sign_all", [None, lambda all_of: [b""] * len(all_of)])
def test_a_batch_that_cannot_be_signed_is_not_broadcast(sign_all):
    broken = Proofs("harbour", lambda _: b"", lambda *_: True, sign_all)
    out, told = Outbox(), core("delta", proofs=broken)
    with pytest.raises(LocalError):
        told.on_broadcasts(10, [(b"a", None), (b"b", None)], out)
    assert out == Outbox()
    assert told.counters.broadcast == 0


@pytest.mark.parametrize("kind", ORDERS)
def test_a_signer_that_fails_at_the_second_of_several_broadcasts_leaves_all_unsent(kind):
    signatures = iter([b"1"])

    def sign(_):
        try:
            return next(signatures)
        except StopIteration:
            raise LocalError("the signer failed", where="here", hint="try again") from None

    out, told = Outbox(), core(kind, proofs=Proofs("harbour", sign, lambda *_: True))
    before = told.order.last_seq()
    with pytest.raises(LocalError):
        told.on_broadcasts(10, [(b"a", None), (b"b", None)], out)
    assert out == Outbox()
    assert (told.counters.broadcast, told.order.last_seq()) == (0, before)


@pytest.mark.parametrize("kind", ["barrier", "vector"])
def test_messages_waiting_for_one_of_a_batch_are_delivered_after_the_whole_batch(kind):
    """A message that names a later broadcast is released by it; the others do not name it."""
    out, told = Outbox(), core(kind)
    told.on_link(0, "eve", True, out)
    told.on_message(0, "eve", Data((Message(("eve", 1), (("ann", 1),), b"!"),)), out)
    told.on_broadcasts(10, [(b"a", None), (b"b", None)], out)
    assert [message.id for message in out.deliveries] == [("ann", 1), ("ann", 2), ("eve", 1)]
    told.on_broadcast(11, b"c", out)
    assert set(out.deliveries[-1].past) == {("ann", 2), ("eve", 1)}


class Listener:
    def __init__(self):
        self.told = []

    def broadcasted(self, node, message, deliveries):
        before = []
        for delivery in deliveries:
            if delivery.id == message:
                break
            before.append(delivery.payload)
        self.told.append((message[1], before))

    def deliver(self, node, messages):
        self.told.append([message.payload for message in messages])

    def send(self, node, sends): ...
    def wake(self, node, timer, due_us, ticket): ...
    def received(self, node, messages): ...
    def lost(self, node, losses): ...


def test_a_driver_reports_each_broadcast_with_the_deliveries_before_it():
    port = Listener()
    driver = BroadcasterDriver(lambda: core("barrier"), port, store=Store())
    assert driver.on_broadcasts(10, [(b"a", None), (b"b", None), (b"c", None)]) == [
        ("ann", 1),
        ("ann", 2),
        ("ann", 3),
    ]
    assert port.told == [(1, []), (2, [b"a"]), (3, [b"b"]), [b"a", b"b", b"c"]]


@pytest.mark.parametrize("crash_after", range(6))
def test_a_crash_during_a_batch_reports_all_or_none_of_it(crash_after):
    port = Listener()
    driver = BroadcasterDriver(lambda: core("barrier"), port, store=Store())
    driver.crash_after = crash_after
    driver.on_broadcasts(10, [(b"a", None), (b"b", None), (b"c", None)])
    assert [told[0] for told in port.told if isinstance(told, tuple)] == (
        [1, 2, 3] if crash_after else []
    )
    delivered = [payload for told in port.told if isinstance(told, list) for payload in told]
    assert delivered == [b"a", b"b", b"c"][: max(0, crash_after - 1)]
