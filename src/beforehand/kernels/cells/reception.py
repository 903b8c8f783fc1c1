"""Determine which nodes accept a frame that has ended on the air, for a world of cells.

A frame belongs to a host and the station of its cell. Every other node in range
receives it too, and it may collide there with another frame; but that node ignores it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells.air import (
    CALENDAR,
    EVERYBODY,
    LOGGED,
    NEVER_US,
    STARTED,
    Rules,
    State,
    step,
    transmit,
)
from beforehand.kernels.compiling import kernel
from beforehand.kernels.queue.heap import due_us

Ints = NDArray[np.int64]

NOWHERE = -1
"""As the cell of a host: none."""
OUTCOMES = 3

# The columns of a request, and of `Reception.frame`.
NODE, AIRTIME, TARGET, KIND, REQUEST = 0, 1, 2, 3, 4
# The indices of `Reception.answer`.
INSTANT, DUE, TAKEN, ENDED, ANSWERS = 0, 1, 2, 3, 4


class Reception(NamedTuple):
    stations: int
    """The number of stations. They are the first nodes; all other nodes are hosts."""
    cell: Ints
    """For each node: the station in whose cell it is, or `NOWHERE`."""
    entered: Ints
    """For each node: the number of the first frame that was requested after it entered the cell.
    Older frames were in transit when it came or left, and are lost."""
    frame: Ints
    """(frame, column): its request."""
    counts: Ints
    """(kind of frame, whether it was for a host, outcome): counts at intended receivers."""
    air_outcomes: Ints
    """(outcome): counts at all nodes in range."""
    taken: Ints
    """Rows of frame and node: the nodes that accept a frame, in ascending order."""
    ended: Ints
    """Frames that are over."""
    answer: Ints


def new_reception(stations: int, nodes: int, kinds: int, frames_max: int) -> Reception:
    """Return the initial state, in which no host is in a cell."""
    return Reception(
        stations=stations,
        cell=np.full(nodes, NOWHERE, np.int64),
        entered=np.zeros(nodes, np.int64),
        frame=np.zeros((frames_max, REQUEST), np.int64),
        counts=np.zeros((kinds, 2, OUTCOMES), np.int64),
        air_outcomes=np.zeros(OUTCOMES, np.int64),
        # At one instant a host is the sender of at most one such frame, and accepts at most one:
        # that of its station.
        taken=np.zeros((2 * nodes, 2), np.int64),
        ended=np.zeros(nodes + 1, np.int64),
        answer=np.zeros(ANSWERS, np.int64),
    )


@kernel
def advance(
    state: State, rules: Rules, reception: Reception, requests: Ints, now_us: int, until_us: int
) -> None:
    """Request frames at `now_us`, then advance to the first instant at which a frame ends, or to
    the end of `until_us`.

    `reception.answer` then has that instant or `NEVER_US`, the time of the next event or
    `NEVER_US`, and the numbers of rows in `taken` and `ended`."""
    tally, answer = state.tally, reception.answer
    for k in range(len(requests)):
        request = requests[k]
        number = transmit(state, rules, now_us, request[NODE], request[AIRTIME], request[TARGET])
        for column in range(REQUEST):
            reception.frame[number, column] = request[column]
    instant = NEVER_US
    taken = ended = 0
    while tally[CALENDAR]:
        due = due_us(state.calendar[0])
        if due > until_us or (instant != NEVER_US and due != instant):
            break
        ending = NEVER_US
        step(state, rules)
        for row in range(tally[LOGGED]):
            what, node, number = state.log[row, 1], state.log[row, 2], state.log[row, 3]
            if what == STARTED:
                continue
            outcome = what - STARTED - 1
            ending = number
            reception.air_outcomes[outcome] += 1
            source, target = reception.frame[number, NODE], reception.frame[number, TARGET]
            host, station = (source, node) if source >= reception.stations else (node, source)
            is_registered = reception.cell[host] == station and number >= reception.entered[host]
            if is_registered and target in (EVERYBODY, node):
                kind = reception.frame[number, KIND]
                reception.counts[kind, 1 if host == node else 0, outcome] += 1
                if outcome == 0:
                    reception.taken[taken, 0], reception.taken[taken, 1] = number, node
                    taken += 1
        tally[LOGGED] = 0
        if ending != NEVER_US:
            reception.ended[ended] = ending
            ended += 1
            instant = due
    answer[INSTANT], answer[TAKEN], answer[ENDED] = instant, taken, ended
    answer[DUE] = due_us(state.calendar[0]) if tally[CALENDAR] else NEVER_US
