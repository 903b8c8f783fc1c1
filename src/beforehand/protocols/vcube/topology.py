"""The hypercube-like topology of VCube as bit arithmetic (VCU sections 2 and 4.2).

Node i divides the other nodes into clusters. Cluster s holds the 2**(s-1) nodes whose highest
bit that differs from i is bit s-1. The first node of a cluster is responsible for it and forwards
to the clusters that it sees inside. The result is a spanning tree for any root, and no message is
needed to build it.

Cluster s of node i is a block of nodes that does not contain i. The block depends neither on the
root of the tree nor on which nodes are alive. Every guarantee of this protocol relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

NO_NODE = -1


def dimension(nodes: int) -> int:
    """Return the smallest d with 2**d >= nodes; unused positions of the cube count as down."""
    return (nodes - 1).bit_length()


def cluster(node: int, peer: int) -> int:
    """Return the cluster of `node` that holds `peer`; 0 for the node itself."""
    return (node ^ peer).bit_length()


def members(node: int, level: int) -> list[int]:
    """Return cluster `level` of `node` in order of responsibility, `c_{i,s}` of section 2."""
    first = first_child(node, level)
    return [first ^ offset for offset in range(1 << (level - 1))]


def first_child(node: int, level: int) -> int:
    """Return the first node of cluster `level`."""
    return node ^ (1 << (level - 1))


def height(node: int, root: int, dimension: int) -> int:
    """Return how many clusters `node` serves in the tree of `root`, while all nodes are alive.

    The path down flips the differing bits from high to low, so the lowest one was flipped last.
    Only the clusters below that bit are left to serve.
    """
    apart = node ^ root
    return (apart & -apart).bit_length() - 1 if apart else dimension


@cache
def full_heights(dimension: int) -> bytes:
    """Return `height` by distance (node ^ root), the only thing that it depends on."""
    return bytes(height(apart, 0, dimension) for apart in range(1 << dimension))


def children(node: int, root: int, dimension: int) -> list[int]:
    """Return the children of `node` in the tree of `root`: Algorithm 1 without its recursion."""
    return [first_child(node, s) for s in range(1, height(node, root, dimension) + 1)]


def parent(node: int, root: int) -> int:
    """Return the parent of `node` in the tree of `root`, while all nodes are alive."""
    apart = node ^ root
    return node ^ (apart & -apart) if apart else NO_NODE


def first_live(node: int, level: int, live: Sequence[int]) -> int:
    """Return the first live node of a cluster (section 2), NO_NODE if all of them are down."""
    first = first_child(node, level)
    for offset in range(1 << (level - 1)):
        if live[first ^ offset]:
            return first ^ offset
    return NO_NODE


def live_heights(node: int, live: Sequence[int]) -> list[int]:
    """Return how many clusters `node` serves in the tree of each root; 0 for a root that is down.

    `live` has an entry for each of the 2**d positions. A root makes the first live member of the
    cluster that holds `node` responsible for it. That member is either `node` itself, or it is
    nearer to `node` than the root is, so that its height has been computed already.
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
    """Return how many clusters `node` serves for messages of the origin `node ^ distance`.

    The messages travel over the tree of that origin, or over the tree of `root` if it is given.
    While all nodes are alive and `root` is None, all nodes share one cached table.
    """
    if root is None and all(live):
        return full_heights(dimension(len(live)))
    heights = live_heights(node, live)
    heads = [node ^ distance if root is None else root for distance in range(len(live))]
    return bytes(heights[head] for head in heads)
