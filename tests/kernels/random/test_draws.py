from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels.random import draws
from beforehand.sim import streams

KEYS = st.integers(0, 2**64 - 1)
IDS = st.integers(-(2**63), 2**63 - 1)


@given(key=KEYS, value=IDS)
def test_mix_is_the_mix_of_the_streams(key, value):
    assert draws.mix(np.uint64(key), value) == streams.mix(key, value)


@given(key=KEYS, ids=st.lists(IDS, max_size=4))
def test_unit_after_mixing_is_the_unit_of_the_streams(key, ids):
    mixed = np.uint64(key)
    for value in ids:
        mixed = np.uint64(draws.mix(mixed, value))
    assert draws.unit(mixed) == streams.unit(key, *ids)


@given(key=KEYS)
def test_normal_is_made_of_two_draws_of_its_key(key):
    radius = math.sqrt(-2 * math.log(1 - streams.unit(key, 0)))
    expected = radius * math.cos(2 * math.pi * streams.unit(key, 1))
    assert math.isclose(draws.normal(np.uint64(key)), expected, abs_tol=1e-12)


def test_normal_draws_have_the_moments_of_the_law():
    key = np.uint64(streams.stream_key(1, "test"))
    drawn = np.array([draws.normal(np.uint64(draws.mix(key, i))) for i in range(20_000)])
    assert abs(drawn.mean()) < 0.03
    assert abs(drawn.std() - 1) < 0.02
    assert abs((drawn > 2).mean() - 0.0228) < 0.004
