"""Hosts and stations under explorer and swarm: correct cores pass, broken ones are found."""

from dataclasses import replace

import pytest

from beforehand.check.explore.explore import explore
from beforehand.check.families.mobile import MobileFamily, Setup
from beforehand.check.fuzz.fuzz import play
from beforehand.check.net.case import Case
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import Leave
from beforehand.protocols.mobile.was.station import Station

FAMILY = MobileFamily()
SMALL = {"options": Setup(Pace()), "edges": ((0, 1),), "stations": 2}
LINE = {"options": Setup(Pace()), "edges": ((0, 1), (1, 2)), "stations": 3}


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        pytest.param(
            Case(3, (0, 0, 1), losses=1, flaps=1, **SMALL),
            {"moved", "lost", "complete", "asking", "fetching", "going", "caught up"},
            id="one host joins, speaks and moves",
        ),
        pytest.param(
            Case(3, (0, 0, 2), is_linked=True, flaps=1, **SMALL),
            {"moved", "waited", "complete", "caught up"},
            id="one host speaks twice and moves",
        ),
        pytest.param(
            Case(3, (0, 0, 1), is_linked=True, flaps=1, doubles=1, **SMALL),
            {"moved", "doubled", "complete"},
            id="one host moves and a frame comes twice",
        ),
        pytest.param(
            Case(3, (0, 0, 1), is_linked=True, flaps=1, crashes=1, mortal=(2,), **SMALL),
            {"moved", "crashed", "cut off", "restarted", "complete"},
            id="one host crashes and moves",
        ),
        pytest.param(
            Case(4, (0, 0, 1, 0), is_linked=True, flaps=1, **SMALL),
            {"moved", "asking", "fetching", "going", "complete"},
            id="one host speaks and another one moves",
        ),
        pytest.param(
            Case(4, (0, 0, 1, 0), is_linked=True, leaves=1, **SMALL),
            {"left", "complete"},
            id="one host speaks and one leaves",
        ),
        pytest.param(
            Case(3, (0, 0, 1), is_linked=True, flaps=1, early_timers=2, **SMALL),
            {"moved", "caught up", "complete"},
            id="one host moves and timers do not wait for silence",
        ),
        pytest.param(
            Case(4, (0, 0, 0, 1), is_linked=True, flaps=2, **LINE),
            {"moved", "handed on later", "caught up", "complete"},
            id="one host speaks and moves twice among three stations",
        ),
    ],
)
def test_every_interleaving_is_causal_and_complete(case, sometimes):
    found = explore(FAMILY, case, states_max=30_000)
    assert (found.problem, found.path) == (None, [])
    assert found.is_complete
    assert sometimes <= found.seen


class AtAcknowledgement(MobileFamily):
    """As published: after a crash, a host delivers again the messages since its last save."""

    def draw(self, rng):
        case = super().draw(rng)
        return replace(case, options=Setup(case.options.pace, "acknowledgement"), crashes=3)

    def judges(self, violation):
        return violation.kind != "twice"


def test_saves_at_acknowledgements_repeat_deliveries_and_break_nothing_else():
    family = AtAcknowledgement()
    nets = [play(seed, family)[0] for seed in range(150)]
    assert [net.problem for net in nets if net.problem] == []
    kinds = {violation.kind for net in nets for violation in net.oracle.violations}
    assert kinds == {"twice"}


class Leaving(MobileFamily):
    """Hosts leave in every run. No station waits for them, and they need not deliver the rest."""

    def draw(self, rng):
        return replace(super().draw(rng), leaves=2)


@pytest.mark.parametrize("floods", [False, True], ids=["was", "was_flood"])
def test_a_host_that_leaves_at_any_point_blocks_no_other_host(floods):
    nets = [play(seed, Leaving(floods=floods))[0] for seed in range(200)]
    assert [net.problem for net in nets if net.problem] == []
    assert sum("left" in net.sights for net in nets) > 50
    assert sum("drop" in net.sights for net in nets) > 5


class Deaf(Station):
    """Ignores leaving hosts."""

    def _on_uplink(self, now_us, frame, out):
        if not isinstance(frame, Leave):
            super()._on_uplink(now_us, frame, out)


def test_the_explorer_finds_a_station_that_keeps_a_host_after_handoff():
    def make_core(case, node):
        setup = case.options
        if node < case.stations:
            return Deaf(node, case.edges or (), setup.pace)
        return Leaving().make_core(case, node)

    problems = [play(seed, Leaving(), make_core)[0].problem for seed in range(20)]
    assert any(problem and "leaving" in problem for problem in problems)
