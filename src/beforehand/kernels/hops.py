"""How many hops a message had made when it came in, from who handed it on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]

UNKNOWN = -1
"""Of what came from a node that never had it."""


def count_hops(node: Ints, message: Ints, sender: Ints, origin: Ints) -> Ints:
    """Of each reception, in the order in which they happened; all of shape (receptions,).

    message: numbers from 0 on. One more than the sender's own copy had made, where the last of
    several counts; the copy of the origin has made none.
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
