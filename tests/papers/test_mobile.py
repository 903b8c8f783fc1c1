"""The published claims of the mobile papers as data."""

import pytest

from beforehand.papers.mobile import Claim, read_claims, read_source
from beforehand.report.mobile.claims import ANSWERS


def test_every_claim_has_an_answer_and_every_answer_a_claim():
    keys = [claim.key for claim in read_claims()]
    assert sorted(keys) == sorted(ANSWERS)
    assert len(set(keys)) == len(keys)


def test_every_claim_names_its_source_and_its_range():
    for claim in read_claims():
        assert claim.paper in ("MOB", "MOB-TR")
        assert claim.figure
        assert claim.words
        assert (claim.least, claim.most) != (None, None)
        assert claim.least is None or claim.most is None or claim.least <= claim.most
    assert "hal-02652082" in read_source()


@pytest.mark.parametrize(
    ("least", "most", "value", "holds", "published"),
    [
        (10, 20, 10, True, "10 to 20"),
        (10, 20, 20.1, False, "10 to 20"),
        (10, 20, 9.9, False, "10 to 20"),
        (20, None, 1e9, True, "at least 20"),
        (20, None, 19, False, "at least 20"),
        (None, 5, -1, True, "at most 5"),
        (0, 5, 5.5, False, "at most 5"),
    ],
)
def test_a_claim_holds_within_its_range_ends_included(least, most, value, holds, published):
    claim = Claim("k", "MOB", "6", "throughput", least, most, "×", "words")
    assert claim.holds(value) is holds
    assert claim.published == published
