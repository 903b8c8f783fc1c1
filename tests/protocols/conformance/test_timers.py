"""Timers that a core does not know, does not set, or no longer waits for."""

from __future__ import annotations

import pickle

import pytest
from tests.protocols.conformance.stage import copied, give, is_idle, played, timers_of, watched
from tests.protocols.conformance.subjects import FACTS, runs, subjects

from beforehand.check.families import FAMILIES
from beforehand.protocols.contract.base import Timer

pytestmark = pytest.mark.xdist_group("timers")  # which timers there are is found out once


@subjects()
@runs(3)
def test_a_timer_that_no_core_or_only_another_core_sets_has_no_effect(subject, seed):
    own = timers_of(subject.family.name)
    strange: set[Timer] = {("nobody", None), ("nobody", 1), ("", "x")}
    strange |= {(kind, 77) for kind, _ in own}
    others = {timer for name in FAMILIES for timer in timers_of(name)} - own
    assert others
    for stage in played(subject, seed):
        timers = {*strange, *others, *FACTS[subject.kind].unused_timers(stage.case)}
        for node, core in watched(stage):
            before = pickle.dumps(core)
            for timer in timers:
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
