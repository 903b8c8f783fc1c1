"""What the explorer leaves out, looks up and puts back: with and without it, the same is found."""

import copy
import pickle

import pytest

from beforehand.check.case import Case
from beforehand.check.explore import explore
from beforehand.check.families.baselines import CkFamily
from beforehand.check.families.mobile import MobileFamily, Setup
from beforehand.check.ice import Ice
from beforehand.check.moves import all_moves
from beforehand.check.net import make_net
from beforehand.core.mobile.host import Host
from beforehand.core.mobile.pace import Pace
from beforehand.core.mobile.station import Station
from beforehand.errors import LocalError

PAIR = {"edges": ((0, 1),), "stations": 2, "is_linked": True}


class Watched:
    """Writes down every state of a node, and every frame, until the net is healed."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __deepcopy__(self, memo):
        return self

    def look(self, net, node):
        if net.left:
            core = net.drivers[node].core
            inside = (core.state, core._ses) if node >= 2 else ()
            sizes = tuple(core.gauges(0).items())
            self.found.add((node, inside, sizes, frozenset(net.oracle.delivered[node])))
            self.found |= {(*flight[:2], frame) for flight, (frame, _) in net.flights.items()}
        return super().look(net, node)


class WatchedWas(Watched, MobileFamily):
    pass


class WatchedCk(Watched, CkFamily):
    pass


def whole(net):
    """All that a net holds, but for times: two that differ in anything are two."""
    cores = copy.deepcopy([driver.core for driver in net.drivers])
    for core in cores:
        net.family.forget_counts(core)
    oracle = net.oracle
    return pickle.dumps(
        (
            [pickle.dumps(core) for core in cores],
            [(d.is_up, d.fuse, d.cut_off, sorted(d._timers), d._store._rows) for d in net.drivers],
            sorted((key[:2], net.queued(key), repr(f)) for key, (f, _) in net.flights.items()),
            sorted((id, sorted(past)) for id, past in oracle.pasts.items()),
            [sorted((n, sorted(ids)) for n, ids in of.items()) for of in (oracle._known,)],
            [sorted((n, sorted(ids)) for n, ids in of.items()) for of in (oracle._overtaken,)],
            [sorted((n, ids) for n, ids in of.items() if ids) for of in (oracle.delivered,)],
            (sorted(net.contacts), net.says, sorted(net.left.items())),
            (sorted(net.timers), sorted(net.held), sorted(net.given_up)),
        )
    )


def explore_plainly(family, case):
    """Whole nets, copied for every move; what was seen on the way."""
    start = make_net(family, case)
    known, queue, sights = {whole(start)}, [start], set()
    while queue:
        net = queue.pop()
        for move in list(all_moves(net)):
            after = copy.deepcopy(net)
            after.sights.clear()
            if after.do(move):
                assert after.problem is None
                sights |= after.sights
                if (state := whole(after)) not in known:
                    known.add(state)
                    queue.append(after)
    return len(known), sights


@pytest.mark.parametrize(
    ("make_family", "case"),
    [
        (WatchedWas, Case(3, (0, 0, 1), flaps=1, options=Setup(Pace()), **PAIR)),
        (WatchedWas, Case(3, (0, 0, 1), crashes=1, mortal=(2,), options=Setup(Pace()), **PAIR)),
        (WatchedWas, Case(3, (0, 0, 1), leaves=1, losses=1, options=Setup(Pace()), **PAIR)),
        (WatchedCk, Case(3, (0, 0, 1), hastes=1, doubles=1, options=Pace(), **PAIR)),
    ],
    ids=["a move", "a crash", "a leave and a loss", "ck"],
)
def test_every_state_of_a_node_and_every_frame_is_found_that_whole_nets_show(make_family, case):
    plain, quick = make_family(), make_family()
    states, sights = explore_plainly(plain, case)
    found = explore(quick, case, states_max=states)
    assert found.is_complete
    assert quick.found == plain.found
    assert found.seen - {"complete"} == sights
    assert found.states < states


def ice(says=1, **trouble):
    case = Case(3, (0, 0, says), options=Setup(Pace()), mortal=(2,), **PAIR, **trouble)
    return Ice(MobileFamily(), case, None)


def test_what_is_frozen_is_thawed_as_it_was_whatever_was_done_since():
    cold = ice(flaps=1, losses=1, crashes=1)
    before = cold.freeze()
    for move in (("speak", 2, None), ("enter", 2, 1), ("crash", 2, 0)):
        assert cold.thaw(before).do(move)
        after = cold.freeze()
        assert after != before
        cold.thaw(before)
        assert cold.freeze() == before
        cold.thaw(after)
        assert cold.freeze() == after


def test_what_was_given_up_in_one_state_is_not_in_another():
    cold = ice()
    before = cold.freeze()
    cold.net.given_up.add((2, (2, 1)))
    after = cold.freeze()
    assert cold.thaw(before).given_up == set()
    assert cold.thaw(after).given_up == {(2, (2, 1))}


def test_who_looks_at_a_node_sees_its_core_and_a_step_is_looked_up():
    cold = ice(says=2)
    before = cold.freeze()
    for _ in range(2):
        net = cold.thaw(before)
        assert isinstance(net.drivers[0].core, Station)
        assert isinstance(net.drivers[2].core, Host)
        net.do(("speak", 2, None))
        assert list(net.drivers[2].core._said) == [1]
        assert len(net.flights) == 1


def test_what_a_core_refuses_it_refuses_again():
    cold = ice(leaves=1)
    net = cold.net
    net.do(("leave", 2))
    for _ in range(2):
        with pytest.raises(LocalError, match="has left"):
            net.drivers[2].on_broadcast(0, b"")
