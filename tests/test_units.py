from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.errors import InputError
from beforehand.units import (
    DURATION_US_MAX,
    UNITS_US,
    format_duration,
    parse_distance,
    parse_duration,
)

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("90s", 90_000_000),
        ("20m", 1_200_000_000),
        ("2h", 2 * HOUR_US),
        ("1.5h", HOUR_US * 3 // 2),
        ("500ms", 500_000),
        ("250us", 250),
        ("1d", 24 * HOUR_US),
        ("0.1h", HOUR_US // 10),
        ("1h 22m", 82 * 60_000_000),
        ("1h22m", 82 * 60_000_000),
        (" 3 s ", 3_000_000),
        ("0s", 0),
    ],
)
def test_a_duration_is_a_whole_number_of_microseconds(text, us):
    assert parse_duration(text) == us
    assert type(parse_duration(text)) is int


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "20", "s", "-5s", "+5s", "5 minutes", "5M", "5m 3h", "1e3s", ".5s", "1,5h"),
        *("5s5s", "none", "inf", "nan", "٣s", "0.5us", "0.0000001s"),
        *("999999999999d", "9" * 5000 + "s"),
    ],
)
def test_an_invalid_duration_is_refused_with_a_hint(text):
    with pytest.raises(InputError) as refused:
        parse_duration(text, where="city.toml:3")
    assert refused.value.hint
    assert refused.value.where == "city.toml:3"


@pytest.mark.parametrize("text", ["0s", "0h 0m", "0.0ms"])
def test_zero_is_refused_where_a_length_is_needed(text):
    assert parse_duration(text) == 0
    with pytest.raises(InputError, match="longer than zero"):
        parse_duration(text, positive=True)


@given(st.integers(0, DURATION_US_MAX), st.sampled_from(list(UNITS_US)))
def test_a_whole_number_of_a_unit_is_formatted_as_written(number, unit):
    us = number * UNITS_US[unit]
    if us <= DURATION_US_MAX:
        assert parse_duration(f"{number}{unit}") == us
    else:
        with pytest.raises(InputError, match="too long"):
            parse_duration(f"{number}{unit}")


@given(st.text())
def test_any_text_is_a_duration_or_an_input_error(text):
    with contextlib.suppress(InputError):
        assert 0 <= parse_duration(text) <= DURATION_US_MAX


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0us"),
        (250, "250us"),
        (999, "999us"),
        (6_240, "6.2ms"),
        (62_400, "62ms"),
        (999_499, "999ms"),
        (999_500, "1s"),
        (13_200_000, "13.2s"),
        (59_949_999, "59.9s"),
        (59_970_000, "1m"),
        (125_000_000, "2m 5s"),
        (20 * 60_000_000, "20m"),
        (82 * 60_000_000, "1h 22m"),
        (2 * HOUR_US - 1, "2h"),
        (51 * HOUR_US, "2d 3h"),
        (-62_400, "-62ms"),
    ],
)
def test_a_duration_is_formatted_in_the_usual_notation(us, text):
    assert format_duration(us) == text


@given(st.integers(0, 2**62))
def test_a_formatted_duration_parses_back_within_its_rounding(us):
    # The coarsest step against its range: a tenth of a second at 1s, an hour at 1d.
    assert math.isclose(parse_duration(format_duration(us)), us, rel_tol=0.051)


@given(st.integers(0, 2**62))
def test_formatting_a_parsed_duration_is_idempotent(us):
    shown = format_duration(us)
    assert format_duration(parse_duration(shown)) == shown


@pytest.mark.parametrize(("text", "metres"), [("200m", 200.0), ("1.5km", 1500.0), ("0m", 0.0)])
def test_a_distance_is_metres(text, metres):
    assert parse_distance(text) == metres


@pytest.mark.parametrize("text", ["", "200", "-3m", "3 miles", "3cm", "infm", "1e3m"])
def test_an_invalid_distance_is_refused_with_a_hint(text):
    with pytest.raises(InputError) as refused:
        parse_distance(text)
    assert "200m" in refused.value.hint


def test_a_day_was_24_hours_on_the_page_and_one_day_on_the_terminal():
    assert format_duration(24 * HOUR_US) == "24h"
    assert format_duration(48 * HOUR_US) == "2d"
