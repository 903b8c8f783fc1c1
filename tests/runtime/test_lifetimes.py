"""A lifetime is a text with units, a timedelta, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from beforehand.errors import InputError
from beforehand.runtime.group import LONGEST_US, read_lifetime


@pytest.mark.parametrize(
    ("lifetime", "us"),
    [
        ("20m", 1_200_000_000),
        (timedelta(minutes=20), 1_200_000_000),
        (1200, 1_200_000_000),
        (0.25, 250_000),
        (timedelta(days=30), LONGEST_US),
    ],
)
def test_three_forms_of_a_lifetime_are_read(lifetime, us):
    assert read_lifetime(lifetime) == us


@pytest.mark.parametrize(
    ("lifetime", "problem"),
    [
        *((wrong, "not a lifetime") for wrong in (0, -1, True, None, float("nan"), float("inf"))),
        (timedelta(0), "not a lifetime"),
        ("20", "not a duration"),
        (timedelta(days=31), "too long a lifetime"),
        (1e300, "too long a lifetime"),
    ],
)
def test_a_lifetime_without_a_unit_or_sense_is_refused(lifetime, problem):
    with pytest.raises(InputError, match=problem):
        read_lifetime(lifetime)
