"""Convert the calls of a trip and its shape to a path in time and space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.mobility.formats.gtfs.tables import StopTime
from beforehand.mobility.repairs import Repairs

Floats = NDArray[np.float64]

MINUTE_S = 60.0
"""Timetables are rounded to this many seconds."""


@dataclass(frozen=True)
class Way:
    """The points that a vehicle passes in order, in seconds of the service day and metres."""

    t_s: Floats
    x: Floats
    y: Floats


def lengths_along(road: Floats) -> Floats:
    """Return the distance along the road to each of its points, in metres."""
    steps = np.diff(road, axis=0)
    return np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))])


def away_m(road: Floats, offsets: Floats, stops: Floats) -> float:
    """Return the largest distance between a stop and its place on the road, in metres."""
    along = lengths_along(road)
    x, y = np.interp(offsets, along, road[:, 0]), np.interp(offsets, along, road[:, 1])
    return float(np.hypot(x - stops[:, 0], y - stops[:, 1]).max())


def place_stops(road: Floats, stops: Floats) -> Floats:
    """Return the distance along the road of each stop, in metres; never decreasing.

    road, stops: shape (points, 2).

    The result keeps the order of the stops and minimises the sum of squared distances between stops
    and their places. Placing each stop at its nearest point fails on a road that passes a place
    twice; this does not.
    """
    starts, steps = road[:-1], np.diff(road, axis=0)
    lengths, along = np.hypot(steps[:, 0], steps[:, 1]), lengths_along(road)
    away = stops[:, None, :] - starts[None, :, :]
    squares = np.where(lengths > 0, lengths**2, 1.0)
    share = np.clip((away * steps).sum(axis=2) / squares, 0.0, 1.0)
    cost = ((away - share[:, :, None] * steps) ** 2).sum(axis=2)
    best, stays = cost.copy(), np.zeros(cost.shape, dtype=np.bool_)
    for stop in range(1, len(stops)):
        # The previous stop lies on an earlier piece or on the same one. On the same piece a step
        # back costs as much as moving the stop forward again.
        back = np.maximum(share[stop - 1] - share[stop], 0.0) * lengths
        same = best[stop - 1] + back**2
        earlier = np.append(np.inf, np.minimum.accumulate(best[stop - 1])[:-1])
        stays[stop] = same <= earlier
        best[stop] += np.minimum(same, earlier)
    piece = np.empty(len(stops), dtype=np.int64)
    piece[-1] = np.argmin(best[-1])
    for stop in range(len(stops) - 1, 0, -1):
        at = piece[stop]
        piece[stop - 1] = at if stays[stop, at] else np.argmin(best[stop - 1, :at])
    rows = np.arange(len(stops))
    placed: Floats = np.maximum.accumulate(along[piece] + share[rows, piece] * lengths[piece])
    return placed


def call_times(
    calls: Sequence[StopTime], offsets: Floats, repairs: Repairs
) -> tuple[Floats, Floats] | None:
    """Return arrival and departure of every call in seconds; None if the trip takes no time.

    calls: their times never fall, and the first and the last call have a time.

    Empty times are interpolated by distance (`interpolated_time`). A time in the same minute as the
    call before is interpolated too (`same_time`): a vehicle needs time to drive. A dwell time at
    such a call is kept.
    """
    known = [i for i, call in enumerate(calls) if call.arrival_s >= 0]
    kept = _anchors(calls, known)
    if len(kept) < 2:
        return None
    repairs.fill("interpolated_time", len(calls) - len(known))
    ends = (known[0], known[-1])
    standing = [at for at in kept if at.call in ends or at.is_of(calls[at.call])]
    repairs.fill("same_time", len(known) - len(standing))
    arrival, departure = np.empty(len(calls)), np.empty(len(calls))
    for earlier, later in pairwise(kept):
        i, j = earlier.call, later.call
        departure[i], arrival[j] = earlier.departure_s, later.arrival_s
        between = slice(i + 1, j)
        share = _shares(offsets[i : j + 1])[1:-1]
        arrival[between] = departure[i] + (arrival[j] - departure[i]) * share
        departure[between] = arrival[between]
    arrival[0], departure[-1] = calls[0].departure_s, calls[-1].arrival_s
    return arrival, departure


def drive(road: Floats, offsets: Floats, arrival_s: Floats, departure_s: Floats) -> Way:
    """Return the path along the road: constant speed between stops, at rest during a call."""
    along = lengths_along(road)
    at: list[Floats] = []
    times: list[Floats] = []
    for stop in range(len(offsets) - 1):
        low, high = offsets[stop], offsets[stop + 1]
        inner = along[(along > low) & (along < high)]
        passed = np.concatenate([[low, low], inner])
        share = (inner - low) / max(high - low, 1e-9)
        leaves = departure_s[stop]
        at.append(passed)
        times.append(
            np.concatenate(
                [[arrival_s[stop], leaves], leaves + share * (arrival_s[stop + 1] - leaves)]
            )
        )
    way_m = np.concatenate([*at, [offsets[-1]]])
    t_s = np.concatenate([*times, [arrival_s[-1]]])
    return Way(t_s, np.interp(way_m, along, road[:, 0]), np.interp(way_m, along, road[:, 1]))


class Anchor(NamedTuple):
    """A call whose time is fixed; times between anchors are interpolated."""

    call: int
    arrival_s: float
    departure_s: float

    def is_of(self, call: StopTime) -> bool:
        return self[1:] == (call.arrival_s, call.departure_s)


def _anchors(calls: Sequence[StopTime], known: Sequence[int]) -> list[Anchor]:
    """Return the anchors: each arrives later than the one before departs.

    A call may arrive when the one before departs and still have a dwell time. Then it arrives a
    minute later, or half its dwell time later if that is shorter. The same applies to a call that
    departs when the last one arrives.
    """
    start_s, end_s = calls[known[0]].departure_s, calls[known[-1]].arrival_s
    kept = [Anchor(known[0], start_s, start_s)]
    for i in known[1:-1]:
        arrival_s, departure_s = float(calls[i].arrival_s), calls[i].departure_s
        before_s = kept[-1].departure_s
        if arrival_s <= before_s:
            arrival_s = before_s + min(MINUTE_S, (departure_s - before_s) / 2)
        if arrival_s > before_s:
            kept.append(Anchor(i, arrival_s, departure_s))
    while len(kept) > 1 and kept[-1].departure_s >= end_s:
        i, arrival_s, _ = kept.pop()
        if arrival_s < end_s:
            leaves_s = end_s - min(MINUTE_S, (end_s - arrival_s) / 2)
            kept.append(Anchor(i, arrival_s, leaves_s))
    if kept[-1].departure_s < end_s:
        kept.append(Anchor(known[-1], end_s, end_s))
    return kept


def _shares(offsets: Floats) -> Floats:
    span = offsets[-1] - offsets[0]
    if span <= 0:
        return np.linspace(0.0, 1.0, len(offsets))
    shares: Floats = (offsets - offsets[0]) / span
    return shares
