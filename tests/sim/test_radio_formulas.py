"""The losses of the radio channel against their analytical values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from beforehand.sim.radio import Radio
from tests.sim.radio_play import Traffic
from tests.sim.radio_traffic import (
    SECOND_US,
    Losses,
    backlog,
    everybody,
    in_order,
    measure,
    placed,
    poisson,
)

APP_US = 1280  # of 148 bytes with the simple radio


def slotted(nodes: int, cw: int, rounds: int) -> float:
    """The share of frames that collide if slots count only while the channel is idle."""
    draws = np.random.default_rng(1)
    left = draws.integers(0, cw + 1, nodes)
    sent = lost = 0
    for _ in range(rounds):
        left -= left.min()
        first = left == 0
        count = int(first.sum())
        sent += count
        lost += count if count > 1 else 0
        left[first] = draws.integers(0, cw + 1, count)
    return lost / sent


@pytest.mark.parametrize("cw", [15, 31])
@pytest.mark.parametrize("nodes", [2, 5, 10, 20, 40])
def test_saturated_senders_collide_as_often_as_the_formula_predicts(nodes, cw):
    losses = Losses()
    seconds = 10 if nodes > 5 else 90  # few senders rarely collide: more is needed to see it
    traffic = Traffic(everybody(nodes), backlog(nodes, 400 * seconds, 148), seconds * SECOND_US)
    measure(losses, Radio(cw=cw), traffic, seed=1, warm_us=0)
    loss = losses.total()
    assert loss == pytest.approx(slotted(nodes, cw, 600 * seconds), rel=0.05)
    tau = 2 / (cw + 2)
    formula = 1 - (1 - tau) ** (nodes - 1)
    assert formula - 0.05 < loss < formula + 0.01


@pytest.mark.parametrize("mac", ["dcf", "csma", "none"])
@pytest.mark.parametrize("per_s", [20, 70, 150])
def test_a_hidden_pair_collides_as_often_as_the_formula_predicts(per_s, mac):
    losses = Losses()
    for seed in range(3):
        draws = np.random.default_rng(seed)
        until_us = 200 * SECOND_US
        requests = in_order(*(poisson(draws, node, 148, per_s, until_us) for node in (0, 2)))
        traffic = Traffic(placed([(0, 0), (100, 0), (200, 0)]), requests, until_us)
        measure(losses, Radio(mac=mac), traffic, seed=seed)
    load = per_s * APP_US / SECOND_US
    assert losses.total() == pytest.approx(1 - (1 - load) * math.exp(-load), rel=0.05)


@pytest.mark.parametrize("full_duplex", [False, True])
@pytest.mark.parametrize("nodes", [2, 5, 10])
def test_without_carrier_sense_a_frame_survives_as_often_as_the_formula_predicts(
    nodes, full_duplex
):
    """Every interferer must be idle at its start and start nothing during it. With full duplex a
    receiver is not one of the interferers."""
    losses = Losses()
    for seed in range(3):
        draws = np.random.default_rng(seed)
        until_us = 1000 // nodes * SECOND_US
        requests = in_order(*(poisson(draws, node, 148, 20, until_us) for node in range(nodes)))
        traffic = Traffic(everybody(nodes), requests, until_us)
        measure(losses, Radio(mac="none", full_duplex=full_duplex), traffic, seed=seed)
    load = 20 * APP_US / SECOND_US
    interferers = nodes - 1 - full_duplex
    expected = 1 - ((1 - load) * math.exp(-load)) ** interferers
    assert losses.total() == pytest.approx(expected, rel=0.05)
