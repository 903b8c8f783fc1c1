"""VCube beyond the paper: messages that a node keeps, evicts, asks for and skips."""

import pytest
from tests.protocols.vcube.vcube_bench import KEEP_US, Bench, message

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet
from beforehand.protocols.vcube.retention import ASK, NAMED_MAX, SPANS_MAX

# ---- asking and answering -----------------------------------------------------------------------


def test_returned_peers_are_asked_one_after_the_other():
    bench = Bench(0, 4)
    for peer in (1, 2, 3):
        bench.link(peer, up=False)
    assert bench.link(2, up=True) == [(2, Ask((0, 0, 0, 0)))]
    assert bench.link(1, up=True) == bench.link(3, up=True) == []
    assert bench.core.gauges(0)["asking"] == 3
    bench.receive(message(1, 1), source=2)
    assert bench.hear(Answer(()), source=1) == []  # no peer asked it
    assert bench.hear(Answer(()), source=2) == [(1, Ask((0, 1, 0, 0)))]
    assert bench.link(1, up=False) == [(3, Ask((0, 1, 0, 0)))]
    assert bench.hear(Answer(()), source=3) == []
    assert bench.core.gauges(0)["asking"] == 0


def test_an_answer_holds_kept_messages_and_gone_ids():
    bench = Bench(0, 8)
    bench.receive(message(1, 1), height=0)
    bench.receive(message(2, 1), height=0, now_us=60)
    bench.receive(message(2, 2), height=0, now_us=70)
    assert bench.hear(Ask((0, 0, 1, 0, 0, 0, 0, 0)), 3, 80) == [(3, Answer(()))]
    assert bench.sent() == {3: [(0, (1, 1), (2, 2))]}
    gone = Answer((0, 1, 0, 0, 0, 0, 0, 0))
    assert bench.hear(Ask((0, 0, 1, 0, 0, 0, 0, 0)), 3, 100) == [(3, gone)]
    assert bench.sent() == {3: [(0, (2, 2))]}
    assert isinstance(bench.out.sends[-1][1], Answer), "the answer comes behind all that it means"
    assert bench.hear(Ask((0, 1, 2, 0, 0, 0, 0, 0)), 3, 100) == [(3, Answer(()))]
    assert bench.sent() == {}


def test_pending_messages_are_sent_to_a_requesting_peer():
    bench = Bench(0, 4)
    bench.receive(message(1, 2))
    assert bench.hear(Ask((0, 0, 0, 0)), 3) == [(3, Answer(()))]
    assert bench.sent() == {3: [(0, (1, 2))]}


def test_a_requesting_peer_that_holds_more_is_asked_in_turn():
    bench = Bench(0, 2)
    assert bench.hear(Ask((0, 3))) == [(1, Answer(())), (1, Ask((0, 0)))]
    assert bench.hear(Ask((0, 3))) == [(1, Answer(()))]


def test_in_the_model_of_the_paper_no_node_asks():
    bench = Bench(0, 4, keep_us=0, durable=False)
    assert bench.link(1, up=False) == bench.link(1, up=True) == []
    with pytest.raises(RemoteError, match="keeps nothing"):
        bench.hear(Ask((0, 0, 0, 0)))


# ---- keeping and forgetting ---------------------------------------------------------------------


def test_messages_are_forgotten_in_the_order_of_their_deliveries():
    """By the order of arrival, the effect would be gone while its cause is kept."""
    bench = Bench(0, 4)
    bench.receive(message(1, 1, (2, 1)))
    bench.receive(message(2, 1), now_us=60)
    assert bench.delivered() == [(2, 1), (1, 1)]
    assert bench.hear(Ask((0, 0, 0, 0)), 3, 159) == [(3, Answer(()))]
    assert bench.sent() == {3: [(0, (1, 1), (2, 1))]}
    assert bench.hear(Ask((0, 0, 0, 0)), 3, 160) == [(3, Answer((0, 1, 1, 0)))]
    assert bench.core.gauges(160)["kept"] == 0


def test_a_pending_message_is_kept_until_after_its_delivery():
    bench = Bench(4, 8)
    bench.receive(message(0, 2), height=1)
    bench.link(5, up=False, now_us=500)
    assert bench.core.gauges(500)["kept"] == 1
    bench.receive(message(0, 1), height=1, now_us=510)
    assert bench.delivered() == [(0, 1), (0, 2)]
    bench.link(5, up=True, now_us=609)
    assert bench.sent() == {5: [(0, (0, 2), (0, 1))]}
    bench.broadcast(now_us=610)
    assert bench.core.gauges(610)["kept"] == 1


def test_another_message_under_the_id_of_one_that_waits_was_delivered_besides_it():
    """When the retention time of both messages ended, the node raised an error."""
    bench = Bench(0, 4)
    bench.receive(message(1, 1, (2, 1)))
    assert bench.hear(Packet(0, (message(1, 1),)), 3) == [(1, Known(1))]
    assert bench.delivered() == []
    assert bench.core.counters.refused == 1
    bench.receive(message(2, 1))
    assert bench.delivered() == [(2, 1), (1, 1)]
    bench.broadcast(now_us=2 * KEEP_US)
    assert bench.core.gauges(2 * KEEP_US)["kept"] == 1


def test_a_duplicate_does_not_lengthen_the_time_for_which_a_message_is_kept():
    bench = Bench(4, 8)
    bench.receive(message(0, 1), height=1)
    bench.receive(message(0, 1), height=2, now_us=60)
    assert bench.sent() == {6: [(1, (0, 1))]}
    bench.link(5, up=False, now_us=99)
    assert bench.core.gauges(99)["kept"] == 1
    bench.link(5, up=True, now_us=100)
    assert bench.core.gauges(100)["kept"] == 0


def test_a_clock_that_is_set_back_neither_forgets_nor_keeps_for_ever():
    bench = Bench(0, 4)
    bench.broadcast(now_us=10**9)
    bench.broadcast(now_us=5)
    assert bench.core.gauges(5)["kept"] == 2
    bench.broadcast(now_us=104)
    assert bench.core.gauges(104)["kept"] == 3
    bench.broadcast(now_us=105)
    assert bench.core.gauges(105)["kept"] == 2


# ---- passing over -------------------------------------------------------------------------------


def test_messages_that_no_peer_keeps_are_skipped_and_reported():
    bench = Bench(0, 4)
    bench.receive(message(1, 1))
    bench.answer((0, 3, 1, 0))
    assert bench.lost() == [(1, 2), (1, 3), (2, 1)]
    assert bench.core.counters.missed == 3
    assert [bench.core.explain((1, seq)).state for seq in range(1, 5)] == [
        "delivered",
        "missed",
        "missed",
        "unknown",
    ]
    bench.receive(message(1, 3))
    assert bench.delivered() == []  # too late: it was given up
    bench.receive(message(1, 4, (2, 1)))
    assert bench.delivered() == [(1, 4)]
    assert bench.core.counters.delivered == bench.core.counters.received == 2
    bench.answer((0, 3, 1, 0))
    assert bench.lost() == []


def test_held_copies_of_skipped_messages_are_dropped_and_their_waiters_continue():
    bench = Bench(0, 4)
    bench.receive(message(1, 3))
    bench.receive(message(1, 5))
    bench.receive(message(2, 1, (1, 4)))
    bench.receive(message(3, 2))
    bench.answer((0, 4, 0, 0))
    assert bench.lost() == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert sorted(bench.delivered()) == [(1, 5), (2, 1)]
    assert bench.core.explain((1, 3)) == MessageStatus("missed")
    assert bench.core.explain((3, 2)) == MessageStatus("waiting", ((3, 1),), 0)
    counters = bench.core.counters
    assert (counters.received, counters.delivered, counters.missed) == (4, 2, 4)
    bench.receive(message(3, 1))
    assert bench.delivered() == [(3, 1), (3, 2)]


def test_a_message_that_was_skipped_while_it_waited_is_not_kept_for_ever():
    bench = Bench(0, 4)
    bench.receive(message(1, 3))
    bench.answer((0, 4, 0, 0))
    assert bench.core.gauges(0)["kept"] == 1
    bench.broadcast(now_us=KEEP_US)
    assert bench.core.gauges(KEEP_US)["kept"] == 1  # its own
    assert set(bench.store.load(bench.core.tables)["messages"]) == {(0, 1)}


def test_a_node_that_skipped_messages_asks_all_live_peers_once():
    """They may lack the same messages, and no other peer would send them."""
    bench = Bench(0, 4)
    bench.link(3, up=False)
    bench.answer((0, 2, 0, 0), source=1)
    assert bench.out.timers == [(ASK, KEEP_US)]
    bench.step("on_timer", KEEP_US, ASK)
    assert bench.frames() == [(1, Ask((0, 2, 0, 0)))]
    assert bench.hear(Answer(()), 1, KEEP_US) == [(2, Ask((0, 2, 0, 0)))]
    assert bench.hear(Answer(()), 2, KEEP_US) == []
    bench.step("on_timer", 2 * KEEP_US, ASK)
    assert bench.frames() == bench.out.timers == []


def test_a_message_received_along_its_tree_causes_no_request():
    """Node 2 serves one cluster for node 0. With height 0 the message took another way."""
    for height, timers in ((1, []), (0, [(ASK, KEEP_US)])):
        bench = Bench(2, 4)
        bench.receive(message(0, 1), height=height, source=0)
        assert bench.out.timers == timers


def test_messages_that_wait_for_another_cause_too_stay_pending():
    bench = Bench(0, 4)
    bench.receive(message(1, 1, (2, 1), (3, 1)))
    bench.answer((0, 0, 0, 1))
    assert bench.delivered() == []
    assert bench.core.explain((1, 1)) == MessageStatus("waiting", ((2, 1),), 0)
    bench.receive(message(2, 1))
    assert bench.delivered() == [(2, 1), (1, 1)]


def test_messages_held_back_for_a_skipped_one_are_sent():
    bench = Bench(4, 8)
    bench.receive(message(0, 1, (2, 1)), height=2)
    assert bench.sent() == {6: [(1, (0, 1))]}
    bench.answer((0, 0, 1, 0, 0, 0, 0, 0))
    assert bench.sent() == {5: [(0, (0, 1))]}
    assert bench.delivered() == [(0, 1)]
    assert bench.core.gauges(0)["awaiting"] == 0


def test_messages_skipped_locally_are_still_forwarded():
    bench = Bench(4, 8)
    bench.receive(message(0, 2), height=2)
    assert bench.sent() == {}
    bench.answer((2, 0, 0, 0, 0, 0, 0, 0))
    assert bench.sent() == {5: [(0, (0, 2))], 6: [(1, (0, 2))]}
    assert bench.delivered() == []
    bench.receive(message(0, 1), height=2)
    assert bench.sent() == {5: [(0, (0, 1))], 6: [(1, (0, 1))]}
    assert bench.delivered() == []


def test_a_skipped_message_is_reported_with_its_causes():
    """(2, 1) caused (3, 1). A node that skips the effect alone would deliver the cause late."""
    bench = Bench(0, 4)
    bench.receive(message(2, 1))
    bench.answer((0, 0, 1, 1))
    assert bench.lost() == [(3, 1)]
    assert bench.hear(Ask((0, 0, 0, 0)), source=1) == [(1, Answer((0, 0, 1, 1)))]


def test_both_sides_of_a_partition_may_skip():
    left, right = Bench(0, 2), Bench(1, 2)
    for bench in (left, right):
        bench.link(1 - bench.core.node, up=False)
        for now_us in (0, 50, 100):
            bench.broadcast(now_us)
    frames = [(0, left.link(1, True, 120)), (1, right.link(0, True, 120))]
    while frames:
        source, sends = frames.pop(0)
        for target, frame in sends:
            bench = (left, right)[target]
            bench.hear(frame, source, 130)
            frames.append((target, list(bench.out.sends)))
    for bench in (left, right):
        other = 1 - bench.core.node
        fates = [bench.core.explain((other, seq)).state for seq in (1, 2, 3)]
        assert fates == ["missed", "delivered", "delivered"]
    assert left.core.counters == right.core.counters


def test_the_last_gaps_of_an_origin_are_remembered():
    bench = Bench(0, 2)
    for gap in range(2 * SPANS_MAX):
        bench.receive(message(1, 3 * gap + 1))
        bench.answer((0, 3 * gap + 3))
    assert bench.core.gauges(0)["gaps"] == SPANS_MAX
    assert bench.core.counters.missed == 4 * SPANS_MAX
    first = 3 * SPANS_MAX
    assert [bench.core.explain((1, seq)).state for seq in (first, first + 1, first + 2)] == [
        "unknown",
        "unknown",
        "missed",
    ]


def test_adjacent_gaps_are_merged():
    bench = Bench(0, 2)
    for last in range(1, 2 * SPANS_MAX):
        bench.answer((0, last))
    assert bench.core.gauges(0)["gaps"] == 1
    assert bench.core.explain((1, 1)) == MessageStatus("missed")


# ---- nothing waits for ever ---------------------------------------------------------------------


def test_long_pending_causes_are_requested():
    bench = Bench(3, 4)
    bench.receive(message(2, 2))
    assert bench.out.timers == [(ASK, KEEP_US)]
    bench.receive(message(2, 3), now_us=50)
    assert bench.out.timers == []
    asked = []
    for now_us in range(KEEP_US, 7 * KEEP_US, KEEP_US):
        bench.step("on_timer", now_us, ASK)
        asked += [peer for peer, _ in bench.frames()]
        assert bench.out.timers == [(ASK, now_us + KEEP_US)]
    assert asked == [2, 0, 1, 2, 0, 1]  # the origin first; no peer answers
    bench.receive(message(2, 1), now_us=700)
    bench.hear(Answer(()), 1, 700)
    bench.step("on_timer", 700, ASK)
    assert bench.frames() == bench.out.timers == []


def test_causes_of_recent_messages_are_not_requested():
    bench = Bench(3, 4)
    bench.receive(message(2, 2))
    bench.receive(message(2, 1), now_us=40)
    bench.receive(message(2, 4), now_us=60)
    bench.step("on_timer", 100, ASK)
    assert bench.frames() == []
    assert bench.out.timers == [(ASK, 200)]
    bench.step("on_timer", 200, ASK)
    assert bench.frames() == [(2, Ask((0, 0, 2, 0)))]


def test_a_timer_that_no_core_waits_for_has_no_effect():
    bench = Bench(0, 4)
    for timer in (ASK, ("tea", None), ("ask", 3)):
        bench.step("on_timer", 5, timer)
        assert bench.out == Outbox()


def test_a_fallen_clock_delays_no_request():
    bench = Bench(3, 4)
    bench.receive(message(2, 2), now_us=10**9)
    bench.receive(message(1, 1), now_us=7)
    assert bench.out.timers == [(ASK, 7 + KEEP_US)]


def test_a_peer_that_claims_to_have_forgotten_any_number_costs_no_memory():
    bench = Bench(0, 2)
    bench.link(1, up=False)
    bench.link(1, up=True)
    bench.answer((0, 10**12), source=1)
    assert bench.core.counters.missed == 10**12
    assert len(bench.out.losses) == NAMED_MAX
    assert bench.out.losses[-1] == ("drop", (1, 10**12))
    assert bench.core.explain((1, 5)).state == "missed"


def test_a_peer_that_suspected_this_node_for_long_is_asked_for_its_messages():
    bench = Bench(0, 2)
    bench.link(1, up=False)
    assert bench.link(1, up=True) == [(1, Ask((0, 0)))]
    assert bench.hear(Answer(()), source=1) == []
    # The peer suspected this node, broadcast, evicted the message, and trusts this node again.
    # Only its Ask arrives.
    assert bench.hear(Ask((0, 2))) == [(1, Answer(())), (1, Ask((0, 0)))]
    assert bench.answer((0, 2), source=1) == []
    assert bench.core.explain((1, 2)).state == "missed"


def test_a_peer_asked_while_down_is_asked_again_when_up():
    """Its own `Ask` came late, and it crashed then, so it never received ours."""
    bench = Bench(1, 2)
    bench.link(0, up=False)
    assert (0, Ask((0, 0))) in bench.hear(Ask((1, 0)), source=0)
    bench.link(0, up=False)
    assert bench.link(0, up=True) == [(0, Ask((0, 0)))]
