"""The positions of nodes, and who is in radio range: the compiled equivalent of `sim.grid_index`.

Squares are one range wide. The nodes of a square are a linked list. A list serves all squares whose
numbers have the same hash, so the plane needs no bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells.air import NOBODY, State, join, part_from
from beforehand.kernels.compiling import kernel, part

Ints = NDArray[np.int64]

COLUMN, ROW, LIST = 0, 1, 2
"""The columns of `Places.square`: the square of a node, and its list. `NOBODY`: it is nowhere."""
BEFORE, AFTER = 0, 1
"""The columns of `Places.links`."""
HASH_FACTOR = 1_000_003


class Places(NamedTuple):
    range_m: float
    at_m: NDArray[np.float64]
    """(node, axis)"""
    square: Ints
    first: Ints
    """The first node of each list, or `NOBODY`."""
    links: Ints
    """(node, direction): the nodes next to it in its list, or `NOBODY`."""
    found: Ints
    """Room for the nodes in range."""


def make_places(nodes: int, range_m: float) -> Places:
    return Places(
        range_m=range_m,
        at_m=np.zeros((nodes, 2)),
        square=np.full((nodes, 3), NOBODY, np.int64),
        first=np.full(2 * nodes + 1, NOBODY, np.int64),
        links=np.full((nodes, 2), NOBODY, np.int64),
        found=np.zeros(nodes, np.int64),
    )


@kernel
def move(state: State, places: Places, node: int, x_m: float, y_m: float) -> bool:
    """Put the node at a position, and update the neighbours of all.

    Return False, and change nothing, if a row of `state.neighbours` is too short."""
    column, row = int(x_m // places.range_m), int(y_m // places.range_m)
    count = _find(places, node, x_m, y_m, column, row)
    if not _has_room(state, places.found, node, count):
        return False
    _leave(places, node)
    _enter(places, node, column, row)
    places.at_m[node, 0], places.at_m[node, 1] = x_m, y_m
    _update(state, places.found, node, count)
    return True


@kernel
def remove(state: State, places: Places, node: int) -> None:
    """Take the node off the plane: it is in range of no node."""
    _leave(places, node)
    _update(state, places.found, node, 0)


@part
def _find(places: Places, node: int, x_m: float, y_m: float, column: int, row: int) -> int:
    """Put the other nodes within range into `found`, sorted, and return their number."""
    found, count, range_m2 = places.found, 0, places.range_m * places.range_m
    for x in range(column - 1, column + 2):
        for y in range(row - 1, row + 2):
            peer = places.first[_list_of(places, x, y)]
            while peer != NOBODY:
                if places.square[peer, COLUMN] == x and places.square[peer, ROW] == y:
                    dx_m, dy_m = x_m - places.at_m[peer, 0], y_m - places.at_m[peer, 1]
                    if dx_m * dx_m + dy_m * dy_m <= range_m2 and peer != node:
                        place = count
                        while place > 0 and found[place - 1] > peer:
                            found[place] = found[place - 1]
                            place -= 1
                        found[place] = peer
                        count += 1
                peer = places.links[peer, AFTER]
    return count


@part
def _has_room(state: State, found: Ints, node: int, count: int) -> bool:
    width = state.neighbours.shape[1]
    if count > width:
        return False
    for i in range(count):
        peer = found[i]
        if state.degree[peer] == width and not _is_neighbour(state, node, peer):
            return False
    return True


@part
def _is_neighbour(state: State, node: int, peer: int) -> bool:
    place = 0
    while place < state.degree[node] and state.neighbours[node, place] < peer:
        place += 1
    return bool(place < state.degree[node] and state.neighbours[node, place] == peer)


@part
def _update(state: State, found: Ints, node: int, count: int) -> None:
    """Make the `count` found nodes the neighbours of this one, and it one of theirs."""
    old, new, degree = 0, 0, state.degree[node]
    row = state.neighbours[node]
    while old < degree or new < count:
        if new == count or (old < degree and row[old] < found[new]):
            part_from(state, row[old], node)
            old += 1
        elif old == degree or found[new] < row[old]:
            join(state, found[new], node)
            new += 1
        else:
            old += 1
            new += 1
    for place in range(count):
        row[place] = found[place]
    state.degree[node] = count


@part
def _list_of(places: Places, column: int, row: int) -> int:
    return int((column * HASH_FACTOR + row) % len(places.first))


@part
def _enter(places: Places, node: int, column: int, row: int) -> None:
    which = _list_of(places, column, row)
    after = places.first[which]
    places.square[node, COLUMN], places.square[node, ROW] = column, row
    places.square[node, LIST] = which
    places.links[node, BEFORE], places.links[node, AFTER] = NOBODY, after
    if after != NOBODY:
        places.links[after, BEFORE] = node
    places.first[which] = node


@part
def _leave(places: Places, node: int) -> None:
    which = places.square[node, LIST]
    if which == NOBODY:
        return
    before, after = places.links[node, BEFORE], places.links[node, AFTER]
    if before == NOBODY:
        places.first[which] = after
    else:
        places.links[before, AFTER] = after
    if after != NOBODY:
        places.links[after, BEFORE] = before
    places.square[node, LIST] = NOBODY
