"""Parse durations and distances as people write them, and format durations."""

from __future__ import annotations

import re
from fractions import Fraction

from beforehand.errors import InputError

# From long to short: the parts of `1h 22m` must come in this order.
UNITS_US = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
UNITS_M = {"km": 1_000, "m": 1}

DURATION_US_MAX = 2**63 - 1
"""Times are int64 in every dataset."""

DISTANCE_M_MAX = 10**8
"""2.5 times the Earth's circumference; squares and sums of it are exact enough in a float."""

DURATION_HINT = "write a number and a unit (us, ms, s, m, h, d): `90s`, `20m`, `1.5h`, `1h 22m`"
DISTANCE_HINT = "write a number and a unit (m, km): `200m`, `1.5km`"

NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
DURATION = re.compile(r"\s*".join(rf"(?:({NUMBER})\s*{unit})?" for unit in UNITS_US))
DISTANCE = re.compile(rf"({NUMBER})\s*(km|m)")


def parse_duration(text: str, *, positive: bool = False, where: str = "") -> int:
    """Return microseconds. Refuse a bare number, because the unit of `20` is unknown."""
    match = DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or not any(match.groups()):
        raise InputError(f"not a duration: `{text}`", where=where, hint=DURATION_HINT)
    parts = zip(match.groups(default="0"), UNITS_US.values(), strict=True)
    # Fractions, because 0.1h is not an exact number of microseconds in floating point.
    total_us = sum(Fraction(number) * unit_us for number, unit_us in parts)
    if total_us.denominator != 1:
        raise InputError(
            f"not a whole number of microseconds: `{text}`", where=where, hint=DURATION_HINT
        )
    if total_us > DURATION_US_MAX:
        raise InputError(f"too long: `{text}`", where=where, hint="at most 106751991 days")
    if positive and not total_us:
        raise InputError(f"must be longer than zero: `{text}`", where=where, hint=DURATION_HINT)
    return int(total_us)


def parse_distance(text: str, *, positive: bool = False, where: str = "") -> float:
    """Return metres."""
    match = DISTANCE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"not a distance: `{text}`", where=where, hint=DISTANCE_HINT)
    number, unit = match.groups()
    metres = Fraction(number) * UNITS_M[unit]
    if positive and not metres:
        raise InputError(f"must be longer than zero: `{text}`", where=where, hint=DISTANCE_HINT)
    if metres > DISTANCE_M_MAX:
        raise InputError(f"too far: `{text}`", where=where, hint=f"at most {DISTANCE_M_MAX} m")
    return float(metres)


def show_share(share: float | None) -> str:
    """Format a share in per cent; None gives a dash."""
    return "–" if share is None else f"{100 * share:.2f} %"


def show_duration(us: float | None) -> str:
    """Format microseconds like `format_duration`; None gives a dash."""
    return "–" if us is None else format_duration(round(us))


# (upper limit, rounding step, unit, unit of the remainder); longer durations are in days.
SHAPES = (
    (UNITS_US["ms"], 1, "us", None),
    (10 * UNITS_US["ms"], 100, "ms", None),
    (UNITS_US["s"], UNITS_US["ms"], "ms", None),
    (UNITS_US["m"], UNITS_US["s"] // 10, "s", None),
    (UNITS_US["h"], UNITS_US["s"], "m", "s"),
    (2 * UNITS_US["d"], UNITS_US["m"], "h", "m"),
)


def format_duration(us: int) -> str:
    """Format with about three digits, readable by `parse_duration`: `62ms`, `13.2s`, `1h 22m`."""
    if us < 0:
        return f"-{format_duration(-us)}"
    for below_us, step_us, unit, rest_unit in SHAPES:
        # Round before comparing, so that 59.97s becomes 1m and not 60s.
        rounded_us = _round(us, step_us)
        if rounded_us < below_us:
            return _show(rounded_us, unit, rest_unit)
    return _show(_round(us, UNITS_US["h"]), "d", "h")


def _round(us: int, step_us: int) -> int:
    return (us + step_us // 2) // step_us * step_us


def _show(us: int, unit: str, rest_unit: str | None) -> str:
    if rest_unit is None:
        return f"{us / UNITS_US[unit]:g}{unit}"
    whole, rest_us = divmod(us, UNITS_US[unit])
    rest = rest_us // UNITS_US[rest_unit]
    return f"{whole}{unit} {rest}{rest_unit}" if rest else f"{whole}{unit}"
