"""The compiled index of positions has the same neighbours as the one in Python."""

import random

import numpy as np
import pytest

from beforehand.kernels.cells import air, grid_index
from beforehand.sim.grid_index import GridIndex

NODES = 40
RANGE_M = 100.0


def new_state(width):
    neighbours = np.zeros((NODES, width), np.int64)
    return air.new_state(neighbours, np.zeros(NODES, np.int64), 1, NODES + 1)


def neighbours(state):
    return [
        row[:degree].tolist() for row, degree in zip(state.neighbours, state.degree, strict=True)
    ]


@pytest.mark.parametrize("side_m", [250.0, 3_000.0])
def test_neighbours_are_those_of_the_grid_index(side_m):
    """In a small square all meet; in a large one, which has negative coordinates too, few do."""
    rng = random.Random(1)
    state, ours, theirs = (
        new_state(NODES),
        grid_index.make_grid(NODES, RANGE_M),
        GridIndex(NODES, RANGE_M),
    )
    met = 0
    for _ in range(1_500):
        node = rng.randrange(NODES)
        if rng.random() < 0.1:
            grid_index.remove(state, ours, node)
            theirs.remove(node)
        else:
            at = (
                rng.choice((rng.uniform(-side_m, side_m), 0.0, RANGE_M)),
                rng.uniform(-side_m, side_m),
            )
            assert grid_index.move(state, ours, node, *at)
            theirs.move(node, *at)
        assert neighbours(state) == theirs.neighbours
        met += len(theirs.neighbours[node])
    assert met > 100


def test_a_move_that_needs_a_longer_row_changes_nothing():
    state, index = new_state(2), grid_index.make_grid(NODES, RANGE_M)
    for node in range(3):
        assert grid_index.move(state, index, node, 10.0 * node, 0.0)
    before = neighbours(state), index.at_m.copy(), index.square.copy()
    assert before[0][:4] == [[1, 2], [0, 2], [0, 1], []]
    assert not grid_index.move(state, index, 3, 0.0, 0.0), "node 3 would have three neighbours"
    assert not grid_index.move(state, index, 3, 110.0, 0.0), "node 2 would have three"
    assert neighbours(state) == before[0]
    assert np.array_equal(index.at_m, before[1])
    assert np.array_equal(index.square, before[2])
    assert grid_index.move(state, index, 3, 125.0, 0.0)
    assert grid_index.move(state, index, 0, 20.0, 0.0), "it moves among those that it knows"
