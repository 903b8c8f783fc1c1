"""A pack decodes in JavaScript to the values that Python encoded."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beforehand.play.pack import VALUE_MAX, Pack
from tests.play.node import ask_node, needs_node

EDGES = (0, 1, -1, 255, 256, -256, 2**16, 2**24 - 1, 2**31 - 1, -(2**31), 2**32, 2**40, -(2**50))
numbers = st.integers(-(2**51), 2**51) | st.sampled_from(EDGES) | st.integers(0, 300)
columns = st.lists(st.tuples(st.lists(numbers, max_size=50), st.booleans()), min_size=1, max_size=8)


@needs_node
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(columns)
def test_every_column_decodes_to_what_was_encoded(tmp_path, given_columns):
    pack = Pack()
    for at, (values, delta) in enumerate(given_columns):
        pack.add(f"c{at}", values, delta=delta)
    code = "Object.fromEntries(Object.entries(columns).map(([name, c]) => [name, [...c]]))"
    decoded = ask_node(tmp_path, {"columns": pack.directory}, bytes(pack.body), code)
    assert decoded == {f"c{at}": values for at, (values, _) in enumerate(given_columns)}


@needs_node
@pytest.mark.parametrize("delta", [False, True])
def test_the_edges_of_the_range_decode(tmp_path, delta):
    pack = Pack()
    pack.add("edges", EDGES, delta=delta)
    code = "[...columns.edges]"
    assert ask_node(tmp_path, {"columns": pack.directory}, bytes(pack.body), code) == list(EDGES)


def test_a_number_that_does_not_fit_in_a_double_is_not_packed():
    with pytest.raises(AssertionError, match="does not fit"):
        Pack().add("c", [VALUE_MAX + 1])
