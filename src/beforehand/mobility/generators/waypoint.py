"""Random waypoint: every node walks to a random place, rests there, and walks to the next."""

from __future__ import annotations

import math

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions, join_points, make_positions


def generate(
    seed: int,
    *,
    nodes: int = 50,
    hours: float = 1,
    width_m: float = 1000,
    height_m: float = 1000,
    speed_min: float = 0.5,
    speed_max: float = 1.5,
    pause_s_max: float = 60,
) -> Positions:
    """Return `nodes` that are all present for `hours`; speed, pause and place are uniform.

    speed_min must be above zero. Otherwise ever slower legs would let the average speed decay for
    as long as the simulation lasts.
    """
    if nodes < 1 or min(hours, width_m, height_m, speed_min) <= 0:
        raise InputError("random waypoint needs positive numbers", hint="leave the parameters out")
    if speed_max < speed_min or pause_s_max < 0:
        raise InputError("a range ends below its start", hint="leave the parameters out")
    rng = np.random.Generator(np.random.PCG64(seed))
    end_s = hours * 3600
    rows: list[tuple[int, float, float, float]] = []
    for node in range(nodes):
        now_s, x, y = 0.0, rng.uniform(0, width_m), rng.uniform(0, height_m)
        rows.append((node, now_s, x, y))
        while now_s < end_s:
            goal_x, goal_y = rng.uniform(0, width_m), rng.uniform(0, height_m)
            leg_s = math.hypot(goal_x - x, goal_y - y) / rng.uniform(speed_min, speed_max)
            share = min((end_s - now_s) / leg_s, 1.0)
            x, y = x + (goal_x - x) * share, y + (goal_y - y) * share
            now_s = min(now_s + leg_s, end_s)
            rows.append((node, now_s, x, y))
            now_s = min(now_s + rng.uniform(0, pause_s_max), end_s)
            rows.append((node, now_s, x, y))
    ids, t_s, xs, ys = np.array(rows).T
    segments, _ = join_points(ids, np.rint(t_s * 1e6).astype(np.int64), xs, ys)
    return make_positions([str(node) for node in range(nodes)], segments)
