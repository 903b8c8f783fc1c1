"""The figures of the paper's tables, on a trace small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.mobility.statistics import describe
from beforehand.mobility.trace import make_trace

US = 1_000_000


def test_every_figure_of_a_small_trace():
    presence = np.array([[0, 0, 10], [1, 2, 6], [1, 8, 10], [2, 6, 9]]) * [1, US, US]
    contacts = np.array([[0, 1, 2, 6], [0, 2, 6, 8]]) * [1, 1, US, US]
    found = describe(make_trace(["a", "b", "c"], contacts, presence))
    assert found == {
        "nodes": 3,
        "at_once_max": 3,
        "start_s": 0,
        "end_s": 10,
        "activity_s_min": 3,
        "activity_s_max": 10,
        "activity_s_avg": pytest.approx(19 / 3),
        "activity_s_stdev": pytest.approx((74 / 9) ** 0.5),
        "contacts": 2,
        "contact_s_min": 2,
        "contact_s_max": 4,
        "contact_s_avg": 3,
        "contact_s_stdev": 1,
    }


def test_a_leaving_and_an_arriving_node_count_once_in_the_maximum():
    presence = np.array([[0, 0, 5], [1, 5, 9]])
    assert describe(make_trace(["a", "b"], np.empty((0, 4)), presence))["at_once_max"] == 1


def test_an_empty_trace_has_zero_figures():
    found = describe(make_trace([], np.empty((0, 4))))
    assert set(found.values()) == {0}
