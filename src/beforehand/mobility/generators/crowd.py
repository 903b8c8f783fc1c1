"""Generate a crowd without a map: people arrive, meet at random and leave. Cheap and scalable.

The defaults give the numbers of the Östermalm pedestrians (PAPERS.md, OPP): population, length of
stay, frequency and duration of contacts. Pairs are drawn without geometry, so messages spread
faster than on streets; `walkers` has the geometry.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.mobility.trace import Ints, Trace, make_trace

Floats = NDArray[np.float64]

STAY_S_MIN, CONTACT_S_MIN = 7.8, 0.6
STAY_MAX, CONTACT_MAX = 5.9, 8.5  # times the mean
ROUNDS_MAX = 100


def generate(
    seed: int,
    *,
    nodes_mean: float = 2092,
    hours: float = 5,
    stay_s_mean: float = 329,
    stay_s_stdev: float = 252,
    contact_s_mean: float = 58,
    contact_s_stdev: float = 48.5,
    contact_every_s: float = 21.8,
) -> Trace:
    """Return Poisson arrivals over `hours`, gamma stays and contacts, meetings at a constant rate.

    contact_every_s: the mean time between the starts of two contacts of one node. It does not
    depend on the number of other nodes. So the contacts grow with `nodes_mean`, not with its
    square.
    """
    if min(nodes_mean, hours, stay_s_mean, contact_s_mean, contact_every_s) <= 0:
        raise InputError("a crowd needs positive numbers", hint="leave the parameters out")
    rng = np.random.Generator(np.random.PCG64(seed))
    end_s = hours * 3600
    entry_s = np.sort(rng.uniform(0, end_s, rng.poisson(nodes_mean)))
    stay_s = np.clip(
        _gamma(rng, stay_s_mean, stay_s_stdev, len(entry_s)), STAY_S_MIN, stay_s_mean * STAY_MAX
    )
    exit_s = np.minimum(entry_s + stay_s, end_s)
    # Each contact has two nodes, so each node starts half of its own.
    meetings = rng.poisson((exit_s - entry_s) / (2 * contact_every_s))
    a = np.repeat(np.arange(len(entry_s)), meetings)
    start_s = entry_s[a] + rng.random(len(a)) * (exit_s - entry_s)[a]
    b = _partners(rng, entry_s, exit_s, a, start_s)
    a, b, start_s = a[b >= 0], b[b >= 0], start_s[b >= 0]
    lasts_s = _gamma(rng, contact_s_mean, contact_s_stdev, len(a))
    lasts_s = np.clip(lasts_s, CONTACT_S_MIN, contact_s_mean * CONTACT_MAX)
    stop_s = np.minimum(start_s + lasts_s, np.minimum(exit_s[a], exit_s[b]))
    long_enough = stop_s - start_s >= CONTACT_S_MIN
    contacts = np.column_stack([a, b, _us(start_s), _us(stop_s)])[long_enough]
    presence = np.column_stack([np.arange(len(entry_s)), _us(entry_s), _us(exit_s)])
    presence = presence[presence[:, 1] < presence[:, 2]]
    names = [str(node) for node in range(len(entry_s))]
    # Two meetings of one pair may overlap. The generator drew them so; it is no repair to report.
    return dataclasses.replace(make_trace(names, contacts, presence), changes={})


def _gamma(rng: np.random.Generator, mean: float, stdev: float, count: int) -> Floats:
    return rng.gamma((mean / stdev) ** 2, stdev**2 / mean, count)


def _partners(
    rng: np.random.Generator, entry_s: Floats, exit_s: Floats, a: Ints, start_s: Floats
) -> Ints:
    """Return a partner for each meeting, uniform among the nodes present, or -1 if `a` is alone.

    Rejection sampling: a node that is present arrived within the longest stay, and many of the
    nodes that arrived since then are still present. After `ROUNDS_MAX` rounds without a match `a`
    counts as alone.
    """
    stay_s_max = (exit_s - entry_s).max(initial=0)
    newest = np.searchsorted(entry_s, start_s)
    oldest = np.searchsorted(entry_s, start_s - stay_s_max)
    b = np.full(len(a), -1)
    for _ in range(ROUNDS_MAX):
        open_ = np.flatnonzero(b < 0)
        drawn = rng.integers(oldest[open_], np.maximum(newest, oldest + 1)[open_])
        fits = (exit_s[drawn] > start_s[open_]) & (drawn != a[open_])
        b[open_[fits]] = drawn[fits]
    return b


def _us(seconds: Floats) -> Ints:
    return np.rint(seconds * 1e6).astype(np.int64)
