"""The stamped order: free lifetimes, the floor, digests, merge messages."""

import msgspec
import pytest

from beforehand.check.rules.oracle import judge
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.orders import stamped, stamped_draft, stamped_message
from beforehand.protocols.orders.order import ORDER_TIMER, Lifetimes
from beforehand.protocols.orders.stamped import Stamped
from beforehand.protocols.orders.stamped_message import StampedMessage, digest_of

SECOND = 1_000_000
DAY = 86_400 * SECOND
SKEW = 5 * SECOND
LIFETIMES = Lifetimes(60 * SECOND, 30 * DAY, SKEW)


class Stage:
    """Nodes with their own clocks, and the log of what they do."""

    def __init__(self, nodes=4):
        self.nodes = [Stamped(node, LIFETIMES) for node in range(nodes)]
        self.stores = [Store() for _ in range(nodes)]
        for node in self.nodes:
            node.durable = True
        self.rows, self.losses = [], []

    def say(self, node, at_s, lifetime_s=60, payload=b"", out=None):
        out = out or Outbox()
        broadcast = [(payload, int(lifetime_s * SECOND))]
        *merges, message = self.nodes[node].on_broadcasts(int(at_s * SECOND), broadcast, out)
        self.rows.append((node, "broadcast", message.id))
        self.note(node, out)
        return (*merges, message) if merges else message

    def hear(self, node, *messages, at_s):
        out, now_us = Outbox(), int(at_s * SECOND)
        welcome = self.nodes[node].screen(now_us, messages)
        self.nodes[node].on_receive(now_us, welcome, out)
        return self.note(node, out)

    def skip(self, node, message, at_s):
        out = Outbox()
        self.nodes[node].skip(int(at_s * SECOND), message.id, out)
        return self.note(node, out)

    def ring(self, node, at_s):
        out = Outbox()
        self.nodes[node].on_timer(int(at_s * SECOND), out)
        return self.note(node, out)

    def restart(self, node):
        rows = self.stores[node].load(self.nodes[node].tables)
        self.nodes[node] = Stamped(node, LIFETIMES)
        self.nodes[node].durable = True
        self.nodes[node].restore(rows)

    def note(self, node, out):
        self.stores[node].save(out.saves)
        delivered = [message.id for message in out.deliveries]
        self.rows += [(node, "deliver", id) for id in delivered]
        self.losses += out.losses
        return delivered

    def state(self, node, message):
        return self.nodes[node].explain(message.id).state


@pytest.fixture
def stage():
    return Stage()


def changed(message, **fields):
    return msgspec.structs.replace(message, **fields)


# ---- lifetimes -----------------------------------------------------------------------------------


def test_a_message_of_ten_seconds_after_one_of_thirty_days_lives_ten_seconds(stage):
    stage.say(0, 0, lifetime_s=30 * 86_400)
    brief = stage.say(0, 1, lifetime_s=10)
    assert brief.deadline_us == 11 * SECOND


def test_a_brief_message_does_not_stand_for_a_cause_that_lives_longer(stage):
    """Else the third node lets the brief one expire, delivers what follows, and then the cause."""
    long = stage.say(0, 0, lifetime_s=60)
    stage.hear(1, long, at_s=1)
    brief = stage.say(1, 2, lifetime_s=10)
    last = stage.say(1, 3, lifetime_s=60)
    assert brief.past == (long.id,)
    assert last.past == (long.id, brief.id)
    assert not stage.hear(2, last, at_s=20)
    assert stage.hear(2, long, at_s=30) == [long.id, last.id]
    assert not judge(stage.rows)


def test_a_message_stands_for_causes_that_it_outlives(stage):
    first = stage.say(0, 0, lifetime_s=10)
    stage.hear(1, first, at_s=1)
    second = stage.say(1, 2, lifetime_s=60)
    assert stage.say(1, 3).past == (second.id,)


def test_a_skipped_cause_that_lives_longer_is_named_on(stage):
    """Node 2 never has the cause, but a node that hears of it only through node 2 must wait."""
    long = stage.say(0, 0, lifetime_s=1_000)
    stage.hear(1, long, at_s=1)
    brief = stage.say(1, 2, lifetime_s=60)
    stage.hear(2, brief, at_s=3)
    assert stage.skip(2, long, at_s=4) == [brief.id]
    last = stage.say(2, 5, lifetime_s=1_000)
    assert long.id in last.past
    assert not stage.hear(3, last, at_s=300)  # the brief one has expired
    assert stage.hear(3, long, at_s=301) == [long.id, last.id]
    assert not judge(stage.rows)


def test_explain_names_the_missing_cause_of_an_expired_brief_message(stage):
    long = stage.say(0, 0, lifetime_s=1_000)
    stage.hear(1, long, at_s=1)
    brief = stage.say(1, 2, lifetime_s=10)
    stage.hear(2, brief, at_s=3)
    assert stage.nodes[2].explain(brief.id).missing == (long.id,)
    assert not stage.ring(2, at_s=12)
    status = stage.nodes[2].explain(brief.id)
    assert (status.state, status.missing) == ("expired", (long.id,))
    assert stage.losses == [("expire", brief.id)]


def test_a_deadline_is_raised_a_little_to_that_of_a_cause_and_not_again_and_again(stage):
    """So equal lifetimes on unequal clocks cover each other."""
    ahead = stage.say(0, 4, lifetime_s=60)
    stage.hear(1, ahead, at_s=0)
    raised = stage.say(1, 0, lifetime_s=60)
    assert raised.deadline_us == ahead.deadline_us
    assert stage.say(1, 1, lifetime_s=1).deadline_us == 2 * SECOND
    at_s = 2
    for at_s in range(2, 40):
        last = stage.say(1, at_s, lifetime_s=60)
    assert last.deadline_us <= (at_s + 60 + 15) * SECOND


def test_the_deadline_lies_beyond_the_stamp_by_which_receivers_defer(stage):
    """A cause is ahead, so the stamp is: a brief message must still live when it is delivered."""
    ahead = stage.say(0, 5)
    stage.hear(1, ahead, at_s=0)
    brief = stage.say(1, 0, lifetime_s=1 / SECOND)
    assert brief.id[1] == ahead.id[1] + 1
    assert brief.deadline_us > brief.id[1] - SKEW


# ---- clocks --------------------------------------------------------------------------------------


def test_a_cause_is_left_out_only_when_it_has_expired_by_the_skew(stage):
    cause = stage.say(0, 0, lifetime_s=10)
    stage.hear(1, cause, at_s=1)
    named = stage.say(1, 14.9, lifetime_s=1)
    assert cause.id in named.past
    assert cause.id not in stage.say(1, 15, lifetime_s=1).past


def test_clocks_that_are_all_set_back_do_not_let_a_left_out_cause_come_later(stage):
    cause = stage.say(0, 3_600, lifetime_s=10)
    stage.hear(1, cause, at_s=3_601)
    effect = stage.say(1, 3_620, lifetime_s=9_000)
    assert effect.past == ()
    assert not stage.hear(2, effect, at_s=3_611)  # deferred: the stamp is ahead by 9 s
    assert stage.nodes[2].explain(effect.id).until_us == 3_615 * SECOND
    assert stage.ring(2, at_s=3_615) == [effect.id]
    assert not stage.hear(2, cause, at_s=3_605)
    assert not judge(stage.rows)


def test_a_message_ahead_by_more_than_twice_the_skew_is_asked_for_again(stage):
    ahead = stage.say(0, 100)
    assert not stage.hear(1, ahead, at_s=89)
    assert stage.nodes[1].counters.early == 1
    assert stage.nodes[1].take_early(90 * SECOND) == [ahead.id]
    assert stage.hear(1, ahead, at_s=95) == [ahead.id]


# ---- what no correct node sends ------------------------------------------------------------------


def test_a_message_whose_stamp_is_not_above_its_causes_is_refused(stage):
    cause = stage.say(0, 10)
    low = changed(
        StampedMessage((9, cause.id[1]), (cause.id,), b"", deadline=60 * SECOND),
        causes=((cause.deadline, digest_of(cause)),),
    )
    assert not stage.hear(1, low, at_s=10)
    assert stage.nodes[1].counters.refused == 1


@pytest.mark.parametrize(
    "deadline_us",
    [10 * SECOND - SKEW, 10 * SECOND + 30 * DAY + 1],
    ids=["before it may be delivered", "beyond the longest lifetime"],
)
def test_a_deadline_that_does_not_fit_the_stamp_is_refused(stage, deadline_us):
    assert not stage.hear(
        1, StampedMessage((9, 10 * SECOND), (), b"", deadline=deadline_us), at_s=1
    )
    assert stage.nodes[1].counters.refused == 1


def test_a_past_with_a_false_deadline_of_a_cause_is_refused(stage):
    """It would shorten the wait for the cause."""
    cause = stage.say(0, 0, lifetime_s=1_000)
    stage.hear(1, cause, at_s=1)
    liar = StampedMessage(
        (9, 2 * SECOND),
        (cause.id,),
        b"",
        deadline=60 * SECOND,
        causes=((SECOND, digest_of(cause)),),
    )
    assert not stage.hear(1, liar, at_s=3)
    assert stage.nodes[1].counters.refused == 1


def test_another_message_with_the_id_of_a_cause_does_not_stand_for_it(stage):
    """A writer sent two messages under one id. The effect follows the one that is not here."""
    one = stage.say(0, 0)
    other = changed(one, payload=b"other")
    stage.hear(1, other, at_s=1)
    effect = stage.say(1, 2)
    stage.hear(2, one, at_s=1)
    assert not stage.hear(2, effect, at_s=3)
    assert stage.nodes[2].explain(effect.id).missing == (one.id,)


def test_a_received_message_under_the_own_name_that_was_never_sent_is_refused(stage):
    assert not stage.hear(1, StampedMessage((1, SECOND), (), b"", deadline=9 * SECOND), at_s=1)
    assert stage.nodes[1].counters.refused == 1


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"causes": ()}, "do not fit"),
        ({"stamp": 5}, "second stamp"),
        ({"is_merge": True, "payload": b"x"}, "has a payload"),
    ],
    ids=["causes", "stamp", "merge"],
)
def test_a_message_that_contradicts_itself_has_a_flaw(stage, change, flaw):
    cause = stage.say(0, 0)
    message = stage.say(0, 1)
    assert message.past == (cause.id,)
    assert not message.flaw()
    assert flaw in changed(message, **change).flaw()


def test_causes_in_another_order_are_a_flaw(stage):
    pair = [stage.say(node, 0) for node in (0, 1)]
    stage.hear(2, *pair, at_s=1)
    message = stage.say(2, 1)
    back = changed(message, past=message.past[::-1], causes=message.causes[::-1])
    assert "not in order" in back.flaw()


def test_the_digest_covers_every_signed_field(stage):
    cause = stage.say(0, 0)
    message = stage.say(0, 1, payload=b"text")
    others = [
        changed(message, **change)
        for change in (
            {"id": (0, message.id[1] + 1)},
            {"payload": b"other"},
            {"deadline": message.deadline + 1},
            {"previous": digest_of(message)},
            {"past": (), "causes": ()},
            {"causes": ((cause.deadline + 1, digest_of(cause)),)},
            {"is_merge": True},
        )
    ]
    assert message.previous == digest_of(cause)
    assert len({digest_of(one) for one in (message, *others)}) == len(others) + 1
    assert digest_of(changed(message, proof=b"proof")) == digest_of(message)


# ---- the floor -----------------------------------------------------------------------------------


def blocked_at(stage):
    """Node 2 waits for `lost`, which no node holds any more, with two messages."""
    lost = stage.say(0, 0)
    stage.hear(1, lost, at_s=1)
    first = stage.say(1, 2)
    second = stage.say(1, 3)
    assert not stage.hear(2, second, at_s=4)
    assert not stage.hear(2, first, at_s=4)
    return lost, first, second


def test_after_a_skip_what_waited_is_delivered_in_order(stage):
    lost, first, second = blocked_at(stage)
    assert stage.nodes[2].blocked() == [lost.id]
    assert stage.skip(2, lost, at_s=20) == [first.id, second.id]
    assert stage.losses == [("miss", lost.id)]
    assert stage.nodes[2].counters.missed == 1
    assert not stage.nodes[2].blocked()


def test_a_skipped_message_that_comes_late_is_never_delivered(stage):
    lost, *_ = blocked_at(stage)
    stage.skip(2, lost, at_s=20)
    assert not stage.hear(2, lost, at_s=21)
    assert stage.state(2, lost) == "missed"
    assert not judge(stage.rows)


def test_a_late_message_below_the_floor_is_not_stored(stage):
    lost, *_ = blocked_at(stage)
    stage.skip(2, lost, at_s=20)
    assert not stage.nodes[2].screen(21 * SECOND, [lost])
    assert stage.nodes[2].counters.missed == 2  # as a cause, and when it came


def test_unrelated_messages_below_the_floor_are_not_delivered_either(stage):
    """One of them may be a cause of what the skip released."""
    early = stage.say(3, 0)
    for node in (0, 1):
        stage.hear(node, early, at_s=0)
    lost, *_ = blocked_at(stage)
    stage.skip(2, lost, at_s=20)
    assert not stage.hear(2, early, at_s=21)
    assert stage.state(2, early) == "missed"
    assert not judge(stage.rows)


def test_pending_messages_below_the_floor_are_delivered_in_the_order_of_their_stamps(stage):
    hidden = stage.say(0, 0)
    for node in (1, 3):
        stage.hear(node, hidden, at_s=0)
    first = stage.say(1, 1, lifetime_s=50)
    stage.hear(3, first, at_s=1)
    second = stage.say(3, 2, lifetime_s=50)
    stage.hear(0, second, at_s=3)
    lost = stage.say(0, 4)
    stage.hear(1, second, lost, at_s=4)
    last = stage.say(1, 5)
    assert not stage.hear(2, last, second, at_s=6)
    assert not stage.hear(2, first, at_s=6)
    assert stage.skip(2, lost, at_s=20) == [first.id, second.id, last.id]
    assert not judge(stage.rows)


def test_the_floor_survives_a_restart(stage):
    lost, *_ = blocked_at(stage)
    stage.skip(2, lost, at_s=20)
    stage.restart(2)
    assert not stage.hear(2, lost, at_s=21)
    assert not judge(stage.rows)


def test_a_cause_for_which_nothing_waits_any_more_is_not_skipped(stage):
    """All that waited expires in the step that would skip it."""
    lost, *_ = blocked_at(stage)
    assert not stage.skip(2, lost, at_s=100)
    assert stage.state(2, lost) == "unknown"


def test_own_messages_get_stamps_above_the_floor(stage):
    lost, other = stage.say(0, 20), stage.say(3, 21)
    stage.hear(1, lost, other, at_s=21)
    stage.hear(2, stage.say(1, 21), at_s=20)
    assert not stage.skip(2, lost, at_s=20)
    assert stage.say(2, 20).id[1] > lost.id[1]


def test_a_stamp_in_the_future_cannot_be_skipped(stage):
    ahead = stage.say(0, 4)
    stage.hear(1, ahead, at_s=0)
    effect = stage.say(1, 0)
    stage.hear(2, effect, at_s=0)
    assert not stage.skip(2, ahead, at_s=3)
    assert stage.state(2, ahead) == "unknown"


# ---- questions -----------------------------------------------------------------------------------


def test_an_id_that_never_existed_is_unknown_also_below_a_delivered_stamp(stage):
    message = stage.say(0, 10)
    assert stage.nodes[0].explain((0, message.id[1] - 1)).state == "unknown"
    assert stage.state(0, message) == "delivered"


def test_a_settled_message_is_distinguished_from_one_that_never_came(stage):
    lost, first, _ = blocked_at(stage)
    assert stage.nodes[1].has_settled(lost.id)
    assert not stage.nodes[2].has_settled(lost.id)
    stage.skip(2, lost, at_s=20)
    assert stage.nodes[2].has_settled(lost.id)
    assert stage.nodes[2].has_settled(first.id)


def test_the_timer_is_set_for_the_next_deadline_only(stage):
    out = Outbox()
    long = stage.say(0, 0, lifetime_s=100)
    stage.hear(1, long, at_s=1)
    brief = stage.say(1, 2, lifetime_s=10)
    stage.nodes[2].on_receive(3 * SECOND, [brief], out)
    assert out.timers == [(ORDER_TIMER, brief.deadline_us)]


# ---- memory --------------------------------------------------------------------------------------


def test_six_hundred_causes_are_folded_into_merge_messages(stage):
    causes = [StampedMessage((100 + n, SECOND), (), b"", deadline=50 * SECOND) for n in range(600)]
    assert len(stage.hear(0, *causes, at_s=1)) == 600
    merge, message = stage.say(0, 2)
    assert merge.is_internal
    assert not message.is_internal
    assert len(merge.past) == stamped_message.PAST_MAX
    assert len(message.past) <= stamped_message.PAST_MAX
    assert {*merge.past, *message.past} == {*(cause.id for cause in causes), merge.id}
    assert merge.deadline == max(cause.deadline for cause in causes)
    assert stage.hear(1, *causes, merge, message, at_s=3)[-1] == message.id
    assert len(stage.say(1, 4).past) == 1
    assert stage.nodes[0].counters.broadcast == 1


def test_many_causes_that_outlive_a_message_are_named_through_one_merge_message(stage):
    more = stamped_draft.OUTLIVING_MAX + 1
    causes = [StampedMessage((100 + n, SECOND), (), b"", deadline=DAY + n) for n in range(more)]
    stage.hear(0, *causes, at_s=1)
    merge, brief = stage.say(0, 2, lifetime_s=10)
    assert merge.deadline == DAY + more - 1
    assert brief.past == (merge.id,)
    assert stage.say(0, 3, lifetime_s=10).past == (merge.id, brief.id)


def test_expired_messages_are_forgotten_in_memory_and_on_disk(stage):
    for n in range(400):
        stage.hear(
            0, StampedMessage((n + 9, n * SECOND), (), b"", deadline=(n + 8) * SECOND), at_s=n
        )
    gauges = stage.nodes[0].gauges(0)
    assert max(gauges[name] for name in ("barrier", "delivered", "digests")) <= 64
    assert stage.stores[0].count() < 4 * 64


def test_forgotten_digests_of_live_messages_are_those_of_the_smallest_stamps(stage, monkeypatch):
    monkeypatch.setattr(stamped, "DIGESTS_MAX", 70)
    said = [stage.say(0, n, lifetime_s=100_000) for n in range(300)]
    node = stage.nodes[0]
    assert node.gauges(0)["digests"] < 300
    assert node.explain(said[-1].id).state == "delivered"
    assert node.explain(said[0].id).state == "unknown"
    assert node.has_settled(said[0].id)


def test_refused_message_does_not_expire_a_cause_without_releasing_its_effect(stage):
    cause = stage.say(0, 0, lifetime_s=30)
    effect = stage.say(0, 1, lifetime_s=60)
    stage.hear(1, effect, at_s=2)
    # The clock was set forward; the timer, which is a delay, has not fired yet.
    assert not list(stage.nodes[1].screen(40 * SECOND, [cause]))
    status = stage.nodes[1].explain(effect.id)
    assert (status.state, status.missing) == ("waiting", (cause.id,))
