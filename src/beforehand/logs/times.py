"""Read times: epochs in a unit, dates with zones, and dates in a given format."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds per unit of an epoch."""
LIMITS = (("s", 10**11), ("ms", 10**14), ("us", 10**17), ("ns", 10**20))
"""An epoch below the limit is in the unit: each unit covers the years 1973 to 5138 without
overlap."""


def time_of(value: Any, form: str = "") -> int | None:
    """Return nanoseconds since 1970, or None if the value is no time.

    form: a unit of `UNITS`, or a format of `strptime`; empty to accept ISO dates, and epochs whose
    unit follows from their size. A date without a zone is read as UTC. Other formats are never
    guessed. An epoch of 0 is no time: systems write it where a time is missing.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, datetime):
        return _ns(value)
    if form and form not in UNITS:
        try:
            return _ns(datetime.strptime(str(value), form))
        except ValueError:
            return None
    if isinstance(value, float | int) or _is_number(value):
        return _epoch(value, form)
    try:
        return None if form else _ns(datetime.fromisoformat(str(value).strip()))
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    text = str(value).strip()
    return text.replace(".", "", 1).removeprefix("-").isdigit() and text.isascii()


def _epoch(value: Any, form: str) -> int | None:
    try:
        whole = int(value)  # exact, where a float would lose nanoseconds
        rest = float(value) - whole if not isinstance(value, int) else 0.0
    except (ValueError, OverflowError):
        try:
            whole, rest = int(float(value)), float(value) % 1
        except (ValueError, OverflowError):
            return None
    if whole == 0 and rest == 0:
        return None
    unit = form or next((unit for unit, limit in LIMITS if abs(whole) < limit), "")
    if not unit:
        return None
    return whole * UNITS[unit] + int(rest * UNITS[unit])


def _ns(date: datetime) -> int:
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
