"""The bit arithmetic of the topology against the definitions of VCU sections 2 and 4.2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.vcube.topology import (
    NO_NODE,
    children,
    cluster,
    dimension,
    first_child,
    first_live,
    full_heights,
    height,
    live_heights,
    members,
    parent,
)

DIMENSIONS = range(1, 6)


def paper_cluster(i, s):
    """c_{i,s} = i xor 2^(s-1), then c_{i xor 2^(s-1), k} for k = 1..s-1 (section 2)."""
    first = i ^ 2 ** (s - 1)
    return [first] + [node for k in range(1, s) for node in paper_cluster(first, k)]


def paper_children(i, r, h):
    """Algorithm 1; its line 3 means 1 <= s <= h."""
    if i == r:
        return [first_child(i, s) for s in range(1, h + 1)]
    s = cluster(r, i)
    return paper_children(i, first_child(r, s), s - 1)


def nodes_of(d):
    return range(2**d)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_clusters_hold_the_nodes_of_the_recursive_definition_in_its_order(d):
    for i in nodes_of(d):
        for s in range(1, d + 1):
            assert members(i, s) == paper_cluster(i, s)
            assert all(cluster(i, j) == s for j in members(i, s))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_children_are_those_of_algorithm_1(d):
    for r in nodes_of(d):
        for i in nodes_of(d):
            assert children(i, r, d) == paper_children(i, r, d)


def test_the_examples_of_section_4_2():
    assert [first_child(0, 1), first_child(1, 2)] == [1, 3]
    assert [first_child(1, 3), first_child(7, 2), first_child(4, 1)] == [5, 5, 5]
    assert [cluster(0, j) for j in range(1, 8)] == [1, 2, 2, 3, 3, 3, 3]
    assert children(4, 2, 3) == [5]
    tree = {i: children(i, 0, 3) for i in range(8)}
    assert tree == {0: [1, 2, 4], 1: [], 2: [3], 3: [], 4: [5, 6], 5: [], 6: [7], 7: []}


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_parent_has_its_child_and_the_root_has_no_parent(d):
    for r in nodes_of(d):
        assert parent(r, r) == NO_NODE
        for i in nodes_of(d):
            assert all(parent(k, r) == i for k in children(i, r, d))
        assert sorted(k for i in nodes_of(d) for k in children(i, r, d)) == sorted(
            set(nodes_of(d)) - {r}
        )


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_subtree_below_a_child_is_the_same_set_whatever_the_root(d):
    """The reason why holding a message back costs its receivers nothing."""

    def below(k, r):
        return {k}.union(*(below(j, r) for j in children(k, r, d)))

    for i in nodes_of(d):
        for s in range(1, d + 1):
            k = first_child(i, s)
            roots = [r for r in nodes_of(d) if parent(k, r) == i]
            assert roots
            assert all(below(k, r) == set(members(i, s)) for r in roots)


def test_the_dimension_is_the_smallest_cube_that_holds_all():
    assert [dimension(n) for n in (1, 2, 3, 4, 5, 8, 9, 1024)] == [0, 1, 2, 2, 3, 3, 4, 10]


# ---- nodes that are down ------------------------------------------------------------------------

LIVES = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.sampled_from((0, 1)), min_size=2**d, max_size=2**d)
)


@given(LIVES)
def test_the_first_live_node_of_a_cluster_is_the_first_in_its_order(live):
    for i in range(len(live)):
        for s in range(1, dimension(len(live)) + 1):
            found = [j for j in members(i, s) if live[j]]
            assert first_live(i, s, live) == (found[0] if found else NO_NODE)


def tree_of(root, live):
    """Heights by walking down from the root: node -> how many clusters it serves."""
    heights = {root: dimension(len(live))}
    todo = [root]
    while todo:
        node = todo.pop()
        for s in range(1, heights[node] + 1):
            child = first_live(node, s, live)
            if child != NO_NODE:
                assert child not in heights, "reached twice"
                heights[child] = s - 1
                todo.append(child)
    return heights


@given(LIVES)
def test_every_tree_reaches_every_live_node_once(live):
    alive = {i for i, up in enumerate(live) if up}
    for root in alive:
        assert set(tree_of(root, live)) == alive


@given(LIVES)
def test_heights_are_those_of_the_walk_down_each_tree(live):
    for node in range(len(live)):
        if live[node]:
            expected = [tree_of(r, live)[node] if live[r] else 0 for r in range(len(live))]
            assert live_heights(node, live) == expected


@pytest.mark.parametrize("d", DIMENSIONS)
def test_with_all_nodes_alive_heights_are_bit_arithmetic(d):
    live = [1] * 2**d
    for i in nodes_of(d):
        assert live_heights(i, live) == [height(i, r, d) for r in nodes_of(d)]
        assert live_heights(i, live) == [full_heights(d)[i ^ r] for r in nodes_of(d)]
