"""Traffic for the radio channel, and its losses by class of frame and of receiver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells.air import RECEIVED, STARTED
from beforehand.sim.grid_index import GridIndex
from beforehand.sim.radio import Radio
from tests.sim.radio_play import Traffic, play_compiled

Ints = NDArray[np.int64]
SECOND_US = 1_000_000


def everybody(nodes: int) -> list[list[int]]:
    return [[peer for peer in range(nodes) if peer != node] for node in range(nodes)]


def placed(places: Sequence[tuple[float, float]], range_m: float = 120.0) -> list[list[int]]:
    found = GridIndex(len(places), range_m)
    for node, (x_m, y_m) in enumerate(places):
        found.move(node, x_m, y_m)
    return found.neighbours


def poisson(draws: np.random.Generator, node: int, size: int, per_s: float, until_us: int) -> Ints:
    count = draws.poisson(per_s * until_us / SECOND_US)
    times = draws.integers(0, until_us, count)
    return np.column_stack((times, np.full(count, node), np.full(count, size)))


def periodic(
    draws: np.random.Generator,
    *,
    node: int,
    size: int,
    phase_us: int,
    period_us: int,
    jitter_us: int,
    until_us: int,
) -> Ints:
    times = np.arange(phase_us, until_us, period_us)
    times = times + draws.integers(0, jitter_us + 1, len(times))
    return np.column_stack((times, np.full(len(times), node), np.full(len(times), size)))


def backlog(nodes: int, frames: int, size: int) -> Ints:
    """Request more frames than can be sent, from the beginning."""
    node = np.tile(np.arange(nodes), frames)
    return np.column_stack((np.zeros_like(node), node, np.full_like(node, size)))


def in_order(*parts: Ints) -> Ints:
    requests = np.concatenate(parts)
    return requests[np.argsort(requests[:, 0], kind="stable")]


class Losses:
    """Sums over seeds: of every pair of a class of frame and a class of receiver, how many there
    were and how many were lost, seed by seed."""

    def __init__(self) -> None:
        self.expected: dict[tuple[str, str], list[int]] = {}
        self.lost: dict[tuple[str, str], list[int]] = {}

    def add(self, key: tuple[str, str], expected: int, lost: int) -> None:
        self.expected.setdefault(key, []).append(expected)
        self.lost.setdefault(key, []).append(lost)

    def loss(self, key: tuple[str, str]) -> float:
        return sum(self.lost[key]) / max(1, sum(self.expected[key]))

    def total(self) -> float:
        return sum(map(sum, self.lost.values())) / sum(map(sum, self.expected.values()))

    def spread(self, key: tuple[str, str]) -> float:
        """The standard deviation of the loss from one seed to another."""
        expected, lost = np.array(self.expected[key]), np.array(self.lost[key])
        return float(np.std(lost / np.maximum(expected, 1), ddof=1))


def measure(
    losses: Losses,
    radio: Radio,
    traffic: Traffic,
    *,
    seed: int,
    warm_us: int = 2 * SECOND_US,
    ack_bytes: int = 0,
) -> None:
    """Node 0 is the station. A frame counts if it started after the warm-up and has ended."""
    requests = traffic.requests
    log = play_compiled(radio, traffic, seed)
    starts = log[log[:, 1] == STARTED]
    start_us = np.full(len(requests), -1)
    start_us[starts[:, 3]] = starts[:, 0]
    fates = log[log[:, 1] != STARTED]
    frame = fates[:, 3]
    sender, size = requests[frame, 1], requests[frame, 2]
    is_lost = fates[:, 1] != RECEIVED
    counts = start_us[frame] >= warm_us
    is_ack = size == ack_bytes
    for name, chosen in (
        ("sta_app", sender == 0),
        ("host_app", (sender != 0) & ~is_ack),
        ("host_ack", (sender != 0) & is_ack),
    ):
        for where, here in (("own_station", fates[:, 2] == 0), ("own_host_1sta", fates[:, 2] != 0)):
            these = counts & chosen & here
            losses.add((name, where), int(these.sum()), int((these & is_lost).sum()))
