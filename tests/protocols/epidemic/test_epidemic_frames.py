"""Encoding, limits and decoding of the frames of the epidemic layer."""

import msgspec
import pytest
from tests.protocols.nets import Net, make

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.frames import Announce, Data, Frame, Request, message_bytes
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector

SMALL = Options(frame_bytes_max=100)
MANY = frozenset((9, seq) for seq in range(50))


def sign_as(node):
    """Return signatures that anyone could make: they only distinguish signed from unsigned."""
    return Proofs("g", lambda data: repr(node).encode() + data, is_signed)


def is_signed(origin, data, proof):
    return proof == repr(origin).encode() + data


def test_a_data_frame_is_filled_up_to_its_limit():
    size = message_bytes(Message((0, 1), (), bytes(100)))
    net = Net(make(0, Options(transfer="oldest", frame_bytes_max=2 * size)), make(1))
    for _ in range(5):
        net.give(0, "on_broadcast", bytes(100))
    net.link(0, 1)
    net.settle()
    assert [len(frame.messages) for frame in net.sent(Data)] == [2, 2, 1]


def test_a_message_larger_than_a_frame_goes_alone():
    net = Net(make(0, Options(frame_bytes_max=10)), make(1))
    net.give(0, "on_broadcast", bytes(100))
    net.link(0, 1)
    net.settle()
    assert (1, (0, 1)) in net.delivered


def test_no_announcement_is_larger_than_a_frame():
    net = Net(make(0, SMALL), make(1))
    for _ in range(50):
        net.give(0, "on_broadcast", b"")
    net.link(0, 1)
    net.settle()
    assert max(frame.size_bytes for frame in net.sent(Announce)) <= 100
    assert len({frame.number for frame in net.sent(Announce)}) == len(net.sent(Announce)) == 8
    assert len(net.cores[1].holds(0)) == 50


@pytest.mark.parametrize("retry_us", [None, 1000])
def test_no_request_is_larger_than_a_frame_and_each_acknowledges(retry_us):
    core, out = make(0, Options(frame_bytes_max=100, retry_us=retry_us)), Outbox()
    core.on_link(0, 1, True, out)
    core.on_message(0, 1, Announce(4, MANY), out)
    requests = [frame for _, frame in out.sends]
    assert {frame.acknowledged for frame in requests} == {0 if retry_us is None else 4}
    assert max(frame.size_bytes for frame in requests) <= 100
    assert frozenset().union(*(frame.ids for frame in requests)) == MANY


def test_gone_ids_are_split_into_frames_within_the_size_limit():
    core, out = make(0, SMALL), Outbox()
    core.on_link(0, 1, True, out)
    core.on_message(0, 1, Request(0, MANY), out)
    answers = [frame for _, frame in out.sends]
    assert max(frame.size_bytes for frame in answers) <= 100
    assert frozenset().union(*(frame.gone for frame in answers)) == MANY


# ---- proofs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Barrier, Unordered, Vector])
def test_where_a_group_asks_for_proofs_every_own_message_is_sent_with_one(kind):
    net = Net(*(make(n, order=kind(n), proofs=sign_as(n)) for n in range(3)))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"signed")
    net.settle()
    net.link(1, 2)  # it survives being forwarded
    net.settle()
    assert all(message.proof for frame in net.sent(Data) for message in frame.messages)
    assert {(1, (0, 1)), (2, (0, 1))} <= set(net.delivered)


def test_a_message_without_a_proof_of_its_origin_is_refused():
    core, out = make(0, proofs=sign_as(0)), Outbox()
    core.on_link(0, 1, True, out)
    honest = sign_as(1).prove(Message((1, 1), (), b""))
    forged = sign_as(1).prove(Message((2, 1), (), b""))
    core.on_message(0, 1, Data((Message((1, 2), (), b""), forged, honest)), out)
    assert out.deliveries == [honest]
    assert core.counters.refused == 2
    assert core.holds(0) == {(1, 1)}


def test_a_forged_answer_kept_a_message_from_being_requested_from_other_peers():
    core, out = make(0, proofs=sign_as(0)), Outbox()
    honest = sign_as(3).prove(Message((3, 1), (), b"fog"))
    forged = sign_as(1).prove(Message((3, 1), (), b"no fog"))
    for peer in (1, 2):
        core.on_link(0, peer, True, out)
        core.on_message(0, peer, Announce(1, frozenset([honest.id])), out)
    assert [peer for peer, _ in out.sends] == [1], "one of the two is asked"
    out.clear()
    core.on_message(0, 1, Data((forged,)), out)
    assert out.sends == [(2, Request(0, frozenset([honest.id])))]
    out.clear()
    core.on_message(0, 1, Data((forged,)), out)
    assert out.sends == [], "what was asked of another is not asked again"
    core.on_message(0, 2, Data((honest,)), out)
    assert out.deliveries == [honest]
    assert core.counters.refused == 2


@pytest.mark.parametrize("liar", [1, 3])
def test_garbage_under_the_id_of_a_message_kept_it_from_coming(liar):
    """A refused message ended the search: the requested peer left, and no other was asked."""
    core, out = make(0, proofs=sign_as(0)), Outbox()
    wanted = frozenset({(1, 1)})
    for peer in (1, 2, 3):
        core.on_link(0, peer, True, out)
    for peer in (1, 2):
        core.on_message(0, peer, Announce(1, wanted), out)
    assert out.sends == [(1, Request(0, wanted))]
    out.clear()
    core.on_message(0, liar, Data((Message((1, 1), (), b"garbage"),)), out)
    core.on_link(0, 1, False, out)
    assert out.sends == [(2, Request(0, wanted))]
    assert core.counters.refused == 1


def test_without_proofs_none_is_made_and_none_is_required():
    net = Net(make(0), make(1))
    net.link(0, 1)
    net.give(0, "on_broadcast", b"")
    net.settle()
    assert net.sent(Data)[0].messages[0].proof == b""


# ---- sizes --------------------------------------------------------------------------------------


def test_frame_sizes_are_close_to_what_msgpack_writes():
    ids = frozenset((node, 1_600_000_000_000_000 + node) for node in range(50))
    message = Message((3, 1_600_000_000_000_000), tuple(sorted(ids))[:9], bytes(200))
    for frame in (Announce(9, ids), Request(9, ids), Data((message,) * 5)):
        wire = msgspec.msgpack.encode(frame)
        assert abs(len(wire) - frame.size_bytes) / len(wire) < 0.1
        assert msgspec.msgpack.decode(wire, type=Frame) == frame


@pytest.mark.parametrize("order", [Barrier(0), Unordered(0), Vector(0)])
def test_a_broadcast_that_cannot_be_signed_was_never_made(order):
    core = make(0, order=order, proofs=Proofs("g", lambda _: b"", lambda *_: True))
    out = Outbox()
    with pytest.raises(LocalError):
        core.on_broadcast(0, b"", out)
    assert out == Outbox()
    assert core.counters.broadcast == 0
    core.order.proofs = None
    assert core.on_broadcast(0, b"", out) == (0, 1)
