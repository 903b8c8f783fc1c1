"""The hypercube-like topology of VCube as bit arithmetic (VCU sections 2 and 4.2).

Node i sees the others as clusters: cluster s holds the 2**(s-1) nodes whose highest differing bit
is bit s-1. Whoever is first in a cluster is responsible for it, and hands on to the clusters that
it sees inside: a spanning tree rooted anywhere, without a message to build it.

Cluster s of node i, apart from i, is a block of nodes that depends neither on the root of the tree
nor on who is alive. All that this protocol promises rests on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

NO_NODE = -1


def dimension(nodes: int) -> int:
    """The smallest d with 2**d >= nodes; missing nodes of the cube count as down."""
    return (nodes - 1).bit_length()


def cluster(node: int, peer: int) -> int:
    """The cluster of `node` that holds `peer`; 0 for the node itself."""
    return (node ^ peer).bit_length()


def members(node: int, level: int) -> list[int]:
    """Cluster `level` of `node` in the order of responsibility, `c_{i,s}` of section 2."""
    first = first_child(node, level)
    return [first ^ offset for offset in range(1 << (level - 1))]


def first_child(node: int, level: int) -> int:
    """The first node of cluster `level`."""
    return node ^ (1 << (level - 1))


def height(node: int, root: int, dimension: int) -> int:
    """How many clusters `node` serves in the tree of `root`, while all nodes are alive.

    The way down flips the differing bits from high to low, so the lowest one was flipped last:
    only the clusters below it are left.
    """
    apart = node ^ root
    return (apart & -apart).bit_length() - 1 if apart else dimension


@cache
def full_heights(dimension: int) -> bytes:
    """The same by distance (node ^ root): nothing else matters."""
    return bytes(height(apart, 0, dimension) for apart in range(1 << dimension))


def children(node: int, root: int, dimension: int) -> list[int]:
    """Algorithm 1, without its recursion."""
    return [first_child(node, s) for s in range(1, height(node, root, dimension) + 1)]


def parent(node: int, root: int) -> int:
    """Who forwards to `node` what `root` broadcasts, while all nodes are alive."""
    apart = node ^ root
    return node ^ (apart & -apart) if apart else NO_NODE


def first_live(node: int, level: int, live: Sequence[int]) -> int:
    """The first fault-free node of a cluster (section 2), NO_NODE if all of it is down."""
    first = first_child(node, level)
    for offset in range(1 << (level - 1)):
        if live[first ^ offset]:
            return first ^ offset
    return NO_NODE


def live_heights(node: int, live: Sequence[int]) -> list[int]:
    """How many clusters `node` serves in the tree of each root; 0 for a root that is down.

    `live` has an entry for each of the 2**d positions. A root hands the cluster that holds `node`
    to its first live member; either that is `node`, or it lies nearer to `node` than the root, and
    its answer is known already.
    """
    heights = [0] * len(live)
    heights[node] = dimension(len(live))
    for apart in range(1, len(live)):
        root = node ^ apart
        if live[root]:
            level = apart.bit_length()
            child = first_live(root, level, live)
            heights[root] = level - 1 if child == node else heights[child]
    return heights


def heights_by_distance(node: int, live: Sequence[int], root: int | None) -> bytes:
    """How many clusters `node` serves for the messages of the origin `node ^ distance`: over the
    tree of that origin, or over the one of `root`. While all are alive and have a tree each, this
    is the same for all nodes: one table, which stays in the cache."""
    if root is None and all(live):
        return full_heights(dimension(len(live)))
    heights = live_heights(node, live)
    heads = [node ^ distance if root is None else root for distance in range(len(live))]
    return bytes(heights[head] for head in heads)
