"""Worlds of hundreds of hosts: correct systems pass, every kind of fault occurs, broken systems are
found."""

import pytest

from beforehand.check.fuzz.targets import TARGETS
from beforehand.check.fuzz.wide import run_wide
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.was.host import Host


class Hasty(Host):
    """Delivers every message in the order of arrival."""

    def _take(self, now_us, frame, out):
        super()._take(now_us, frame, out)
        out.deliveries.clear()
        out.deliveries.append(frame.message)


class Forgetful(Host):
    """One host in ten drops the messages that it should deliver to its application."""

    def _take(self, now_us, frame, out):
        super()._take(now_us, frame, out)
        if self.node % 10 == 0:
            out.deliveries.clear()


def test_a_few_seeds_pass_and_meet_every_kind_of_fault():
    outcomes = [TARGETS["was_wide"](seed) for seed in range(12)]
    assert [outcome.problem for outcome in outcomes if outcome.problem] == []
    seen = set().union(*(outcome.sights for outcome in outcomes))
    assert {"moved", "went away", "crashed", "joined late", "left", "waited", "lost"} <= seen
    assert "--protocol was-wide --replay 0" in outcomes[0].replay


def test_a_host_that_left_a_cell_before_joining_is_not_expected_to_deliver():
    """The host came back after 9 s, and got 5 messages fewer than the hosts that had joined."""
    assert run_wide(60074, "was").problem is None


@pytest.mark.parametrize(
    ("host", "problem"), [(Hasty, "violations"), (Forgetful, "missing")], ids=["hasty", "forgetful"]
)
def test_a_broken_host_is_found(host, problem):
    broken = SYSTEMS["was"]._replace(make_host=lambda node, pace: host(node, pace, durable=True))
    problems = [run_wide(seed, "was", broken).problem or "" for seed in range(3)]
    assert any(problem in found for found in problems)


def test_the_same_seed_gives_the_same_run():
    assert run_wide(3, "was_flood") == run_wide(3, "was_flood")
