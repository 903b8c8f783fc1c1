"""A failure is told in the few events that matter."""

from beforehand.check.oracle import judge
from beforehand.check.story import causal_chain, tell_loss, tell_violation

A, B, C, NOISE = ("ann", 1), ("bob", 1), ("cat", 1), ("zoe", 1)
ROWS = [
    ("zoe", "broadcast", NOISE),
    ("ann", "broadcast", A),
    ("bob", "deliver", NOISE),
    ("bob", "deliver", A),
    ("bob", "broadcast", B),
    ("cat", "deliver", B),
    ("zoe", "deliver", A),
    ("cat", "broadcast", C),
    ("dan", "deliver", C),
    ("dan", "deliver", A),
]


def test_the_chain_leads_from_cause_to_effect_and_leaves_out_the_rest():
    assert causal_chain(ROWS, A, C) == [1, 3, 4, 5, 7]


def test_a_violation_is_told_with_its_chain_and_both_deliveries():
    (violation,) = judge(ROWS)
    told = tell_violation(ROWS, violation)
    assert "zoe" not in told
    assert [line.split()[0] for line in told.splitlines()[1:]] == list("1345789")


def test_a_loss_is_told_with_all_that_became_of_the_message():
    told = tell_loss(ROWS, "eve", A)
    assert told.splitlines()[0] == "node eve never delivered ('ann', 1):"
    assert len(told.splitlines()) == 5
