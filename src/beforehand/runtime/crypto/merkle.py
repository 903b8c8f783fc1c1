"""One signature for several messages that are said at once: a hash tree over them.

The root is signed. Each message carries the root's signature and its own path to the root, so that
it is checked alone, by whoever gets it and in whatever order; but the signature itself, which is
most of the work, is checked once for all of them; and so is the upper part of a path that some of
them have in common. Leaves and inner nodes are hashed differently, so
that nobody can pass off an inner node as a message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

LEAVES_MAX = 64
"""A path has 32 bytes for each doubling: beyond this, messages grow and little is saved."""
HASH_BYTES = 32
HEAD_BYTES = 2
DEPTH_MAX = LEAVES_MAX.bit_length() - 1
TOP = b"\0"
EMPTY = bytes(HASH_BYTES)
"""Stands where there is no message; no message hashes to it that anybody could find."""
_LEAF = hashlib.blake2b(digest_size=HASH_BYTES, person=b"beforehand leaf")
_NODE = hashlib.blake2b(digest_size=HASH_BYTES, person=b"beforehand node")


def grow(leaves: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """The root over at least two, and the path of each."""
    assert 2 <= len(leaves) <= LEAVES_MAX, "can't happen: the caller divides them"
    depth = (len(leaves) - 1).bit_length()
    level = [*leaves, *[EMPTY] * ((1 << depth) - len(leaves))]
    levels = [level]
    while len(level) > 1:
        level = [_inner(level[at], level[at + 1]) for at in range(0, len(level), 2)]
        levels.append(level)
    # From the root down: below one place all paths have the rest of the way in common.
    ways = [b""]
    for level in levels[-2::-1]:
        ways = [level[at ^ 1] + ways[at >> 1] for at in range(len(level))]
    paths = [bytes((depth, index)) + ways[index] for index in range(len(leaves))]
    return levels[-1][0], paths


def is_path(path: bytes) -> bool:
    """Has it the shape of one?"""
    if len(path) < HEAD_BYTES:
        return False
    depth, index = path[0], path[1]
    is_long_enough = len(path) == HEAD_BYTES + HASH_BYTES * depth
    return 1 <= depth <= DEPTH_MAX and is_long_enough and not index >> depth


def climb(leaf: bytes, path: bytes) -> Iterator[bytes]:
    """Step by step up the path: where one is, and what remains of the path from there. So two that
    come to the same step end at the same root. The last step is `TOP` and the root."""
    index, found = path[1], leaf
    for start in range(HEAD_BYTES, len(path), HASH_BYTES):
        beside = path[start : start + HASH_BYTES]
        found = _inner(beside, found) if index & 1 else _inner(found, beside)
        index >>= 1
        yield bytes((index,)) + found + path[start + HASH_BYTES :]


def leaf_of(content: bytes) -> bytes:
    """Most of the work, where messages are long: so who needs it twice keeps it."""
    state = _LEAF.copy()  # a third of what it takes to make one
    state.update(content)
    return state.digest()


def _inner(left: bytes, right: bytes) -> bytes:
    state = _NODE.copy()
    state.update(left + right)
    return state.digest()
