"""The positions of nodes, and who is in radio range: the compiled equivalent of `sim.grid_index`.

Squares are one range wide. The nodes of a square are a linked list. A list serves all squares whose
numbers have the same hash, so the plane needs no bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells.air import NO_NODE, State, join, part_from
from beforehand.kernels.compiling import kernel, part

Ints = NDArray[np.int64]

COLUMN, ROW, LIST = 0, 1, 2
"""The columns of `CompiledGrid.square`: the square of a node, and its list. `NO_NODE`: nowhere."""
BEFORE, AFTER = 0, 1
"""The columns of `CompiledGrid.links`."""
HASH_FACTOR = 1_000_003


class CompiledGrid(NamedTuple):
    range_m: float
    at_m: NDArray[np.float64]
    """(node, axis)"""
    square: Ints
    first: Ints
    """The first node of each list, or `NO_NODE`."""
    links: Ints
    """(node, direction): the nodes next to it in its list, or `NO_NODE`."""
    found: Ints
    """Room for the nodes in range."""


def make_grid(nodes: int, range_m: float) -> CompiledGrid:
    return CompiledGrid(
        range_m=range_m,
        at_m=np.zeros((nodes, 2)),
        square=np.full((nodes, 3), NO_NODE, np.int64),
        first=np.full(2 * nodes + 1, NO_NODE, np.int64),
        links=np.full((nodes, 2), NO_NODE, np.int64),
        found=np.zeros(nodes, np.int64),
    )


@kernel
def move(state: State, grid: CompiledGrid, node: int, x_m: float, y_m: float) -> bool:
    """Put the node at a position, and update the neighbours of all.

    Return False, and change nothing, if a row of `state.neighbours` is too short."""
    column, row = int(x_m // grid.range_m), int(y_m // grid.range_m)
    count = _find(grid, node, x_m, y_m, column, row)
    if not _has_room(state, grid.found, node, count):
        return False
    _leave(grid, node)
    _enter(grid, node, column, row)
    grid.at_m[node, 0], grid.at_m[node, 1] = x_m, y_m
    _update(state, grid.found, node, count)
    return True


@kernel
def remove(state: State, grid: CompiledGrid, node: int) -> None:
    """Take the node off the plane: it is in range of no node."""
    _leave(grid, node)
    _update(state, grid.found, node, 0)


@part
def _find(grid: CompiledGrid, node: int, x_m: float, y_m: float, column: int, row: int) -> int:
    """Put the other nodes within range into `found`, sorted, and return their number."""
    found, count, range_m2 = grid.found, 0, grid.range_m * grid.range_m
    for x in range(column - 1, column + 2):
        for y in range(row - 1, row + 2):
            peer = grid.first[_list_of(grid, x, y)]
            while peer != NO_NODE:
                if grid.square[peer, COLUMN] == x and grid.square[peer, ROW] == y:
                    dx_m, dy_m = x_m - grid.at_m[peer, 0], y_m - grid.at_m[peer, 1]
                    if dx_m * dx_m + dy_m * dy_m <= range_m2 and peer != node:
                        place = count
                        while place > 0 and found[place - 1] > peer:
                            found[place] = found[place - 1]
                            place -= 1
                        found[place] = peer
                        count += 1
                peer = grid.links[peer, AFTER]
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
def _list_of(grid: CompiledGrid, column: int, row: int) -> int:
    return int((column * HASH_FACTOR + row) % len(grid.first))


@part
def _enter(grid: CompiledGrid, node: int, column: int, row: int) -> None:
    which = _list_of(grid, column, row)
    after = grid.first[which]
    grid.square[node, COLUMN], grid.square[node, ROW] = column, row
    grid.square[node, LIST] = which
    grid.links[node, BEFORE], grid.links[node, AFTER] = NO_NODE, after
    if after != NO_NODE:
        grid.links[after, BEFORE] = node
    grid.first[which] = node


@part
def _leave(grid: CompiledGrid, node: int) -> None:
    which = grid.square[node, LIST]
    if which == NO_NODE:
        return
    before, after = grid.links[node, BEFORE], grid.links[node, AFTER]
    if before == NO_NODE:
        grid.first[which] = after
    else:
        grid.links[before, AFTER] = after
    if after != NO_NODE:
        grid.links[after, BEFORE] = before
    grid.square[node, LIST] = NO_NODE
