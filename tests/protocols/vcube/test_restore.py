"""VCube after a restart: with its state, without it, and with forbidden frames."""

import pickle

import msgspec
import pytest
from tests.protocols.vcube.vcube_bench import KEEP_US, Bench, message

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet, VCubeFrame
from beforehand.protocols.vcube.node import VCube
from beforehand.protocols.vcube.retention import ASK

# ---- coming back without its state --------------------------------------------------------------


def assert_mute(bench):
    with pytest.raises(LocalError, match="does not remember") as caught:
        bench.broadcast()
    assert "another name" in caught.value.hint
    assert bench.out == Outbox()
    assert bench.core.counters.refused == 1
    assert bench.core.counters.broadcast == 0
    assert bench.core.explain((0, 1)).state in ("unknown", "waiting", "delivered")
    assert bench.core.gauges(0)


@pytest.mark.parametrize(
    "frame",
    [
        Known(2),
        Ask((2, 0, 0, 0)),
        Answer((2, 0, 0, 0)),
        Packet(1, (message(0, 2),)),
        Packet(1, (message(1, 1, (0, 2)),)),
    ],
    ids=["known", "ask", "answer", "packet", "cause"],
)
def test_a_node_that_learns_of_unknown_own_messages_is_mute(frame):
    bench = Bench(0, 4)
    bench.core._state.awaited.add(1)
    bench.hear(frame)
    with pytest.raises(LocalError, match="does not remember"):
        bench.broadcast()
    bench.hear(Known(2))
    assert bench.core.counters.refused == 1


def test_a_message_naming_an_own_message_never_broadcast_prevented_a_return():
    """The node broadcast the message later, did not notice that the peer's message was ready, and
    failed at the restart."""
    bench = Bench(0, 4)
    bench.receive(message(2, 1, (0, 1)))
    with pytest.raises(LocalError, match="does not remember"):
        bench.broadcast()
    bench.restart()
    assert bench.core.explain((2, 1)) == MessageStatus("waiting", ((0, 1),), 0)


def test_a_mute_node_delivers_and_forwards():
    bench = Bench(0, 4)
    bench.hear(Known(2))
    assert_mute(bench)
    bench.receive(message(1, 1, (0, 2)), height=1)
    assert bench.delivered() == []
    bench.receive(message(0, 1), message(0, 2), height=0, source=2)
    assert bench.delivered() == [(0, 1), (0, 2), (1, 1)]
    bench.restart()
    with pytest.raises(LocalError, match="does not remember"):
        bench.broadcast()


def test_reports_of_remembered_own_messages_have_no_effect():
    bench = Bench(0, 4)
    bench.broadcast()
    bench.broadcast()
    bench.hear(Known(2))
    bench.hear(Ask((2, 0, 0, 0)))
    assert bench.broadcast().id == (0, 3)
    assert bench.core.counters.refused == 0


def test_a_node_without_state_that_asks_learns_of_its_own_messages():
    bench = Bench(0, 4)
    bench.receive(message(1, 1), message(1, 2))
    assert (1, Known(2)) in bench.hear(Ask((0, 0, 0, 0)), source=1)
    assert (1, Known(2)) not in bench.hear(Ask((0, 2, 0, 0)), source=1)
    assert (1, Known(2)) not in bench.hear(Ask((0, 0, 0, 0)), source=2)


def test_a_reused_id_is_neither_delivered_nor_forwarded():
    bench = Bench(0, 4)
    bench.receive(message(1, 1, payload=b"before"), height=0)
    bench.receive(message(1, 1, payload=b"after"), height=2)
    assert bench.delivered() == []
    assert bench.sent() == {}
    assert bench.frames() == [(1, Known(1))]
    assert bench.core.counters.refused == 1
    bench.receive(message(1, 1, payload=b"before"), height=2)
    assert bench.sent() == {1: [(0, (1, 1))], 2: [(1, (1, 1))]}


# ---- saved and restored -------------------------------------------------------------------------


def test_without_durability_nothing_is_saved():
    bench = Bench(0, 4, durable=False)
    assert bench.core.tables == ()
    bench.broadcast()
    bench.receive(message(1, 2), message(1, 1), message(2, 1), height=1)
    bench.answer((0, 2, 2, 0), now_us=300)
    assert bench.store.count() == 0
    with pytest.raises(LocalError, match="keeps nothing"):
        VCube(0, 4, durable=True)


def test_after_a_restart_no_delivery_is_repeated_and_no_number_reused():
    bench = Bench(0, 4)
    bench.receive(message(1, 1), message(1, 2))
    bench.broadcast()
    bench.restart()
    assert bench.out.deliveries == bench.out.sends == []
    bench.receive(message(1, 1), message(1, 2), message(1, 3))
    assert bench.delivered() == [(1, 3)]
    assert bench.broadcast().id == (0, 2)
    counters = bench.core.counters
    assert (counters.received, counters.delivered, counters.broadcast) == (1, 2, 1)


def test_after_a_restart_a_message_names_earlier_deliveries_as_causes():
    bench = Bench(0, 4)
    bench.receive(message(2, 1))
    bench.broadcast()
    bench.receive(message(1, 1), message(1, 2))
    bench.restart()
    assert bench.broadcast().past == ((1, 2),)
    bench.restart()
    assert bench.broadcast().past == ()


def test_after_a_restart_a_held_message_waits_on():
    bench = Bench(4, 8)
    bench.receive(message(0, 2), message(1, 1, (2, 1)), height=2)
    bench.restart(now_us=7)
    assert bench.out.timers == [(ASK, 7 + KEEP_US)]
    assert bench.core.explain((0, 2)) == MessageStatus("waiting", ((0, 1),), 7)
    assert bench.core.gauges(7)["postponed"] == 2
    bench.receive(message(0, 1), height=2)
    assert bench.delivered() == [(0, 1), (0, 2)]
    assert bench.sent() == {5: [(0, (0, 2), (0, 1))], 6: [(1, (0, 2), (0, 1))]}
    bench.receive(message(2, 1), height=1)
    assert bench.delivered() == [(2, 1), (1, 1)]
    assert bench.core.counters.received == 2


def test_after_a_restart_kept_messages_go_to_the_nodes_reported_up():
    """The sends of the last step may never have left."""
    bench = Bench(0, 8)
    bench.broadcast()
    bench.receive(message(2, 1), height=1, now_us=10)
    bench.restart(now_us=10**6)
    assert bench.link(4, True, 10**6) == [(4, Ask((1, 0, 1, 0, 0, 0, 0, 0)))]
    assert bench.sent() == {4: [(2, (0, 1))]}
    bench.link(1, True, 10**6 + 50)
    assert bench.sent() == {1: [(0, (0, 1), (2, 1))]}
    bench.link(1, True, 10**6 + 60)
    assert bench.out == Outbox()
    bench.link(2, False, 10**6 + 70)
    assert bench.sent() == {3: [(1, (0, 1), (2, 1))], 4: [(2, (2, 1))]}
    bench.link(6, True, 10**6 + 100)
    assert bench.core.gauges(0)["kept"] == 0


def test_after_a_restart_a_node_serves_the_same_clusters():
    bench = Bench(4, 8)
    bench.receive(message(0, 1), height=0)
    bench.receive(message(0, 1), height=2)
    bench.restart()
    bench.link(6, True)
    assert bench.sent() == {6: [(1, (0, 1))]}


def test_after_a_restart_gone_and_missed_messages_stay_so():
    bench = Bench(0, 4)
    bench.answer((0, 2, 0, 0))
    bench.receive(message(1, 3), message(2, 1))
    bench.broadcast(now_us=KEEP_US)
    bench.restart()
    assert bench.core.explain((1, 2)) == MessageStatus("missed")
    assert bench.core.explain((1, 3)) == MessageStatus("delivered")
    assert bench.core.counters.missed == 0  # of this life
    assert bench.hear(Ask((1, 0, 0, 0)), 3) == [(3, Answer((0, 3, 1, 0)))]


def test_saved_rows_are_bounded_by_the_group_and_the_kept_messages():
    bench = Bench(0, 4)
    counts = []
    for seq in range(1, 101):
        bench.receive(message(1, seq), now_us=10 * seq)
        if seq % 2:
            bench.broadcast(now_us=10 * seq)
        counts.append(bench.store.count())
    assert max(counts[20:]) == max(counts) <= 3 * 4 + 2 * (10 + 5)
    bench.broadcast(now_us=10**6)
    assert bench.store.count() <= 3 * 4 + 2


# ---- bounds and mistakes ------------------------------------------------------------------------


def test_every_registry_is_bounded_by_live_messages():
    bench = Bench(4, 8)
    now_us = 0
    for seq in range(1, 400, 2):
        now_us += 10
        bench.receive(message(0, seq + 1, (2, seq)), height=2, now_us=now_us)
        bench.receive(message(6, seq, (2, seq)), height=1, now_us=now_us)
        gauges = bench.core.gauges(now_us)
        assert [gauges[name] for name in ("pending", "postponed", "waiting", "awaiting")] == [2] * 4
        assert gauges["early"] == 1
        bench.receive(message(2, seq), message(0, seq), height=2, now_us=now_us)
        assert sorted(bench.delivered()) == [(0, seq), (0, seq + 1), (2, seq), (6, seq)]
        bench.receive(message(2, seq + 1), message(6, seq + 1), height=1, now_us=now_us)
        gauges = bench.core.gauges(now_us)
        for name in ("pending", "postponed", "early", "waiting", "awaiting", "gaps", "asking"):
            assert gauges[name] == 0, name
        assert gauges["news"] <= 2 * 8
        assert gauges["kept"] <= 6 * KEEP_US // 10
    core = bench.core
    assert len(core._state.ages) == gauges["kept"]
    assert not core._waiting
    assert not core._awaiting


@pytest.mark.parametrize(
    ("source", "frame", "words"),
    [
        (9, Packet(0, (message(1, 1),)), "not a member: 9"),
        (-1, Ask((0,) * 4), "not a member: -1"),
        ("a", Known(1), "not a member: a"),
        (1, Ask((0,) * 5), "5 entries in a group of 4"),
        (1, Ask((0, 0, -1, 0)), "negative"),
        (1, Answer((0,)), "1 entries"),
        (1, Known(0), "no such message"),
        (1, Packet(0, (message(1, 1), message(7, 1))), "no such message"),
    ],
)
def test_frames_of_strangers_change_nothing(source, frame, words):
    bench = Bench(0, 4)
    bench.receive(message(2, 1))
    before = pickle.dumps(bench.core._state), bench.core.gauges(0), list(bench.core._clock)
    bench.out.clear()
    with pytest.raises(RemoteError, match=words):
        bench.core.on_message(500, source, frame, bench.out)
    assert bench.out == Outbox()
    after = pickle.dumps(bench.core._state), bench.core.gauges(0), list(bench.core._clock)
    assert after == before
    assert bench.core.counters.refused == 1


def test_a_frame_of_a_member_reported_down_is_accepted():
    bench = Bench(0, 4)
    bench.link(1, up=False)
    bench.receive(message(1, 1), source=1)
    assert bench.delivered() == [(1, 1)]


@pytest.mark.parametrize(
    "frame",
    [Packet(2, (message(0, 1, (2, 3)),)), Ask((1, 0, 2)), Answer(()), Answer((0, 4)), Known(7)],
)
def test_every_frame_survives_the_wire(frame):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(frame), type=VCubeFrame) == frame


def test_no_message_waits_for_itself():
    with pytest.raises(ValueError, match="a cause of the same origin"):
        message(1, 2, (1, 2))


def test_after_a_restart_requesting_peers_learn_of_skipped_messages():
    bench = Bench(0, 4)
    bench.answer((0, 3, 1, 0))
    bench.restart()
    assert bench.hear(Ask((0, 0, 0, 0)), 3) == [(3, Answer((0, 3, 1, 0)))]
