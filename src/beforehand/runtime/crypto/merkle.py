"""One signature for a batch of messages: a Merkle tree over them, whose root is signed.

Each message carries the signature of the root and its own authentication path. So any receiver can
verify any message alone, in any order. Verifying the signature is most of the work. A receiver does
it once per tree, and it hashes the part of the paths that several messages share only once.

Leaves and inner nodes are hashed with different personalisations (domain separation). So no
attacker can pass off an inner node as a message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

LEAVES_MAX = 64
"""Messages per tree. Each doubling adds a 32-byte hash to every path. Beyond
this limit messages grow, and little is saved."""
HASH_BYTES = 32
HEAD_BYTES = 2
DEPTH_MAX = LEAVES_MAX.bit_length() - 1
TOP = b"\0"
EMPTY = bytes(HASH_BYTES)
"""The leaf of an unused place. Finding a message with this hash is infeasible."""
_LEAF = hashlib.blake2b(digest_size=HASH_BYTES, person=b"beforehand leaf")
_NODE = hashlib.blake2b(digest_size=HASH_BYTES, person=b"beforehand node")


def grow(leaves: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the root of the tree over at least two leaves, and the path of each leaf."""
    assert 2 <= len(leaves) <= LEAVES_MAX, "can't happen: the caller divides them"
    depth = (len(leaves) - 1).bit_length()
    level = [*leaves, *[EMPTY] * ((1 << depth) - len(leaves))]
    levels = [level]
    while len(level) > 1:
        level = [_inner(level[at], level[at + 1]) for at in range(0, len(level), 2)]
        levels.append(level)
    # Build the paths from the root down: all leaves below a node share the upper part of their
    # paths.
    ways = [b""]
    for level in levels[-2::-1]:
        ways = [level[at ^ 1] + ways[at >> 1] for at in range(len(level))]
    paths = [bytes((depth, index)) + ways[index] for index in range(len(leaves))]
    return levels[-1][0], paths


def is_path(path: bytes) -> bool:
    """Return whether the bytes have the form of an authentication path."""
    if len(path) < HEAD_BYTES:
        return False
    depth, index = path[0], path[1]
    is_long_enough = len(path) == HEAD_BYTES + HASH_BYTES * depth
    return 1 <= depth <= DEPTH_MAX and is_long_enough and not index >> depth


def climb(leaf: bytes, path: bytes) -> Iterator[bytes]:
    """Yield one step per level: the hash there, and the rest of the path from there.

    Two leaves that reach an equal step have the same root. The last step is `TOP` and the root.
    """
    index, found = path[1], leaf
    for start in range(HEAD_BYTES, len(path), HASH_BYTES):
        beside = path[start : start + HASH_BYTES]
        found = _inner(beside, found) if index & 1 else _inner(found, beside)
        index >>= 1
        yield bytes((index,)) + found + path[start + HASH_BYTES :]


def leaf_of(content: bytes) -> bytes:
    """Return the leaf hash of a message.

    This is most of the work for a long message. A caller that needs the hash twice keeps it.
    """
    state = _LEAF.copy()  # takes a third of the time of a new state
    state.update(content)
    return state.digest()


def _inner(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    state = _NODE.copy()
    state.update(left + right)
    return state.digest()
