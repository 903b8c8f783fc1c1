"""The places from which a bounded cache draws the message that it evicts.

As in `protocols.epidemic.cache`: a list of the stored messages, and of some that have expired. It
is made anew when half of it is obsolete, so a draw takes two attempts on average.
"""

from __future__ import annotations

from beforehand.kernels.compiling import cold, part
from beforehand.kernels.epidemic.draws import draw_below
from beforehand.kernels.epidemic.queue import give_block, take_block
from beforehand.kernels.epidemic.sets import is_dead, signed
from beforehand.kernels.epidemic.state import (
    ENTRIES,
    LIST,
    LIST_FIRST,
    PLACES,
    PLACES_ROOM,
    PLACES_SIZE,
    Fixed,
    State,
)


@part
def add_place(s: State, node: int, m: int) -> None:
    base, room, size = s.node[node, PLACES], s.node[node, PLACES_ROOM], s.node[node, PLACES_SIZE]
    if size == room:
        at = take_block(s, 2 * room)
        for i in range(size):
            s.pool[at + i] = s.pool[base + i]
        give_block(s, base, room)
        base = at
        s.node[node, PLACES], s.node[node, PLACES_ROOM] = at, 2 * room
    s.pool[base + size] = m
    s.node[node, PLACES_SIZE] = size + 1


@part
def renew_places(s: State, node: int) -> None:
    """Make the places anew if most of them belong to removed messages."""
    size = s.node[node, ENTRIES]
    if s.node[node, PLACES_SIZE] > 2 * size:
        base, stored = s.node[node, PLACES], s.node[node, LIST] + s.node[node, LIST_FIRST]
        for i in range(size):
            s.pool[base + i] = s.pool[stored + i]
        s.node[node, PLACES_SIZE] = size


@cold
def draw_place(f: Fixed, s: State, node: int) -> int:
    """Return a random stored message, and remove its place. No stored message has expired."""
    renew_places(s, node)
    base = s.node[node, PLACES]
    while True:
        last = s.node[node, PLACES_SIZE] - 1
        drawn = draw_below(f, s, node, last + 1)
        m = signed(s.pool[base + drawn])
        s.pool[base + drawn] = s.pool[base + last]
        s.node[node, PLACES_SIZE] = last
        if not is_dead(f, s, node, m):
            return m
