"""On links that lose nothing, a node pushes its broadcasts to all peers without a request."""

import pytest
from tests.protocols.nets import Net, make

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.frames import Announce, Data, Push, Request, message_bytes
from beforehand.protocols.epidemic.options import Options

PUSH = Options(push=True)


def three() -> Net:
    net = Net(make(0, PUSH), make(1, PUSH), make(2, PUSH))
    net.link(0, 1)
    net.link(1, 2)
    net.settle()
    return net


def test_a_push_takes_one_frame_and_distant_nodes_get_announcements():
    net = three()
    net.give(0, "on_broadcast", b"fog")
    net.settle()
    assert {node for node, _ in net.delivered} == {0, 1, 2}
    assert [len(net.sent(kind)) for kind in (Push, Announce, Request, Data)] == [1, 1, 1, 1]


def test_a_peer_before_its_hello_learns_of_a_push_by_the_later_announcement():
    net = Net(make(0, Options(push=True, announce_us=1_000_000)), make(1, PUSH))
    net.give(0, "on_broadcast", b"before")
    net.link(0, 1)
    net.give(0, "on_broadcast", b"after")
    net.give(0, "on_timer", ANNOUNCE_TIMER)
    net.settle()
    assert not net.sent(Push)
    assert len([node for node, _ in net.delivered if node == 1]) == 2


def test_a_pushed_message_is_not_awaited_from_another_peer():
    net = three()
    message = Message((9, 1), (), b"")
    net.give(1, "on_message", 2, Announce(1, frozenset({message.id})))
    assert net.cores[1].gauges(0)["asking"] == 1
    net.give(1, "on_message", 0, Push((message,)))
    assert net.cores[1].gauges(0)["asking"] == 0
    net.settle()
    assert net.cores[1].counters.received == 1


def test_a_push_is_no_larger_than_a_frame():
    size = message_bytes(Message((0, 1), (), bytes(100)))
    net = Net(make(0, Options(push=True, frame_bytes_max=3 * size)), make(1, PUSH))
    net.link(0, 1)
    net.settle()
    net.give(0, "on_broadcasts", [(bytes(100), None)] * 5)
    net.settle()
    assert [len(frame.messages) for frame in net.sent(Push)] == [3, 2]
    assert len([node for node, _ in net.delivered if node == 1]) == 5


def test_a_push_over_lossy_links_is_refused():
    with pytest.raises(LocalError, match="a push that is lost is not repeated"):
        Options(push=True, retry_us=1000)
