"""The systems that WAS is compared with, under the explorer: nothing is found."""

import pytest

from beforehand.check.explore.explore import explore
from beforehand.check.families import FAMILIES
from beforehand.check.families.baselines import CkSetup
from beforehand.check.families.mobile import Setup
from beforehand.check.net.case import Case
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.tcp_flooding.connection import Tcp

PAIR = {"edges": ((0, 1),), "stations": 2}
LINE = {"edges": ((0, 1), (1, 2)), "stations": 3}


@pytest.mark.parametrize(
    ("name", "case", "sometimes"),
    [
        pytest.param(
            "was_flood",
            Case(4, (0, 0, 0, 0), is_linked=True, flaps=2, options=Setup(Pace()), **LINE),
            {"moved", "asking", "fetching", "going", "complete"},
            id="was_flood: one host moves twice among three stations",
        ),
        pytest.param(
            "ck",
            Case(3, (0, 0, 1), losses=1, flaps=1, options=CkSetup(Pace()), **PAIR),
            {"moved", "lost", "joining", "fetching", "handed on", "complete"},
            id="ck: one host joins, speaks and moves",
        ),
        pytest.param(
            "ck",
            Case(4, (0, 0, 0, 0), is_linked=True, flaps=4, options=CkSetup(Pace()), **LINE),
            {"moved", "refused", "handed on", "handed on later", "complete"},
            id="ck: one host is hardly anywhere before it is elsewhere",
        ),
        pytest.param(
            "ck",
            Case(4, (0, 0, 1, 0), is_linked=True, flaps=1, options=CkSetup(Pace()), **PAIR),
            {"moved", "for all", "for some", "complete"},
            id="ck: one host speaks and another one moves",
        ),
        pytest.param(
            "ck",
            Case(
                *(4, (0, 0, 1, 0)),
                is_linked=True,
                flaps=1,
                options=CkSetup(Pace(), CkOptions("station", 25_000)),
                **PAIR,
            ),
            {"moved", "for some", "complete"},
            id="ck: messages need all that their station received",
        ),
        pytest.param(
            "tcp_flooding",
            Case(
                *(4, (0, 0, 2, 0)),
                is_linked=True,
                losses=1,
                options=Tcp(window=1, ack_us=0, measures=True),
                **PAIR,
            ),
            {"lost", "complete"},
            id="tcp_flooding: the round trip is measured",
        ),
        pytest.param(
            "tcp_flooding",
            Case(4, (0, 0, 2, 0), is_linked=True, losses=1, options=Tcp(window=1), **PAIR),
            {"lost", "backed off", "complete"},
            id="tcp_flooding: one host speaks twice",
        ),
    ],
)
def test_every_interleaving_is_causal_and_complete(name, case, sometimes):
    found = explore(FAMILIES[name], case, states_max=30_000)
    assert (found.problem, found.path) == (None, [])
    assert found.is_complete
    assert sometimes <= found.seen
