"""A trace is clean whatever its source, and lists the repairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beforehand.mobility.trace import make_trace


def rows(*contacts):
    return np.array(contacts, dtype=np.int64)


def test_ends_are_ordered_and_contacts_sorted():
    trace = make_trace(["a", "b", "c"], rows((2, 1, 5, 9), (1, 0, 3, 4)))
    assert trace.contacts.tolist() == [[0, 1, 3, 4], [1, 2, 5, 9]]
    assert trace.changes == {}


def test_overlapping_and_touching_contacts_of_a_pair_become_one():
    trace = make_trace(["a", "b"], rows((0, 1, 0, 5), (1, 0, 3, 8), (0, 1, 8, 9), (0, 1, 20, 21)))
    assert trace.contacts.tolist() == [[0, 1, 0, 9], [0, 1, 20, 21]]
    assert trace.changes == {"merged": 2}


def test_a_contact_with_oneself_and_one_without_length_are_dropped_and_counted():
    trace = make_trace(["a", "b"], rows((0, 0, 0, 5), (0, 1, 3, 3), (0, 1, 4, 6)))
    assert trace.contacts.tolist() == [[0, 1, 4, 6]]
    assert trace.changes == {"self_contact": 1, "zero_length": 1}


def test_without_presence_every_node_is_present_the_whole_time():
    trace = make_trace(["a", "b", "c"], rows((0, 1, 3, 9)))
    assert trace.presence.tolist() == [[0, 3, 9], [1, 3, 9], [2, 3, 9]]
    assert (trace.start_us, trace.end_us, trace.nodes_count) == (3, 9, 3)


def test_contacts_are_cut_to_the_presence_of_both():
    presence = rows((0, 0, 10), (1, 4, 6), (1, 8, 20))
    trace = make_trace(["a", "b"], rows((0, 1, 2, 15), (0, 1, 16, 18)), presence)
    assert trace.contacts.tolist() == [[0, 1, 4, 6], [0, 1, 8, 10]]
    assert trace.changes == {"clipped_to_presence": 1, "outside_presence": 1}


def test_an_empty_trace_is_a_trace():
    trace = make_trace(["a"], np.empty((0, 4), dtype=np.int64))
    assert trace.contacts.shape == (0, 4)
    assert trace.end_us == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)),
        max_size=20,
    )
)
def test_a_pair_is_in_contact_exactly_during_its_rows(drawn):
    raw = [(a, b, up, up + length) for a, b, up, length in drawn]
    trace = make_trace("abcd", rows(*raw) if raw else np.empty((0, 4), dtype=np.int64))
    for t in range(30):
        expected = {(min(a, b), max(a, b)) for a, b, up, down in raw if up <= t < down and a != b}
        found = [(a, b) for a, b, up, down in trace.contacts.tolist() if up <= t < down]
        assert len(found) == len(set(found))
        assert set(found) == expected
