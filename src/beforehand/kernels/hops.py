"""Count the hops of received messages, from the node that forwarded each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]

UNKNOWN = -1
"""The hop count of a message that came from a node which never had it."""


def count_hops(node: Ints, message: Ints, sender: Ints, origin: Ints) -> Ints:
    """Return the hop count of each reception, in the order in which they happened.

    All arrays have the shape (receptions,). message: numbers from 0 on. A reception has one hop
    more than the sender's own copy, the last one if there are several. The origin's copy has 0.
    """
    stride = int(message.max(initial=0)) + 1
    places, at = np.unique(node * stride + message, return_inverse=True)
    wanted = sender * stride + message
    found = np.minimum(np.searchsorted(places, wanted), max(0, len(places) - 1))
    found = np.where(places[found] == wanted, found, UNKNOWN) if len(places) else found
    return _pass_on(at.astype(np.int64), found, sender == origin, len(places))


@compiled
def _pass_on(at: Ints, found: Ints, is_first: NDArray[np.bool_], places: int) -> Ints:
    held = np.full(places, UNKNOWN)
    hops = np.empty(len(at), np.int64)
    for row in range(len(at)):
        before = UNKNOWN
        if is_first[row]:
            before = 0
        elif found[row] >= 0:
            before = held[found[row]]
        hops[row] = before + 1 if before >= 0 else UNKNOWN
        held[at[row]] = hops[row]
    return hops
