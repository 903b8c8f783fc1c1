"""The table of claims of all papers, and its judge."""

import math

import msgspec
import pytest

from beforehand.errors import InputError
from beforehand.papers.claims import Claim, _read_table, find_claim, judge, read_claims, read_source
from beforehand.report.mobile.claims import ANSWERS
from beforehand.report.vcube.statements import STATEMENTS

PAGES = ("observer", "mobile", "vcube", "opportunistic")
PAPERS = {"observer": {"OBS"}, "mobile": {"MOB", "MOB-TR"}, "vcube": {"VCU"}}
SINGLE = {"between", "ranked", "beside", "near"}
"""The comparisons that take the value of a claim as it is."""


def claim(comparison, **fields):
    given = {"key": "k", "paper": "MOB", "figure": "6", "text": "words", "comparison": comparison}
    return msgspec.convert({**given, **fields}, Claim)


@pytest.mark.parametrize("page", PAGES)
def test_each_claim_names_its_source_and_its_range(page):
    claims = read_claims(page)
    keys = [claim.key for claim in claims]
    assert len(set(keys)) == len(keys) > 0
    for found in claims:
        assert found.paper in PAPERS.get(page, {"OPP"})
        assert found.figure
        assert found.text
        assert (found.points is not None) == (page == "observer")
        assert found.points is not None or found.comparison in SINGLE
        if found.comparison in ("between", "apart", "ratio"):
            assert (found.low, found.high) != (None, None)
            assert found.low is None or found.high is None or found.low <= found.high
        if found.comparison == "near":
            assert (found.share_off is None) != (found.points_off is None)
        assert (found.published is not None) == (found.comparison == "beside")


def test_each_claim_that_a_function_measures_has_one_and_each_function_a_claim():
    assert {claim.key for claim in read_claims("mobile")} == ANSWERS.keys()
    stated = {claim.key for claim in read_claims("vcube") if claim.comparison == "beside"}
    assert stated == STATEMENTS.keys()
    assert "hal-02652082" in read_source("mobile")


@pytest.mark.parametrize(
    ("low", "high", "value", "judgement", "bounds"),
    [
        (10, 20, 10, "held", "10 to 20"),
        (10, 20, 20.1, "not held", "10 to 20"),
        (10, 20, 9.9, "not held", "10 to 20"),
        (20, None, 1e9, "held", "at least 20"),
        (20, None, 19, "not held", "at least 20"),
        (None, 5, -1, "held", "at most 5"),
        (0, 5, 5.5, "not held", "at most 5"),
    ],
)
def test_claim_holds_within_its_bounds_ends_included(low, high, value, judgement, bounds):
    within = claim("between", low=low, high=high)
    assert judge(within, [value]) == judgement
    assert within.bounds == bounds


SAMPLES = [
    claim("between", low=1, high=2),
    claim("apart", low=1, high=2),
    claim("ratio", low=1),
    claim("low_until", high=2),
    claim("rises"),
    claim("falls"),
    claim("ranked"),
    claim("near", published=1.5, share_off=0.5),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.comparison)
def test_claim_of_each_kind_can_hold_fail_and_be_unknown(sample):
    wrong = 3 if sample.comparison == "low_until" else -1
    assert judge(sample, [1, 1.5, 2]) == "held"
    assert judge(sample, [1, wrong, 2]) == "not held"
    for unknown in ([], [None], [math.nan], [1, None], [wrong, math.nan]):
        assert judge(sample, unknown) == "unknown"


def test_a_tie_is_not_the_published_order_but_no_step_down_either():
    assert judge(claim("ranked"), [1, 0]) == "not held"
    assert judge(claim("rises"), [1, 0]) == "held"


def test_number_is_near_by_a_share_or_by_points():
    quarter, point = claim("near", share_off=0.25), claim("near", points_off=1, unit="ratio")
    assert [judge(quarter.about(100), [ours]) for ours in (125, 75, 126)] == [
        *("held", "held", "not held")
    ]
    assert [judge(point.about(1), [ours]) for ours in (0.991, 0.989)] == ["held", "not held"]
    per_cent = find_claim("vcube", "table-1").about(20)
    assert [judge(per_cent, [ours]) for ours in (23, 23.1)] == ["held", "not held"]
    assert [quarter.tolerance, point.tolerance] == ["±25 %", "±1 points"]


def test_claim_without_a_published_number_or_tolerance_is_not_judged():
    assert judge(find_claim("vcube", "table-1"), [1]) == "not judged"
    assert judge(find_claim("vcube", "causes_max"), [54]) == "not judged"


@pytest.mark.parametrize(
    "text",
    [
        "mobile = [",
        'mobile = [{ key = "k" }]',
        'mobile = [{ key = "k", paper = "X", figure = "1", text = "t", comparison = "between" }]',
        "elsewhere = []",
    ],
)
def test_table_that_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match="claims cannot be read"):
        _read_table(text)
