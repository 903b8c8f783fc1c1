from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.observer.timestamp import (
    Guarantees,
    LogicalClock,
    Stamp,
    StampClock,
    StampCodec,
    less,
)

PAPER = [
    Guarantees(processes=n, epsilon=epsilon, delta=delta)
    for n in (5, 10, 50)
    for epsilon in (5, 10, 20, 30)
    for delta in (5, 10, 20, 30)
]
THREE = Guarantees(processes=3, epsilon=3, delta=5, events_per_tick=4)


def test_an_event_counts_itself_at_its_own_clock_value():
    clock = LogicalClock(0, THREE)
    assert clock.local(0) == Stamp(0, 0, (2, 0, 0, 0))  # the start is an event too
    assert clock.send(1) == Stamp(1, 0, (1, 2, 0, 0))
    assert clock.local(1) == Stamp(1, 0, (2, 2, 0, 0))
    assert clock.send(5) == Stamp(5, 0, (1, 0, 0, 0))


def test_a_receiver_behind_its_sender_carries_the_difference_in_c():
    fast, slow = LogicalClock(0, THREE), LogicalClock(1, THREE)
    sent = fast.send(4)
    assert slow.receive(2, sent) == Stamp(2, 2, (1, 0, 1, 0))
    # Knowledge of clock value 4 stays at its place while the own clock comes nearer.
    assert slow.send(3) == Stamp(3, 1, (1, 1, 1, 0))
    assert slow.send(6) == Stamp(6, 0, (1, 0, 1, 1))


def test_the_larger_of_two_counts_is_kept():
    one, two, three = (LogicalClock(p, THREE) for p in range(3))
    for _ in range(3):
        many = one.send(2)
    few = two.send(2)
    assert three.receive(2, few).kn[0] == 2
    assert three.receive(2, many).kn[0] == 4  # 3 events there and this one, not 2 + 3 + 1


def test_a_message_that_takes_no_time_makes_c_equal_to_epsilon():
    """The paper has c < ε. Its ε compared elements would tie here, and the id would decide."""
    fast, slow = LogicalClock(1, THREE), LogicalClock(0, THREE)
    e = fast.send(3)
    f = slow.receive(0, e)
    assert f.c == THREE.epsilon
    assert e.kn[: THREE.epsilon] == f.kn[: THREE.epsilon]
    assert less(e, 1, f, 0)


@pytest.mark.parametrize("epsilon", range(1, 9))
def test_c_equal_to_epsilon_is_accepted_and_survives_its_encoding(epsilon):
    """At a power of two, ε takes one bit more than ε - 1."""
    guarantees = Guarantees(processes=2, epsilon=epsilon, delta=5, events_per_tick=3)
    fast, slow = LogicalClock(0, guarantees), LogicalClock(1, guarantees)
    stamp = slow.receive(0, fast.send(epsilon))
    assert stamp.c == epsilon
    codec = StampCodec(guarantees)
    assert codec.decode(codec.encode(stamp), 0) == stamp
    assert fast.receive(epsilon, stamp).kn[0] == stamp.kn[0] + 1
    assert fast.refused == 0


def test_a_chain_through_all_processes_at_one_clock_value_counts_to_n():
    """The paper has kn < n for one event per process and tick."""
    guarantees = Guarantees(processes=3, epsilon=4, delta=4)
    clocks = [LogicalClock(p, guarantees) for p in range(3)]
    message = clocks[0].send(1)
    clocks[1].receive(1, message)
    message = clocks[1].send(2)
    last = clocks[2].receive(1, message)
    assert last.kn[last.c] == guarantees.processes
    assert clocks[2].saturated == 0


def test_the_published_modulus_confuses_two_clock_values_that_are_both_possible():
    """Received at 100: from a sender ε ahead at once, or from one ε behind after δ."""
    guarantees = Guarantees(processes=2, epsilon=3, delta=10)
    newest, oldest = 100 + 3, 100 - 10 - 3
    published = guarantees.epsilon + guarantees.delta + 1
    legal = range(oldest, newest + 1)
    assert len({r % published for r in legal}) < len(legal)
    codec = StampCodec(guarantees)
    for r in legal:
        assert codec.decode(codec.encode(Stamp(r, 0, (0,) * 4)), now=100).r == r


@pytest.mark.parametrize("guarantees", PAPER, ids=str)
def test_two_elements_take_no_more_than_four_bytes(guarantees):
    assert StampCodec(guarantees, elements=2).size_bytes <= 4


@pytest.mark.parametrize("guarantees", PAPER, ids=str)
def test_the_full_stamp_is_no_larger_than_published(guarantees):
    """2ε elements below n, c below ε, and a clock modulo ε + δ + 1: our clock takes a bit more."""
    n, epsilon, delta = guarantees.processes, guarantees.epsilon, guarantees.delta
    published = 2 * epsilon * n.bit_length() + epsilon.bit_length() + (epsilon + delta).bit_length()
    assert StampCodec(guarantees).size_bits <= published + 1


@given(st.data())
def test_every_stamp_in_its_domain_survives_its_encoding(data):
    guarantees = data.draw(st.sampled_from([*PAPER, THREE]))
    elements = data.draw(st.integers(0, guarantees.elements_full))
    now = data.draw(st.integers(-(2**40), 2**40))
    r = now + data.draw(st.integers(-guarantees.delta - guarantees.epsilon, guarantees.epsilon))
    c = data.draw(st.integers(0, guarantees.epsilon))
    count = st.integers(0, guarantees.kn_max)
    kn = tuple(data.draw(st.lists(count, min_size=elements, max_size=elements)))
    codec = StampCodec(guarantees, elements=elements)
    encoded = codec.encode(Stamp(r, c, kn))
    assert len(encoded) == codec.size_bytes
    assert codec.decode(encoded, now) == Stamp(r, c, kn)


@pytest.mark.parametrize(
    "stamp",
    [
        Stamp(14, 0, (1, 0, 0, 0)),  # a clock that is ε + 1 ahead
        Stamp(12, 2, (1, 0, 0, 0)),  # knows of one
        Stamp(3, 4, (1, 0, 0, 0)),  # c above ε
        Stamp(13, -1, (1, 0, 0, 0)),
        Stamp(10, 0, (13, 0, 0, 0)),  # more than K n events
        Stamp(10, 0, (1, 0, -1, 0)),
    ],
)
def test_an_impossible_stamp_is_rejected(stamp):
    clock, plain = LogicalClock(0, THREE), LogicalClock(0, THREE)
    assert clock.receive(10, stamp) == plain.local(10)
    assert clock.refused == 1


def test_a_value_from_the_future_is_reset_not_waited_for():
    clock = LogicalClock(0, THREE)
    clock.local(10**6)
    assert clock.send(10) == Stamp(10, 0, (1, 0, 0, 0))
    assert clock.resets == 1


def test_a_clock_set_back_within_epsilon_keeps_its_counts():
    clock = LogicalClock(0, THREE)
    stamps = [clock.send(now) for now in (10, 7, 9, 10, 11)]
    assert [(stamp.r, stamp.c) for stamp in stamps] == [(10, 0), (7, 3), (9, 1), (10, 0), (11, 0)]
    assert all(less(e, 0, f, 0) for e, f in pairwise(stamps))
    assert clock.resets == 0


def test_more_events_than_promised_are_counted_and_stay_in_the_domain():
    guarantees = Guarantees(processes=2, epsilon=1, delta=1)
    clock = LogicalClock(0, guarantees)
    stamps = [clock.local(5) for _ in range(4)]
    assert [stamp.kn[0] for stamp in stamps] == [1, 2, 2, 2]
    assert clock.saturated == 2


def test_stamps_and_bytes_of_another_size_are_refused():
    with pytest.raises(RemoteError, match="2 kn elements where 4 are agreed"):
        LogicalClock(0, THREE).receive(1, Stamp(1, 0, (1, 0)))
    with pytest.raises(RemoteError, match="5 bytes where 2 are agreed"):
        StampCodec(THREE, elements=2).decode(b"12345", 0)


@pytest.mark.parametrize(
    "wrong",
    [{"processes": 0}, {"epsilon": -1}, {"delta": 0}, {"events_per_tick": 0}],
    ids=str,
)
def test_impossible_guarantees_are_refused(wrong):
    with pytest.raises(LocalError):
        Guarantees(**{"processes": 2, "epsilon": 1, "delta": 1, **wrong})


@pytest.mark.parametrize("elements", [-1, 5])
def test_elements_that_do_not_exist_are_refused(elements):
    with pytest.raises(LocalError, match="kn elements do not exist"):
        LogicalClock(0, THREE, elements=elements)


def test_an_application_only_carries_bytes():
    """Two applications whose clocks differ by 2 ticks; the answer is larger than the question."""
    now_us = 1_000_000
    ahead = StampClock(0, THREE, tick_us=1000, read_us=lambda: now_us + 2000, elements=2)
    behind = StampClock(1, THREE, tick_us=1000, read_us=lambda: now_us, elements=2)
    question = ahead.send()
    now_us += 500
    behind.receive(question)
    answer = behind.send()
    assert len(question) == len(answer) == ahead.codec.size_bytes
    at = 1000
    first, second = ahead.codec.decode(question, at), ahead.codec.decode(answer, at)
    assert (first.r, second.r, second.c) == (1002, 1000, 2)
    assert less(first, 0, second, 1)
