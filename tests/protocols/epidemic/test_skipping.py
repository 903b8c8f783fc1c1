"""Questions about causes that no peer sends, and when a node skips them."""

import pytest
from tests.protocols.nets import Net, make

from beforehand.check.rules.oracle import judge
from beforehand.errors import RemoteError
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic import skipping
from beforehand.protocols.epidemic.frames import Missing, NotHeld
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.skipping import ASK_TIMER
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.stamped import Stamped

SECOND = 1_000_000
DAY = 86_400 * SECOND
LIFETIMES = Lifetimes(30 * DAY, 30 * DAY, 5 * SECOND)
FULL = Options(push=True, digest_after=0, capacity=3, transfer="oldest")
NO_BOUND = Options(push=True, digest_after=0, transfer="oldest")


class Group(Net):
    """Nodes of the stamped order, with a clock and the timer of questions."""

    def __init__(self, *options):
        super().__init__(*(make(n, o, Stamped(n, LIFETIMES)) for n, o in enumerate(options)))
        self.timers, self.rows = {}, []

    def give(self, node, name, *args):
        out = super().give(node, name, *args)
        self.timers |= {(node, timer): due for timer, due in out.timers}
        self.rows += [(node, "deliver", message.id) for message in out.deliveries]
        return out

    def say(self, node, payload=b""):
        at = len(self.rows)
        out = self.give(node, "on_broadcast", payload)
        id = next(message.id for message in out.deliveries if message.id[0] == node)
        self.rows.insert(at, (node, "broadcast", id))
        self.settle()
        return id

    def link(self, a, b, *, up=True):
        super().link(a, b, up=up)
        self.settle()

    def wait(self, seconds):
        """Let time pass, with all questions and answers."""
        for _ in range(seconds):
            self.now_us += SECOND
            for key in [key for key, due in self.timers.items() if due <= self.now_us]:
                del self.timers[key]
                self.give(key[0], "on_timer", key[1])
                self.settle()

    def has(self, node):
        return [id for at, id in self.delivered if at == node]


def whole():
    """The messages of `with_full_stores`, from nodes that kept them all."""
    group = Group(NO_BOUND, NO_BOUND)
    group.link(0, 1)
    for n in range(8):
        group.now_us += SECOND
        group.say(n % 2)
    return [message for _, message in group.cores[0]._cache.entries.values()]


def with_full_stores():
    """Nodes 0 and 1 whose stores have lost their first messages, and node 2 that is new."""
    group = Group(FULL, FULL, NO_BOUND)
    group.link(0, 1)
    group.settle()
    said = []
    for n in range(8):
        group.now_us += SECOND
        said.append(group.say(n % 2))
    group.now_us += 60 * SECOND
    return group, said


def test_a_newcomer_to_full_stores_delivers_what_they_hold_after_ten_seconds():
    group, said = with_full_stores()
    group.link(2, 0)
    assert not group.has(2)
    group.wait(9)
    assert not group.has(2)
    group.wait(4)
    assert group.has(2) == said[5:]
    live = group.say(1)
    assert group.has(2)[-1] == live
    assert not judge(group.rows)
    assert group.cores[2].explain(said[0]).state == "missed"


def test_a_node_that_has_delivered_before_is_more_patient():
    group, said = with_full_stores()
    group.say(2)
    group.now_us += 120 * SECOND
    group.link(2, 0)
    group.wait(115)
    assert not set(said) & set(group.has(2))
    group.wait(10)
    assert set(group.has(2)) >= set(said[6:])  # node 0 has no room for more
    assert not judge(group.rows)


def test_without_patience_a_node_waits_until_the_cause_expires():
    group, _ = with_full_stores()
    group.cores[2]._skipping._patience_us = None
    group.link(2, 0)
    group.wait(400)
    assert not group.has(2)


def test_a_cause_that_some_peer_never_had_is_waited_for():
    """Without a peer that says `gone`, the cause may still come."""
    group = Group(NO_BOUND, NO_BOUND, NO_BOUND)
    group.link(0, 1)
    cause = group.say(0)
    group.link(0, 1, up=False)
    effect = group.say(1)
    group.cores[1]._cache._remove([cause])  # as a fault of its disk would
    del group.cores[1].order._waiting.digests[cause]
    group.cores[2]._skipping._patience_us = 0
    group.link(1, 2)
    group.wait(400)
    assert group.has(2) == []
    assert group.cores[2].explain(effect).missing == (cause,)
    group.link(0, 2)
    group.wait(3)
    assert group.has(2) == [cause, effect]


def test_a_message_of_a_connected_peer_is_fetched_before_anything_is_skipped():
    group, said = with_full_stores()
    keeper = group.cores[3] = make(3, NO_BOUND, Stamped(3, LIFETIMES))
    out = Outbox()
    keeper.order.on_receive(0, everything := [*whole()], out)
    keeper._store(0, everything, out)
    group.link(2, 0)
    group.wait(5)
    group.link(2, 3)
    group.wait(20)
    assert group.has(2) == said
    assert not judge(group.rows)


def test_the_count_stands_still_while_no_peer_is_connected():
    group, _ = with_full_stores()
    group.link(2, 0)
    group.wait(6)
    group.link(2, 0, up=False)
    group.wait(100)
    assert not group.has(2)
    group.link(2, 0)
    group.wait(3)
    assert not group.has(2)
    group.wait(8)
    assert group.has(2)


def test_a_peer_that_does_not_answer_does_not_count_after_thirty_seconds():
    group, said = with_full_stores()
    group.cores[3] = make(3, NO_BOUND, Stamped(3, LIFETIMES))
    group.link(2, 0)
    group.link(2, 3)
    group.cores[3]._skipping.on_message = lambda *_: None
    group.wait(25)
    assert not group.has(2)
    group.wait(20)
    assert group.has(2) == said[5:]


def test_a_cause_with_a_stamp_near_the_present_is_not_skipped():
    """Else a message could raise the floor of a node to the present."""
    group, said = with_full_stores()
    group.cores[2]._skipping._patience_us = 2 * SECOND
    group.now_us = said[4][1] - 4 * SECOND
    group.link(2, 0)
    group.wait(5)
    assert group.cores[2].order.id_floor(0) < said[4][1]
    group.wait(3)
    assert group.cores[2].order.id_floor(0) == said[4][1]


def test_nothing_is_skipped_while_an_earlier_message_is_requested():
    group, said = with_full_stores()
    group.link(2, 0)
    group.wait(3)
    group.cores[2]._links[0].requested.add((7, said[0][1]))
    group.wait(20)
    assert not group.has(2)
    group.cores[2]._links[0].requested.clear()
    group.give(2, "on_message", 0, NotHeld(frozenset(), frozenset()))
    group.wait(3)
    assert group.has(2) == said[5:]


def test_an_answer_comes_only_after_everything_is_announced():
    """So the asker knows that no announcement is outstanding."""
    group, said = with_full_stores()
    core = group.cores[0]
    group.give(0, "on_link", 2, True)
    group.give(0, "on_message", 2, Missing(frozenset(said[:1])))
    group.frames.clear()
    core._links[2].synced = False
    out = group.give(0, "on_timer", ASK_TIMER)
    assert not [frame for _, frame in out.sends if isinstance(frame, NotHeld)]
    core._links[2].synced = True
    core._skipping.is_armed = True
    out = group.give(0, "on_timer", ASK_TIMER)
    assert [frame for _, frame in out.sends] == [NotHeld(frozenset(said[:1]), frozenset())]


def test_an_answer_to_no_question_changes_nothing():
    group, said = with_full_stores()
    group.link(2, 0)
    group.give(2, "on_message", 0, NotHeld(frozenset(said), frozenset()))
    assert not group.cores[2]._skipping._asked[0].answers


def test_questions_of_a_peer_are_bounded(monkeypatch):
    monkeypatch.setattr(skipping, "IDS_MAX", 3)
    group = Group(NO_BOUND)
    group.give(0, "on_link", 1, True)
    for n in range(5):
        group.give(0, "on_message", 1, Missing(frozenset({(9, n), (8, n)})))
    assert group.cores[0].gauges(0)["questions"] == 3


def test_a_node_that_waits_for_nothing_asks_nothing_and_sets_no_timer():
    group = Group(NO_BOUND, NO_BOUND)
    group.link(0, 1)
    group.say(0)
    assert not any(timer == ASK_TIMER for _, timer in group.timers)
    assert not group.sent(Missing)


def test_an_order_without_a_floor_refuses_questions():
    group = Net(make(0, NO_BOUND, Barrier(0, LIFETIMES)))
    group.give(0, "on_link", 1, True)
    with pytest.raises(RemoteError, match="unknown frame Missing"):
        group.give(0, "on_message", 1, Missing(frozenset({(1, 1)})))
