"""The oracle itself, on runs small enough to check by hand."""

import pytest

from beforehand.check.rules.oracle import judge

ASK, ANSWER, THANKS = ("ann", 1), ("bob", 1), ("ann", 2)

GOOD = [
    ("ann", "broadcast", ASK),
    ("ann", "deliver", ASK),
    ("bob", "deliver", ASK),
    ("bob", "broadcast", ANSWER),
    ("bob", "deliver", ANSWER),
    ("eve", "deliver", ASK),
    ("eve", "deliver", ANSWER),
]


def kinds(rows):
    return [(v.kind, v.node, v.message) for v in judge(rows)]


def test_a_causal_run_is_valid():
    assert judge(GOOD) == []


def test_an_effect_delivered_before_its_cause_is_a_violation():
    rows = [*GOOD[:5], ("eve", "deliver", ANSWER), ("eve", "deliver", ASK)]
    (violation,) = judge(rows)
    assert (violation.kind, violation.message, violation.after) == ("late", ASK, ANSWER)
    assert violation.row == 6


def test_never_delivering_the_cause_is_allowed():
    assert judge([*GOOD[:5], ("eve", "deliver", ANSWER)]) == []


def test_happened_before_is_transitive_even_through_what_a_node_missed():
    rows = [
        *GOOD[:5],
        ("eve", "deliver", ANSWER),  # never saw the question
        ("eve", "broadcast", ("eve", 1)),
        ("dan", "deliver", ("eve", 1)),
        ("dan", "deliver", ASK),
    ]
    assert kinds(rows) == [("late", "dan", ASK)]


def test_a_second_delivery_is_reported():
    assert kinds([*GOOD, ("eve", "deliver", ASK)]) == [("twice", "eve", ASK)]


def test_a_delivery_of_a_message_never_broadcast_is_reported():
    assert kinds([("eve", "deliver", ASK)]) == [("unknown", "eve", ASK)]


def test_the_own_earlier_broadcast_is_a_cause():
    rows = [
        ("ann", "broadcast", ASK),
        ("ann", "broadcast", THANKS),
        ("eve", "deliver", THANKS),
        ("eve", "deliver", ASK),
    ]
    assert kinds(rows) == [("late", "eve", ASK)]


def test_concurrent_messages_may_be_delivered_in_any_order():
    rows = [
        ("ann", "broadcast", ASK),
        ("bob", "broadcast", ANSWER),
        ("eve", "deliver", ASK),
        ("eve", "deliver", ANSWER),
        ("dan", "deliver", ANSWER),
        ("dan", "deliver", ASK),
    ]
    assert judge(rows) == []


@pytest.mark.parametrize("swapped", range(2))
def test_a_violation_reads_as_a_sentence(swapped):
    rows = [[*GOOD[:5], ("eve", "deliver", ANSWER), ("eve", "deliver", ASK)], [*GOOD, GOOD[-1]]]
    expected = ["after ('bob', 1), which causally follows it", "a second time"]
    assert expected[swapped] in str(judge(rows[swapped])[0])


def test_a_cause_a_node_only_learned_of_precedes_its_broadcasts_and_may_still_be_delivered():
    rows = [
        ("ann", "broadcast", ASK),
        ("bob", "learn", ASK),
        ("bob", "broadcast", ANSWER),
        ("eve", "deliver", ANSWER),
        ("eve", "deliver", ASK),
        ("bob", "deliver", ASK),
    ]
    assert kinds(rows) == [("late", "eve", ASK)]
