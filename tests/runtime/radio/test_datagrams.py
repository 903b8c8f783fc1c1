"""Datagrams: only members make and read them, and each is heard once."""

from __future__ import annotations

import random

import pytest

from beforehand.runtime.crypto.keys import GroupKey, new_group
from beforehand.runtime.radio.datagrams import (
    DATAGRAM_BYTES_MAX,
    SENDERS_MAX,
    WINDOW,
    AirCounters,
    Ear,
    Voice,
)

KEY = new_group("port")


@pytest.fixture
def counters():
    return AirCounters()


@pytest.fixture
def north():
    return Voice(KEY, "north")


@pytest.fixture
def ear(north, counters):
    return Ear(KEY, north, counters)


def test_a_datagram_of_a_member_reaches_another(ear, counters):
    said = ear.hear(Voice(KEY, "ann").seal("up", 7, b"hello"))
    assert (said.kind, said.sender, said.tick, said.frame) == ("up", "ann", 7, b"hello")
    assert counters.heard == 1


def test_names_and_payloads_are_not_readable_on_the_wire():
    datagram = Voice(KEY, "ann").seal("up", 7, b"hello")
    assert b"ann" not in datagram
    assert b"hello" not in datagram
    assert Voice(KEY, "ann").seal("up", 7, b"hello") != datagram


@pytest.mark.parametrize(
    "other",
    [new_group("port"), GroupKey("harbour", KEY.secret)],
    ids=["another secret", "another group"],
)
def test_datagrams_under_another_key_are_ignored(ear, counters, other):
    assert ear.hear(Voice(other, "ann").seal("up", 7, b"hello")) is None
    assert counters.foreign == 1


def test_altered_datagrams_are_ignored(ear, counters):
    rng = random.Random(1)
    datagram = Voice(KEY, "ann").seal("up", 7, b"hello")
    for turn in range(2000):
        altered = bytearray(datagram)
        if turn % 4 == 0:
            del altered[rng.randrange(len(altered)) :]
        elif turn % 4 == 1:
            altered += rng.randbytes(rng.randrange(1, 9))
        else:
            altered[rng.randrange(len(altered))] ^= 1 << rng.randrange(8)
        assert ear.hear(bytes(altered)) is None
    assert ear.hear(b"") is None
    assert ear.hear(datagram + bytes(DATAGRAM_BYTES_MAX)) is None
    assert (counters.foreign, counters.heard) == (2002, 0)


def test_a_datagram_is_accepted_once_in_any_order_of_arrival(ear, counters):
    voice = Voice(KEY, "ann")
    datagrams = [voice.seal("up", 7, b"%d" % turn) for turn in range(300)]
    order = [*datagrams, *datagrams]
    random.Random(2).shuffle(order)
    heard = [said.frame for one in order if (said := ear.hear(one))]
    assert sorted(heard) == sorted(b"%d" % turn for turn in range(300))
    assert (counters.heard, counters.repeated) == (300, 300)


def test_a_datagram_older_than_the_window_counts_as_repeated(ear, counters):
    voice = Voice(KEY, "ann")
    early, *_, late = [voice.seal("up", 7, b"") for _ in range(WINDOW + 1)]
    assert ear.hear(late)
    assert ear.hear(early) is None
    assert counters.repeated == 1


def test_an_earlier_incarnation_ends_when_a_later_one_is_received(ear, counters):
    first, second = Voice(KEY, "ann"), Voice(KEY, "ann")
    before, recorded = first.seal("up", 7, b"1"), first.seal("up", 7, b"2")
    assert ear.hear(before)
    assert ear.hear(second.seal("up", 7, b"3"))
    assert ear.hear(recorded) is None
    assert ear.hear(second.seal("up", 7, b"4"))
    assert counters.repeated == 1


def test_own_datagrams_are_ignored(ear, north, counters):
    assert ear.hear(north.seal("down", 7, b"echo")) is None
    assert counters == AirCounters()


def test_datagrams_of_another_member_with_the_own_name_are_ignored_and_counted(ear, counters):
    assert ear.hear(Voice(KEY, "north").seal("down", 7, b"it is me")) is None
    assert counters == AirCounters(namesakes=1)


def test_the_memory_of_senders_is_bounded(ear):
    for turn in range(SENDERS_MAX + 50):
        ear.hear(Voice(KEY, f"host-{turn}").seal("up", 7, b""))
    assert len(ear._senders) == SENDERS_MAX
