"""Count how far a delivery order is from causal order, against vector clocks (OBS section 6).

The vector clocks are the ground truth of a simulation. No observer sees them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled

Ints = NDArray[np.int64]


class Violations(NamedTuple):
    """Counts over the delivered messages; a lost message violates nothing."""

    delivered: int
    backward: int
    """Messages delivered before one of their causes."""
    forward: int
    """Messages delivered after one of their effects."""
    pairs: int
    """Ordered pairs of messages where one is a cause of the other."""
    inverted: int
    """Such pairs delivered in the wrong order."""

    @property
    def messages_percent(self) -> float:
        """Return the paper's measure: the mean percentage of backward and forward violations."""
        return 50.0 * (self.backward + self.forward) / max(self.delivered, 1)

    @property
    def pairs_percent(self) -> float:
        return 100.0 * self.inverted / max(self.pairs, 1)


def count_violations(order: Ints, origin: Ints, seq: Ints, past: Ints) -> Violations:
    """Return the violations of causal order when messages are delivered in `order`.

    order: message numbers in order of delivery, each at most once, shape (delivered,).
    origin, seq: of each message; seq counts 1, 2, ... along one origin, shape (messages,).
    past: the vector clock of each sending, shape (messages, origins): how many messages of each
        origin were sent in the causal past of this one, itself included.
    """
    seqs = int(seq.max(initial=0))
    forward, pairs = _forward(order, origin, seq, past, seqs)
    backward, inverted = _backward(order, origin, seq, past, seqs)
    return Violations(len(order), backward, forward, pairs, inverted)


@compiled
def _forward(order: Ints, origin: Ints, seq: Ints, past: Ints, seqs: int) -> tuple[int, int]:
    origins = past.shape[1]
    upto = np.zeros((origins, seqs + 1), np.int64)  # delivered at all, of seq 1..s
    for m in order:
        upto[origin[m], seq[m]] = 1
    for o in range(origins):
        for s in range(1, seqs + 1):
            upto[o, s] += upto[o, s - 1]
    known = np.zeros(origins, np.int64)  # the union of the pasts delivered so far
    forward = 0
    pairs = 0
    for m in order:
        if known[origin[m]] >= seq[m]:
            forward += 1
        for o in range(origins):
            pairs += upto[o, past[m, o]]
            known[o] = max(known[o], past[m, o])
    return forward, pairs - order.shape[0]  # each message was counted in its own past


@compiled
def _backward(order: Ints, origin: Ints, seq: Ints, past: Ints, seqs: int) -> tuple[int, int]:
    """Count from the last delivery to the first, with the later deliveries by origin and seq."""
    origins = past.shape[1]
    later = np.zeros((origins, seqs + 1), np.int64)  # a Fenwick tree per origin
    least = np.full(origins, seqs + 1)
    backward = 0
    inverted = 0
    for i in range(order.shape[0] - 1, -1, -1):
        m = order[i]
        count = 0
        for o in range(origins):
            # Disorder is local: nearly always all causes were delivered before.
            if past[m, o] >= least[o]:
                at = past[m, o]
                while at > 0:
                    count += later[o, at]
                    at -= at & -at
        inverted += count
        if count > 0:
            backward += 1
        least[origin[m]] = min(least[origin[m]], seq[m])
        at = seq[m]
        while at <= seqs:
            later[origin[m], at] += 1
            at += at & -at
    return backward, inverted
