"""Run the radio channel under traffic that is known in advance, in Python or compiled."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells import air as kernel
from beforehand.sim.radio import EVERYBODY, MACS, STREAM, Air, Radio, Signal
from beforehand.sim.streams import stream_key

Ints = NDArray[np.int64]

ROWS_MAX = 1 << 16
"""The size of the compiled run's log, which is emptied when it is full."""


class Traffic(msgspec.Struct, frozen=True):
    neighbours: Sequence[Sequence[int]]
    """The neighbours of each node at the beginning: sorted, and symmetric."""
    requests: Ints
    """Rows of t_us, node and size_bytes, and of a target if frames have any, sorted by time."""
    until_us: int
    """The end of the run, exclusive."""
    changes: Ints = msgspec.field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Rows of t_us, node, peer and whether they are in range from then on, sorted by time."""


def play(radio: Radio, traffic: Traffic, seed: int) -> Ints:
    """Return rows of t_us, kind, node and frame, with the kinds of `kernels.cells.air`.

    At one instant, events on the air come first, then changes, then requests.
    """
    neighbours = [list(peers) for peers in traffic.neighbours]
    air = Air(radio, neighbours, seed)
    until_us = traffic.until_us
    changes, requests = iter(traffic.changes.tolist()), iter(traffic.requests.tolist())
    change, request = next(changes, [until_us]), next(requests, [until_us])
    log: list[tuple[int, int, int, int]] = []
    while min(air.due_us, change[0], request[0]) < until_us:
        if air.due_us <= min(change[0], request[0]):
            signal = air.step()
            if signal is not None:
                log += _rows(signal)
        elif change[0] <= request[0]:
            _change(neighbours, *change[1:])
            change = next(changes, [until_us])
        else:
            air.transmit(*request)
            request = next(requests, [until_us])
    return np.array(log, np.int64).reshape(-1, 4)


def play_compiled(radio: Radio, traffic: Traffic, seed: int) -> Ints:
    """Return the same rows as `play`, from the compiled kernel."""
    radio.check()
    requests = traffic.requests
    sizes, inverse = np.unique(requests[:, 2], return_inverse=True)
    airtimes = np.array([radio.airtime_us(size) for size in sizes.tolist()], np.int64)
    targets = requests[:, 3] if requests.shape[1] > 3 else np.full(len(requests), EVERYBODY)
    timed = np.column_stack((requests[:, :2], airtimes[inverse], targets))
    state = kernel.new_state(*_table(traffic), len(requests), ROWS_MAX)
    rules = kernel.Rules(
        mac=MACS.index(radio.mac),
        capture=radio.capture,
        cw=radio.cw,
        slot_us=radio.slot_us,
        difs_us=radio.difs_us,
        sense_us=radio.sense_us,
        key=np.uint64(stream_key(seed, STREAM)),
        answers_draw=radio.answers_draw,
        queue_max=radio.queue_max or 0,
        full_duplex=radio.full_duplex,
        unicast_hold_us=radio.unicast_hold_us,
    )
    log = []
    is_done = False
    while not is_done:
        is_done = kernel.play(state, rules, timed, traffic.changes, traffic.until_us)
        log.append(state.log[: state.tally[kernel.LOGGED]].copy())
        state.tally[kernel.LOGGED] = 0
    return np.concatenate(log)


def _table(traffic: Traffic) -> tuple[Ints, Ints]:
    """Return a table of neighbours with room for all changes, and the degree of each node."""
    degree = np.array([len(peers) for peers in traffic.neighbours], np.int64)
    width = len(degree) if len(traffic.changes) else int(degree.max(initial=0))
    table = np.zeros((len(degree), max(width, 1)), np.int64)
    for row, peers in zip(table, traffic.neighbours, strict=True):
        row[: len(peers)] = peers
    return table, degree


def _change(neighbours: list[list[int]], node: int, peer: int, is_up: int) -> None:
    for one, other in ((node, peer), (peer, node)):
        if is_up:
            insort(neighbours[one], other)
        else:
            neighbours[one].remove(other)


def _rows(signal: Signal) -> list[tuple[int, int, int, int]]:
    """Return the rows of a signal, in the order of the compiled kernel."""
    t_us, is_end, node, frame = signal[:4]
    if not is_end:
        return [(t_us, kernel.STARTED, node, frame)]
    kinds = (kernel.RECEIVED, kernel.COLLIDED, kernel.DEAF)
    fates = sorted(
        (peer, kind) for kind, peers in zip(kinds, signal[4:], strict=True) for peer in peers
    )
    return [(t_us, kind, peer, frame) for peer, kind in fates]
