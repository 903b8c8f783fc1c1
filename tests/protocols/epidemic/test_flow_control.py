"""Flow control: frames that wait for room, window, disk or application, and when they are sent."""

import random

import pytest

from beforehand.check.net.pacing import LateStore
from beforehand.check.net.signer import make_proofs
from beforehand.check.rules.flow_rules import breach, broken_rule
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES, Proofs
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.flow_control import DIGEST_TIMER, STALL_TICKS, STALL_TIMER
from beforehand.protocols.epidemic.frames import (
    Announce,
    Data,
    Digest,
    Push,
    Request,
    SyncHello,
    Want,
)
from beforehand.protocols.epidemic.link_flow import LinkFlow
from beforehand.protocols.epidemic.options import Flow, Options
from beforehand.protocols.epidemic.paced_epidemic import group_core
from beforehand.protocols.orders.order import Lifetimes

SECOND_US = 1_000_000
NOW_US = 1_000 * SECOND_US
LATER_US = NOW_US + 100 * SECOND_US
LIFETIMES = Lifetimes(200 * SECOND_US, 400 * SECOND_US, SECOND_US)
WIDE = 1 << 30
FLOW = Flow(window=4, offers_max=8, pushes_max=2)


class Node:
    """One core on a wire of its own, which checks that the core may send each frame."""

    def __init__(self, name="ann", flow=FLOW, **options):
        options = {"capacity": None, "capacity_bytes": None, "digest_after": 0, **options}
        proofs = make_proofs("sound", name, 0)
        self.core = group_core(
            name, LIFETIMES, random.Random(1), proofs=proofs, flow=flow, **options
        )
        self.store = LateStore()
        self.now_us = NOW_US
        self.timers = {}
        self.cuts = []

    def give(self, name, *arguments):
        """Give the core an input; return the frames that it sends."""
        out = Outbox()
        getattr(self.core, name)(self.now_us, *arguments, out)
        for _, frame in out.sends:
            assert breach(self.core, self.store, frame) is None
        self.store.save(out.saves)
        assert broken_rule(self.core, self.now_us) is None
        self.timers.update(out.timers)
        self.cuts += out.cuts
        return [frame for _, frame in out.sends]

    def flush(self):
        self.store.flush()
        return self.give("on_saved", self.core.saving_step())

    def link(self, peer="bob", room=WIDE, hello=()):
        """Bring the link up and receive the hello of the peer."""
        frames = self.give("on_link", peer, True) + self.give("on_room", peer, room)
        return frames + self.give("on_message", peer, SyncHello(frozenset(hello)))

    def say(self, *payloads):
        ids = []
        for payload in payloads:
            out = Outbox()
            ids.append(self.core.on_broadcast(self.now_us, payload, out))
            self.store.save(out.saves)
            assert not out.sends, "nothing leaves before the disk has it"
        return ids

    def get(self, *messages, peer="bob"):
        return self.give("on_message", peer, Data(messages))


def message(origin, seq, payload=b""):
    bare = Message((origin, LATER_US + seq), (), payload, stamp=NOW_US)
    return make_proofs("sound", origin, 0).prove(bare)


def ids(origin, *seqs):
    return frozenset((origin, LATER_US + seq) for seq in seqs)


def test_own_messages_are_pushed_when_the_disk_has_them():
    ann = Node()
    ann.link()
    (first, second) = ann.say(b"one", b"two")
    pushed = [frame for frame in ann.flush() if isinstance(frame, Push)]
    assert [m.id for push in pushed for m in push.messages] == [first, second]


def test_own_messages_for_a_peer_without_room_are_announced_when_too_many_wait():
    ann = Node()
    ann.link(room=0)
    said = ann.say(b"1", b"2", b"3", b"4")
    assert ann.flush() == []
    frames = ann.give("on_room", "bob", WIDE)
    assert [type(frame) for frame in frames] == [SyncHello, Push, Push, Announce]
    assert frames[-1].ids == frozenset(said[2:])


def test_messages_of_other_origins_are_announced_later_and_together():
    ann = Node(digest_after=8)
    ann.link("bob")
    ann.link("carol")
    assert ann.get(message("dave", 1)) == []
    assert ann.get(message("dave", 2)) == []
    ann.flush()
    ann.now_us = ann.timers[ANNOUNCE_TIMER]
    assert FLOW.announce_us[0] <= ann.now_us - NOW_US <= FLOW.announce_us[1]
    frames = ann.give("on_timer", ANNOUNCE_TIMER)
    assert frames == [Announce(0, ids("dave", 1, 2))], "bob sent them, carol is told"


def test_a_held_announcement_omits_ids_that_the_peer_announced_meanwhile():
    ann = Node(digest_after=8)
    ann.link("bob")
    ann.link("carol", room=0)
    for seq in (1, 2, 3):
        ann.get(message("dave", seq))
    ann.flush()
    assert ann.give("on_timer", ANNOUNCE_TIMER) == []
    ann.give("on_message", "carol", Announce(0, ids("dave", 1)))
    ann.give("on_message", "carol", Push((message("dave", 2),)))
    frames = ann.give("on_room", "carol", WIDE)
    assert frames == [SyncHello(frozenset()), Announce(0, ids("dave", 3))]


def test_only_the_latest_digest_is_sent_unless_the_peer_has_caught_up():
    ann = Node()
    ann.link("bob")
    ann.link("carol")
    for origin, seq in (("dave", 1), ("eve", 5), ("dave", 7)):
        ann.get(message(origin, seq))
        ann.flush()
        assert ann.give("on_timer", ANNOUNCE_TIMER) == []
    ann.give("on_message", "carol", Digest(ids("dave", 6) | ids("eve", 5)))
    frames = ann.give("on_timer", DIGEST_TIMER)
    assert {frame.ids for frame in frames} == {ids("dave", 7) | ids("eve", 5), ids("dave", 7)}
    assert FLOW.digest_us[0] <= ann.timers[DIGEST_TIMER] - NOW_US <= FLOW.digest_us[1]


def test_a_late_disk_holds_back_announcements_digests_and_answers_but_no_requests():
    ann = Node()
    ann.link("bob")
    ann.link("carol")
    ann.get(message("dave", 1))
    assert ann.give("on_timer", ANNOUNCE_TIMER) == []
    assert ann.give("on_timer", DIGEST_TIMER) == []
    assert ann.give("on_message", "carol", Want(ids("dave", 0))) == []
    assert ann.give("on_message", "carol", Request(0, ids("dave", 1))) == []
    assert ann.give("on_message", "carol", Announce(0, ids("eve", 1))) == [
        Request(0, ids("eve", 1))
    ]
    kinds = [type(frame) for frame in ann.flush()]
    assert sorted(kind.__name__ for kind in kinds) == ["Announce", "Data", "Digest", "Digest"]


def test_an_own_message_that_was_evicted_at_once_is_not_pushed_before_the_disk_has_it():
    """Its number would be used again after a crash."""
    ann = Node(capacity=1)
    ann.link()
    ann.say(b"one", b"two")
    assert ann.give("on_room", "bob", WIDE) == []
    assert [type(frame) for frame in ann.flush()] == [Push, Push]


def test_no_more_is_requested_than_the_window_until_half_of_it_is_answered():
    ann = Node()
    ann.link()
    assert ann.give("on_message", "bob", Announce(0, ids("dave", *range(6)))) == [
        Request(0, ids("dave", 0, 1, 2, 3))
    ]
    assert ann.get(message("dave", 0)) == []
    assert ann.give("on_message", "bob", Data((), ids("dave", 1))) == [
        Request(0, ids("dave", 4, 5))
    ]


def test_a_message_that_came_from_another_peer_counts_until_the_first_peer_answers():
    """Else the requests would pile up at a peer without room, which would cut this node off."""
    ann = Node(flow=Flow(window=2, offers_max=8))
    ann.link("bob")
    ann.link("carol")
    ann.give("on_message", "bob", Announce(0, ids("dave", 0, 1, 2)))
    assert ann.give("on_message", "carol", Push((message("dave", 0),))) == []
    assert ann.get(message("dave", 0)) == [Request(0, ids("dave", 2))]


def test_a_push_of_a_requested_message_does_not_answer_the_request():
    ann = Node(flow=Flow(window=2, offers_max=8))
    ann.link("bob")
    ann.give("on_message", "bob", Announce(0, ids("bob", 0, 1, 2)))
    assert ann.give("on_message", "bob", Push((message("bob", 0),))) == []
    assert ann.get(message("bob", 0)) == [Request(0, ids("bob", 2))]


def test_a_message_that_was_evicted_before_its_answer_came_is_not_requested_twice():
    ann = Node(flow=Flow(window=2, offers_max=8), capacity=1)
    ann.link("bob")
    ann.link("carol")
    assert ann.give("on_message", "bob", Announce(0, ids("dave", 0))) == [
        Request(0, ids("dave", 0))
    ]
    ann.give("on_message", "carol", Push((message("dave", 0),)))
    ann.give("on_message", "carol", Push((message("eve", 1),)))
    ann.link("frank")  # a new peer: evicted messages may be requested again
    assert ann.give("on_message", "bob", Announce(0, ids("dave", 0))) == []
    assert ann.core.gauges(ann.now_us)["asking"] == 1
    ann.get(message("dave", 0))
    assert ann.core.gauges(ann.now_us)["asking"] == ann.core.gauges(ann.now_us)["overtaken"] == 0


def test_while_the_application_does_not_read_nothing_is_requested_and_pushes_become_offers():
    ann = Node()
    ann.link()
    ann.give("on_open", False)
    assert ann.give("on_message", "bob", Announce(0, ids("dave", 1))) == []
    assert ann.give("on_message", "bob", Push((message("dave", 2),))) == []
    assert ann.core.holds(NOW_US) == frozenset()
    assert ann.give("on_open", True) == [Request(0, ids("dave", 1, 2))]


def test_offers_beyond_the_window_are_announced_again_when_half_of_the_others_are_answered():
    ann = Node(flow=Flow(window=2, offers_max=8))
    ann.link()
    frames = ann.give("on_message", "bob", Announce(0, ids("dave", *range(14))))
    assert frames == [Request(0, ids("dave", 0, 1))]
    (request,) = ann.get(message("dave", 0))
    assert request == Request(0, ids("dave", 2))
    assert ann.get(message("dave", 1)) == [
        Request(0, ids("dave", 3)),
        SyncHello(ids("dave", 1)),
    ], "8 offers fit, 4 of them are done"
    again = ann.give("on_message", "bob", Announce(0, ids("dave", *range(4, 14))))
    assert again == []
    assert len(ann.core.flow.flows["bob"].offers) == 8


def test_offers_that_are_announced_again_are_the_same_offers():
    """They counted as new ones that did not fit, and the version vector was sent for ever."""
    ann = Node(flow=Flow(window=2, offers_max=8))
    ann.link()
    ann.give("on_message", "bob", Announce(0, ids("dave", *range(8))))
    flow = ann.core.flow.flows["bob"]
    assert len(flow.offers) == 6
    assert ann.give("on_message", "bob", Announce(0, ids("dave", *range(2, 8)))) == []
    assert not flow.has_dropped_offers


def test_another_version_vector_is_answered_only_if_much_was_announced_since_the_last():
    ann = Node()
    ann.say(*(b"%d" % i for i in range(8)))
    ann.flush()
    ann.link(hello=[("ann", 1)])
    assert ann.give("on_message", "bob", SyncHello(frozenset())), "8 were announced, 4 are enough"
    ann.link("eve", hello=ann.core._version_vectors.known(0))
    with pytest.raises(RemoteError, match="without dropped offers"):
        ann.give("on_message", "eve", SyncHello(frozenset()))


def test_a_peer_that_requests_more_than_the_window_is_cut_off():
    ann = Node()
    ann.say(*(b"%d" % i for i in range(5)))
    ann.flush()
    ann.link(room=0)
    held = sorted(ann.core.holds(NOW_US))
    ann.give("on_message", "bob", Request(0, frozenset(held[:4])))
    assert not ann.cuts
    ann.give("on_message", "bob", Request(0, frozenset(held[4:])))
    assert ann.cuts == [("bob", "slow")]


def test_requests_are_served_as_there_is_room_and_in_the_order_of_storing():
    ann = Node(frame_bytes_max=1)
    said = ann.say(*(b"%d" % i for i in range(3)))
    ann.flush()
    ann.link(room=0)
    ann.give("on_message", "bob", Request(0, frozenset([*said, ("dave", LATER_US)])))
    served = [ann.give("on_room", "bob", 1) for _ in range(7)]
    datas = [frame for frames in served for frame in frames if isinstance(frame, Data)]
    assert [[m.id for m in data.messages] for data in datas] == [[id] for id in said] + [[]]
    assert datas[-1].gone == {("dave", LATER_US)}
    assert all(len(frames) <= 1 for frames in served), "one frame may exceed the room"


@pytest.mark.parametrize(
    ("signers", "frames"),
    [
        ("aaabbb", ["aaa", "bbb"]),  # 5 messages fit into a frame
        ("aaaabbcc", ["aaaa", "bbcc"]),
        ("abbbbb", ["abbbb", "b"]),  # "a" alone would fill less than half of a frame
        ("aaaaaaa", ["aaaaa", "aa"]),
        ("......", [".....", "."]),  # without proofs
    ],
)
def test_messages_signed_together_share_a_frame_unless_it_would_be_less_than_half_full(
    signers, frames
):
    heads = {char: char.encode() * PROOF_HEAD_BYTES for char in "abc"} | {".": b""}
    held = {
        ("ann", seq): (
            seq,
            Message(("ann", seq), (), b"-" * 1_000, heads[signer] and heads[signer] + bytes([seq])),
        )
        for seq, signer in enumerate(signers, start=1)
    }
    link = LinkFlow("bob", 6_000, room=WIDE)
    link.serve.extend(held)
    out = Outbox()
    assert link.send_data(held, {}, 0, out) == list(held)
    found = ["".join(signers[m.id[1] - 1] for m in frame.messages) for _, frame in out.sends]
    assert found == frames


def test_a_request_goes_before_data_that_waits_for_room():
    ann = Node(frame_bytes_max=1)
    (id,) = ann.say(b"x")
    ann.flush()
    ann.link(room=0)
    ann.give("on_room", "bob", 1)  # for the version vector
    ann.give("on_message", "bob", Request(0, frozenset([id])))
    ann.give("on_message", "bob", Announce(0, ids("dave", 1)))
    frames = ann.give("on_room", "bob", 1)
    assert frames == [Request(0, ids("dave", 1))]


def test_a_peer_that_owes_messages_and_sends_nothing_is_cut_off():
    ann = Node()
    ann.link()
    ann.give("on_message", "bob", Announce(0, ids("dave", 1)))
    assert ann.timers[STALL_TIMER] - NOW_US == FLOW.stall_us // STALL_TICKS
    for _ in range(STALL_TICKS):
        ann.give("on_timer", STALL_TIMER)
    ann.give("on_progress", "bob")
    for _ in range(STALL_TICKS):
        ann.give("on_timer", STALL_TIMER)
    ann.give("on_message", "bob", Data((message("eve", 3),)))
    assert not ann.cuts
    ann.give("on_timer", STALL_TIMER)
    assert ann.cuts == [("bob", "stalled")], "what nobody asked for is no progress"


def test_requests_for_expired_messages_count_until_the_peer_answers_them():
    """They wait in the peer's queue, and with more than a window of requests it cuts the link."""
    ann = Node()
    ann.link()
    soon, later = ids("dave", 1, 2, 3, 4), ids("dave", 50 * SECOND_US)
    assert ann.give("on_message", "bob", Announce(0, soon | later)) == [Request(0, soon)]
    ann.now_us = LATER_US + SECOND_US
    assert ann.give("on_timer", STALL_TIMER) == []
    more = ids("dave", 60 * SECOND_US)
    assert ann.give("on_message", "bob", Announce(0, more)) == []
    assert ann.give("on_message", "bob", Data((), soon)) == [Request(0, later | more)]


def test_requests_to_a_disconnected_peer_are_repeated_to_another():
    ann = Node()
    ann.link("bob")
    ann.link("carol")
    ann.give("on_message", "bob", Announce(0, ids("dave", 1)))
    assert ann.give("on_message", "carol", Announce(0, ids("dave", 1))) == []
    assert Request(0, ids("dave", 1)) in ann.give("on_link", "bob", False)


def test_a_message_is_requested_from_a_peer_with_room_in_its_window_if_the_next_peer_has_none():
    """If only the peer without room got the offer, its link-down would lose it."""
    ann = Node(flow=Flow(window=2, offers_max=8))
    for peer in ("adam", "bob", "carol"):
        ann.link(peer)
    ann.give("on_message", "adam", Announce(0, ids("dave", 1)))
    ann.give("on_message", "bob", Announce(0, ids("eve", 2, 3)))
    for peer in ("bob", "carol"):
        assert ann.give("on_message", peer, Announce(0, ids("dave", 1))) == []
    assert Request(0, ids("dave", 1)) in ann.give("on_link", "adam", False)
    assert ann.core.gauges(ann.now_us)["asking"] == 3


def test_one_push_is_one_frame_for_all_peers():
    ann = Node()
    for peer in ("bob", "carol", "dave"):
        ann.link(peer)
    ann.say(b"one")
    pushes = [frame for frame in ann.flush() if isinstance(frame, Push)]
    assert len(pushes) == 3
    assert len({id(push) for push in pushes}) == 1, "so it is encoded once"


def test_flow_control_is_refused_where_version_vectors_or_pushes_are_off():
    with pytest.raises(LocalError, match="version vectors"):
        Options(flow=FLOW)


def test_a_signer_that_fails_leaves_no_push_and_no_step():
    def fail(data):
        raise LocalError("no key")

    ann = Node()
    ann.link()
    ann.core.order.proofs = Proofs("net", fail, lambda *_: True)
    with pytest.raises(LocalError, match="no key"):
        ann.say(b"one")
    assert ann.core.saving_step() == 0
    assert ann.core.flow.flows["bob"].pushes == ann.core.flow.flows["bob"].serve
