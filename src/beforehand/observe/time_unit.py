"""Decide the unit of whole-number times: from the user, from their size, or by default.

Times of this century, counted from 1970, have disjoint ranges in seconds, milliseconds,
microseconds and nanoseconds. If nearly all values lie in one range, the unit is known. If it is
not microseconds, the user must confirm it: 2,000 s of a simulation in microseconds look like 2033
in seconds. If the size is not conclusive, the reader reports which unit it assumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from beforehand.errors import InputError

TimeUnit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
DEFAULT: TimeUnit = "us"
NAMES: dict[TimeUnit, str] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
SECONDS_SINCE_1970 = (946_684_800, 4_102_444_800)
"""The years 2000 to 2099."""
NEARLY_ALL = 0.9


def span(unit: TimeUnit) -> tuple[int, int]:
    """Return the first and the last whole number of this unit that is a time of this century."""
    first, end = (seconds * PER_SECOND[unit] for seconds in SECONDS_SINCE_1970)
    return first, end - 1


def decide(
    columns: Mapping[str, tuple[int, Mapping[TimeUnit, int]]],
    unit: TimeUnit,
    where: str,
    *,
    is_asked: bool,
    flag: str = "--time-unit ",
) -> bool:
    """Return whether nearly all values of some column are times of this century in this unit.

    Raise InputError if the user gave no unit and the values look like another one.

    columns: by name, the number of values, and how many lie in the span of each unit.
    is_asked: whether the user gave the unit.
    flag: the flag before the unit, for the hint.
    """
    are_dates = False
    for name, (total, counts) in columns.items():
        enough = NEARLY_ALL * max(total, 1)
        if counts[unit] >= enough:
            are_dates = True  # values in another unit are rejected row by row
        elif sum(counts.values()) >= enough and not is_asked:
            found = [unit for unit in UNITS if counts[unit]]
            looks = " and ".join(NAMES[unit] for unit in found)
            problem = f"`{name}` is whole numbers that look like {looks} since 1970"
            hint = f"if they are, pass `{flag}{found[0]}`; if not, `{flag}{unit}`"
            if len(found) > 1:
                hint = "write all of them in one unit"
            raise InputError(problem, where=where, hint=hint)
    return are_dates
