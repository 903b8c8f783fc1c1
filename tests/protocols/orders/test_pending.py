"""The index of waiting messages: a delivery scans nothing and forgets no waiting message."""

from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.contract.base import Message
from beforehand.protocols.orders.order import LONG_AGO
from beforehand.protocols.orders.pending import Waiting


def message(origin, seq, *past):
    return Message((origin, seq), past, b"")


def test_a_delivery_touches_only_its_own_waiters():
    waiting = Waiting(expires=False)
    for index in range(1000):
        waiting.admit(0, message(f"other{index}", 1, ("never", 1)), LONG_AGO)
    waiting.admit(0, message("bob", 1, ("ann", 1)), LONG_AGO)
    touched = []
    waiting._advance = lambda entry, _: touched.append(entry) or True
    ready = waiting.admit(0, message("ann", 1), LONG_AGO)
    assert [m.id for m in ready] == [("ann", 1), ("bob", 1)]
    assert len(touched) == 1


def test_all_messages_waiting_for_one_message_are_woken():
    waiting = Waiting(expires=False)
    for name in ("bob", "eve", "dan"):
        waiting.admit(0, message(name, 1, ("ann", 1)), LONG_AGO)
    ready = waiting.admit(0, message("ann", 1), LONG_AGO)
    assert sorted(m.origin for m in ready) == ["ann", "bob", "dan", "eve"]
    assert ready[0].origin == "ann"
    assert waiting._waiters == {}


def test_a_later_message_of_an_origin_releases_those_waiting_for_an_earlier_one():
    waiting = Waiting(expires=False)
    assert waiting.admit(0, message("bob", 1, ("ann", 3)), LONG_AGO) == []
    ready = waiting.admit(0, message("ann", 5), LONG_AGO)
    assert [m.id for m in ready] == [("ann", 5), ("bob", 1)]


def test_a_message_overtaken_by_a_later_one_of_its_origin_is_late():
    waiting = Waiting(expires=True)
    waiting.admit(0, message("ann", 10, ("bob", 9)), 0)
    waiting.admit(0, message("ann", 20), 0)
    assert waiting.admit(0, message("bob", 9), 0) == [message("bob", 9)]
    assert [m.id for m in waiting.late] == [("ann", 10)]


def test_a_message_that_expires_with_its_predecessor_is_not_delivered_by_waking():
    """The waiter's own deadline is the instant at which it is woken: it lapses."""
    waiting = Waiting(expires=True)
    waiting.admit(0, message("bob", 10, ("ann", 5), ("eve", 7)), 0)
    expired, ready = waiting.expire(10)
    assert [m.id for m in expired] == [("bob", 10)]
    assert ready == []
    assert waiting.next_deadline_us() is None


def test_the_next_deadline_forgets_ids_without_waiters():
    waiting = Waiting(expires=True)
    waiting.admit(0, message("bob", 10, ("ann", 5)), 0)
    assert waiting.next_deadline_us() == 5
    waiting.admit(0, message("ann", 5), 0)
    assert waiting.next_deadline_us() is None


def test_missing_lists_everything_still_waited_for():
    waiting = Waiting(expires=False)
    waiting.admit(3, message("bob", 1, ("ann", 1), ("eve", 2), ("dan", 3)), LONG_AGO)
    waiting.admit(3, message("eve", 2), LONG_AGO)
    entry = waiting.pending["bob", 1]
    assert waiting.missing(entry, LONG_AGO) == (("ann", 1), ("dan", 3))


@given(st.permutations(range(8)), st.integers(0, 2**28 - 1))
def test_any_graph_of_predecessors_is_delivered_completely_and_in_order(arrival, bits):
    """Message i may name any smaller j (drawn from `bits`): a random causal graph."""
    pairs = [(i, j) for i in range(8) for j in range(i)]
    past = {i: [] for i in range(8)}
    for bit, (i, j) in enumerate(pairs):
        if bits >> bit & 1:
            past[i].append((j, 1))
    waiting, delivered = Waiting(expires=False), []
    for i in arrival:
        delivered += [m.origin for m in waiting.admit(0, message(i, 1, *past[i]), LONG_AGO)]
    assert sorted(delivered) == list(range(8))
    assert all(delivered.index(j) < delivered.index(i) for i in past for j, _ in past[i])
    assert waiting.pending == {}
    assert waiting._waiters == {}
