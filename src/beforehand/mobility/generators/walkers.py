"""Generate pedestrians in a small quarter: they enter by its streets, wander, and leave.

Poisson entries, speeds from a truncated normal distribution, no stops. The defaults are tuned to
the Östermalm pedestrians (OPP, Table IV); `docs/mobility.md` says how close they come.
"""

from __future__ import annotations

import itertools

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions, positions_of_points

STREETS = 4  # in each direction
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))
CLOSED = {(0, 1), (1, 2), (2, 2), (3, 1)}
"""Closed street ends as (heading, street) of entry: no walker enters or leaves there.

Twelve of the sixteen street ends are open, as at Östermalm, where 0.01 walkers a second enter at
each.
"""

SPEED_MIN, SPEED_MAX, SPEED_MEAN, SPEED_STDEV = 0.6, 2.0, 1.3, 0.3  # metres per second

Crossing = tuple[int, int]
Place = tuple[float, float]


def generate(
    seed: int,
    *,
    hours: float = 5,
    entries_per_s: float = 2092 / 18_000,
    block_m: float = 101,
    stub_m: float = 10,
    straight: float = 0.6,
) -> Positions:
    """Return walkers in a quarter of four by four streets with twelve entries, for `hours`.

    entries_per_s: over all entries.
    block_m: from crossing to crossing.
    stub_m: from the outermost crossing to the edge; a walker who turns outwards there leaves within
    seconds.
    straight: the probability of going straight on at a crossing; left and right share the rest.
    """
    if min(hours, entries_per_s, block_m, stub_m) <= 0 or not 0 < straight < 1:
        raise InputError("walkers need positive numbers", hint="leave the parameters out")
    rng = np.random.Generator(np.random.PCG64(seed))
    end_s = hours * 3600
    entries = [(h, s) for h in range(4) for s in range(STREETS) if (h, s) not in CLOSED]
    starts_s = np.sort(rng.uniform(0, end_s, rng.poisson(entries_per_s * end_s)))
    rows: list[tuple[int, float, float, float]] = []
    for walker, start_s in enumerate(starts_s.tolist()):
        heading, street = entries[int(rng.integers(len(entries)))]
        way = [_place(c, block_m, stub_m) for c in _wander(rng, heading, street, straight)]
        rows += [(walker, *point) for point in _until(_timed(way, start_s, _speed(rng)), end_s)]
    node, t_s, x, y = np.array(rows).reshape(-1, 4).T
    t_us = np.rint(t_s * 1e6).astype(np.int64)
    return positions_of_points([str(walker) for walker in range(len(starts_s))], node, t_us, x, y)


def _wander(rng: np.random.Generator, heading: int, street: int, straight: float) -> list[Crossing]:
    """Return the crossings from entry to exit; -1 and STREETS stand for the two edges."""
    dx, dy = HEADINGS[heading]
    edge = -1 if dx + dy > 0 else STREETS
    x, y = (edge, street) if dx else (street, edge)
    way = [(x, y)]
    while True:
        x, y = x + HEADINGS[heading][0], y + HEADINGS[heading][1]
        way.append((x, y))
        if not (0 <= x < STREETS and 0 <= y < STREETS):
            return way
        turns = [heading, (heading + 1) % 4, (heading + 3) % 4]
        odds = np.array([straight, (1 - straight) / 2, (1 - straight) / 2])
        odds *= [_is_open(x, y, turn) for turn in turns]
        heading = turns[int(rng.choice(3, p=odds / odds.sum()))]


def _is_open(x: int, y: int, heading: int) -> bool:
    dx, dy = HEADINGS[heading]
    inside = 0 <= x + dx < STREETS and 0 <= y + dy < STREETS
    # A walker leaves through an end in the opposite direction of a walker that enters there.
    return inside or ((heading + 2) % 4, y if dx else x) not in CLOSED


def _place(crossing: Crossing, block_m: float, stub_m: float) -> Place:
    def along(index: int) -> float:
        if index < 0:
            return 0.0
        edge = 2 * stub_m + (STREETS - 1) * block_m
        return edge if index == STREETS else stub_m + index * block_m

    return along(crossing[0]), along(crossing[1])


def _timed(way: list[Place], start_s: float, speed: float) -> list[tuple[float, float, float]]:
    points = [(start_s, *way[0])]
    for (x0, y0), (x, y) in itertools.pairwise(way):
        points.append((points[-1][0] + (abs(x - x0) + abs(y - y0)) / speed, x, y))
    return points


def _until(
    points: list[tuple[float, float, float]], end_s: float
) -> list[tuple[float, float, float]]:
    """Return the points up to `end_s`; the last leg is cut there."""
    for i in range(1, len(points)):
        (t0, x0, y0), (t1, x1, y1) = points[i - 1], points[i]
        if t1 > end_s:
            share = (end_s - t0) / (t1 - t0)
            return [*points[:i], (end_s, x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)]
    return points


def _speed(rng: np.random.Generator) -> float:
    while True:
        speed = float(rng.normal(SPEED_MEAN, SPEED_STDEV))
        if SPEED_MIN <= speed <= SPEED_MAX:
            return speed
