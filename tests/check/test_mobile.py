"""Hosts and stations under explorer and swarm: nothing is found, and what is broken is."""

from dataclasses import replace

import pytest

from beforehand.check.case import Case
from beforehand.check.explore import explore
from beforehand.check.families.mobile import MobileFamily, Setup
from beforehand.check.fuzz import play
from beforehand.core.mobile.host import Host
from beforehand.core.mobile.pace import Pace
from beforehand.core.mobile.station import Station
from beforehand.errors import LocalError

FAMILY = MobileFamily()
SMALL = {"options": Setup(Pace()), "edges": ((0, 1),), "stations": 2}


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        pytest.param(
            Case(3, (0, 0, 1), losses=1, flaps=1, **SMALL),
            {"moved", "lost", "complete", "asking", "fetching", "going", "caught up"},
            id="one host joins, speaks and moves",
        ),
        pytest.param(
            Case(3, (0, 0, 2), is_linked=True, losses=1, flaps=1, **SMALL),
            {"moved", "lost", "waited", "complete", "caught up"},
            id="one host speaks twice and moves",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Case(4, (0, 0, 1, 0), is_linked=True, flaps=1, **SMALL),
            {"moved", "asking", "fetching", "going", "complete"},
            id="one host speaks and another one moves",
        ),
    ],
)
def test_every_interleaving_is_causal_and_complete(case, sometimes):
    found = explore(FAMILY, case, states_max=30_000)
    assert (found.problem, found.path) == (None, [])
    assert found.is_complete
    assert sometimes <= found.seen


class AtAcknowledgement(MobileFamily):
    """As published: after a crash, what was delivered since the last save comes again."""

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


class Leaver(Host):
    """Leaves with its second message, and says nothing more."""

    def on_broadcast(self, now_us, payload, out, lifetime_us=None):
        if self._next_said > 2:
            raise LocalError("it has left", hint="")
        id = super().on_broadcast(now_us, payload, out, lifetime_us)
        if id[1] == 2:
            self.on_leave(now_us, out)
        return id


class Leaving(MobileFamily):
    """The first host leaves. Nobody waits for it, or misses anything of the others."""

    def make_core(self, case, node):
        if node != case.stations:
            return super().make_core(case, node)
        setup = case.options
        return Leaver(
            *(node, setup.pace),
            saves=setup.saves,
            names_stations=not self._floods,
            durable=case.is_mortal,
        )

    def problems(self, net):
        leaver = net.case.stations
        has_left = net.drivers[leaver].core.state == "gone"
        if has_left:
            net.sights.add("left")
        for problem in super().problems(net):
            is_excused = has_left and problem.startswith(f"host {leaver} ")
            if not is_excused and f"({leaver}, " not in problem:
                yield problem
        for station in range(net.case.stations):
            core = net.drivers[station].core
            assert isinstance(core, Station)
            if has_left and leaver in core.cell.guests:
                yield f"station {station} still knows host {leaver}"


@pytest.mark.parametrize("floods", [False, True], ids=["was", "was_flood"])
def test_who_leaves_at_any_point_holds_nobody_up(floods):
    nets = [play(seed, Leaving(floods=floods))[0] for seed in range(200)]
    assert [net.problem for net in nets if net.problem] == []
    assert sum("left" in net.sights for net in nets) > 20
