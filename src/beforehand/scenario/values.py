"""Parsers for the values in a scenario file; each returns the value or raises InputError."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import isfinite

from beforehand.errors import InputError, choose
from beforehand.units import parse_distance, parse_duration

Parse = Callable[[object], object]
"""Return the value as the simulator needs it, or raise InputError."""

BYTES = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*(B|kB|MB|GB|)")
SIZE_HINT = "write a number and a unit (B, kB, MB, GB): `200B`, `16kB`; without one it is bytes"
RATE_HINT = "write bytes per second, or bits: `1MB/s`, `125kB/s`, `250kbit/s`, or `endless`"
BITS = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*(bit|kbit|Mbit|Gbit)/s")
BIT_UNITS = {"bit": 1, "kbit": 1_000, "Mbit": 1_000_000, "Gbit": 1_000_000_000}
PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,20})?)\s*%")
RETRY_US_MIN = 1_000
SAMPLE_US_MIN = 1_000_000
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"not a text: `{value}`", hint='write it in quotes: `"like this"`')
    return value


def line(value: object) -> str:
    """Return a text without line breaks: a title is one line of a terminal and of a page."""
    if len(text(value).splitlines()) > 1:
        raise InputError(f"a text of several lines: {value!r}", hint="write it in one line")
    return text(value)


def plain_name(value: object) -> str:
    """Return a name that can be part of a path on any system."""
    if not NAME.fullmatch(text(value)):
        raise InputError(
            f"not a plain name: `{value}`", hint="use small letters, digits, `-`, `.` and `_`"
        )
    return text(value)


def duration(value: object) -> int:
    return parse_duration(_with_unit(value, "20s"))


def positive_duration(value: object) -> int:
    return parse_duration(_with_unit(value, "20s"), positive=True)


def retry(value: object) -> int:
    """Return a retry time of at least 1 ms: no link can answer sooner."""
    retry_us = positive_duration(value)
    if retry_us < RETRY_US_MIN:
        raise InputError(f"shorter than any answer takes: `{value}`", hint="write at least `1ms`")
    return retry_us


def sample_period(value: object) -> int:
    """Return a sampling period of at least 1 s: a shorter one gives too many samples a day."""
    period_us = positive_duration(value)
    if period_us < SAMPLE_US_MIN:
        raise InputError(f"a shorter interval than allowed: `{value}`", hint="write at least `1s`")
    return period_us


def distance(value: object) -> float:
    return parse_distance(_with_unit(value, "200m"), positive=True)


def size(value: object) -> int:
    """Return a size in bytes; without a unit the number is bytes."""
    match = None if isinstance(value, bool) else SIZE.fullmatch(str(value).strip())
    if match is None:
        raise InputError(f"not a size: `{value}`", hint=SIZE_HINT)
    total = Fraction(match[1]) * BYTES[match[2] or "B"]
    if total >= 2**63:
        raise InputError(f"too large: `{value}`", hint=SIZE_HINT)
    if total.denominator != 1:
        raise InputError(f"not a whole number of bytes: `{value}`", hint=SIZE_HINT)
    return int(total)


def rate(value: object) -> int | None:
    """Return a rate in bytes per second; None for `endless`."""
    shown = str(value).strip()
    if shown == "endless":
        return None
    if match := BITS.fullmatch(shown):
        bits = Fraction(match[1]) * BIT_UNITS[match[2]]
        if bits % 8:
            raise InputError(f"not a whole number of bytes per second: `{value}`", hint=RATE_HINT)
        shown = str(bits // 8)
    if not shown.endswith("/s") and not shown.isdecimal():
        raise InputError(f"not a bandwidth: `{value}`", hint=RATE_HINT)
    per_s = size(shown.removesuffix("/s"))
    if not per_s:
        raise InputError(f"nothing would ever arrive: `{value}`", hint=RATE_HINT)
    return per_s


def share(value: object) -> float:
    """Return a share from 0 to below 1, written as a number or in per cent."""
    found = float(Fraction(match[1]) / 100) if (match := _percent(value)) else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1:
        hint = "write a number from 0 to below 1, or per cent: `0.1`, `10%`"
        raise InputError(f"not a share: `{value}`", hint=hint)
    return float(found)


def _percent(value: object) -> re.Match[str] | None:
    return PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None


def whole(least: int, most: int = 2**63 - 1) -> Parse:
    """Return a parser of integers from `least` to `most`."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"not a whole number from {least} on: `{value}`")
        if value > most:
            raise InputError(f"too large: `{value}`", hint=f"at most {most}")
        return value

    return parse


def number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"not a number: `{value}`", hint="write it without quotes and units")
    return value


def switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"neither `true` nor `false`: `{value}`")
    return value


def one_of(*choices: str) -> Parse:
    def parse(value: object) -> str:
        if value not in choices:
            raise InputError(f"no such choice: `{value}`", hint=choose(str(value), choices))
        return str(value)

    return parse


def list_of(parse: Parse) -> Parse:
    """Return a parser of non-empty lists without duplicates."""

    def parse_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not value:
            raise InputError(f"not a list of at least one value: `{value}`", hint="write `[...]`")
        items = tuple(parse(item) for item in value)
        if len(set(items)) < len(items):
            raise InputError(f"a value occurs twice: `{value}`")
        return items

    return parse_list


def _with_unit(value: object, example: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"a number without a unit: `{value}`", hint=f'write it as `"{example}"`')
    return value
