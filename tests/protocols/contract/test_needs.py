"""A network that does not meet the needs of a core is refused, with all that is missing."""

from itertools import product

import pytest

from beforehand.errors import InputError
from beforehand.protocols.contract.needs import Link, Needs, refuse_unmet

KINDS = ("contact", "detector", "feed")
BOTH = list(product((False, True), repeat=2))
BEST = Needs({kind: Link(fifo=True, reliable=True) for kind in KINDS}, clocks_within_us=0)


def problem_of(needs, given):
    with pytest.raises(InputError) as caught:
        refuse_unmet(needs, given)
    return caught.value.problem


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("needs_it", "gives_it"), BOTH)
def test_reliable_links_are_refused_only_where_they_are_needed_and_not_given(
    kind, needs_it, gives_it
):
    needs, given = Needs({kind: Link(reliable=needs_it)}), Needs({kind: Link(reliable=gives_it)})
    if needs_it and not gives_it:
        assert "reliable links" in problem_of(needs, given)
    else:
        refuse_unmet(needs, given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("needs_it", "gives_it"), BOTH)
def test_fifo_links_are_refused_only_where_they_are_needed_and_not_given(kind, needs_it, gives_it):
    needs, given = Needs({kind: Link(fifo=needs_it)}), Needs({kind: Link(fifo=gives_it)})
    if needs_it and not gives_it:
        assert "FIFO links" in problem_of(needs, given)
    else:
        refuse_unmet(needs, given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_kind_of_link_is_refused(kind):
    given = Needs({other: Link(fifo=True, reliable=True) for other in KINDS if other != kind})
    assert f"{kind} links, but there are none" in problem_of(Needs({kind: Link()}), given)


@pytest.mark.parametrize("given_us", [None, 6, 1 << 60])
def test_clocks_that_differ_by_more_than_agreed_are_refused(given_us):
    problem = problem_of(Needs({}, clocks_within_us=5), Needs({}, clocks_within_us=given_us))
    assert problem.startswith("the protocol needs clocks within 5 us, but ")


@pytest.mark.parametrize(
    ("asked_us", "given_us"), [(None, None), (None, 9), (5, 5), (5, 0), (0, 0)]
)
def test_clocks_that_are_close_enough_are_not(asked_us, given_us):
    refuse_unmet(Needs({}, clocks_within_us=asked_us), Needs({}, clocks_within_us=given_us))


def test_features_given_and_not_needed_do_not_matter():
    refuse_unmet(Needs({}), BEST)
    refuse_unmet(Needs({"feed": Link()}), BEST)


def test_all_missing_needs_are_reported_together():
    needs = Needs(
        {"contact": Link(fifo=True, reliable=True), "detector": Link()}, clocks_within_us=5
    )
    problem = problem_of(needs, Needs({"contact": Link()}))
    parts = ("reliable links", "FIFO links", "detector links", "clocks within 5 us")
    assert [part for part in parts if part in problem] == list(parts)


def test_the_refusal_names_the_cure():
    with pytest.raises(InputError) as caught:
        refuse_unmet(Needs({"feed": Link()}), Needs({}))
    assert caught.value.hint.startswith("give the layer a retry time")
