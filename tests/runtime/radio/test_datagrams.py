"""Datagrams: only members make and read them, and each is received once."""

from __future__ import annotations

import random

import pytest

from beforehand.runtime.crypto.keys import GroupKey, new_group
from beforehand.runtime.radio.datagrams import (
    DATAGRAM_BYTES_MAX,
    SENDERS_MAX,
    WINDOW,
    AirCounters,
    DatagramOpener,
    DatagramSealer,
)

KEY = new_group("port")


@pytest.fixture
def counters():
    return AirCounters()


@pytest.fixture
def north():
    return DatagramSealer(KEY, "north")


@pytest.fixture
def opener(north, counters):
    return DatagramOpener(KEY, north, counters, lambda _: True)


def test_a_datagram_of_a_member_reaches_another(opener, counters):
    content = opener.open(DatagramSealer(KEY, "ann").seal("up", 7, b"hello"))
    assert (content.kind, content.sender, content.tick, content.frame) == ("up", "ann", 7, b"hello")
    assert counters.received == 1


def test_names_and_payloads_are_not_readable_on_the_wire():
    datagram = DatagramSealer(KEY, "ann").seal("up", 7, b"hello")
    assert b"ann" not in datagram
    assert b"hello" not in datagram
    assert DatagramSealer(KEY, "ann").seal("up", 7, b"hello") != datagram


@pytest.mark.parametrize(
    "other",
    [new_group("port"), GroupKey("harbour", KEY.secret)],
    ids=["another secret", "another group"],
)
def test_datagrams_under_another_key_are_ignored(opener, counters, other):
    assert opener.open(DatagramSealer(other, "ann").seal("up", 7, b"hello")) is None
    assert counters.foreign == 1


def test_altered_datagrams_are_ignored(opener, counters):
    rng = random.Random(1)
    datagram = DatagramSealer(KEY, "ann").seal("up", 7, b"hello")
    for turn in range(2000):
        altered = bytearray(datagram)
        if turn % 4 == 0:
            del altered[rng.randrange(len(altered)) :]
        elif turn % 4 == 1:
            altered += rng.randbytes(rng.randrange(1, 9))
        else:
            altered[rng.randrange(len(altered))] ^= 1 << rng.randrange(8)
        assert opener.open(bytes(altered)) is None
    assert opener.open(b"") is None
    assert opener.open(datagram + bytes(DATAGRAM_BYTES_MAX)) is None
    assert (counters.foreign, counters.received) == (2002, 0)


def test_a_datagram_is_accepted_once_in_any_order_of_arrival(opener, counters):
    sealer = DatagramSealer(KEY, "ann")
    datagrams = [sealer.seal("up", 7, b"%d" % turn) for turn in range(300)]
    order = [*datagrams, *datagrams]
    random.Random(2).shuffle(order)
    received = [content.frame for one in order if (content := opener.open(one))]
    assert sorted(received) == sorted(b"%d" % turn for turn in range(300))
    assert (counters.received, counters.repeated) == (300, 300)


def test_a_datagram_older_than_the_window_counts_as_repeated(opener, counters):
    sealer = DatagramSealer(KEY, "ann")
    early, *_, late = [sealer.seal("up", 7, b"") for _ in range(WINDOW + 1)]
    assert opener.open(late)
    assert opener.open(early) is None
    assert counters.repeated == 1


def test_an_earlier_incarnation_ends_when_a_later_one_is_received(opener, counters):
    first, second = DatagramSealer(KEY, "ann"), DatagramSealer(KEY, "ann")
    before, recorded = first.seal("up", 7, b"1"), first.seal("up", 7, b"2")
    assert opener.open(before)
    assert opener.open(second.seal("up", 7, b"3"))
    assert opener.open(recorded) is None
    assert opener.open(second.seal("up", 7, b"4"))
    assert counters.repeated == 1


def test_own_datagrams_are_ignored(opener, north, counters):
    assert opener.open(north.seal("down", 7, b"echo")) is None
    assert counters == AirCounters()


def test_datagrams_of_another_member_with_the_own_name_are_ignored_and_counted(opener, counters):
    assert opener.open(DatagramSealer(KEY, "north").seal("down", 7, b"it is me")) is None
    assert counters == AirCounters(namesakes=1)


def test_the_memory_of_senders_is_bounded(opener):
    for turn in range(SENDERS_MAX + 50):
        opener.open(DatagramSealer(KEY, f"host-{turn}").seal("up", 7, b""))
    assert len(opener._senders) == SENDERS_MAX
