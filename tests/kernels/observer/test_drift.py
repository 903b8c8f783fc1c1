from __future__ import annotations

import numpy as np
import pytest

from beforehand.kernels.observer import drift as kernel
from beforehand.sim.drift import Drift
from beforehand.sim.streams import stream_key, unit

KEY = np.uint64(stream_key(1, "test"))


def delays(law: str, count: int = 4000) -> np.ndarray:
    network = Drift(law=law, delta=20).network()
    return np.array([kernel.delay_units(KEY, 0, seq, 1, network) for seq in range(count)])


@pytest.mark.parametrize(
    ("law", "mean", "soonest", "lost"),
    [("half", 10.5, 0.0135, 0.0233), ("quarter", 5.6, 0.0328, 0.0)],
)
def test_delays_follow_the_law_of_the_paper(law, mean, soonest, lost):
    """N(δ/2, δ/4) and N(δ/4, δ/8): below 0 drawn again, above δ lost, rounded up to whole ticks."""
    drawn = delays(law)
    arrived = drawn[drawn != kernel.LOST]
    assert arrived.min() >= 1
    assert arrived.max() <= 20
    assert abs((drawn == kernel.LOST).mean() - lost) < 0.006
    assert abs(arrived.mean() - mean) < 0.3
    assert abs((drawn == 1).mean() - soonest) < 0.008


def test_a_delay_belongs_to_its_message_and_its_link():
    network = Drift().network()
    one = [kernel.delay_units(KEY, 3, seq, 1, network) for seq in range(50)]
    assert one == [kernel.delay_units(KEY, 3, seq, 1, network) for seq in range(50)]
    assert one != [kernel.delay_units(KEY, 3, seq, 2, network) for seq in range(50)]
    assert one != [kernel.delay_units(KEY, 4, seq, 1, network) for seq in range(50)]


@pytest.mark.parametrize("fan_out", [1, 2, 4])
def test_targets_are_distinct_peers_and_uniformly_drawn(fan_out):
    seen = np.zeros(5)
    for seq in range(4000):
        targets = kernel.targets_of(KEY, 2, seq, 5, fan_out)
        assert len(set(targets.tolist())) == fan_out
        seen[targets] += 1
    assert seen[2] == 0
    assert np.all(abs(np.delete(seen, 2) / 4000 - fan_out / 4) < 0.03)


def test_the_draws_are_those_of_the_named_streams():
    key = stream_key(1, "test")
    for draw in range(20):
        assert kernel.ticking_process(KEY, draw, 4) == int(unit(key, draw) * 5)
        assert kernel.sends_now(KEY, 3, draw, 0.5) == (unit(key, 3, draw) < 0.5)


@pytest.mark.parametrize("delay_clock", ["sender", "steps", "ticks"])
def test_a_run_keeps_both_guarantees(delay_clock):
    """G1 and G2 as the observer sees them: |rt - rt'| <= ε, and at most δ on the sender's clock."""
    spec = Drift(processes=6, epsilon=4, delta=7, rate=0.3, messages=2000, delay_clock=delay_clock)
    network = spec.network()
    world = kernel.new_state(spec.processes, spec.messages, network)
    kernel.run(world, spec.keys(), network)
    assert world.clock.max() - world.clock.min() <= spec.epsilon
    arrived = world.arrived[: world.tally[kernel.ARRIVED]]
    late = world.arrival[arrived] - world.r[arrived]
    assert late.min() >= -spec.epsilon
    assert late.max() <= spec.delta + spec.epsilon
    assert world.c.max() < spec.epsilon
    assert world.tally[kernel.IN_FLIGHT] == 0
    assert sorted(set(arrived.tolist())) == np.flatnonzero(world.arrival != kernel.LOST).tolist()
