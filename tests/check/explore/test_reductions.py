"""Reduced explorations find what full ones find: the same problems, and the same states at rest."""

from functools import partial

import pytest

from beforehand.check.explore import explore as explorer
from beforehand.check.explore.canonical_core import AnyOrder, canonical_form
from beforehand.check.explore.explore import explore
from beforehand.check.explore.least_draws import LeastDraws
from beforehand.check.explore.names import NodeName, renamed_core
from beforehand.check.explore.small_nets import (
    DIGESTS,
    FULL,
    LINE,
    NEWEST,
    PAIR,
    PUSH,
    RETRY,
    TRIANGLE,
    epidemic_net,
    group_net,
    make_epidemic,
    make_group,
)
from beforehand.check.explore.symmetry import renamings
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.group import GroupFamily
from beforehand.check.net.heal import heal
from beforehand.check.net.net import make_net
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Announce
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.unordered import Unordered

CAUSAL, GROUP = ContactsFamily("causal"), GroupFamily()


def at_rest(monkeypatch, family, case, make, *, reductions):
    """Explore, and return what was found and the cores of all states at rest, under all names."""
    found_at_rest, judge = set(), explorer._problem_at_rest
    group = [tuple(range(case.nodes)), *renamings(family, case)] if reductions else [None]

    def watch(net, found):
        if not net.flights and not net.notices:
            cores = [driver.core._memory.core(driver.core.number) for driver in net.drivers]
            rest = (frozenset(net.contacts), tuple(sorted(net.left.items())))
            for renaming in group:
                images = cores if renaming is None else [renamed_core(c, renaming) for c in cores]
                forms = frozenset(map(canonical_form, images))
                found_at_rest.add((forms, *(rest if case.flaps else ())))
        return judge(net, found)

    monkeypatch.setattr(explorer, "_problem_at_rest", watch)
    found = explore(family, case, 60_000, make, reductions=reductions)
    monkeypatch.setattr(explorer, "_problem_at_rest", judge)
    return found, found_at_rest


@pytest.mark.parametrize(
    ("family", "case", "make"),
    [
        (CAUSAL, epidemic_net(NEWEST, TRIANGLE, (1, 1, 0)), make_epidemic),
        (CAUSAL, epidemic_net(PUSH, TRIANGLE, (1, 1, 0)), make_epidemic),
        (CAUSAL, epidemic_net(PUSH, LINE, (1, 1, 1)), make_epidemic),
        (CAUSAL, epidemic_net(DIGESTS, LINE, (1, 0, 1)), make_epidemic),
        (CAUSAL, epidemic_net(DIGESTS, LINE, (1, 0, 0), flaps=1), make_epidemic),
        (CAUSAL, epidemic_net(FULL, LINE, (1, 1, 0)), make_epidemic),
        (CAUSAL, epidemic_net(RETRY, TRIANGLE, (1, 0, 0), losses=1), make_epidemic),
        (GROUP, group_net(LINE, (1, 1, 0)), make_group),
    ],
    ids=[
        *("triangle", "push", "line", "digests", "digests and a flap"),
        *("full caches", "a loss", "group"),
    ],
)
def test_reduced_and_full_explorations_come_to_rest_in_the_same_states(
    monkeypatch, family, case, make
):
    full, everywhere = at_rest(monkeypatch, family, case, make, reductions=False)
    few, there = at_rest(monkeypatch, family, case, make, reductions=True)
    assert full.problem is None
    assert few.problem is None
    assert full.is_complete
    assert few.is_complete, few.asymmetry
    assert there >= everywhere
    # An image of a state need not be reachable: links came up in an order that names decide.
    assert renamings(family, case) or there == everywhere
    assert few.seen == full.seen
    assert few.states <= full.states


def test_reductions_leave_out_most_states_of_a_triangle():
    case = epidemic_net(PUSH, TRIANGLE, (1, 1, 0))
    full = explore(CAUSAL, case, 60_000, make_epidemic, reductions=False)
    few = explore(CAUSAL, case, 60_000, make_epidemic)
    assert few.states < full.states / 3
    assert few.reduced > 0


class Amnesiac(Epidemic):
    """Restarts under its old name without its saved state."""

    def restore(self, now_us, rows, out):
        pass


class Careless(Epidemic):
    """Ignores a message whose announcement came after that of another one."""

    def _on_data(self, now_us, source, link, frame, out):
        if len(self._cache.entries) != 1 or len(self._links) == 1:
            super()._on_data(now_us, source, link, frame, out)


class Ordered(Epidemic):
    """Gives the number of an announcement to the peers in the order of their ids."""

    def on_broadcast(self, now_us, payload, out, lifetime_us=None):
        self._links = dict(sorted(self._links.items()))
        return super().on_broadcast(now_us, payload, out, lifetime_us)


def make(kind, case, node, order=Barrier):
    return kind(node, order(node), LeastDraws(), case.options.options, durable=case.is_mortal)


def reduced_walk(case, make_core):
    group = renamings(CAUSAL, case)
    return explorer.walk(CAUSAL, case, 60_000, make_core, group=group, is_ample=True)


@pytest.mark.parametrize(
    ("case", "make_core"),
    [
        (
            epidemic_net(PUSH, TRIANGLE, (1, 1, 0)),
            partial(make, Epidemic, order=Unordered),
        ),
        (epidemic_net(NEWEST, LINE, (1, 0, 0), losses=1, is_unfair=True), make_epidemic),
        (epidemic_net(NEWEST, PAIR, (2, 0), crashes=2), partial(make, Amnesiac)),
        (epidemic_net(PUSH, TRIANGLE, (1, 1, 0)), partial(make, Careless)),
        (epidemic_net(PUSH, LINE, (1, 1, 0)), partial(make, Careless)),
        (epidemic_net(PUSH, LINE, (1, 1, 0), flaps=1), partial(make, Careless)),
    ],
    ids=["no order", "no repetition", "no memory", "ignores", "ignores on a line", "and a flap"],
)
def test_planted_faults_are_found_with_and_without_reductions(case, make_core):
    full = explore(CAUSAL, case, 60_000, make_core, reductions=False)
    reduced = reduced_walk(case, make_core)
    assert full.problem is not None
    assert reduced.problem is not None
    net = make_net(CAUSAL, case, make_core)
    assert all(net.do(move) for move in reduced.path), "the path is that of a plain net"
    if net.problem is None:
        heal(net)
    assert net.problem is not None


class Talkative(Epidemic):
    """Nodes 0 and 1 answer each other for ever; node 2 delivers what it receives twice."""

    def on_message(self, now_us, source, frame, out):
        super().on_message(now_us, source, frame, out)
        if self.node == 2:
            out.deliveries += out.deliveries
        elif source != 2:
            out.sends.append((source, Announce(0, frozenset({(1, 1)}))))


def test_a_postponed_move_is_taken_eventually():
    case = epidemic_net(PUSH, LINE, (0, 1, 0))
    found = explorer.walk(CAUSAL, case, 1_000, partial(make, Talkative), is_ample=True)
    assert "a second time" in found.problem
    assert found.states > 3, "the moves of nodes 0 and 1 came first"


def test_a_fault_of_one_node_is_found_although_its_twin_is_sound():
    case = epidemic_net(PUSH, LINE, (0, 1, 0))
    assert renamings(CAUSAL, case) == [(2, 1, 0)]
    reduced = reduced_walk(case, partial(make, Talkative))
    assert reduced.problem is None, "node 0 stands for node 2"
    assert "does not commute" in reduced.asymmetry
    found = explore(CAUSAL, case, 1_000, partial(make, Talkative))
    assert "a second time" in found.problem


def test_a_core_that_breaks_ties_by_node_id_makes_symmetry_no_ground_to_leave_out_states():
    case = epidemic_net(RETRY, TRIANGLE, (1, 0, 0))
    found = explore(CAUSAL, case, 60_000, partial(make, Ordered))
    assert found.problem is None
    assert "does not commute" in found.asymmetry
    assert found.is_complete, "it was explored again without symmetry"


def test_cases_with_distinguishable_nodes_have_no_renamings():
    alike = epidemic_net(PUSH, TRIANGLE, (1, 1, 1))
    assert len(renamings(CAUSAL, alike)) == 5
    assert renamings(CAUSAL, epidemic_net(PUSH, LINE, (1, 0, 1))) == [(2, 1, 0)]
    for trouble in ({"flaps": 1}, {"crashes": 1}, {"ahead_us": (0, 1, 2)}):
        assert renamings(CAUSAL, epidemic_net(PUSH, TRIANGLE, (1, 1, 1), **trouble)) == []
    assert renamings(GROUP, group_net(PAIR, (1, 1))) == [], "signatures contain ids"


def test_canonical_forms_differ_only_where_a_step_can_differ():
    first, second = [1], [1]
    assert canonical_form([first, first]) != canonical_form([first, second])
    assert canonical_form({8: 1, 16: 2}) != canonical_form({16: 2, 8: 1})
    assert canonical_form({8, 16}) == canonical_form({16, 8})
    assert canonical_form(AnyOrder({8: 1, 16: 2})) == canonical_form(AnyOrder({16: 2, 8: 1}))
    assert canonical_form((1, 2)) == canonical_form((NodeName(1), 2))
    assert canonical_form([True]) != canonical_form([1])
