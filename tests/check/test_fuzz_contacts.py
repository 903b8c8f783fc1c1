"""The swarm: sound protocols survive it, and it is hostile enough to kill unsound ones."""

import pytest

from beforehand.check import fuzz_contacts
from beforehand.check.fuzz_contacts import draw_case, run_seed
from beforehand.check.swarm import run_swarm
from beforehand.core.barrier import Barrier
from beforehand.sim.contacts import ContactWorld
from beforehand.sim.log import KINDS
from beforehand.sim.protocols import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_few_hundred_seeds_find_nothing(protocol):
    outcomes = [run_seed(seed, protocol) for seed in range(150)]
    assert [outcome.replay for outcome in outcomes if outcome.problems] == []
    assert sum(outcome.deliveries for outcome in outcomes) > 5_000
    if PROTOCOLS[protocol].is_causal:
        assert sum(outcome.waited for outcome in outcomes) > 200


def test_the_same_seed_gives_the_same_outcome():
    assert run_seed(11, "delta") == run_seed(11, "delta")


def test_the_swarm_meets_every_kind_of_trouble():
    seen = set()
    for seed in range(60):
        case = draw_case(seed, "delta")
        world = ContactWorld(
            case.trace,
            lambda node, case=case: fuzz_contacts._make_core(case, node),
            case.workload,
            seed=seed,
            links=case.links,
            clocks=case.clocks,
            crashes=case.crashes,
        )
        world.run()
        seen |= {KINDS[kind] for kind in world.log.columns()["kind"].tolist()}
        seen |= {
            name for name in ("duplicate", "stale", "evicted") if getattr(world.counters(), name)
        }
    expected = {"join", "leave", "crash", "recover", "drop", "duplicate", "stale", "evicted"}
    assert expected <= seen


def test_the_healed_phase_promises_something():
    promised = 0
    for seed in range(30):
        case = draw_case(seed, "causal")
        assert len(case.survivors) >= 3
        promised += len([b for b in case.workload if b.t_us > fuzz_contacts.HEAL_US])
    assert promised > 30


def test_a_broken_protocol_is_caught_and_its_story_told(monkeypatch):
    monkeypatch.setattr(
        Barrier, "on_receive", lambda self, _, messages, out: self._deliver(list(messages), out)
    )
    outcome = next(o for o in (run_seed(seed, "causal") for seed in range(50)) if o.problems)
    assert outcome.replay == f"beforehand fuzz --protocol causal --replay {outcome.seed}"
    assert "delivers" in outcome.story
    assert len(outcome.story.splitlines()) < 20


def test_neighbours_with_full_caches_come_to_rest(monkeypatch):
    """These seeds went round for ever before evicted messages were left alone for a while."""
    monkeypatch.setattr(fuzz_contacts, "EVENTS_MAX", 60_000)
    for seed, protocol in ((71, "none"), (984, "causal")):
        assert run_seed(seed, protocol).problems == ()


def test_literal_deadlines_are_caught_by_the_swarm(monkeypatch):
    def make_literal(protocol, node, lifetimes, **options):
        return Barrier(node, lifetimes, literal_deadlines=True, **options)

    monkeypatch.setattr(fuzz_contacts, "make_order", make_literal)
    outcomes = [run_seed(seed, "delta") for seed in range(400)]
    late = [o for o in outcomes if any("causally follows" in problem for problem in o.problems)]
    assert late


def test_the_swarm_counts_what_its_workers_did():
    heard = []
    swarm = run_swarm(range(30), ("causal", "delta"), workers=2, on_done=heard.append)
    assert sum(heard) == 60
    assert {name: tally.runs for name, tally in swarm.tallies.items()} == {
        "causal": 30,
        "delta": 30,
    }
    assert swarm.failures == []
    assert swarm.cpu_s > 0
