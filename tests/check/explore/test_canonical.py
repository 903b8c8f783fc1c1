"""Canonical forms and the transition cache change nothing that the explorer finds."""

import copy
import pickle
from functools import partial

import pytest

from beforehand.check.explore.canonical import Canonicalizer
from beforehand.check.explore.explore import explore
from beforehand.check.explore.small_nets import (
    FULL,
    PAIR,
    PUSH,
    RETRY,
    epidemic_net,
    group_net,
    make_epidemic,
    make_group,
)
from beforehand.check.families.baselines import CkFamily, CkSetup
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.group import GroupFamily
from beforehand.check.families.mobile import MobileFamily, Setup
from beforehand.check.net.case import Case
from beforehand.check.net.moves import all_moves
from beforehand.check.net.net import make_net
from beforehand.errors import LocalError
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station
from beforehand.protocols.orders.order import Lifetimes

CELLS = {"edges": ((0, 1),), "stations": 2, "is_linked": True}


class Watched:
    """Records every state of a node, and every frame, until the net is healed."""

    def __init__(self, *order):
        super().__init__(*order)
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


class WatchedNodes(Watched):
    """The same for cores that hold messages in a cache."""

    def look(self, net, node):
        if net.left:
            sizes = net.drivers[node].core.gauges(net.local_us(node))
            del sizes["theirs"]  # known_to_peer without the messages that this node holds too
            reported_lost = frozenset(id for at, id in net.reported_lost if at == node)
            state = (node, tuple(sizes.items()), frozenset(net.oracle.delivered[node]))
            self.found.add((*state, reported_lost))
            bare = partial(self.canonical_frame, net.case)
            self.found |= {(*key[:2], bare(frame)) for key, (frame, _) in net.flights.items()}
        return super(Watched, self).look(net, node)


class WatchedGroup(WatchedNodes, GroupFamily):
    def make_core(self, case, node):
        return make_group(case, node)


class WatchedEpidemic(WatchedNodes, ContactsFamily):
    def make_core(self, case, node):
        return make_epidemic(case, node)


def watched_causal():
    return WatchedEpidemic("causal")


def watched_delta():
    return WatchedEpidemic("delta")


def whole(net):
    """Return the whole content of a net without times, so that any difference shows."""
    cores = copy.deepcopy([driver.core for driver in net.drivers])
    for core in cores:
        net.family.forget_counts(core)
    oracle = net.oracle
    return pickle.dumps(
        (
            [pickle.dumps(core) for core in cores],
            [
                (d.is_up, d.crash_after, d.cut_off, sorted(d._timers), d._store._rows)
                for d in net.drivers
            ],
            sorted((key[:2], net.queued(key), repr(f)) for key, (f, _) in net.flights.items()),
            sorted((id, sorted(past)) for id, past in oracle.pasts.items()),
            [sorted((n, sorted(ids)) for n, ids in of.items()) for of in (oracle._known,)],
            [sorted((n, sorted(ids)) for n, ids in of.items()) for of in (oracle._overtaken,)],
            [sorted((n, ids) for n, ids in of.items() if ids) for of in (oracle.delivered,)],
            (sorted(net.contacts), net.broadcasts, sorted(net.left.items())),
            (sorted(net.timers), sorted(net.held), sorted(net.reported_lost)),
            times(net) if net.family.kind == "contact" else (),
        )
    )


def times(net):
    """Return the time, the clocks, and the effects that wait for a disk."""
    pending = [getattr(driver.store, "pending", ()) for driver in net.drivers]
    dues = sorted((key, due_us) for key, (due_us, _) in net.timers.items())
    clocks = (net.now_us, net.shift_us, net.highest_us, net.offsets_us)
    waiting = (pending, sorted(net.unsaved.items()), sorted(net.closed))
    return (*clocks, dues, *waiting, net.notices, sorted(net.dropped))


def explore_plainly(family, case):
    """Explore by copying the whole net for every move; return the situations that occurred."""
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
        (WatchedWas, Case(3, (0, 0, 1), flaps=1, options=Setup(Pace()), **CELLS)),
        (WatchedWas, Case(3, (0, 0, 1), crashes=1, mortal=(2,), options=Setup(Pace()), **CELLS)),
        (WatchedWas, Case(3, (0, 0, 1), leaves=1, losses=1, options=Setup(Pace()), **CELLS)),
        (
            WatchedCk,
            Case(3, (0, 0, 1), early_timers=1, doubles=1, options=CkSetup(Pace()), **CELLS),
        ),
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


SOON = Lifetimes(3, 3, skew_us=2)


@pytest.mark.parametrize(
    ("make_family", "case", "sights"),
    [
        (WatchedGroup, group_net(PAIR, (1, 0), pauses=1, room_bytes=1), {"closed"}),
        (
            WatchedGroup,
            group_net(PAIR, (1, 0), crashes=1, mortal=(0,), is_disk_late=True),
            {"lost before the disk had it"},
        ),
        (
            watched_delta,
            epidemic_net(
                *(PUSH, PAIR, (1, 1), SOON),
                lifetimes_us=(3,),
                settings=1,
                skew_us=1,
                ahead_us=(0, 1),
            ),
            {"set back"},
        ),
        (
            watched_delta,
            epidemic_net(
                PUSH, PAIR, (1, 1), SOON, lifetimes_us=(3,), shifts=1, shift_us=9, shift_span_us=9
            ),
            {"all set back", "all set forward", "expire"},
        ),
        (watched_causal, epidemic_net(FULL, PAIR, (2, 1)), set()),
        (watched_causal, epidemic_net(RETRY, PAIR, (1, 0), losses=2), {"lost"}),
    ],
    ids=["flow control", "a late disk", "a clock", "all clocks", "full caches", "repetition"],
)
def test_every_state_of_an_epidemic_node_is_found_that_whole_nets_show(make_family, case, sights):
    plain, quick = make_family(), make_family()
    states, seen = explore_plainly(plain, case)
    found = explore(quick, case, states_max=states, reductions=False)
    assert found.problem is None
    assert found.is_complete
    assert quick.found == plain.found
    assert found.seen - {"complete"} == seen
    assert sights <= seen


def test_a_canonical_state_starts_at_time_0_and_keeps_time_differences():
    cold = Canonicalizer(
        ContactsFamily("causal"), epidemic_net(RETRY, PAIR, (1, 0), losses=1), make_epidemic
    )
    net = cold.thaw(cold.freeze())
    for move in (("broadcast", 0, None), ("arrive", 0, 1, 1), ("pass", 4)):
        assert net.do(move)
    dues = {key: due_us for key, (due_us, _) in net.timers.items()}
    assert net.drivers[1].core._links[0].progress_us == 0
    cold.thaw(cold.freeze())
    assert net.now_us == 0
    assert net.drivers[1].core._links[0].progress_us == -4
    assert {key: due_us for key, (due_us, _) in net.timers.items()} == dict.fromkeys(dues, 6)


def test_a_frozen_group_keeps_pending_writes_and_unread_deliveries():
    case = group_net(PAIR, (1, 0), crashes=1, pauses=1, is_disk_late=True)
    cold = Canonicalizer(GroupFamily(), case, make_group)
    before = cold.freeze()
    net = cold.thaw(before)
    assert net.do(("broadcast", 0, None))
    assert net.do(("open", 1, False))
    after = cold.freeze()
    assert cold.thaw(before).closed == set()
    assert not net.is_flush_due(0)
    assert cold.thaw(after).closed == {1}
    assert net.unsaved.keys() == {0}
    assert net.drivers[0].store.pending
    assert net.do(("flush", 0))
    assert net.oracle.delivered[0], "what waited for the disk has happened"
    assert not net.do(("flush", 0))


def canonicalizer(broadcasts=1, **trouble):
    case = Case(3, (0, 0, broadcasts), options=Setup(Pace()), mortal=(2,), **CELLS, **trouble)
    return Canonicalizer(MobileFamily(), case, None)


def test_thawing_a_frozen_state_undoes_all_later_changes():
    cold = canonicalizer(flaps=1, losses=1, crashes=1)
    before = cold.freeze()
    for move in (("broadcast", 2, None), ("enter", 2, 1), ("crash", 2, 0)):
        assert cold.thaw(before).do(move)
        after = cold.freeze()
        assert after != before
        cold.thaw(before)
        assert cold.freeze() == before
        cold.thaw(after)
        assert cold.freeze() == after


def test_messages_expired_in_one_state_are_not_expired_in_another():
    cold = canonicalizer()
    before = cold.freeze()
    cold.net.reported_lost.add((2, (2, 1)))
    after = cold.freeze()
    assert cold.thaw(before).reported_lost == set()
    assert cold.thaw(after).reported_lost == {(2, (2, 1))}


def test_attributes_of_a_cached_node_are_those_of_its_core_and_steps_are_cached():
    cold = canonicalizer(broadcasts=2)
    before = cold.freeze()
    for _ in range(2):
        net = cold.thaw(before)
        assert isinstance(net.drivers[0].core, Station)
        assert isinstance(net.drivers[2].core, Host)
        net.do(("broadcast", 2, None))
        assert list(net.drivers[2].core._broadcasts) == [1]
        assert len(net.flights) == 1


def test_a_rejected_input_is_rejected_again_from_the_cache():
    cold = canonicalizer(leaves=1)
    net = cold.net
    net.do(("leave", 2))
    for _ in range(2):
        with pytest.raises(LocalError, match="has left"):
            net.drivers[2].on_broadcast(0, b"")
