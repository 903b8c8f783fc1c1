"""A peer that has delivered as much as the node gets one id per origin: a digest."""

import pytest
from tests.protocols.nets import Net, make

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic import version_vector
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.frames import (
    Announce,
    Data,
    Digest,
    Push,
    Request,
    SyncHello,
    Want,
)
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.version_vector import NOWHERE, STALE_MIN
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.unordered import Unordered

DIGESTS = Options(push=True, digest_after=0)


def causal(node, options=DIGESTS, **extra):
    return make(node, options, Barrier(node), **extra)


def joined(*cores, edges):
    net = Net(*cores)
    for a, b in edges:
        net.link(a, b)
    net.settle()
    return net


def triangle(options=DIGESTS):
    return joined(*(causal(n, options) for n in range(3)), edges=((0, 1), (1, 2), (0, 2)))


def line(options=DIGESTS):
    return joined(*(causal(n, options) for n in range(3)), edges=((0, 1), (1, 2)))


def chain(count, origin=9, start=1):
    """Return messages of one origin, each causally after the one before it."""
    pasts = [(), *(((origin, seq),) for seq in range(start, start + count))]
    return [Message((origin, start + n), pasts[n], b"") for n in range(count)]


def met(*said, options=DIGESTS):
    """Return two nodes that are linked after each has received some messages."""
    net = Net(causal(0, options), causal(1, options), causal(7))
    for node, messages in enumerate(said):
        net.link(node, 7)
        net.settle()
        net.give(node, "on_message", 7, Data(tuple(messages)))
        net.link(node, 7, up=False)
        net.settle()
    net.history.clear()
    net.link(0, 1)
    net.settle()
    return net


def test_a_hello_to_an_up_to_date_peer_costs_one_id_per_origin():
    said = [*chain(500), *chain(500, origin=8)]
    net = met(said, said)
    assert [frame.ids for frame in net.sent(SyncHello)] == [{(9, 500), (8, 500)}] * 2
    assert [type(frame) for *_, frame in net.history] == [SyncHello] * 2


def test_a_peer_that_is_behind_gets_announcements_of_only_the_missing_messages():
    said, more = chain(500), chain(3, origin=8)
    net = met([*said, *more], said[:498])
    (told,) = net.sent(Announce)
    assert told.ids == {(9, 499), (9, 500), *(message.id for message in more)}
    assert {(1, message.id) for message in (*said, *more)} <= set(net.delivered)


def test_a_hello_announces_pending_messages_too():
    first, second, third = chain(3)
    net = met([third], [first, second])
    assert {(0, third.id), (1, third.id)} <= set(net.delivered)


def test_frames_of_a_peer_before_the_hello_are_accepted():
    net = Net(causal(0), causal(1))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"")
    net.settle()
    assert (1, (0, 1)) in net.delivered


def test_repeated_hellos_are_answered_once():
    _, second = chain(2)
    net = Net(causal(0), causal(1), causal(7))
    net.link(0, 7)
    net.give(
        0, "on_message", 7, Data((second,))
    )  # it waits, so no entry stands for its announcement
    net.give(0, "on_link", 1, True)
    greeting = SyncHello(frozenset())
    (told,) = [frame.ids for _, frame in net.give(0, "on_message", 1, greeting).sends]
    assert told == {second.id}
    assert net.give(0, "on_message", 1, greeting).sends == []


def test_origins_beyond_the_size_of_a_hello_are_announced_by_ids():
    said = [Message((origin, 1), (), b"") for origin in range(100, 110)]
    said += [*chain(20, origin=5), *chain(10, origin=6)]
    net = met(said, said, options=Options(push=True, digest_after=0, frame_bytes_max=8 + 2 * 12))
    assert [frame.ids for frame in net.sent(SyncHello)] == [{(5, 20), (6, 10)}] * 2
    told = frozenset().union(*(frame.ids for frame in net.sent(Announce)))
    assert told == {(origin, 1) for origin in range(100, 110)}
    assert not net.sent(Request)


def test_a_hello_omits_expired_messages():
    core = make(0, DIGESTS, Barrier(0, Lifetimes(default_us=100, longest_us=1000)))
    net = Net(core, causal(1), causal(2))
    net.link(0, 1)
    net.give(0, "on_message", 1, Data((Message((9, 400), (), b""), Message((8, 600), (), b""))))
    net.now_us = 500
    sends = net.give(0, "on_link", 2, True).sends
    assert (2, SyncHello(frozenset({(8, 600)}))) in sends


def test_in_a_full_mesh_a_batch_costs_each_pair_one_id_per_direction():
    net = triangle()
    net.give(0, "on_broadcasts", [(b"", None)] * 50)
    net.settle()
    assert not net.sent(Announce)
    assert [frame.ids for frame in net.sent(Digest)] == [frozenset({(0, 50)})] * 2
    assert not net.sent(Want), "both have come as far"


def test_a_peer_that_is_behind_gets_all_missing_messages():
    net = line()
    net.give(0, "on_broadcasts", [(b"", None)] * 50)
    net.settle()
    assert [frame.ids for frame in net.sent(Want)] == [frozenset({(0, NOWHERE)})]
    assert [id for node, id in net.delivered if node == 2] == [(0, seq) for seq in range(1, 51)]
    assert [len(net.sent(kind)) for kind in (Announce, Request)] == [1, 1]


def test_a_peer_that_requests_gets_single_announcements_until_it_stops_requesting():
    net = line(Options(push=True, digest_after=3))
    told = []
    for _ in range(6):
        net.history.clear()
        net.give(0, "on_broadcast", b"")
        net.settle()
        told.append((len(net.sent(Digest)), len(net.sent(Announce))))
    assert told == [(0, 1)] * 6, "it asked each time"
    net.link(0, 2)  # now it receives the messages from others
    net.settle()
    told.clear()
    for _ in range(6):
        net.history.clear()
        net.give(0, "on_broadcast", b"")
        net.settle()
        told.append((len(net.sent(Digest)), len(net.sent(Announce))))
    assert told == [(0, 2)] * 3 + [(2, 0)] * 3


def test_a_peer_linked_to_one_origin_only_gets_single_announcements_of_the_other():
    net = line(Options(push=True, digest_after=1))
    net.link(0, 2)
    net.settle()
    told = []
    for seq in range(3):
        net.history.clear()
        net.give(0, "on_broadcast", b"")
        for message in chain(1, origin=9, start=10 + seq):
            net.give(1, "on_message", 0, Data((message,)))
        net.settle()
        frames = [
            f for *way, f in net.history if way == [1, 2] and isinstance(f, Digest | Announce)
        ]
        told.append({type(frame): {id[0] for id in frame.ids} for frame in frames})
    assert told[1:] == [{Digest: {0}, Announce: {9}}] * 2
    assert (2, (9, 12)) in net.delivered


def test_nodes_that_lose_their_link_send_wants_to_a_common_peer_at_once():
    net = triangle()
    net.give(0, "on_broadcasts", [(b"", None)] * 3)
    net.settle()
    net.history.clear()
    net.link(0, 2, up=False)
    assert [frame.ids for _, peer, frame in net.frames if peer == 1] == [{(2, NOWHERE)}, {(0, 3)}]
    net.settle()
    net.give(0, "on_broadcast", b"")
    net.settle()
    assert (2, (0, 4)) in net.delivered


def test_a_node_that_loses_its_path_to_an_origin_sends_a_want():
    """For all origins but its linked peers and itself."""
    net = joined(*(causal(n) for n in range(4)), edges=((0, 1), (0, 2), (1, 3), (2, 3)))
    for node in range(4):
        net.give(node, "on_broadcast", b"")
    net.settle()
    net.frames.clear()
    out = net.give(3, "on_link", 1, False)
    assert out.sends == [(2, Want(frozenset({(0, 1), (1, 1)})))]


def test_version_vectors_do_not_cover_pending_or_returned_messages():
    net = line()
    first, second, third = chain(3)
    net.give(1, "on_message", 0, Data((third,)))
    (told,) = [frame for _, peer, frame in net.frames if peer == 2]
    assert told == Announce(told.number, frozenset({third.id}))
    net.frames.clear()
    net.give(1, "on_message", 0, Data((first, second)))
    assert [frame for _, peer, frame in net.frames if peer == 2] == [Digest(frozenset({second.id}))]


def test_an_evicted_message_that_returned_is_announced_by_its_id():
    net = line(Options(push=True, digest_after=0, capacity=1))
    first, second = chain(2)
    for message in (first, second, first):
        net.frames.clear()
        net.give(1, "on_message", 0, Data((message,)))
    (told,) = [frame for _, peer, frame in net.frames if peer == 2]
    assert told == Announce(told.number, frozenset({first.id}))


def test_a_returned_message_is_announced_to_a_peer_that_knows_its_successors():
    """The peer held the other two and waited for the first one, for the rest of the contact."""
    net = line(Options(push=True, digest_after=0, capacity=2, announce_us=1_000))
    first, second, third = chain(3)
    net.give(1, "on_message", 0, Data((first, second, third)))
    behind = Want(frozenset({(9, NOWHERE)}))
    (told,) = [frame.ids for _, frame in net.give(1, "on_message", 2, behind).sends]
    assert told == {second.id, third.id}, "the first was evicted"
    net.give(1, "on_message", 0, Push((first,)))
    out = net.give(1, "on_timer", ANNOUNCE_TIMER)
    told = [frame.ids for peer, frame in out.sends if peer == 2 and isinstance(frame, Announce)]
    assert first.id in frozenset().union(*told)


def test_a_repeated_want_is_answered_once_per_message():
    net = line()
    messages = chain(4)
    net.give(1, "on_message", 0, Data(tuple(messages[:2])))
    net.frames.clear()
    behind = Want(frozenset({(9, NOWHERE)}))
    (told,) = [frame.ids for _, frame in net.give(1, "on_message", 2, behind).sends]
    assert told == {(9, 1), (9, 2)}
    assert net.give(1, "on_message", 2, behind).sends == []
    net.give(1, "on_message", 0, Data(tuple(messages[2:])))
    (told,) = [frame.ids for _, frame in net.give(1, "on_message", 2, behind).sends]
    assert told == {(9, 3), (9, 4)}


def test_a_message_below_a_pending_one_is_announced_later():
    net = line()
    first, second = chain(2)
    net.give(1, "on_message", 0, Data((second,)))
    behind = Want(frozenset({(9, NOWHERE)}))
    assert [frame.ids for _, frame in net.give(1, "on_message", 2, behind).sends] == [{second.id}]
    net.give(1, "on_message", 0, Data((first,)))
    (told,) = [frame.ids for _, frame in net.give(1, "on_message", 2, behind).sends]
    assert first.id in told


def test_expired_and_own_messages_do_not_count_as_missing():
    lifetimes = Lifetimes(default_us=100, longest_us=1000)
    core = make(0, DIGESTS, Barrier(0, lifetimes))
    net = joined(core, causal(1), edges=((0, 1),))
    net.now_us = 500
    dead, own, alive = (9, 500), (0, 10_000), (9, 501)
    assert net.give(0, "on_message", 1, Digest(frozenset({dead, own}))).sends == []
    assert net.give(0, "on_message", 1, Digest(frozenset({alive}))).sends == [
        (1, Want(frozenset({(9, NOWHERE)})))
    ]


def test_without_causal_order_messages_are_announced_one_by_one():
    cores = [make(node, DIGESTS, Unordered(node)) for node in range(3)]
    net = joined(*cores, edges=((0, 1), (1, 2), (0, 2)))
    net.give(0, "on_broadcasts", [(b"", None)] * 5)
    net.settle()
    assert not net.sent(Digest)
    assert {len(frame.ids) for frame in net.sent(Announce)} == {5}


@pytest.mark.parametrize("digest_after", [0, 1])
def test_known_version_vectors_are_bounded_by_live_messages(digest_after):
    options = Options(push=True, digest_after=digest_after)
    core = make(0, options, Barrier(0, Lifetimes(default_us=60, longest_us=60)))
    net = joined(core, causal(1), causal(2), edges=((0, 1), (0, 2)))
    for now_us in range(5 * STALE_MIN):
        net.now_us = now_us
        net.give(0, "on_message", 1, Push((Message((now_us + 7, now_us + 60), (), b""),)))
        net.give(0, "on_message", 1, Want(frozenset({(now_us + 7, NOWHERE)})))
        gauges = core.gauges(now_us)
        assert gauges["by_origin"] <= STALE_MIN + 3 * gauges["stored"]
        assert gauges["marks"] <= gauges["stored"] + 60
        assert gauges["unfolded"] <= gauges["stored"] + 60
        assert gauges["unasked"] <= gauges["stored"] + 60


def test_held_messages_are_announced_after_a_sweep_of_stale_ids(monkeypatch):
    """With a full cache, the sweep of evicted ids removed the held ids too, so a new peer got no
    announcement."""
    monkeypatch.setattr(version_vector, "STALE_MIN", 2)
    options = Options(push=True, digest_after=0, capacity=3)
    net = joined(causal(0, options), causal(1, options), edges=())
    for _ in range(11):  # the eleventh is the fourth in the cache: 11 > 2 + 2 * 4
        net.give(0, "on_broadcast", b"")
    assert net.cores[0].gauges(0)["by_origin"] == 4
    net.link(0, 1)
    net.settle()
    assert [frame.ids for frame in net.sent(Announce)] == [{(0, 9), (0, 10), (0, 11)}]


def test_version_vectors_over_lossy_links_are_refused():
    with pytest.raises(LocalError, match="a digest that is lost is not repeated"):
        Options(digest_after=0, retry_us=1000)
