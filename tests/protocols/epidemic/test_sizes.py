"""The bounds of a frame on messages, names and sets of ids."""

import random

import pytest

from beforehand.check.net.signer import make_proofs
from beforehand.errors import LocalError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import NAME_CHARS_MAX, Message
from beforehand.protocols.contract.codec import BYTES_MAX
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.frames import Announce, Data, Push
from beforehand.protocols.epidemic.paced_epidemic import FRAME_BYTES_MAX, group_core
from beforehand.protocols.epidemic.sizes import (
    HEAD_BYTES,
    MESSAGE_BYTES_MAX,
    OWN_BYTES_MAX,
    cut_ids,
    fits,
    fitting,
    held_bytes,
    held_bytes_sum,
    ids_bytes,
    wire_bytes,
)
from beforehand.protocols.orders.order import Lifetimes

MINUTE_US = 60_000_000
NOW_US = 100 * MINUTE_US
LONG_NAME = "\U0001f68c" * NAME_CHARS_MAX


def node(name="ann"):
    return group_core(
        name,
        Lifetimes(MINUTE_US, MINUTE_US),
        random.Random(1),
        capacity=None,
        capacity_bytes=None,
        proofs=make_proofs("sound", name, 0),
    )


def signed(origin, past, payload):
    message = Message((origin, NOW_US + MINUTE_US), past, payload, stamp=NOW_US)
    return make_proofs("sound", origin, 0).prove(message)


def linked(core):
    out = Outbox()
    core.on_link(NOW_US, "eve", True, out)
    core.on_room(NOW_US, "eve", 1 << 30, out)
    return core


@pytest.mark.parametrize("origin", ["a", "zoë", LONG_NAME, 7, (1 << 62) - 1])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_the_count_of_ids_is_an_upper_bound_of_their_encoding(origin, count):
    ids = [(origin, (1 << 62) - 1 - n) for n in range(count)]
    assert len(OPPORTUNISTIC.encode(Announce(0, frozenset(ids)))) <= HEAD_BYTES + ids_bytes(ids)


def test_ids_of_names_and_of_numbers_are_counted_together():
    assert ids_bytes([("ann", 1), (2, 1), ("bob", 1)]) == ids_bytes(
        [("ann", 1), ("bob", 1)]
    ) + ids_bytes([(2, 1)])


@pytest.mark.parametrize("causes", [0, 1, 8, 9, 40])
@pytest.mark.parametrize("name", ["ann", LONG_NAME])
def test_a_frame_cut_by_the_count_of_messages_can_be_encoded(causes, name):
    past = tuple((name[:-2] + f"{n:02}", 1 << 61) for n in range(causes))
    message = Message((name, 1 << 61), past, b"", b"p" * 64)
    most = (FRAME_BYTES_MAX - HEAD_BYTES) // wire_bytes(message)
    some = tuple(Message((name, (1 << 61) + n), past, b"", b"p" * 64) for n in range(most))
    assert len(OPPORTUNISTIC.encode(Data(some))) < BYTES_MAX


def test_sets_of_the_longest_names_fit_into_frames():
    ids = [(LONG_NAME[:-4] + f"{n:04}", 1 << 61) for n in range(2048)]
    frames = [Announce(0, batch) for batch, _ in cut_ids(ids, FRAME_BYTES_MAX)]
    assert sum(len(frame.ids) for frame in frames) == 2048
    assert max(len(OPPORTUNISTIC.encode(frame)) for frame in frames) <= FRAME_BYTES_MAX


def test_a_message_that_fits_into_no_frame_is_refused():
    """2,200 causes with long names: every node that stored the message ended, at each start."""
    past = tuple((LONG_NAME[:-4] + f"{n:04}", 1 << 61) for n in range(2200))
    core = linked(node())
    out = Outbox()
    core.on_message(NOW_US, "eve", Push((signed("eve", past, b""),)), out)
    assert core.counters.refused == 1
    assert core.holds(NOW_US) == frozenset()
    assert out.receives == []


def test_the_largest_accepted_message_can_be_sent_on():
    for past in ((), tuple((f"node-{n}", 1 << 61) for n in range(2000))):
        spare = MESSAGE_BYTES_MAX - 2000
        message = signed("eve", past, b"")
        while fits(bigger := signed("eve", past, bytes(spare - len(past) * 30)), MESSAGE_BYTES_MAX):
            message, spare = bigger, spare + 64
        core = linked(node())
        core.on_message(NOW_US, "eve", Push((message,)), Outbox())
        assert core.holds(NOW_US) == {message.id}
        assert len(OPPORTUNISTIC.encode(Data((message,)))) < BYTES_MAX


def test_an_own_message_with_too_many_causes_is_not_broadcast():
    core = linked(node())
    for n in range(OWN_BYTES_MAX // 500):
        name = LONG_NAME[:-4] + f"{n:04}"
        core.on_message(NOW_US, "eve", Push((signed(name, (), b""),)), Outbox())
    before = core.order.last_seq()
    with pytest.raises(LocalError, match="causes") as caught:
        core.on_broadcast(NOW_US, b"hello", Outbox())
    assert "wait until some of them expire" in caught.value.hint
    assert core.order.last_seq() == before


def test_a_store_with_a_message_that_fits_into_no_frame_opens_without_it():
    past = tuple((LONG_NAME[:-4] + f"{n:04}", 1 << 61) for n in range(2200))
    unfit, fit = signed("eve", past, b""), signed("bob", (), b"")
    core, out = node(), Outbox()
    core.restore(NOW_US, {"message": {unfit.id: unfit, fit.id: fit}}, out)
    assert core.holds(NOW_US) == {fit.id}
    assert ("message", unfit.id, None) in out.saves


@pytest.mark.parametrize("causes", [0, 1, 8, 9, 300])
def test_sums_and_filters_agree_with_the_sizes_of_single_messages(causes):
    past = tuple((f"node-{n}", 1 << 61) for n in range(causes))
    messages = [signed("eve", past, bytes(size)) for size in (0, 10, MESSAGE_BYTES_MAX)]
    assert held_bytes_sum(messages) == sum(map(held_bytes, messages))
    for some in (messages, messages[:2], messages[:0]):
        fit = [message for message in some if fits(message, MESSAGE_BYTES_MAX)]
        assert list(fitting(some, MESSAGE_BYTES_MAX)) == fit
