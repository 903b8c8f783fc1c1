"""The initial positions of stations and hosts, and the wires between stations."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin, sqrt

from beforehand.sim.cells.spec import CellsSpec, Point
from beforehand.sim.streams import mix, stream_key, unit

DEGREE = 3
"""The degree of the tree of stations (MOB section 5): the most wires that a station has."""
STEPS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))
"""The steps to the six adjacent lattice points, in lattice coordinates."""


def lattice(stations: int, range_m: float) -> tuple[Point, ...]:
    """Return the positions of stations: one in the centre, and rings around it.

    Hexagons whose corners are one range away tile the plane. So cells overlap as little as possible
    without leaving holes."""
    spacing_m = sqrt(3.0) * range_m
    places = [(0, 0)]
    ring = 0
    while len(places) < stations:
        ring += 1
        q, r = -STEPS[1][0] * ring, -STEPS[1][1] * ring
        for dq, dr in STEPS:
            for _ in range(ring):
                places.append((q, r))
                q, r = q + dq, r + dr
    return tuple(
        (spacing_m * (q + r / 2), spacing_m * r * sqrt(3.0) / 2) for q, r in places[:stations]
    )


def tree(stations: int) -> tuple[tuple[int, int], ...]:
    """Return the edges of a tree that is filled level by level: three children of the root, two of
    every other station."""
    edges = []
    parent, free = 0, DEGREE
    for station in range(1, stations):
        if not free:
            parent, free = parent + 1, DEGREE - 1
        edges.append((parent, station))
        free -= 1
    return tuple(edges)


class StationGrid:
    """The positions of all stations, with an index of those that may be in range of a position."""

    def __init__(self, at: Sequence[Point], range_m: float) -> None:
        self.at = at
        self.range_m = range_m
        # A square is wider than the range by more than any rounding. So all stations in range of a
        # position are in its square or in one next to it.
        self._square_m = 1.001 * range_m
        self._near: dict[tuple[int, int], list[tuple[int, float, float]]] = {}
        for station, (x_m, y_m) in enumerate(at):
            column, row = self._square(x_m, y_m)
            for x in (column - 1, column, column + 1):
                for y in (row - 1, row, row + 1):
                    self._near.setdefault((x, y), []).append((station, x_m, y_m))

    def nearest(self, x_m: float, y_m: float) -> int | None:
        """Return the nearest station in range, or None; of two, the first."""
        best_m2, best = self.range_m**2, None
        for station, station_x_m, station_y_m in self._near.get(self._square(x_m, y_m), ()):
            apart_m2 = (x_m - station_x_m) ** 2 + (y_m - station_y_m) ** 2
            if apart_m2 < best_m2 or (best is None and apart_m2 == best_m2):
                best_m2, best = apart_m2, station
        return best

    def is_in_range(self, station: int, x_m: float, y_m: float) -> bool:
        at = self.at[station]
        return (x_m - at[0]) ** 2 + (y_m - at[1]) ** 2 <= self.range_m**2

    def _square(self, x_m: float, y_m: float) -> tuple[int, int]:
        return int(x_m // self._square_m), int(y_m // self._square_m)


def place_hosts(spec: CellsSpec, seed: int, stations: StationGrid) -> list[Point]:
    """Return the positions of hosts. They are drawn by key: a host's place does not depend on the
    number of others."""
    if spec.hosts_at is not None:
        return list(spec.hosts_at)
    key = stream_key(seed, "cells/placement")
    return [_place(spec, mix(key, host), host, stations) for host in range(spec.hosts)]


def _place(spec: CellsSpec, key: int, host: int, stations: StationGrid) -> Point:
    """Return a uniform position in the disc of a station, nearer to it than to all other stations.

    A position that is nearer to another station is rejected and drawn again. These parts of the
    discs tile the area, so a position that is uniform in each part is uniform in the area."""
    attempt = 0
    while True:
        if spec.placement == "cells":
            station = host % len(stations.at)
        else:
            station = int(unit(key, attempt, 2) * len(stations.at))
        radius_m = spec.range_m * sqrt(unit(key, attempt, 0))
        angle = 2 * pi * unit(key, attempt, 1)
        x_m, y_m = stations.at[station]
        at = (x_m + radius_m * cos(angle), y_m + radius_m * sin(angle))
        if stations.nearest(*at) == station:
            return at
        attempt += 1
