from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels.verify.violations import Violations, count_violations


def causal_history(data: st.DataObject) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Messages of a few origins, each of which may first learn what an earlier message knew."""
    origins = data.draw(st.integers(1, 4))
    clocks = np.zeros((origins, origins), np.int64)
    origin, seq, past = [], [], []
    for number in range(data.draw(st.integers(0, 14))):
        o = data.draw(st.integers(0, origins - 1))
        heard = data.draw(st.integers(-1, number - 1))
        if heard >= 0:
            clocks[o] = np.maximum(clocks[o], past[heard])
        clocks[o, o] += 1
        origin.append(o)
        seq.append(clocks[o, o])
        past.append(clocks[o].copy())
    shape = (len(past), origins)
    return (
        np.array(origin, np.int64),
        np.array(seq, np.int64),
        np.array(past, np.int64).reshape(shape),
    )


def obvious(order: list[int], origin: np.ndarray, seq: np.ndarray, past: np.ndarray) -> Violations:
    def causes(a: int, b: int) -> bool:
        return a != b and past[b, origin[a]] >= seq[a]

    related = [(a, b) for a in order for b in order if causes(a, b)]
    wrong = [(a, b) for a, b in related if order.index(a) > order.index(b)]
    return Violations(
        delivered=len(order),
        backward=len({b for _, b in wrong}),
        forward=len({a for a, _ in wrong}),
        pairs=len(related),
        inverted=len(wrong),
    )


@given(st.data())
def test_counts_are_those_of_the_definition(data):
    origin, seq, past = causal_history(data)
    delivered = data.draw(st.permutations(range(len(origin))))
    order = delivered[: data.draw(st.integers(0, len(delivered)))]
    counted = count_violations(np.array(order, np.int64), origin, seq, past)
    assert counted == obvious(order, origin, seq, past)


def test_shares_are_of_what_was_delivered():
    """Three messages of one origin, the first delivered last, a fourth lost."""
    seq = np.arange(1, 5)
    order = np.array([1, 2, 0])
    counted = count_violations(order, np.zeros(4, np.int64), seq, seq.reshape(4, 1))
    assert counted == Violations(delivered=3, backward=2, forward=1, pairs=3, inverted=2)
    assert counted.messages_percent == 50.0
    assert round(counted.pairs_percent, 3) == 66.667


def test_a_log_without_deliveries_has_no_violations():
    none = np.zeros(0, np.int64)
    counted = count_violations(none, none, none, np.zeros((0, 2), np.int64))
    assert (counted.messages_percent, counted.pairs_percent) == (0.0, 0.0)
