"""The compiled equivalent of `sim.radio.Air`: the same events for the same requests and seed.

The state of a node is a row of `State.node`, so receiving a frame touches one or two cache lines. A
queue is a linked list through the frames. Frames are numbered in the order of the requests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import kernel, part
from beforehand.kernels.queue.heap import due_us, event, pop, push, ticket
from beforehand.kernels.random.draws import mix, unit

Ints = NDArray[np.int64]

DCF, CSMA, NONE = 0, 1, 2
NEVER_US = -1
NO_NODE = -1
EVERYBODY = -1
"""As the target of a frame."""

# The columns of `State.node`.
DUE, ARMED, SLOTS, COUNT, SIGNALS, BUSY, LOCKED, SENDING = 0, 1, 2, 3, 4, 5, 6, 7
SENT, DRAWS, START, END, FRAME, AUDIENCE, FIRST, LAST = 8, 9, 10, 11, 12, 13, 14, 15
QUEUED, HELD, COLUMNS = 16, 17, 18

# The indices of `State.tally`.
CALENDAR, LOGGED, FRAMES, CHANGED, THROWN, TALLIES = 0, 1, 2, 3, 4, 5

# The kinds of log rows. A row is t_us, kind, node (the receiver, or the sender at a start), frame.
STARTED, RECEIVED, COLLIDED, DEAF = 0, 1, 2, 3


class Rules(NamedTuple):
    """`sim.radio.Radio` in numbers, and the key of the draws."""

    mac: int
    capture: bool
    cw: int
    slot_us: int
    difs_us: int
    sense_us: int
    key: np.uint64
    answers_draw: bool = False
    queue_max: int = 0
    """0: there is no limit."""
    full_duplex: bool = False
    unicast_hold_us: int = 0


class State(NamedTuple):
    node: Ints
    neighbours: Ints
    """(node, place): the nodes in range, sorted. The caller may change it between two steps."""
    degree: Ints
    audience: Ints
    """The receivers of each node's last frame: `neighbours` when it started."""
    calendar: Ints
    airtime_us: Ints
    """The airtime of each frame; `NEVER_US` if it found a full queue."""
    target: Ints
    """The node that each frame is for, or `EVERYBODY`."""
    following: Ints
    """The next frame in the same queue, or `NO_NODE`."""
    tally: Ints
    log: Ints


def new_state(neighbours: Ints, degree: Ints, frames_max: int, rows_max: int) -> State:
    """Return the initial state, in which no node has a frame to send."""
    nodes = len(neighbours)
    node = np.full((nodes, COLUMNS), NEVER_US, np.int64)
    node[:, [SLOTS, COUNT, SIGNALS, SENDING, SENT, DRAWS, AUDIENCE, QUEUED, HELD]] = 0
    return State(
        node=node,
        neighbours=neighbours,
        degree=degree,
        audience=np.zeros_like(neighbours),
        calendar=np.zeros(2 * nodes + 1, np.int64),  # an end and a start for each node
        airtime_us=np.zeros(frames_max, np.int64),
        target=np.full(frames_max, EVERYBODY, np.int64),
        following=np.full(frames_max, NO_NODE, np.int64),
        tally=np.zeros(TALLIES, np.int64),
        log=np.zeros((rows_max, 4), np.int64),
    )


@part
def _draw(state: State, rules: Rules, node: int) -> None:
    row = state.node[node]
    key = mix(mix(mix(rules.key, node), row[SENT]), row[DRAWS])
    row[DRAWS] += 1
    row[SLOTS] = int(unit(key) * (rules.cw + 1))


@part
def _arm(state: State, due: int, node: int) -> None:
    state.node[node, ARMED] = due
    entry = event(due, len(state.node) + node)
    state.tally[CALENDAR] = push(state.calendar, state.tally[CALENDAR], entry)


@part
def _plan(state: State, due: int, node: int) -> None:
    state.node[node, DUE] = due
    if state.node[node, ARMED] == NEVER_US:
        _arm(state, due, node)


@part
def _senses(state: State, rules: Rules, now_us: int, node: int) -> bool:
    row = state.node[node]
    return bool(row[SIGNALS] > 0 and row[BUSY] + rules.sense_us < now_us)


@part
def _freeze(state: State, rules: Rules, now_us: int, node: int) -> None:
    row = state.node[node]
    gone = (now_us - row[COUNT]) // rules.slot_us
    if gone > 0:
        gone = min(gone, row[SLOTS])
        row[SLOTS] -= gone
        row[COUNT] += gone * rules.slot_us


@part
def _ask(state: State, rules: Rules, now_us: int, node: int) -> None:
    row = state.node[node]
    if rules.mac == NONE or (rules.mac == CSMA and not _senses(state, rules, now_us, node)):
        _plan(state, max(now_us, row[HELD]), node)
    elif rules.mac == CSMA:
        _draw(state, rules, node)
    elif row[SIGNALS]:
        if not row[SLOTS] and _senses(state, rules, now_us, node):
            _draw(state, rules, node)
    else:
        _freeze(state, rules, now_us, node)
        if not row[SLOTS] and rules.answers_draw and now_us < row[COUNT]:
            _draw(state, rules, node)
        elif not row[SLOTS]:
            row[COUNT] = now_us + rules.difs_us
        _plan(state, row[COUNT] + row[SLOTS] * rules.slot_us, node)


@part
def transmit(
    state: State, rules: Rules, now_us: int, node: int, airtime_us: int, target: int
) -> int:
    """Queue a frame and return its number. If the queue is full, the frame never starts."""
    row = state.node[node]
    frame = int(state.tally[FRAMES])
    state.tally[FRAMES] += 1
    if rules.queue_max and row[QUEUED] == rules.queue_max:
        state.airtime_us[frame] = NEVER_US
        state.tally[THROWN] += 1
        return frame
    row[QUEUED] += 1
    state.airtime_us[frame], state.target[frame] = airtime_us, target
    if row[FIRST] == NO_NODE:
        row[FIRST] = row[LAST] = frame
        if not row[SENDING]:
            _ask(state, rules, now_us, node)
    else:
        state.following[row[LAST]] = frame
        row[LAST] = frame
    return frame


@part
def _note(state: State, now_us: int, kind: int, node: int, frame: int) -> None:
    line = state.log[state.tally[LOGGED]]
    state.tally[LOGGED] += 1
    line[0], line[1], line[2], line[3] = now_us, kind, node, frame


@part
def _begin_signal(state: State, rules: Rules, now_us: int, node: int, sender: int) -> None:
    row = state.node[node]
    row[SIGNALS] += 1
    if row[SIGNALS] > 1:
        if now_us <= row[BUSY] + rules.sense_us or not rules.capture:
            row[LOCKED] = NO_NODE
        return
    row[BUSY] = now_us
    if row[SENDING] and not rules.full_duplex:
        return
    row[LOCKED] = sender
    if rules.mac == DCF and not row[SENDING]:
        _freeze(state, rules, now_us, node)
        if row[DUE] > now_us + rules.sense_us:
            row[DUE] = NEVER_US


@part
def _start(state: State, rules: Rules, now_us: int, node: int) -> None:
    row = state.node[node]
    frame = row[FIRST]
    row[FIRST] = state.following[frame]
    row[QUEUED] -= 1
    end_us = now_us + state.airtime_us[frame]
    row[DUE] = NEVER_US
    if not rules.full_duplex:
        row[LOCKED] = NO_NODE
    row[SENDING], row[FRAME] = 1, frame
    row[START], row[END] = now_us, end_us
    row[SENT] += 1
    row[DRAWS] = 0
    if rules.mac != NONE:
        _draw(state, rules, node)
    state.tally[CALENDAR] = push(state.calendar, state.tally[CALENDAR], event(end_us, node))
    _note(state, now_us, STARTED, node, frame)
    row[AUDIENCE] = state.degree[node]
    for place in range(row[AUDIENCE]):
        peer = state.neighbours[node, place]
        state.audience[node, place] = peer
        _begin_signal(state, rules, now_us, peer, node)


@part
def _rest(state: State, rules: Rules, now_us: int, node: int) -> None:
    row = state.node[node]
    if rules.mac != NONE and row[DUE] == NEVER_US:
        row[COUNT] = now_us + rules.difs_us
        if row[FIRST] != NO_NODE:
            _plan(state, row[COUNT] + row[SLOTS] * rules.slot_us, node)


@part
def _end(state: State, rules: Rules, now_us: int, node: int) -> None:
    row = state.node[node]
    row[SENDING] = 0
    target = state.target[row[FRAME]]
    is_missed = target != EVERYBODY
    for place in range(row[AUDIENCE]):
        peer = state.audience[node, place]
        other = state.node[peer]
        other[SIGNALS] -= 1
        kind = COLLIDED
        if other[LOCKED] == node:
            other[LOCKED] = NO_NODE
            kind = RECEIVED
            is_missed = is_missed and peer != target
        elif other[END] > row[START] and not rules.full_duplex:
            kind = DEAF
        _note(state, now_us, kind, peer, row[FRAME])
        if not other[SIGNALS] and not other[SENDING]:
            _rest(state, rules, now_us, peer)
    if is_missed:
        row[HELD] = row[START] + rules.unicast_hold_us
    if rules.mac == NONE:
        if row[FIRST] != NO_NODE:
            _plan(state, max(now_us, row[HELD]), node)
    elif not row[SIGNALS]:
        _rest(state, rules, now_us, node)


@part
def step(state: State, rules: Rules) -> None:
    """Execute the next event of the calendar, which is not empty."""
    entry = state.calendar[0]
    state.tally[CALENDAR] = pop(state.calendar, state.tally[CALENDAR])
    now_us = due_us(entry)
    node = ticket(entry) - len(state.node)
    if node < 0:
        _end(state, rules, now_us, node + len(state.node))
        return
    row = state.node[node]
    row[ARMED] = NEVER_US
    due = row[DUE]
    if due > now_us:
        _arm(state, due, node)
    if due != now_us:
        return
    if rules.mac == CSMA and _senses(state, rules, now_us, node):
        row[DUE] = NEVER_US
        _draw(state, rules, node)
    else:
        _start(state, rules, now_us, node)


@part
def join(state: State, node: int, peer: int) -> None:
    """Let `node` receive the signals of `peer` from now on."""
    row = state.neighbours[node]
    place = state.degree[node]
    while place > 0 and row[place - 1] > peer:
        row[place] = row[place - 1]
        place -= 1
    row[place] = peer
    state.degree[node] += 1


@part
def part_from(state: State, node: int, peer: int) -> None:
    """Let `node` no longer receive the signals of `peer`."""
    row = state.neighbours[node]
    place = 0
    while row[place] != peer:
        place += 1
    state.degree[node] -= 1
    for after in range(place, state.degree[node]):
        row[after] = row[after + 1]


@part
def _change(state: State, node: int, peer: int, is_up: int) -> None:
    if is_up:
        join(state, node, peer)
        join(state, peer, node)
    else:
        part_from(state, node, peer)
        part_from(state, peer, node)


@kernel
def play(state: State, rules: Rules, requests: Ints, changes: Ints, until_us: int) -> bool:
    """Return whether all is done; if not, the log is full: empty it and call again.

    requests: rows of t_us, node, airtime_us and target. changes: rows of t_us, node, peer and
        whether they are in range from then on. Both are sorted by time. At one instant, events on
        the air come first, then changes, then requests. `until_us` ends the run, exclusive.
    """
    tally = state.tally
    rows_max = len(state.log) - state.neighbours.shape[1]
    while tally[LOGGED] < rows_max:
        due = change_us = request_us = until_us
        if tally[CALENDAR]:
            due = due_us(state.calendar[0])
        if tally[CHANGED] < len(changes):
            change_us = changes[tally[CHANGED], 0]
        if tally[FRAMES] < len(requests):
            request_us = requests[tally[FRAMES], 0]
        if min(due, change_us, request_us) >= until_us:
            return True
        if due <= min(change_us, request_us):
            step(state, rules)
        elif change_us <= request_us:
            change = changes[tally[CHANGED]]
            tally[CHANGED] += 1
            _change(state, change[1], change[2], change[3])
        else:
            request = requests[tally[FRAMES]]
            transmit(state, rules, request_us, request[1], request[2], request[3])
    return False
