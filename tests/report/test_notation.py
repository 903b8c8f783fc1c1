"""Numbers look as in the papers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.papers.opportunistic import read_paper
from beforehand.report.notation import (
    TIMES_US,
    In,
    show_clock,
    show_count,
    show_difference,
    show_interval,
    show_lifetime,
    show_plain,
    show_points,
    show_ratio,
    show_time,
    unit_of,
)

S, M, H = 1_000_000, 60_000_000, 3_600_000_000


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0"),
        (350, "0.35 ms"),
        (4_000, "4 ms"),
        (62_000, "62 ms"),
        (200_000, '0.2"'),
        (500_000, '0.5"'),
        (7.6 * S, '7.6"'),
        (13 * S, '13"'),
        (59.94 * S, '59.9"'),
        (59.97 * S, "1'"),
        (63 * S, "1'03\""),
        (43 * M + 50 * S, "43'50\""),
        (59 * M + 59.7 * S, "1h"),
        (60 * M, "1h"),
        (1 * H + 22 * M, "1h22'"),
        (H + 59 * M + 56 * S, "1h59'56\""),
        (H + 5 * S, "1h00'05\""),
        (-90 * S, "-1'30\""),
    ],
)
def test_times_are_written_in_hours_and_marks(us, text):
    assert show_time(us) == text


@given(st.integers(0, 20 * H))
def test_a_time_reads_back_to_within_its_last_digit(us):
    text = show_time(us)
    assert reread(text) == pytest.approx(us, abs=0.5 * S if us > M else 0.05 * S)
    if "'" in text:
        assert int(text.split("h")[-1].split("'")[0]) < 60
    if '"' in text:
        assert float(text.split("'")[-1].rstrip('"')) < 60


def test_lifetimes_stay_minutes_above_the_hour():
    assert [show_lifetime(us) for us in (None, 120 * M, 20 * M, 90 * S)] == [
        "none",
        "120'",
        "20'",
        "1'30\"",
    ]


def test_counts_ratios_and_times_of_day_are_formatted():
    assert show_count(1_475_328.4) == "1,475,328"
    assert show_ratio(0.99994) == "99.99 %"
    assert show_clock(5 * H + 30 * M) == "05:30"
    assert show_clock(5 * H + 59.6 * M) == "06:00"


def test_plain_numbers_have_three_significant_digits_and_no_exponent():
    values = (0, 0.00123, 0.5, 9.876, 44.94, 312, 12_345.6, float("nan"))
    assert [show_plain(value) for value in values] == [
        *("0", "0.00123", "0.500", "9.88", "44.9", "312", "12,346", "–")
    ]


@pytest.mark.parametrize(
    ("values", "unit"),
    [([], "ms"), ([0], "ms"), ([900], "ms"), ([2_000, 3e6], "s"), ([119e6], "s"), ([9e9], "h")],
)
def test_the_largest_value_decides_the_unit_of_a_column(values, unit):
    assert unit_of(values, TIMES_US)[0] == unit


@pytest.mark.parametrize(
    ("ours", "published", "text"),
    [
        (110, 100, "+10.0 %"),
        (90, 100, "−10.0 %"),
        (200, 100, "+100.0 %"),
        (201, 100, "×2.01"),
        (100.01, 100, "±0"),
        (4, 0, "+4"),
        (0, 0, "±0"),
        (0, 5, "−100.0 %"),
    ],
)
def test_a_difference_is_a_share_or_a_factor(ours, published, text):
    assert show_difference(ours, published) == text


def test_ratios_differ_in_points():
    assert show_points(0.9621, 0.9519) == "+1.02 pt"
    assert show_points(0.99, 0.9906) == "−0.06 pt"
    assert show_points(0.99996, 1) == "±0"


@pytest.mark.parametrize("key", ["opp-buses", "opp-ostermalm"])
def test_no_published_time_loses_digits_when_it_is_shown(key):
    for row in read_paper(key).runs.values():
        for name, value in row.items():
            if "_us_" in name:
                assert reread(show_time(value)) == value


def reread(text):
    if text.endswith(" ms"):
        return float(text[:-3]) * 1000
    total = 0.0
    for mark, unit in (("h", H), ("'", M), ('"', S)):
        if mark in text:
            number, _, text = text.partition(mark)
            total += float(number) * unit
    return total


@pytest.mark.parametrize(
    ("value", "margin", "show", "texts"),
    [
        (104_117, 1_234, show_count, ("104,100", "± 1,200")),
        (104_117, 12.4, show_count, ("104,117", "± 12")),
        (104_117, 0.3, show_count, ("104,117", "± 0.30")),
        (104_117, None, show_count, ("104,117", "")),
        (0.98345, 0.0123, show_ratio, ("98.3 %", "± 1.2 %")),
        (0.98345, 0.1234, show_ratio, ("98 %", "± 12 %")),
        (0.98347, 0.0001, show_ratio, ("98.35 %", "± 0.010 %")),
        (186_000, 90_300, In(1_000), ("186", "± 90")),
        (44.94 * 60e6, 1.24 * 60e6, In(60e6), ("44.9", "± 1.2")),
        (44.94 * 60e6, 12.4 * 60e6, In(60e6), ("45", "± 12")),
        (1.0 * 60e6, 60, In(60e6), ("1.00", "± 0.0000010")),
        (float("nan"), None, In(60e6), ("–", "")),
    ],
)
def test_a_mean_is_rounded_to_what_its_interval_allows(value, margin, show, texts):
    assert show_interval(value, margin, show) == texts


def test_a_lifetime_of_a_day_was_1440_minutes():
    assert show_lifetime(24 * 3600 * 1_000_000) == "24h"
    assert show_lifetime(2 * 3600 * 1_000_000) == "120'"
