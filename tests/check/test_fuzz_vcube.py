"""The swarm and the explorer find nothing wrong with VCube, and do find what is wrong with others.

A failing seed is replayed by `beforehand fuzz --protocol vcube --replay SEED`.
"""

import pytest

from beforehand.check.cube_net import Case, CubeSystem
from beforehand.check.explore import explore
from beforehand.check.fuzz_vcube import play, run_seed
from beforehand.core.vcube import VCube

SIGHTS = {"aggregated", "crashed", "held back", "recovered", "took over", "waited"}


def test_a_swarm_of_seeds_finds_nothing_and_sees_everything():
    nets = [play(seed)[0] for seed in range(400)]
    assert [(seed, net.problem) for seed, net in enumerate(nets) if net.problem] == []
    for sight in SIGHTS:
        assert sum(sight in net.sights for net in nets) > 40, f"hardly ever {sight}"
    assert sum(net.case.nodes & (net.case.nodes - 1) > 0 for net in nets) > 100
    assert sum(max(net.case.says) > 1 for net in nets) > 100


def test_the_same_seed_gives_the_same_outcome():
    assert [run_seed(seed) for seed in range(20)] == [run_seed(seed) for seed in range(20)]


def test_an_outcome_counts_what_was_delivered_and_what_had_to_wait():
    outcomes = [run_seed(seed) for seed in range(50)]
    assert all(not outcome.problems and not outcome.story for outcome in outcomes)
    deliveries = sum(outcome.deliveries for outcome in outcomes)
    assert deliveries == sum(len(ids) for seed in range(50) for ids in play(seed)[0].delivered)
    assert 0 < sum(outcome.waited for outcome in outcomes) < deliveries


def test_a_failure_tells_what_became_of_the_message(monkeypatch):
    monkeypatch.setattr(VCube, "_undelivered", lambda *_: None)
    outcome = next(o for o in map(run_seed, range(300)) if "before its causes" in str(o.problems))
    (problem,) = outcome.problems
    first, *lines, last = outcome.story.splitlines()
    assert first == f"{problem}:"
    assert "receives" in last
    assert "delivers" in last
    assert any("speaks" in line for line in lines)
    assert outcome.replay == f"beforehand fuzz --protocol vcube --replay {outcome.seed}"


class Hasty(VCube):
    """Delivers whatever arrives."""

    def _undelivered(self, id, causes):
        return None


class Deaf(VCube):
    """Does not listen to the failure detector."""

    def on_link(self, now_us, peer, up, out):
        pass


class Forgetful(VCube):
    """Never takes up what a dead origin left unfinished."""

    def _look_around(self):
        super()._look_around()
        self._takes_all = frozenset()


class Repeating(VCube):
    """Sends a released message to all its children again."""

    def _release(self, items, out):
        for held in items:
            held.postponed = held.height
        super()._release(items, out)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Hasty, "before its causes"),
        (Deaf, "never delivered"),
        (Forgetful, "never delivered"),
        (Repeating, "was sent 2 times"),
    ],
)
def test_the_swarm_finds_what_is_broken(broken, words):
    problems = (play(seed, broken)[0].problem or "" for seed in range(300))
    assert any(words in problem for problem in problems)


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        (Case(3, (1, 1, 1)), ("held back", "waited")),
        (Case(4, (2, 0, 1, 0)), ("aggregated", "held back", "waited")),
        (Case(4, (1, 0, 1, 0), root=0), ("waited",)),
        (Case(3, (1, 1, 0), crashes=1), ("crashed", "held back", "took over", "waited")),
        (Case(3, (1, 0, 0), crashes=2), ("crashed", "took over")),
        (Case(3, (1, 1, 0), root=0, crashes=1), ("aggregated", "crashed", "took over")),
        (Case(2, (1, 1), absent=(1,), recoveries=1), ("recovered", "took over")),
    ],
    ids=["3 nodes", "4 nodes", "one tree", "crash", "2 crashes", "root crash", "late comer"],
)
def test_nothing_goes_wrong_in_any_interleaving(case, sometimes):
    system = CubeSystem(case, sometimes)
    found = explore(system, 20_000)
    assert found.problem is None, f"{found.problem} after {found.path}"
    assert found.is_complete
    assert set(sometimes) <= found.seen, "this exploration proves less than it seems to"


def test_the_explorer_finds_a_lost_takeover(monkeypatch):
    monkeypatch.setattr(VCube, "on_link", Deaf.on_link)
    found = explore(CubeSystem(Case(3, (1, 0, 0), crashes=1), ()), 20_000)
    assert "never delivered" in found.problem
    assert any(move[0] == "crash" for move in found.path)
