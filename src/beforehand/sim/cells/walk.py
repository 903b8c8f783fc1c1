"""The walks of hosts. They depend only on the seed and the host, not on what is sent."""

from __future__ import annotations

from math import cos, hypot, pi, sin

from beforehand.sim.cells.layout import StationGrid, place_hosts
from beforehand.sim.cells.spec import CellsSpec, Point
from beforehand.sim.streams import mix, stream_key, unit

ATTEMPTS_MAX = 64
"""How many directions a host tries at the edge of the covered area before it skips a step."""


class Walker:
    """Holds the position of each host in `at`, and moves it with `step`."""

    def __init__(self, spec: CellsSpec, seed: int, stations: StationGrid) -> None:
        self.at = place_hosts(spec, seed, stations)
        self._stations = stations
        self._stays_covered = spec.walk.stays_covered
        self._step_m = spec.walk.speed_m_s * spec.walk.step_us / 1e6
        self._steps_per_leg = max(1, spec.walk.turn_us // spec.walk.step_us)
        self._key = stream_key(seed, "cells/walk")
        self._steps = [0] * spec.hosts
        self._attempts = [0] * spec.hosts  # at a direction, in this leg
        self._routes = {route.host: list(route.points) for route in spec.routes}

    def step(self, host: int) -> Point:
        """Move the host by one step, and return its position."""
        if host in self._routes:
            self.at[host] = self._follow(self.at[host], self._routes[host])
        else:
            self.at[host] = self._roam(host)
        return self.at[host]

    def _follow(self, at: Point, points: list[Point]) -> Point:
        left_m = self._step_m
        while points:
            x_m, y_m = points[0]
            apart_m = hypot(x_m - at[0], y_m - at[1])
            if apart_m > left_m:
                part = left_m / apart_m
                return at[0] + part * (x_m - at[0]), at[1] + part * (y_m - at[1])
            left_m -= apart_m
            at = points.pop(0)
        return at

    def _roam(self, host: int) -> Point:
        leg, since = divmod(self._steps[host], self._steps_per_leg)
        self._steps[host] += 1
        if since == 0:
            self._attempts[host] = 0
        key = mix(mix(self._key, host), leg)
        x_m, y_m = self.at[host]
        for attempt in range(self._attempts[host], self._attempts[host] + ATTEMPTS_MAX):
            angle = 2 * pi * unit(key, attempt)
            ahead = (x_m + self._step_m * cos(angle), y_m + self._step_m * sin(angle))
            if not self._stays_covered or self._stations.nearest(*ahead) is not None:
                self._attempts[host] = attempt
                return ahead
        return x_m, y_m
