"""The compiled equivalent of `sim.drift.run_slowly`: processes with drifting clocks (OBS section
5).

Rows 0 to n - 1 are the ordinary processes, row n is the observer. Copies in transit are in timing
wheels, one for each clock on which delays are measured. A wheel is a ring of δ + 1 linked lists. A
copy is in the list of the clock value, modulo δ + 1, at which it arrives. No delay is longer than
δ, so a whole list is due when its clock reaches it. The slots of arrived copies are reused.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.compiling import compiled
from beforehand.kernels.random.draws import mix, normal, unit

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

LOST = -1

# The streams of a run, as indices into `keys`.
STEPS, TRAFFIC, DELAYS, TARGETS = 0, 1, 2, 3
STREAMS = ("drift/steps", "drift/traffic", "drift/delays", "drift/targets")

# The counters of a run, as indices into `tally`.
SENT, ARRIVED, IN_FLIGHT, FREE, LOST_COPIES, EVENTS_MAX, COUNTERS = 0, 1, 2, 3, 4, 5, 6


class Network(NamedTuple):
    """The parameters of a run: the numbers of OBS section 5."""

    epsilon: int
    delta: int
    rate: float
    mean: float
    stdev: float
    fan_out: int
    counts_steps: bool
    """Whether delays count steps of the simulation instead of ticks of the sender's clock."""
    waits_for_tick: bool
    """Whether a process receives a copy only at its own next tick, after it has sent."""


class State(NamedTuple):
    """The mutable state of a run."""

    clock: Ints
    high: Ints
    kn: Ints
    past: Ints
    here: Ints
    """Events of each process at its present clock value."""
    first: Ints
    """(clock, slot): the first copy in the list of the timing wheel, or -1."""
    last: Ints
    following: Ints
    """For each copy the next one in its list, or -1."""
    inbox: Ints
    """(process, end): the first and the last copy that waits for a tick of the process, or -1."""
    copy_message: Ints
    copy_target: Ints
    tally: Ints
    origin: Ints
    seq: Ints
    r: Ints
    c: Ints
    message_kn: Ints
    message_past: Ints
    arrival: Ints
    """The observer's clock when it received the message; `LOST` if it never did."""
    arrived: Ints
    """Message numbers in order of arrival at the observer."""


def new_state(processes: int, messages: int, network: Network) -> State:
    """Return the initial state. The start of a process counts as an event (OBS figure 1)."""

    def zeros(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    elements, slots = network.epsilon + 1, network.delta + 1
    # While a process stands still, another clock takes at most 2ε + 1 values.
    waiting = 2 * network.epsilon + 1 if network.waits_for_tick else 0
    copies = processes * (slots + waiting) * (network.fan_out + 1)
    kn = zeros(processes, elements)
    kn[:, 0] = 1
    return State(
        clock=zeros(processes + 1),
        high=zeros(processes),
        kn=kn,
        past=zeros(processes, processes),
        here=zeros(processes) + 1,
        first=zeros(processes, slots) - 1,
        last=zeros(processes, slots) - 1,
        following=np.append(np.arange(1, copies), -1),  # the list of free slots
        inbox=zeros(processes, 2) - 1,
        copy_message=zeros(copies),
        copy_target=zeros(copies),
        tally=zeros(COUNTERS),
        origin=zeros(messages),
        seq=zeros(messages),
        r=zeros(messages),
        c=zeros(messages),
        message_kn=zeros(messages, elements),
        message_past=zeros(messages, processes),
        arrival=zeros(messages) + LOST,
        arrived=zeros(messages) + LOST,
    )


@compiled
def delay_units(key: np.uint64, origin: int, seq: int, target: int, network: Network) -> int:
    """Return how long one copy takes, 1 to δ whole units, or `LOST`.

    A draw below 0 is repeated. A draw above δ means that the message is lost (OBS section 5). A
    clock shows whole units only, so the copy arrives when the clock has reached the drawn value.
    """
    key = mix(mix(mix(key, origin), seq), target)
    attempt = 0
    drawn = -1.0
    while drawn < 0.0:
        drawn = network.mean + network.stdev * normal(mix(key, attempt))
        attempt += 1
    return LOST if drawn > network.delta else max(1, math.ceil(drawn))


@compiled
def targets_of(key: np.uint64, origin: int, seq: int, processes: int, fan_out: int) -> Ints:
    """Return the processes to which a message goes: `fan_out` of the others, in ascending order."""
    key = mix(mix(key, origin), seq)
    others = np.arange(processes - 1)
    for i in range(fan_out):  # the first steps of a Fisher-Yates shuffle
        j = i + int(unit(mix(key, i)) * (processes - 1 - i))
        others[i], others[j] = others[j], others[i]
    chosen = np.sort(others[:fan_out])
    return chosen + (chosen >= origin)


@compiled
def ticking_process(key: np.uint64, draw: int, processes: int) -> int:
    """Return the process that the given draw picks; `processes` stands for the observer."""
    return int(unit(mix(key, draw)) * (processes + 1))


@compiled
def sends_now(key: np.uint64, process: int, tick: int, rate: float) -> bool:
    return unit(mix(mix(key, process), tick)) < rate


@compiled
def run(state: State, keys: Keys, network: Network) -> None:
    """Run until all messages are sent and no copy is in transit."""
    clock, tally = state.clock, state.tally
    processes, messages = state.high.shape[0], state.origin.shape[0]
    draw = 0
    step = 0
    while tally[SENT] < messages or tally[IN_FLIGHT] > 0:
        p = ticking_process(keys[STEPS], draw, processes)
        draw += 1
        if clock[p] + 1 - clock.min() > network.epsilon:
            continue  # G1: another process is picked
        clock[p] += 1
        step += 1
        if p < processes:
            state.here[p] = 0
        if network.counts_steps:
            _arrive(state, network, 0, step)
        elif p < processes:
            _arrive(state, network, p, clock[p])
        if p == processes:
            continue
        if tally[SENT] < messages and sends_now(keys[TRAFFIC], p, clock[p], network.rate):
            _send(state, keys, network, p, step)
        copy = state.inbox[p, 0]
        state.inbox[p, 0] = -1
        while copy >= 0:
            _receive(state, p, state.copy_message[copy])
            copy = _free(state, copy)


@compiled
def _arrive(state: State, network: Network, measure: int, value: int) -> None:
    """Hand over the copies that are due when clock `measure` reaches `value`."""
    observer, tally = state.high.shape[0], state.tally
    slot = value % state.first.shape[1]
    copy = state.first[measure, slot]
    state.first[measure, slot] = -1
    while copy >= 0:
        message, target = state.copy_message[copy], state.copy_target[copy]
        if target != observer and network.waits_for_tick:
            after = state.following[copy]
            _keep(state, target, copy)
            copy = after
            continue
        if target == observer:
            state.arrival[message] = state.clock[observer]
            state.arrived[tally[ARRIVED]] = message
            tally[ARRIVED] += 1
        else:
            _receive(state, target, message)
        copy = _free(state, copy)


@compiled
def _keep(state: State, process: int, copy: int) -> None:
    """Append a copy to the inbox of a process."""
    state.following[copy] = -1
    if state.inbox[process, 0] < 0:
        state.inbox[process, 0] = copy
    else:
        state.following[state.inbox[process, 1]] = copy
    state.inbox[process, 1] = copy


@compiled
def _free(state: State, copy: int) -> int:
    """Free the slot of a copy, and return the next copy of its list."""
    after = int(state.following[copy])
    state.following[copy] = state.tally[FREE]
    state.tally[FREE] = copy
    state.tally[IN_FLIGHT] -= 1
    return after


@compiled
def _send(state: State, keys: Keys, network: Network, p: int, step: int) -> None:
    message = state.tally[SENT]
    state.tally[SENT] += 1
    _raise_to(state, p, state.clock[p])
    _count(state, p)
    state.past[p, p] += 1
    seq = state.past[p, p]
    state.origin[message] = p
    state.seq[message] = seq
    state.r[message] = state.clock[p]
    state.c[message] = state.high[p] - state.clock[p]
    state.message_kn[message] = state.kn[p]
    state.message_past[message] = state.past[p]
    measure, value = (0, step) if network.counts_steps else (p, state.clock[p])
    processes = state.high.shape[0]
    targets = targets_of(keys[TARGETS], p, seq, processes, network.fan_out)
    for i in range(network.fan_out + 1):
        target = targets[i] if i < network.fan_out else processes
        delay = delay_units(keys[DELAYS], p, seq, target, network)
        if delay == LOST:
            state.tally[LOST_COPIES] += target < processes
        else:
            _put(state, measure, value + delay, message, target)


@compiled
def _put(state: State, measure: int, due: int, message: int, target: int) -> None:
    slot = due % state.first.shape[1]
    copy = state.tally[FREE]
    state.tally[FREE] = state.following[copy]
    state.copy_message[copy] = message
    state.copy_target[copy] = target
    state.following[copy] = -1
    if state.first[measure, slot] < 0:
        state.first[measure, slot] = copy
    else:
        state.following[state.last[measure, slot]] = copy
    state.last[measure, slot] = copy
    state.tally[IN_FLIGHT] += 1


@compiled
def _receive(state: State, p: int, message: int) -> None:
    """Merge a received timestamp as in OBS figure 1, for the ε + 1 elements from the top: see
    `protocols.observer.timestamp`."""
    high = state.r[message] + state.c[message]
    _raise_to(state, p, max(state.clock[p], high))
    gap = state.high[p] - high
    for i in range(gap, state.kn.shape[1]):
        state.kn[p, i] = max(state.kn[p, i], state.message_kn[message, i - gap])
    _count(state, p)
    for origin in range(state.past.shape[1]):
        state.past[p, origin] = max(state.past[p, origin], state.message_past[message, origin])


@compiled
def _raise_to(state: State, p: int, high: int) -> None:
    gap = high - state.high[p]
    if gap <= 0:
        return
    for i in range(state.kn.shape[1] - 1, -1, -1):
        state.kn[p, i] = state.kn[p, i - gap] if i >= gap else 0
    state.high[p] = high


@compiled
def _count(state: State, p: int) -> None:
    state.kn[p, state.high[p] - state.clock[p]] += 1  # c <= ε by G1, so the element exists
    state.here[p] += 1
    state.tally[EVENTS_MAX] = max(state.tally[EVENTS_MAX], state.here[p])
