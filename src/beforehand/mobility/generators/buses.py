"""Generate a day of city buses: lines across a town through one central square, by a timetable.

Each line runs from a suburb through the square to another suburb and back. Its buses follow each
other at even intervals and stop every few hundred metres. They wait at the square for transfers and
rest briefly at both ends. Most buses run all day; some run half a day, and a few (school buses) an
hour or a few. The defaults are tuned to the buses of Vannes (OPP, Table I); `docs/mobility.md` says
how close they come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions, join_points, make_positions

Floats = NDArray[np.float64]

DAY_START_H, DAY_END_H = 5.5, 19.75
ALL_DAY_H_MIN, ALL_DAY_H_MAX = 11.4, 14.13
# Hours of service. Half days start in the early morning or last to the end of the day. School buses
# start just before school or at lunch.
HALF_DAYS_EARLY, HALF_DAYS_LATE = (6.5,), (6.8, 7.2, 7.6, 8.0, 8.4)
SCHOOL_EARLY, SCHOOL_LATE = (26 / 60, 2.5, 4.0), (1.5, 2.5, 3.5, 4.5, 5.5)

WANDER = 0.05  # standard deviation of a road's heading per stop, in radians
PACE_STDEV = 0.05  # relative standard deviation of the speed of a whole trip


@dataclass(frozen=True)
class _Line:
    """One line: its stops from end to end, and the first departure from the first stop."""

    stops: Floats
    square: int  # index of the central square
    half_s: float  # from departure at one end to departure at the other
    phase_s: float


@dataclass(frozen=True)
class _Pace:
    stop_m: float
    speed: float
    stop_s: float
    square_s: float
    rest_s: float


def generate(
    seed: int,
    *,
    lines_count: int = 7,
    all_day_buses: int = 46,
    arm_m_min: float = 3450,
    arm_m_max: float = 6100,
    stop_m: float = 350,
    speed: float = 8,
    stop_s: float = 20,
    square_s: float = 175,
    rest_s: float = 240,
) -> Positions:
    """Return the buses of one day, in microseconds since midnight, with the square at (0, 0).

    arm_m_min, arm_m_max: from the square to the ends of the lines.
    stop_m: the distance between stops.
    speed: between stops, in m/s.
    stop_s, square_s, rest_s: the time at a stop, at the square, at an end.
    """
    pace = _Pace(stop_m, speed, stop_s, square_s, rest_s)
    if lines_count < 1 or all_day_buses < 0 or arm_m_max < arm_m_min or arm_m_min < 2 * stop_m:
        raise InputError("no town has such bus lines", hint="leave the parameters out")
    if min(stop_m, speed) <= 0 or min(stop_s, square_s, rest_s) < 0:
        raise InputError("buses need positive numbers", hint="leave the parameters out")
    rng = np.random.Generator(np.random.PCG64(seed))
    town = _lines(rng, lines_count, arm_m_min, arm_m_max, pace)
    regular, school = _shifts(rng, all_day_buses)
    names: list[str] = []
    days: list[tuple[Floats, Floats, Floats]] = []
    for bus, shift in enumerate(regular):
        line, slot = bus % lines_count, bus // lines_count
        slots = len(range(line, len(regular), lines_count))
        names.append(f"L{line + 1}-{slot + 1}")
        days.append(_day(rng, town[line], slot / slots, shift, pace))
    for bus, shift in enumerate(school):
        line = int(rng.integers(lines_count))
        slots = len(range(line, len(regular), lines_count)) or 1
        names.append(f"S{bus + 1}")
        # Halfway between two regular buses, so that it does not run beside one of them all day.
        days.append(_day(rng, town[line], (bus + 0.5) / slots, shift, pace))
    node = np.repeat(np.arange(len(days)), [len(day[0]) for day in days])
    t_s, x, y = (np.concatenate([day[i] for day in days]) for i in range(3))
    segments, _ = join_points(node, np.rint(t_s * 1e6).astype(np.int64), x, y)
    return make_positions(names, segments)


def _lines(
    rng: np.random.Generator, count: int, arm_m_min: float, arm_m_max: float, pace: _Pace
) -> list[_Line]:
    # Lengths are evenly spaced and only shuffled, so that every seed has the same total length.
    lengths = rng.permutation(np.linspace(arm_m_min, arm_m_max, 2 * count))
    turn = rng.uniform(0, 2 * math.pi)
    town = []
    for line in range(count):
        angle = turn + math.pi * line / count
        one = _arm(rng, angle, lengths[2 * line], pace.stop_m)
        other = _arm(rng, angle + math.pi, lengths[2 * line + 1], pace.stop_m)
        stops = np.vstack([one[::-1], other[1:]])
        moving_s = (len(stops) - 1) * pace.stop_m / pace.speed
        half_s = moving_s + (len(stops) - 3) * pace.stop_s + pace.square_s + pace.rest_s
        town.append(_Line(stops, len(one) - 1, half_s, rng.uniform(0, 2 * half_s)))
    return town


def _arm(rng: np.random.Generator, angle: float, length_m: float, stop_m: float) -> Floats:
    """Return the stops from the square outwards; the road strays and returns to its heading."""
    steps = max(round(length_m / stop_m), 1)
    headings = np.empty(steps)
    heading = angle
    for i in range(steps):
        heading = angle + 0.7 * (heading - angle) + rng.normal(0, WANDER)
        headings[i] = heading
    moves = stop_m * np.column_stack([np.cos(headings), np.sin(headings)])
    return np.vstack([np.zeros((1, 2)), np.cumsum(moves, axis=0)])


def _shifts(
    rng: np.random.Generator, all_day_buses: int
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return start and end of service in hours: of regular buses, shuffled, and of school buses."""
    regular: list[tuple[float, float]] = []
    for i, hours in enumerate(np.linspace(ALL_DAY_H_MAX, ALL_DAY_H_MIN, all_day_buses).tolist()):
        # The longest shift starts the day and the second longest ends it.
        share = 0.0 if i == 0 else 1.0 if i == 1 else rng.random()
        start = DAY_START_H + share * (DAY_END_H - DAY_START_H - hours)
        regular.append((start, start + hours))
    for hours in HALF_DAYS_EARLY:
        start = 6.0 + 0.4 * rng.random()
        regular.append((start, start + hours))
    for hours in HALF_DAYS_LATE:
        end = DAY_END_H - 0.2 * rng.random()
        regular.append((end - hours, end))
    school = [(6.9, hours) for hours in SCHOOL_EARLY] + [(13.0, hours) for hours in SCHOOL_LATE]
    starts = [earliest + 0.5 * rng.random() for earliest, _ in school]
    order = rng.permutation(len(regular)).tolist()
    return [regular[i] for i in order], [
        (start, start + hours) for start, (_, hours) in zip(starts, school, strict=True)
    ]


def _day(
    rng: np.random.Generator, line: _Line, slot: float, shift: tuple[float, float], pace: _Pace
) -> tuple[Floats, Floats, Floats]:
    """Return time, x and y of a bus in its slot (a share of the round) of the line's timetable."""
    start_s, end_s = shift[0] * 3600, shift[1] * 3600
    first_s = line.phase_s + slot * 2 * line.half_s
    trip = math.floor((start_s - first_s) / line.half_s)
    now_s = first_s + trip * line.half_s
    times: list[Floats] = []
    ways: list[Floats] = []
    while now_s < end_s:
        due_s = first_s + trip * line.half_s
        is_back = trip % 2 == 1
        t_s = max(due_s, now_s) + _trip(rng, len(line.stops), line.square, is_back, pace)
        stops = line.stops[::-1] if is_back else line.stops
        times.append(t_s)
        ways.append(np.repeat(stops, 2, axis=0))
        now_s, trip = float(t_s[-1]), trip + 1
    t, xy = np.concatenate(times), np.concatenate(ways)
    # A shift starts and ends at an exact time, anywhere on the line.
    inside = t[(t > start_s) & (t < end_s)]
    t_cut = np.concatenate([[start_s], inside, [end_s]])
    return t_cut, np.interp(t_cut, t, xy[:, 0]), np.interp(t_cut, t, xy[:, 1])


def _trip(rng: np.random.Generator, stops: int, square: int, is_back: bool, pace: _Pace) -> Floats:
    """Return arrival and departure at every stop, in seconds from the first departure."""
    wait_s = pace.stop_s * rng.uniform(0.5, 1.5, stops)
    wait_s[stops - 1 - square if is_back else square] = pace.square_s * rng.uniform(0.8, 1.2)
    wait_s[[0, -1]] = 0
    leg_s = pace.stop_m / (pace.speed * np.clip(1 + rng.normal(0, PACE_STDEV), 0.8, 1.2))
    arrival = np.arange(stops) * leg_s + np.cumsum(wait_s) - wait_s
    return np.column_stack([arrival, arrival + wait_s]).ravel()
