"""The swarm and the explorer find nothing wrong with VCube, and do find what is wrong with others.

A failing seed is replayed by `run_seed(seed)`.
"""

import pytest

from beforehand.check.explore import explore
from beforehand.check.fuzz_vcube import Case, CubeSystem, run_seed
from beforehand.core.vcube import VCube

SIGHTS = {"aggregated", "crashed", "held back", "recovered", "took over", "waited"}


def test_a_swarm_of_seeds_finds_nothing_and_sees_everything():
    outcomes = [run_seed(seed) for seed in range(400)]
    assert [outcome for outcome in outcomes if outcome.problem] == []
    for sight in SIGHTS:
        assert sum(sight in outcome.sights for outcome in outcomes) > 40, f"hardly ever {sight}"
    assert sum(outcome.case.nodes & (outcome.case.nodes - 1) > 0 for outcome in outcomes) > 100
    assert sum(max(outcome.case.says) > 1 for outcome in outcomes) > 100


def test_the_same_seed_gives_the_same_outcome():
    assert [run_seed(seed) for seed in range(20)] == [run_seed(seed) for seed in range(20)]


class Hasty(VCube):
    """Delivers whatever arrives."""

    def _undelivered(self, message):
        return None


class Deaf(VCube):
    """Does not listen to the failure detector."""

    def on_link(self, now_us, peer, up, out):
        pass


class Forgetful(VCube):
    """Never takes up what a dead origin left unfinished."""

    def _look_around(self):
        super()._look_around()
        self._takes_all = [self._head(i) == self._self for i in range(len(self._live))]


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
    problems = (run_seed(seed, broken).problem or "" for seed in range(300))
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
        (Case(3, (1, 1, 0), absent=(2,), recoveries=1), ("recovered", "took over", "waited")),
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
