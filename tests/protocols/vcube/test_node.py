"""VCube step by step: packets, held-back messages, and failing nodes."""

import msgspec
import pytest

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.frames import Packet, VCubeMessage, message_bytes, pack
from beforehand.protocols.vcube.node import VCube

FOREVER_US = 1 << 60


class Bench:
    """One core, with the effects of its last step."""

    def __init__(self, node, nodes, **options):
        self.core = VCube(node, nodes, **options)
        self.out = Outbox()

    def broadcast(self, payload=b"", now_us=0):
        self.out.clear()
        self.core.on_broadcast(now_us, payload, self.out)
        return self.out.deliveries[0]

    def receive(self, *messages, height, source=None, now_us=0):
        self.out.clear()
        source = self.core.node ^ 1 if source is None else source
        self.core.on_message(now_us, source, Packet(height, messages), self.out)
        return self.sent()

    def link(self, peer, up, now_us=0):
        self.out.clear()
        self.core.on_link(now_us, peer, up, self.out)
        return self.sent()

    def sent(self):
        """Return the ids of each packet by target."""
        found = {}
        for target, packet in self.packets():
            found.setdefault(target, []).append([message.id for message in packet.messages])
        return found

    def packets(self):
        return [(target, frame) for target, frame in self.out.sends if type(frame) is Packet]

    def delivered(self):
        return [message.id for message in self.out.deliveries]


def message(origin, seq, *past, payload=b""):
    return VCubeMessage((origin, seq), tuple(sorted(past)), payload)


def test_a_broadcast_goes_to_the_first_node_of_each_cluster():
    bench = Bench(5, 8)
    bench.broadcast()
    assert bench.sent() == {4: [[(5, 1)]], 7: [[(5, 1)]], 1: [[(5, 1)]]}
    assert [packet.height for _, packet in bench.out.sends] == [0, 1, 2]
    assert bench.delivered() == [(5, 1)]


def test_a_receiver_serves_its_assigned_clusters():
    bench = Bench(4, 8)
    assert bench.receive(message(0, 1), height=2) == {5: [[(0, 1)]], 6: [[(0, 1)]]}
    assert bench.delivered() == [(0, 1)]
    assert [m.id for m in bench.out.receives] == [(0, 1)]


def test_a_leaf_sends_nothing():
    assert Bench(1, 8).receive(message(0, 1), height=0) == {}


def test_a_message_is_held_back_from_children_that_lack_a_cause_from_this_node():
    bench = Bench(4, 8)
    # 5 gets what 2 broadcasts from 4; 6 gets it from somebody else.
    assert bench.receive(message(0, 1, (2, 1)), height=2) == {6: [[(0, 1)]]}
    assert bench.delivered() == []
    assert bench.receive(message(2, 1), height=1) == {5: [[(0, 1), (2, 1)]]}
    assert bench.delivered() == [(2, 1), (0, 1)]


def test_without_aggregation_nothing_is_held_back():
    bench = Bench(4, 8, aggregates=False)
    assert bench.receive(message(0, 1, (2, 1)), height=2) == {5: [[(0, 1)]], 6: [[(0, 1)]]}
    assert bench.receive(message(2, 1), height=1) == {5: [[(2, 1)]]}
    assert bench.delivered() == [(2, 1), (0, 1)]


def test_a_message_waits_for_each_missing_cause_in_turn():
    """12 is a child of 4 for the messages of 0, 1, 2 and 4 itself alone; 5 for all even ones."""
    bench = Bench(8, 16)
    late = message(0, 1, (2, 1), (4, 1))
    # At 8, the messages of 0 go to 9, 10, 12; those of 4 to 9, 10; those of 2 to 9.
    assert bench.receive(late, height=3) == {12: [[(0, 1)]]}
    assert bench.receive(message(4, 1), height=2) == {
        9: [[(4, 1)]],
        10: [[(0, 1), (4, 1)]],
    }
    assert bench.receive(message(2, 1), height=1) == {9: [[(0, 1), (2, 1)]]}
    assert bench.delivered() == [(2, 1), (0, 1)]


def test_an_arrival_touches_only_the_messages_that_waited_for_it():
    bench = Bench(4, 8)
    bench.receive(message(0, 1, (2, 1)), height=2)
    seen = []
    blocked = bench.core._blocked
    bench.core._blocked = lambda item, limit: seen.append(item.id) or blocked(item, limit)
    bench.receive(message(6, 1), height=1)
    assert seen == []
    bench.receive(message(2, 1), height=1)
    assert seen == [(0, 1), (2, 1)]


def test_messages_of_one_origin_are_forwarded_and_delivered_in_their_order():
    bench = Bench(4, 8)
    assert bench.receive(message(0, 2), height=2) == {}
    assert bench.core.explain((0, 2)) == MessageStatus("waiting", ((0, 1),), 0)
    sent = bench.receive(message(0, 1), height=2)
    assert sent == {5: [[(0, 2), (0, 1)]], 6: [[(0, 2), (0, 1)]]}
    assert bench.delivered() == [(0, 1), (0, 2)]


def test_a_pending_message_that_comes_again_is_received_and_delivered_once():
    bench = Bench(4, 8)
    for _ in range(2):
        bench.receive(message(0, 1, (2, 1)), height=0)
    assert bench.out.receives == []
    assert bench.core.counters.duplicate == 1
    bench.receive(message(2, 1), height=0)
    assert bench.delivered() == [(2, 1), (0, 1)]


def test_a_pending_message_that_comes_again_behind_its_cause_is_delivered_once():
    bench = Bench(4, 8)
    bench.receive(message(0, 1, (2, 1)), height=0)
    bench.receive(message(2, 1), message(0, 1, (2, 1)), height=0)
    assert bench.delivered() == [(2, 1), (0, 1)]
    assert bench.core.counters.duplicate == 1
    assert bench.core.counters.received == bench.core.counters.delivered == 2


def test_a_message_carries_only_the_entries_that_changed():
    bench = Bench(0, 8)
    bench.receive(message(3, 1), height=0)
    bench.receive(message(3, 2), height=0)
    bench.receive(message(1, 1), height=0)
    assert bench.broadcast().past == ((1, 1), (3, 2))
    assert bench.broadcast().past == ()
    bench.receive(message(1, 2), height=0)
    assert bench.broadcast().past == ((1, 2),)


def test_a_node_that_never_broadcasts_remembers_a_bounded_number_of_entries():
    bench = Bench(0, 8)
    for seq in range(1, 101):
        bench.receive(message(1, seq), height=0)
        bench.receive(message(3, seq), height=0)
    assert len(bench.core._new_causes) <= 2 * 8
    assert bench.broadcast().past == ((1, 100), (3, 100))


def test_a_rare_cause_is_still_named_after_many_messages_of_another_origin():
    """Node 0 gets one message of node 2 and many of node 1. Node 3 must wait for that of node 2."""
    speaker, listener = Bench(0, 4), Bench(3, 4)
    many = [message(1, seq) for seq in range(1, 30)]
    speaker.receive(message(2, 1), *many, height=0)
    effect = speaker.broadcast()
    assert effect.past == ((1, 29), (2, 1))
    listener.receive(*many, effect, height=0)
    assert effect.id not in listener.delivered()
    listener.receive(message(2, 1), height=0)
    assert listener.delivered() == [(2, 1), effect.id]


def test_entries_left_out_by_the_compression_still_hold():
    """(0, 2) does not name (2, 1), but follows (0, 1), which does."""
    bench = Bench(4, 8)
    bench.receive(message(0, 2), height=2)
    assert bench.receive(message(0, 1, (2, 1)), height=2) == {6: [[(0, 2), (0, 1)]]}
    assert bench.delivered() == []
    assert bench.receive(message(2, 1), height=1) == {5: [[(0, 2), (0, 1), (2, 1)]]}
    assert bench.delivered() == [(2, 1), (0, 1), (0, 2)]


def test_a_full_packet_is_closed_and_the_rest_travels_in_the_next():
    fifty = bytes(50)
    bench = Bench(4, 8, mtu_bytes=20 + 2 * 58)
    for seq in (3, 4, 5):
        assert bench.receive(message(0, seq, (6, 1), payload=fifty), height=2) == {}
    bench.receive(message(0, 2, payload=fifty), height=2)
    bench.receive(message(6, 1), height=1)
    sent = bench.receive(message(0, 1, payload=fifty), height=2)
    assert sent[6] == [[(0, 3), (0, 4)], [(0, 5), (0, 2)], [(0, 1)]]
    assert sent[5] == sent[6]


def test_packing_counts_payload_entries_and_header():
    small, large = message(0, 1, payload=bytes(50)), message(1, 1, payload=bytes(5000))
    assert message_bytes(message(0, 2, (1, 1), (2, 1), payload=bytes(50))) == 50 + 4 * 3
    assert pack([small, small, small], 20 + 2 * 54) == [[small, small], [small]]
    assert pack([small, small], 20 + 2 * 54 - 1) == [[small], [small]]
    assert pack([small, large, small], 1500) == [[small], [large], [small]]


def test_in_the_single_tree_a_message_goes_to_the_root_and_comes_back():
    bench = Bench(2, 4, root=0)
    own = bench.broadcast()
    assert bench.sent() == {0: [[(2, 1)]]}
    assert bench.delivered() == [(2, 1)]
    assert bench.receive(own, height=1) == {3: [[(2, 1)]]}
    assert bench.delivered() == []
    assert bench.out.receives == []
    root = Bench(0, 4, root=0)
    assert root.receive(own, height=2) == {1: [[(2, 1)]], 2: [[(2, 1)]]}
    root.broadcast()
    assert root.sent() == {1: [[(0, 1)]], 2: [[(0, 1)]]}


def test_in_the_single_tree_every_missing_cause_blocks_the_whole_share():
    bench = Bench(2, 4, root=0)
    assert bench.receive(message(1, 1, (3, 1)), height=1) == {}
    assert bench.receive(message(3, 1), height=1) == {3: [[(1, 1), (3, 1)]]}


# ---- nodes that are down or missing -------------------------------------------------------------


def test_a_missing_node_is_stepped_over():
    bench = Bench(1, 6)
    bench.broadcast()
    assert bench.sent() == {0: [[(1, 1)]], 3: [[(1, 1)]], 5: [[(1, 1)]]}
    bench = Bench(3, 6)  # 7 would be first in its third cluster, then 6, then 5
    bench.broadcast()
    assert bench.sent() == {2: [[(3, 1)]], 1: [[(3, 1)]], 5: [[(3, 1)]]}


def test_the_next_live_node_takes_over_the_cluster_of_a_child_that_fails():
    bench = Bench(0, 8, keep_us=FOREVER_US)
    bench.broadcast()
    bench.receive(message(2, 1), height=1)
    assert bench.link(4, up=False) == {5: [[(0, 1)]]}
    assert [packet.height for _, packet in bench.packets()] == [2]
    assert bench.link(5, up=False) == {6: [[(0, 1)]]}
    assert bench.link(1, up=False) == {}  # no live node is left in that cluster
    assert bench.link(1, up=True) == {1: [[(0, 1), (2, 1)]]}


def test_a_duplicate_with_a_larger_share_is_served_for_the_additional_clusters():
    bench = Bench(5, 8, keep_us=FOREVER_US)
    first = message(0, 1)
    assert bench.receive(first, height=0) == {}
    assert bench.receive(first, height=2) == {4: [[(0, 1)]], 7: [[(0, 1)]]}
    assert bench.receive(first, height=2) == {}
    assert bench.core.counters.duplicate == 2
    assert bench.core.counters.received == bench.core.counters.delivered == 1


def test_a_late_duplicate_is_not_served_from_the_bottom():
    bench = Bench(5, 8, keep_us=FOREVER_US)
    first = message(0, 1)
    assert bench.receive(first, height=1) == {4: [[(0, 1)]]}
    assert bench.receive(first, height=2) == {7: [[(0, 1)]]}


def test_messages_held_back_from_a_cluster_stay_held_back_when_a_link_changes():
    bench = Bench(4, 8, keep_us=FOREVER_US)
    assert bench.receive(message(1, 1, (2, 1)), height=2) == {6: [[(1, 1)]]}
    assert bench.link(5, up=False) == {}
    assert bench.link(5, up=True) == {}
    assert bench.receive(message(2, 1), height=1) == {5: [[(1, 1), (2, 1)]]}


def test_every_holder_of_a_message_of_a_dead_origin_sends_it_to_all_nodes():
    bench = Bench(1, 4, keep_us=FOREVER_US)
    bench.receive(message(0, 1), height=0)
    assert bench.link(0, up=False) == {3: [[(0, 1)]]}
    later = Bench(1, 4, keep_us=FOREVER_US)
    later.link(0, up=False)
    assert later.receive(message(0, 1), height=0) == {3: [[(0, 1)]]}


def test_in_the_single_tree_a_dead_root_leaves_each_origin_to_itself():
    bench = Bench(1, 4, root=0, keep_us=FOREVER_US)
    bench.broadcast()
    assert bench.link(0, up=False) == {3: [[(1, 1)]]}
    bench.broadcast()
    assert bench.sent() == {3: [[(1, 2)]]}


def test_held_back_messages_go_to_the_current_child():
    bench = Bench(4, 8, keep_us=FOREVER_US)
    bench.receive(message(0, 1, (2, 1)), height=2)
    assert bench.link(5, up=False) == {}
    assert bench.receive(message(2, 1), height=1) == {}
    assert bench.link(5, up=True) == {5: [[(0, 1), (2, 1)]]}


def test_a_message_is_kept_no_longer_than_asked():
    bench = Bench(0, 4, keep_us=100)
    bench.broadcast(now_us=0)
    bench.broadcast(now_us=60)
    assert bench.core.gauges(99)["kept"] == 2
    assert bench.link(1, up=False, now_us=100) == {}
    assert bench.link(2, up=False, now_us=100) == {3: [[(0, 2)]]}
    assert bench.core.gauges(100)["kept"] == 1


def test_a_forgotten_message_that_comes_again_is_neither_delivered_nor_received_again():
    bench = Bench(2, 4, keep_us=10)
    first = message(0, 1)
    bench.receive(first, height=1)
    assert bench.receive(first, height=1, now_us=50) == {3: [[(0, 1)]]}
    assert bench.delivered() == []


# ---- questions and mistakes ---------------------------------------------------------------------


def test_explain_returns_the_missing_causes_and_since_when():
    bench = Bench(0, 8)
    bench.receive(message(3, 2, (1, 1), (2, 1)), height=0, now_us=7)
    assert bench.core.explain((3, 2)) == MessageStatus("waiting", ((3, 1), (1, 1), (2, 1)), 7)
    bench.receive(message(1, 1), height=0, now_us=8)
    assert bench.core.explain((3, 2)) == MessageStatus("waiting", ((3, 1), (2, 1)), 7)
    assert bench.core.explain((1, 1)) == MessageStatus("delivered")
    assert bench.core.explain((2, 1)) == bench.core.explain(("x", 1)) == MessageStatus("unknown")
    assert bench.core.explain((99, 1)) == MessageStatus("unknown")


@pytest.mark.parametrize(
    ("bad", "height", "words"),
    [
        (message(9, 1), 0, "no such message"),
        (message(-1, 1), 0, "no such message"),
        (message(1, 0), 0, "no such message"),
        (message(0, 1), 0, "never sent"),
        (message(1, 1, (2, 1), (8, 1)), 0, "unknown node"),
        (message(1, 1), 4, "height 4"),
        (message(1, 1), -1, "height -1"),
    ],
)
def test_a_frame_that_no_correct_peer_sends_is_refused_entirely(bad, height, words):
    bench = Bench(0, 8)
    with pytest.raises(RemoteError, match=words):
        bench.receive(message(2, 1), bad, height=height, source=3)
    assert bench.core.counters.refused == 1
    assert bench.core.counters.received == 0
    assert bench.core.explain((2, 1)) == MessageStatus("unknown")


def test_misuse_by_the_caller_is_refused():
    bench = Bench(0, 8)
    with pytest.raises(LocalError, match="no message lifetimes"):
        bench.core.on_broadcast(0, b"", bench.out, lifetime_us=5)
    for node, root in ((8, None), (-1, None), (0, 8)):
        with pytest.raises(LocalError, match="numbers go from 0 to 7"):
            VCube(node, 8, root=root)
    for peer in (0, 8, -1, "a"):
        with pytest.raises(LocalError, match="not a peer"):
            bench.core.on_link(0, peer, False, bench.out)


def test_a_packet_survives_the_wire():
    packet = Packet(2, (message(0, 1, (2, 3), (4, 1), payload=b"x"), message(5, 7)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=Packet) == packet


@pytest.mark.parametrize("past", [[(4, 1), (2, 3)], [(2, 1), (2, 2)], [(-1, 1)]])
def test_causes_come_in_order_of_their_origins_or_not_at_all(past):
    with pytest.raises(ValueError, match="out of order"):
        VCubeMessage((0, 1), tuple(past), b"")
    frame = msgspec.msgpack.encode(("packet", 0, (((0, 1), past, b""),)))
    with pytest.raises(msgspec.ValidationError, match=r"out of order|>= 0"):
        msgspec.msgpack.decode(frame, type=Packet)
