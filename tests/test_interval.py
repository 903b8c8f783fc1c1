"""Confidence intervals, against numbers of printed tables."""

from __future__ import annotations

import pytest

from beforehand.interval import T_975, margin_of, student


@pytest.mark.parametrize(
    ("values", "margin"),
    [([5.0], None), ([1.0, 2.0, 3.0], 4.303 / 3**0.5), ([1.0, float("nan")], None)],
)
def test_one_seed_has_no_interval_and_neither_has_a_share_of_nothing(values, margin):
    assert margin_of(values) == (margin and pytest.approx(margin))


def test_students_t_is_defined_beyond_the_table():
    assert len(T_975) == 20
    printed = {20: 2.086, 21: 2.080, 25: 2.060, 30: 2.042, 60: 2.000, 120: 1.980, 10**6: 1.960}
    found = {freedom: student(freedom) for freedom in printed}
    assert found == pytest.approx(printed, abs=0.001)
