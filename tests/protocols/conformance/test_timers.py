"""Timers that a core does not know, does not set, or no longer waits for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection

import pytest
from tests.protocols.conformance.stage import copied, give, is_idle, played, timers_of, watched
from tests.protocols.conformance.subjects import FACTS, Subject, runs, subjects

from beforehand.check.families import FAMILIES
from beforehand.check.net.case import Case
from beforehand.protocols.contract.base import Timer

pytestmark = pytest.mark.xdist_group("timers")  # which timers there are is found out once


@subjects()
@runs(3)
def test_a_timer_that_the_core_does_not_know_has_no_effect(subject, seed):
    strange: set[Timer] = {("nobody", None), ("nobody", 1), ("", "x")}
    strange |= {(kind, 77) for kind, _ in timers_of(subject.family.name)}
    _expect_nothing(subject, seed, lambda _: strange)


@subjects()
@runs(3)
def test_a_timer_that_only_other_cores_set_has_no_effect(subject, seed):
    own = timers_of(subject.family.name)
    others = {timer for name in FAMILIES for timer in timers_of(name)} - own
    assert others
    unused = FACTS[subject.kind].unused_timers
    _expect_nothing(subject, seed, lambda case: {*others, *unused(case)})


def _expect_nothing(
    subject: Subject, seed: int, timers: Callable[[Case], Collection[Timer]]
) -> None:
    for stage in played(subject, seed):
        for node, core in watched(stage):
            before = pickle.dumps(core)
            for timer in timers(stage.case):
                assert is_idle(give(core, "on_timer", stage.local_us(node) + 1, timer)), timer
            assert pickle.dumps(core) == before


@subjects()
@runs(3)
def test_a_timer_that_the_core_no_longer_waits_for_has_no_effect(subject, seed):
    for stage in played(subject, seed):
        for node, core in watched(stage):
            for timer in timers_of(subject.family.name):
                if (node, timer) in stage.timers:
                    continue
                other = copied(core)
                out = give(other, "on_timer", stage.local_us(node), timer)
                assert (out.sends, out.deliveries) == ([], []), timer


def test_every_family_with_a_timer_is_seen_to_set_one():
    """Otherwise the tests above would prove nothing."""
    without = {name for name in FAMILIES if not timers_of(name)}
    assert without == set()
