"""The figures of the paper's tables, on a trace small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.mobility.generators import crowd
from beforehand.mobility.statistics import by_hour, contact_times, describe, survival
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
        "encounters": 2,
        "contacts_per_hour": 720,
        "contact_s_min": 2,
        "contact_s_max": 4,
        "contact_s_avg": 3,
        "contact_s_stdev": 1,
        **dict.fromkeys(("between_s_min", "between_s_max", "between_s_avg", "between_s_stdev"), 0),
    }


def test_a_leaving_and_an_arriving_node_count_once_in_the_maximum():
    presence = np.array([[0, 0, 5], [1, 5, 9]])
    assert describe(make_trace(["a", "b"], np.empty((0, 4)), presence))["at_once_max"] == 1


def test_an_empty_trace_has_zero_figures():
    found = describe(make_trace([], np.empty((0, 4))))
    assert set(found.values()) == {0}


def naive_times(trace):
    """Durations and inter-contact times by plain loops over the pairs."""
    durations, between, last = [], [], {}
    for a, b, up_us, down_us in sorted(trace.contacts.tolist(), key=lambda row: row[2]):
        durations.append(down_us - up_us)
        if (a, b) in last:
            between.append(up_us - last[a, b])
        last[a, b] = down_us
    return sorted(durations), sorted(between), len(last)


def test_distributions_of_contacts_are_those_of_plain_loops():
    trace = crowd.generate(2, nodes_mean=80, hours=1.5)
    durations, between, pairs = naive_times(trace)
    found = contact_times(trace.contacts)
    assert [sorted(part.tolist()) for part in found] == [durations, between]
    assert describe(trace)["encounters"] == pairs
    assert len(between) == len(durations) - pairs > 20
    for values, part in zip((durations, between), found, strict=True):
        points = survival(part)
        assert len(points) > 10
        for value, share in points:
            assert share == sum(v > value for v in values) / len(values) > 0
        assert [p[0] for p in points] == sorted(p[0] for p in points)
    assert survival(np.array([5, 5, 5])) == []
    assert survival(np.array([], np.int64)) == []


def test_contacts_of_every_hour_and_the_first_of_each_pair_are_counted():
    trace = crowd.generate(2, nodes_mean=80, hours=2.5)
    hours = by_hour(trace)
    assert [row[0] - trace.start_us for row in hours] == [h * 3600 * US for h in range(len(hours))]
    seen = set()
    for begin_us, contacts, first in hours:
        here = [r for r in trace.contacts.tolist() if begin_us <= r[2] < begin_us + 3600 * US]
        new = {(r[0], r[1]) for r in here} - seen
        assert (contacts, first) == (len(here), len(new))
        seen |= new
    assert len(hours) >= 3
    assert sum(row[1] for row in hours) == len(trace.contacts)
    assert sum(row[2] for row in hours) == len(seen)


def test_a_quiet_hour_is_an_hour_too():
    contacts = np.array([[0, 1, 0, US], [0, 1, 2 * 3600 * US, 2 * 3600 * US + US]])
    assert [row[1:] for row in by_hour(make_trace(["a", "b"], contacts))] == [
        (1, 1),
        (0, 0),
        (1, 0),
    ]
    assert by_hour(make_trace(["a"], np.empty((0, 4)))) == []
