"""The epidemic layer announces, requests and sends; no message comes twice or is lost."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.nets import Net, make

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import EVICTED_MAX
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.frames import Announce, Data, Request
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.sender import RETRY_TIMER
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import ORDER_TIMER, Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector


def test_on_link_up_held_ids_are_announced_and_missing_ones_requested():
    net = Net(make(0), make(1))
    net.give(0, "on_broadcast", b"a")
    net.give(0, "on_broadcast", b"b")
    net.link(0, 1)
    net.settle()
    assert [type(frame) for _, _, frame in net.history] == [Announce, Request, Data]
    assert {(1, (0, 1)), (1, (0, 2))} <= set(net.delivered)


def test_new_messages_are_announced_to_peers_and_forwarded():
    net = Net(make(0), make(1), make(2))
    net.link(0, 1)
    net.link(1, 2)
    net.give(0, "on_broadcast", b"news")
    net.settle()
    assert (2, (0, 1)) in net.delivered


def test_a_message_is_not_announced_to_the_peer_that_sent_it():
    net = Net(make(0), make(1))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"news")
    net.settle()
    assert all(source == 0 for source, _, frame in net.history if type(frame) is Announce)


def test_a_message_is_not_requested_from_two_peers_at_once():
    net = Net(make(0), make(1), make(2))
    net.link(0, 2)
    net.link(0, 1)
    net.give(0, "on_broadcast", b"news")
    net.settle()
    net.link(1, 2)  # both have it already: no request
    net.settle()
    assert len(net.sent(Request)) == 2
    late = make(3)
    net.cores[3] = late
    net.link(0, 3)
    net.link(1, 3)
    announcements = [f for f in net.frames if type(f[2]) is Announce]
    assert len(announcements) == 2
    net.settle()
    asked = Counter(id for _, t, f in net.history if type(f) is Request for id in f.ids)
    assert asked[0, 1] == 3  # once by each of nodes 1, 2 and 3
    assert late.counters.duplicate == 0


def test_on_link_down_requests_are_forgotten_and_repeated_to_another_peer():
    net = Net(make(0), make(1), make(2))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"news")
    net.settle()
    net.link(0, 2)
    net.link(1, 2)
    while type(net.frames[0][2]) is not Request:  # until node 2 has asked
        source, target, frame = net.frames.pop(0)
        net.give(target, "on_message", source, frame)
    while any(type(f[2]) is Announce for f in net.frames):  # and received both offers
        at = next(i for i, f in enumerate(net.frames) if type(f[2]) is Announce)
        source, target, frame = net.frames.pop(at)
        net.give(target, "on_message", source, frame)
    requested_of = next(target for source, target, f in net.frames if type(f) is Request)
    net.link(requested_of, 2, up=False)
    net.settle()
    assert (2, (0, 1)) in net.delivered


def test_a_message_received_from_another_peer_is_not_requested_again():
    core, out, wanted = make(0, Options(retry_us=1000)), Outbox(), frozenset({(9, 1)})
    for peer in (1, 2):
        core.on_link(0, peer, True, out)
    core.on_message(0, 1, Announce(1, wanted), out)
    core.on_message(10, 2, Data((Message((9, 1), (), b""),)), out)
    out.clear()
    core.on_timer(5000, RETRY_TIMER, out)
    assert not any(type(frame) is Request for _, frame in out.sends)
    assert core.gauges(5000)["asking"] == 0


def test_a_frame_of_a_link_that_is_down_is_ignored():
    core = make(0)
    out = Outbox()
    core.on_message(0, 7, Data((Message((7, 1), (), b""),)), out)
    assert out.deliveries == []


def test_an_unknown_frame_is_a_peers_error():
    core = make(0)
    core.on_link(0, 7, True, Outbox())
    with pytest.raises(RemoteError, match="unknown frame"):
        core.on_message(0, 7, "gossip", Outbox())


def test_with_a_period_announcements_wait_for_the_next_tick_and_an_idle_node_sets_no_timer():
    net = Net(make(0, Options(announce_us=1000)), make(1, Options(announce_us=1000)))
    net.link(0, 1)
    assert net.frames == []
    first = net.give(0, "on_broadcast", b"a")
    second = net.give(0, "on_broadcast", b"b")
    assert [name for name, _ in first.timers] == [ANNOUNCE_TIMER]
    assert second.timers == []
    assert net.frames == []
    net.now_us = first.timers[0][1]
    assert 0 < net.now_us <= 1000
    net.give(0, "on_timer", ANNOUNCE_TIMER)
    net.settle()
    assert len(net.sent(Announce)) == 1
    assert len(net.sent(Data)) == 1


@pytest.mark.parametrize("now_us", range(0, 3000, 250))
def test_announcements_wait_for_the_next_tick_and_not_for_the_one_after_it(now_us):
    core, out = make(0, Options(announce_us=1000)), Outbox()
    core.on_link(now_us, 1, True, out)
    core.on_broadcast(now_us, b"", out)
    ((_, due_us),) = out.timers
    assert now_us < due_us <= now_us + 1000
    assert due_us % 1000 == core._sender._phase_us % 1000


def test_messages_evicted_before_the_tick_are_not_announced():
    core, out = make(0, Options(announce_us=1000, capacity=1)), Outbox()
    core.on_link(0, 1, True, out)
    for _ in range(3):
        core.on_broadcast(0, b"", out)
    core.on_timer(1000, ANNOUNCE_TIMER, out)
    assert out.sends == [(1, Announce(1, frozenset({(0, 3)})))]


def test_a_message_sent_on_request_is_not_announced_to_that_peer_again():
    """Though it did not acknowledge the announcement."""
    core, out = make(0, Options(retry_us=1000)), Outbox()
    core.on_link(0, 1, True, out)
    core.on_broadcast(0, b"", out)
    core.on_message(0, 1, Request(0, frozenset({(0, 1)})), out)
    out.clear()
    core.on_timer(1000, RETRY_TIMER, out)
    assert out.sends == []


@pytest.mark.parametrize(
    ("transfer", "expected"), [("oldest", [1, 2, 3, 4, 5]), ("newest", [5, 4, 3, 2, 1])]
)
def test_the_order_of_transfer(transfer, expected):
    net = Net(make(0, Options(transfer=transfer)), make(1))
    for _ in range(5):
        net.give(0, "on_broadcast", b"")
    net.link(0, 1)
    net.settle()
    assert [message.seq for frame in net.sent(Data) for message in frame.messages] == expected


def test_a_message_evicted_before_its_transfer_is_requested_from_another_peer():
    net = Net(make(0, Options(capacity=1)), make(1), make(2))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"a")
    net.settle()
    net.link(0, 2)
    net.link(1, 2)
    announce = [f for f in net.frames if type(f[2]) is Announce]
    for source, target, frame in announce:
        net.frames.remove((source, target, frame))
        net.give(target, "on_message", source, frame)
    net.give(0, "on_broadcast", b"b")  # pushes the first one out of node 0
    net.settle()
    assert any((0, 1) in frame.gone for frame in net.sent(Data))
    assert (2, (0, 1)) in net.delivered


def test_a_message_evicted_at_one_peer_is_not_requested_again_from_a_peer_already_asked():
    """Its answer came twice, because the question was repeated."""
    core, out, wanted = make(0, Options(retry_us=1000)), Outbox(), frozenset({(9, 1)})
    for peer in (1, 2):
        core.on_link(0, peer, True, out)
        core.on_message(0, peer, Announce(1, wanted), out)
    assert [peer for peer, frame in out.sends if frame.ids] == [1]
    out.clear()
    core.on_message(0, 1, Data((), wanted), out)
    assert out.sends == [(2, Request(0, wanted))]
    out.clear()
    core.on_message(0, 1, Data((), wanted), out)
    assert out.sends == []
    core.on_link(0, 2, False, out)
    assert core.gauges(0)["asking"] == 0


def test_an_announcement_that_overtakes_a_gone_answer_is_kept():
    """The peer evicted the message, answered the request, and received the message again. The
    explorer found that with a line of full caches and a flap."""
    core, out, wanted = make(0), Outbox(), frozenset({(9, 1)})
    core.on_link(0, 1, True, out)
    core.on_message(0, 1, Announce(1, wanted), out)
    out.clear()
    core.on_message(0, 1, Announce(2, wanted), out)
    assert out.sends == [], "it is requested already"
    core.on_message(0, 1, Data((), wanted), out)
    assert out.sends == [(1, Request(0, wanted))]
    out.clear()
    core.on_message(0, 1, Data((), wanted), out)
    assert out.sends == [], "this one is not older than the announcement"
    assert core.gauges(0)["asking"] == 0
    assert core._links[1].reannounced == set()


def test_an_evicted_message_comes_again_over_a_new_link_and_is_not_delivered_twice():
    net = Net(make(0), make(1, Options(capacity=1), Barrier(1)), make(2))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"a")
    net.settle()
    net.link(0, 2)
    net.settle()
    net.give(1, "on_broadcast", b"b")  # evicts 0:1 at node 1
    net.settle()
    net.link(1, 2)
    net.settle()
    assert net.cores[1].counters.received == 2
    assert net.delivered.count((1, (0, 1))) == 1


@pytest.mark.parametrize("evicted", [2, 2 * EVICTED_MAX])
def test_evicted_messages_are_not_requested_again_until_a_new_peer_links_up(evicted):
    """Otherwise messages would circulate for ever. This also holds if there were too many to
    remember."""
    core, out = make(0, Options(capacity=1)), Outbox()
    core.on_link(0, 1, True, out)
    for seq in range(evicted + 1):
        core.on_message(0, 1, Data((Message((9, seq), (), b""),)), out)
    out.clear()
    core.on_message(0, 1, Announce(1, frozenset({(9, 0), (9, 1), (8, 7)})), out)
    assert out.sends == [(1, Request(0, frozenset({(8, 7)})))]
    core.on_link(0, 2, True, out)
    out.clear()
    core.on_message(0, 2, Announce(1, frozenset({(9, 0), (9, 1)})), out)
    assert out.sends == [(2, Request(0, frozenset({(9, 0), (9, 1)})))]


@pytest.mark.parametrize("met_us", [9, 10])
def test_expired_messages_are_not_announced(met_us):
    lifetimes = Lifetimes(10, 10, skew_us=0)
    net = Net(*(make(n, order=Unordered(n, lifetimes)) for n in range(2)))
    net.give(0, "on_broadcast", b"a")
    net.now_us = met_us
    net.link(0, 1)
    assert len(net.frames) == (met_us < 10)
    assert len(net.cores[0].holds(met_us)) == (met_us < 10)


def test_news_that_expired_before_the_tick_is_not_announced():
    core = make(0, Options(announce_us=1000), Unordered(0, Lifetimes(100, 100, skew_us=0)))
    out = Outbox()
    for peer in (1, 2):
        core.on_link(0, peer, True, out)
    core.on_timer(1000, ANNOUNCE_TIMER, out)  # both have been greeted
    core.on_broadcast(1100, b"short-lived", out)
    out.clear()
    core.on_timer(2000, ANNOUNCE_TIMER, out)
    assert out.sends == []


def test_an_expired_message_is_not_requested_from_another_peer():
    core, out = make(0, order=Unordered(0, Lifetimes(100, 100, skew_us=0))), Outbox()
    for peer in (1, 2):
        core.on_link(0, peer, True, out)
        core.on_message(10, peer, Announce(1, frozenset({(9, 50)})), out)
    asked = [peer for peer, frame in out.sends if type(frame) is Request]
    assert asked == [1]
    out.clear()
    core.on_link(60, 1, False, out)
    assert out.sends == []


def test_a_query_about_a_later_time_does_not_change_the_node():
    core = make(0, order=Unordered(0, Lifetimes(10, 10, skew_us=0)))
    core.on_broadcast(0, b"a", Outbox())
    assert core.holds(10) == frozenset()
    assert core.gauges(10)["cache"] == 0
    assert core.holds(9) == {(0, 10)}
    assert core.horizon_us() == 0


@pytest.mark.parametrize("asked_us", [9, 10])
def test_expired_messages_are_not_sent(asked_us):
    lifetimes = Lifetimes(10, 10, skew_us=0)
    net = Net(make(0, order=Unordered(0, lifetimes)))
    net.give(0, "on_broadcast", b"a")
    net.give(0, "on_link", 1, True)
    net.now_us = asked_us
    ((_, answer),) = net.give(0, "on_message", 1, Request(0, frozenset({(0, 10)}))).sends
    assert len(answer.messages) == (asked_us < 10)
    assert len(answer.gone) == (asked_us >= 10)


def test_the_cache_and_known_to_peer_shrink_with_lifetimes():
    lifetimes = Lifetimes(10, 10, skew_us=0)
    net = Net(*(make(n, order=Unordered(n, lifetimes)) for n in range(2)))
    net.link(0, 1)
    for now_us in range(1000):
        net.now_us = now_us
        net.give(0, "on_broadcast", b"")
        net.settle()
    for core in net.cores.values():
        assert len(core._cache.entries) <= 64
        assert all(len(link.known_to_peer) <= 64 for link in core._links.values())
        assert not core._requested_from


def test_without_acknowledgements_a_core_declares_its_need_of_reliable_links():
    assert make(0).needs.links["contact"].reliable
    assert not make(0, Options(retry_us=5)).needs.links["contact"].reliable


@pytest.mark.parametrize("lost_kind", [Announce, Request, Data])
def test_lost_frames_are_retransmitted(lost_kind):
    options = Options(retry_us=1000)
    net = Net(make(0, options), make(1, options))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"a")
    lost = 0
    for _ in range(20):
        while net.frames:
            source, target, frame = net.frames.pop(0)
            if type(frame) is lost_kind and lost < 2:
                lost += 1
                continue
            net.give(target, "on_message", source, frame)
        net.now_us += 1000
        for node in (0, 1):
            if net.cores[node]._sender._retry_armed:
                net.give(node, "on_timer", RETRY_TIMER)
    assert lost == 2
    assert (1, (0, 1)) in net.delivered
    assert net.frames == []
    assert not any(core._sender._retry_armed for core in net.cores.values())


def test_a_busy_link_is_not_taken_for_a_lossy_one():
    options = Options(retry_us=1000, frame_bytes_max=1)
    net = Net(make(0, options), make(1, options))
    for _ in range(10):
        net.give(0, "on_broadcast", b"")
    net.link(0, 1)
    while any(type(f[2]) is not Data for f in net.frames):
        at = next(i for i, f in enumerate(net.frames) if type(f[2]) is not Data)
        source, target, frame = net.frames.pop(at)
        net.give(target, "on_message", source, frame)
    requests = 0
    while net.frames:  # one frame every 900 us, for nine times the retry time
        net.now_us += 900
        source, target, frame = net.frames.pop(0)
        net.give(target, "on_message", source, frame)
        net.give(1, "on_timer", RETRY_TIMER)
        requests += sum(type(f[2]) is Request and bool(f[2].ids) for f in net.frames)
    assert requests == 0
    assert net.cores[1].counters.received == 10


@pytest.mark.parametrize("timer", [ORDER_TIMER, ANNOUNCE_TIMER, RETRY_TIMER, ("tea", None)])
@pytest.mark.parametrize("kind", [Barrier, Unordered, Vector])
def test_an_unset_timer_has_no_effect(timer, kind):
    net = Net(make(0, order=kind(0)), make(1, order=kind(1)))
    net.link(0, 1)
    net.now_us = 100
    out = net.give(1, "on_timer", timer)
    assert (out.sends, out.timers) == ([], [])
    net.give(0, "on_broadcast", b"")
    net.settle()
    assert (1, (0, 1)) in net.delivered


@pytest.mark.parametrize("kind", [Barrier, Unordered])
def test_broadcasts_after_the_clock_was_set_back_reach_others(kind):
    """Further back than the lifetime: else nothing would get through until it catches up."""
    lifetimes = Lifetimes(10, 10, skew_us=1000)
    net = Net(*(make(n, order=kind(n, lifetimes)) for n in range(2)))
    net.give(0, "on_broadcast", b"before")
    net.now_us = 500
    net.link(0, 1)
    net.now_us = 400
    (said,) = net.give(0, "on_broadcast", b"after").deliveries
    net.settle()
    assert (1, said.id) in net.delivered


@given(st.data())
def test_random_graphs_of_reliable_links_spread_everything_once(data):
    """Every node receives every message exactly once, in whatever order frames arrive."""
    nodes = data.draw(st.integers(2, 5))
    net = Net(*(make(node) for node in range(nodes)))
    edges = [(a, b) for a in range(nodes) for b in range(a) if data.draw(st.booleans())]
    edges += [(node, node + 1) for node in range(nodes - 1) if (node + 1, node) not in edges]
    todo = [("link", edge) for edge in edges]
    todo += [("broadcast", data.draw(st.integers(0, nodes - 1))) for _ in range(4)]
    todo = data.draw(st.permutations(todo))
    while todo or net.frames:
        if todo and (not net.frames or data.draw(st.booleans())):
            kind, what = todo.pop()
            if kind == "link":
                net.link(*what)
            else:
                net.give(what, "on_broadcast", b"")
        else:
            at = data.draw(st.integers(0, len(net.frames) - 1))
            source, target, frame = net.frames.pop(at)
            net.history.append((source, target, frame))
            net.give(target, "on_message", source, frame)
    for core in net.cores.values():
        assert len(core.holds(0)) == 4
        assert core.counters.duplicate == 0
    asked = Counter(
        (source, id) for source, _, f in net.history if type(f) is Request for id in f.ids
    )
    assert all(count == 1 for count in asked.values())
