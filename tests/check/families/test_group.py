"""The core that `Group` runs, with little room, late disks, full caches and hostile members."""

import pytest

from beforehand.check.families import FAMILIES
from beforehand.check.families.group import FLOW, Setup
from beforehand.check.fuzz.fuzz import run_seed
from beforehand.check.net.case import Case
from beforehand.check.net.heal import heal
from beforehand.check.net.net import make_net
from beforehand.protocols.epidemic.options import Flow
from beforehand.protocols.orders.order import Lifetimes

GROUP = FAMILIES["group"]
SECOND_US = 1_000_000
LIFETIMES = Lifetimes(200 * SECOND_US, 200 * SECOND_US, SECOND_US)


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_seeds_of_the_group_find_nothing(start):
    for seed in range(start, start + 100):
        outcome = run_seed(seed, GROUP)
        assert outcome.problem is None, f"{outcome.replay}\n{outcome.story}"


def test_seeds_of_the_group_meet_every_kind_of_fault():
    seen = set()
    for seed in range(1_000, 1_400):
        seen |= run_seed(seed, GROUP).sights
        if seen >= set(GROUP.sights):
            return
    assert set(GROUP.sights) - seen == set()


def healed(case):
    net = make_net(GROUP, case)
    while any(net.broadcasts):
        net.do(("broadcast", 0, None))
    heal(net)
    return net


def test_a_wire_for_one_frame_at_a_time_does_not_keep_offers_from_being_requested():
    """Version vectors and announcements went back and forth, and took all the room there was."""
    setup = Setup(LIFETIMES, flow=FLOW)
    net = healed(Case(2, broadcasts=(5, 0), options=setup, room_bytes=1))
    assert net.problem is None
    assert len(net.oracle.delivered[1]) == 5


def test_a_newcomer_gets_everything_through_the_smallest_window():
    setup = Setup(LIFETIMES, flow=Flow(window=1, offers_max=1, pushes_max=1), digest_after=8)
    net = healed(Case(3, broadcasts=(12, 0, 0), options=setup, room_bytes=300))
    assert net.problem is None
    assert [len(net.oracle.delivered[node]) for node in range(3)] == [12, 12, 12]
