"""The paper's deadlines go wrong under skew and shrinking lifetimes; the fixed rule does not.

Each scenario is played with both rules. `literal_deadlines` is OPP Code 9 and 10 as printed.
"""

import pytest

from beforehand.check.rules.oracle import judge
from beforehand.protocols.contract.base import Message, MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import CHAIN_GRACE_US, EARLY_MAX, ORDER_TIMER, Lifetimes
from beforehand.protocols.orders.pending import DEADLINES_MIN
from beforehand.protocols.orders.unordered import Unordered

SECOND = 1_000_000
LIFETIMES = Lifetimes(60 * SECOND, 60 * SECOND, skew_us=5 * SECOND)


class Stage:
    """Three nodes whose clocks may be wrong, and the log of what they do."""

    def __init__(self, *, literal, offsets_s=(0, 0, 0)):
        self.nodes = [Barrier(n, LIFETIMES, literal_deadlines=literal) for n in range(3)]
        self.offsets_s = offsets_s
        self.rows = []

    def speak(self, node, at_s, lifetime_s=60):
        out = Outbox()
        now_us = int((at_s + self.offsets_s[node]) * SECOND)
        message = self.nodes[node].on_broadcast(now_us, b"", out, lifetime_s * SECOND)
        self.rows.append((node, "broadcast", message.id))
        self._note(node, out)
        return message

    def hear(self, node, message, at_s):
        now_us = int((at_s + self.offsets_s[node]) * SECOND)
        out = Outbox()
        welcome = self.nodes[node].screen(now_us, [message])
        self.nodes[node].on_receive(now_us, welcome, out)
        self._note(node, out)

    def _note(self, node, out):
        self.rows += [(node, "deliver", message.id) for message in out.deliveries]


def shrinking_lifetimes(stage):
    """m2 depends on m1 but expires first; node 2 then delivers m3 before m1."""
    first = stage.speak(0, at_s=0, lifetime_s=60)
    stage.hear(1, first, at_s=1)
    second = stage.speak(1, at_s=2, lifetime_s=10)
    third = stage.speak(1, at_s=3, lifetime_s=60)
    assert third.past == (second.id,)
    stage.hear(2, third, at_s=20)
    stage.hear(2, first, at_s=30)


def clock_behind(stage):
    """The same with equal lifetimes: node 1's clock is behind, so its deadlines come early."""
    first = stage.speak(0, at_s=10)
    stage.hear(1, first, at_s=10)
    stage.speak(1, at_s=11)
    third = stage.speak(1, at_s=18)
    stage.hear(2, third, at_s=68)
    stage.hear(2, first, at_s=69)


def clock_ahead(stage):
    """Node 1's clock is ahead: it takes m1 for expired and does not name it, others still may."""
    first = stage.speak(0, at_s=10)
    stage.hear(1, first, at_s=11)
    second = stage.speak(1, at_s=67)
    stage.hear(2, second, at_s=68)
    stage.hear(2, first, at_s=69)


SCENARIOS = [
    pytest.param(shrinking_lifetimes, (0, 0, 0), id="shrinking-lifetimes"),
    pytest.param(clock_behind, (0, -4, 0), id="clock-behind"),
    pytest.param(clock_ahead, (0, 4, 0), id="clock-ahead"),
]


@pytest.mark.parametrize(("scenario", "offsets_s"), SCENARIOS)
def test_the_paper_literal_deadlines_break_causal_order(scenario, offsets_s):
    stage = Stage(literal=True, offsets_s=offsets_s)
    scenario(stage)
    assert [violation.kind for violation in judge(stage.rows)] == ["late"]


@pytest.mark.parametrize(("scenario", "offsets_s"), SCENARIOS)
def test_the_fixed_deadlines_keep_causal_order(scenario, offsets_s):
    stage = Stage(literal=False, offsets_s=offsets_s)
    scenario(stage)
    assert judge(stage.rows) == []


# ---- deferral -----------------------------------------------------------------------------------


def all_clocks_set_back(stage):
    """Node 0 leaves m1 out by its clock, which is ahead by less than the skew. Node 2 reads no
    clock until all three are set back: for it m1 has not expired. Return the last time shown."""
    m1 = stage.speak(1, at_s=90, lifetime_s=10)
    stage.hear(0, m1, at_s=90)
    m3 = stage.speak(0, at_s=105, lifetime_s=50)
    assert m3.past == ()
    stage.hear(2, m3, at_s=95)  # the clocks show 99, 95, 95 now
    stage.hear(2, m1, at_s=95)
    return m1, m3


def test_clocks_that_are_all_set_back_do_not_let_a_cause_be_delivered_after_its_effect():
    stage = Stage(literal=False)
    m1, m3 = all_clocks_set_back(stage)
    assert judge(stage.rows) == []
    assert (2, "deliver", m1.id) in stage.rows
    assert stage.nodes[2].explain(m3.id) == MessageStatus("waiting", (), 95 * SECOND, 100 * SECOND)
    out = Outbox()
    stage.nodes[2].on_timer(100 * SECOND, out)
    assert [message.id for message in out.deliveries] == [m3.id]


def receive(order, *messages, now_us=0):
    """Return the deliveries and the other effects."""
    out = Outbox()
    order.on_receive(now_us, order.screen(now_us, messages), out)
    return [message.id for message in out.deliveries], out


def make(origin, deadline_s, *past, stamp_s):
    return Message((origin, deadline_s * SECOND), past, b"", stamp=stamp_s * SECOND)


def test_a_message_of_a_clock_ahead_by_more_than_the_skew_is_delivered_when_ours_is_near():
    bob = Barrier("bob", LIFETIMES)
    assert receive(bob, near := make("ann", 60, stamp_s=5))[0] == [near.id]
    delivered, out = receive(bob, ahead := make("eve", 60, stamp_s=9))
    assert delivered == []
    assert out.timers == [(ORDER_TIMER, 4 * SECOND)]
    assert bob.pending() == (ahead.id,)
    assert bob.explain(ahead.id) == MessageStatus("waiting", (), 0, 4 * SECOND)
    bob.on_timer(4 * SECOND - 1, out)
    assert out.deliveries == []
    bob.on_timer(4 * SECOND, out)
    assert out.deliveries == [ahead]
    assert bob.gauges(4 * SECOND)["deadlines"] == 0


def test_an_effect_waits_for_its_deferred_cause_and_for_its_own_stamp():
    bob = Barrier("bob", LIFETIMES)
    cause = make("ann", 60, stamp_s=8)
    effect = make("eve", 61, cause.id, stamp_s=10)
    assert receive(bob, effect)[0] == receive(bob, cause)[0] == []
    assert bob.explain(effect.id) == MessageStatus("waiting", (cause.id,), 0)
    out = Outbox()
    bob.on_timer(3 * SECOND, out)
    assert out.deliveries == [cause]
    assert bob.explain(effect.id) == MessageStatus("waiting", (), 0, 5 * SECOND)
    assert out.timers == [(ORDER_TIMER, 5 * SECOND)]
    bob.on_timer(5 * SECOND, out)
    assert out.deliveries == [cause, effect]


def test_a_deferred_message_that_is_evicted_is_dropped_and_may_come_again():
    bob = Barrier("bob", LIFETIMES)
    earlier, ahead = make("eve", 60, stamp_s=8), make("ann", 60, stamp_s=9)
    receive(bob, earlier)
    for round in range(200):
        receive(bob, ahead)
        bob.on_evict(0, [ahead.id], Outbox())
        assert bob.gauges(0)["deadlines"] <= DEADLINES_MIN + 2 * 2 + 1
        assert bob.counters.dropped == round + 1
    receive(bob, ahead)
    out = Outbox()
    bob.on_timer(4 * SECOND, out)
    assert out.deliveries == [ahead, earlier]
    assert bob.pending() == ()


def test_a_second_version_of_a_deferred_message_waits_for_its_own_causes():
    """From an origin that signs two messages under one id; the first was evicted meanwhile."""
    bob = Barrier("bob", LIFETIMES)
    receive(bob, make("eve", 60, stamp_s=8))
    receive(bob, first := make("ann", 60, stamp_s=9))
    bob.on_evict(0, [first.id], Outbox())
    receive(bob, second := make("ann", 60, ("carl", 50 * SECOND), stamp_s=9))
    out = Outbox()
    bob.on_timer(4 * SECOND, out)
    assert second.id not in [message.id for message in out.deliveries]
    assert bob.explain(second.id).missing == second.past


def test_a_deferred_message_expires_if_the_clock_jumps_beyond_its_deadline():
    bob = Barrier("bob", LIFETIMES)
    ahead = make("ann", 10, stamp_s=9)
    receive(bob, ahead)
    out = Outbox()
    bob.on_timer(10 * SECOND, out)
    assert (out.deliveries, out.losses) == ([], [("expire", ahead.id)])


def test_a_deferred_message_that_was_saved_is_deferred_after_a_restart():
    held = make("ann", 60, stamp_s=9)
    bob, out = Barrier("bob", LIFETIMES), Outbox()
    bob.restore({})
    bob.on_receive(SECOND, [held], out)
    assert out.deliveries == []
    bob.on_timer(4 * SECOND, out)
    assert out.deliveries == [held]


@pytest.mark.parametrize("order", [Barrier, Unordered])
def test_a_message_ahead_by_more_than_twice_the_skew_is_not_refused_for_good(order):
    bob = order("bob", LIFETIMES)
    ahead = make("ann", 60, stamp_s=13)
    assert bob.screen(0, [ahead]) == []
    assert (bob.counters.early, bob.counters.refused) == (1, 0)
    assert bob.early == {ahead.id: 3 * SECOND}
    assert bob.next_early_us() == 3 * SECOND
    assert bob.take_early(3 * SECOND - 1) == []
    assert bob.take_early(3 * SECOND) == [ahead.id]
    assert bob.early == {}
    assert bob.next_early_us() is None
    assert bob.screen(3 * SECOND, [ahead]) == [ahead]


def test_an_early_message_is_forgotten_when_it_returns_in_time_or_expires():
    bob = Barrier("bob", LIFETIMES)
    first, second = make("ann", 60, stamp_s=13), make("ann", 61, stamp_s=14)
    assert bob.screen(0, [first, second]) == []
    assert bob.screen(3 * SECOND, [first]) == [first]
    assert list(bob.early) == [second.id]
    assert bob.take_early(61 * SECOND) == []
    assert bob.early == {}


def test_the_latest_early_messages_are_remembered():
    bob = Barrier("bob", LIFETIMES)
    bob.screen(0, [make(n, 60, stamp_s=13) for n in range(EARLY_MAX + 3)])
    assert list(bob.early) == [(n, 60 * SECOND) for n in range(3, EARLY_MAX + 3)]


LATEST_US = 65 * SECOND + CHAIN_GRACE_US


@pytest.mark.parametrize("now_us", [0, 30 * SECOND])
@pytest.mark.parametrize(
    ("after_stamp_us", "is_valid"),
    [
        (-5 * SECOND, False),
        (-5 * SECOND + 1, True),
        (LATEST_US, True),
        (LATEST_US + 1, False),
    ],
)
def test_whether_stamp_and_deadline_belong_together_is_decided_by_no_clock(
    now_us, after_stamp_us, is_valid
):
    bob, stamp = Barrier("bob", LIFETIMES), 37 * SECOND
    message = Message(("ann", stamp + after_stamp_us), (), b"", stamp=stamp)
    bob.screen(now_us, [message])
    assert bob.counters.refused == (not is_valid)


def test_a_message_from_before_there_were_stamps_is_refused():
    bob = Barrier("bob", LIFETIMES)
    now_us = 1_000 * SECOND
    assert bob.screen(now_us, [Message(("ann", now_us + 60 * SECOND), (), b"")]) == []
    assert bob.counters.refused == 1


def test_the_latest_possible_deadline_of_a_cause_makes_no_invalid_effect():
    """A member gives its messages the latest deadline that its stamp allows; bob answers."""
    bob, carl = Barrier("bob", LIFETIMES), Barrier("carl", LIFETIMES)
    cause = Message(("eve", 5 * SECOND + LATEST_US), (), b"", stamp=5 * SECOND)
    assert receive(bob, cause)[0] == [cause.id]
    effect = bob.on_broadcast(0, b"", Outbox(), SECOND)
    assert effect.stamp == 5 * SECOND + 1
    receive(carl, cause, effect)
    assert carl.counters.refused == 0


def test_a_broadcast_after_the_clock_was_set_back_lives_beyond_the_horizon():
    """Otherwise the message would have expired at its broadcast."""
    for bob in (Barrier("bob", LIFETIMES), Unordered("bob", LIFETIMES)):
        bob.on_receive(100 * SECOND, [], Outbox())
        message = bob.on_broadcast(90 * SECOND, b"", Outbox(), SECOND)
        assert (message.stamp, message.seq) == (100 * SECOND, 101 * SECOND)


def test_the_deadline_of_an_effect_is_beyond_the_largest_of_its_causes():
    """Whichever comes first, of an own message and others."""
    for deadlines_s in ((30, 50), (50, 30)):
        bob = Barrier("bob", LIFETIMES)
        receive(bob, *(make(n, at_s, stamp_s=0) for n, at_s in enumerate(deadlines_s)))
        effect = bob.on_broadcast(0, b"", Outbox(), SECOND)
        assert effect.seq == 50 * SECOND + 1
        assert bob.on_broadcast(0, b"", Outbox(), SECOND).seq == effect.seq + 1


def test_own_messages_that_came_back_from_others_are_early_too_and_make_no_invalid_ones():
    bob, carl = Barrier("bob", LIFETIMES), Barrier("carl", LIFETIMES)
    bob.proofs = Proofs("group", lambda _: b"proof", lambda *_: True)
    ours = Message(("bob", 9 * SECOND + LATEST_US), (), b"", stamp=9 * SECOND)
    too_early = Message(("bob", 80 * SECOND), (), b"", stamp=19 * SECOND)
    assert bob.screen(0, [too_early, ours]) == [ours]
    assert (bob.counters.early, bob.counters.regained) == (1, 1)
    following = bob.on_broadcast(0, b"", Outbox(), SECOND)
    assert following.seq == ours.seq + 1
    assert list(carl.screen(0, [following])) == [following]


def test_the_judge_follows_causes_through_what_a_node_missed():
    """Node 2 missed m1 and yet its m3 comes after it."""
    m1, m2, m3 = (0, 1), (1, 1), (2, 1)
    rows = [(0, "broadcast", m1), (1, "deliver", m1), (1, "broadcast", m2), (2, "deliver", m2)]
    rows += [(2, "broadcast", m3), (3, "deliver", m3), (3, "deliver", m1)]
    assert [violation.kind for violation in judge(rows)] == ["late"]
