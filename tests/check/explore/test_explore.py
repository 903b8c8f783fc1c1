"""Every interleaving of small nets keeps the order, and each kind of planted bug is found."""

from dataclasses import replace

import pytest

from beforehand.check.explore.explore import explore
from beforehand.check.explore.least_draws import LeastDraws
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
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.group import GroupFamily
from beforehand.check.net.case import Case, Family
from beforehand.check.net.heal import heal
from beforehand.check.net.net import make_net
from beforehand.protocols.contract.base import EVERYBODY
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Data
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import ORDER_TIMER, Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector


class Bare:
    """An order without the epidemic layer: a broadcast is sent at once, to all peers or, where that
    is enough, to peers with a higher number."""

    needs = Needs({"feed": Link()})
    tables = ()

    def __init__(self, order, peers=(EVERYBODY,)):
        self.node, self.order, self.counters = order.node, order, order.counters
        self.peers = peers

    def on_broadcast(self, now_us, payload, out, lifetime_us=None):
        message = self.order.on_broadcast(now_us, payload, out, lifetime_us)
        out.sends += [(peer, Data((message,))) for peer in self.peers]
        return message.id

    def on_message(self, now_us, source, frame, out):
        welcome = self.order.screen(now_us, frame.messages)
        out.receives += [m for m in welcome if self.order.explain(m.id).state == "unknown"]
        self.order.on_receive(now_us, welcome, out)

    def on_timer(self, now_us, timer, out):
        assert timer == ORDER_TIMER
        self.order.on_timer(now_us, out)

    def explain(self, message):
        return self.order.explain(message)


class Orders(Family):
    """An order must deliver all that it received, in whatever way it came."""

    name, kind = "orders", "feed"

    def __init__(self, make_order, upwards=False):
        self._make_order, self._upwards = make_order, upwards

    def draw(self, rng):
        raise AssertionError("orders are explored, not fuzzed")

    def make_core(self, case, node):
        peers = range(node + 1, case.nodes) if self._upwards else (EVERYBODY,)
        return Bare(self._make_order(node), peers)

    def problems(self, net):
        if net.case.lifetimes_us == (None,) and net.held:
            yield f"received but never delivered: {sorted(net.held)}"


def assert_holds(family, case, sometimes, states_max=60_000, make_core=None):
    found = explore(family, case, states_max, make_core)
    assert found.problem is None, f"{found.problem} after {found.path}"
    assert found.is_complete, f"more than {states_max} states"
    assert found.quiet > 1
    assert set(sometimes) <= found.seen, "this exploration proves less than it seems to"
    return found


@pytest.mark.parametrize("order", [Barrier, Vector])
@pytest.mark.parametrize("broadcasts", [(3, 0, 0), (2, 1, 0), (1, 1, 1)])
def test_causal_order_in_every_interleaving_of_three_messages(order, broadcasts):
    assert_holds(Orders(order), Case(3, broadcasts), ("complete", "waited"))


def test_causal_order_with_a_duplicated_message():
    sometimes = ("complete", "doubled", "waited")
    assert_holds(Orders(Barrier), Case(3, (2, 1, 0), doubles=1), sometimes)


def delta(lifetimes, **options):
    return Orders(lambda node: Barrier(node, lifetimes, **options), upwards=True)


@pytest.mark.parametrize("broadcasts", [(1, 1, 0), (1, 2, 0)])
def test_delta_causal_order_with_expiry_at_every_instant(broadcasts):
    case = Case(3, broadcasts, lifetimes_us=(2, 5))
    assert_holds(delta(Lifetimes(5, 5, skew_us=0)), case, ("waited",))


def test_delta_causal_order_with_clocks_apart():
    case = Case(3, (1, 2, 0), lifetimes_us=(3,), skew_us=2, ahead_us=(0, 0, 2))
    assert_holds(delta(Lifetimes(3, 3, skew_us=3)), case, ("waited",))


@pytest.mark.parametrize(
    ("lifetimes_us", "ahead_us"), [((2, 5), (0, 0, 0)), ((3,), (0, 2, 0))], ids=["lives", "skew"]
)
def test_the_explorer_finds_violations_of_the_literal_deadlines(lifetimes_us, ahead_us):
    case = Case(3, (1, 2, 0), lifetimes_us=lifetimes_us, skew_us=2, ahead_us=ahead_us)
    found = explore(delta(Lifetimes(5, 5, skew_us=2), literal_deadlines=True), case, 60_000)
    assert "causally follows" in str(found.problem)


def test_the_explorer_finds_causal_violations_of_the_unordered_protocol():
    found = explore(Orders(Unordered), Case(3, (1, 1, 0)), 10_000)
    assert "causally follows" in str(found.problem)
    assert [move[0] for move in found.path] == [
        "broadcast",
        "arrive",
        "broadcast",
        "arrive",
        "arrive",
    ]


CAUSAL, DELTA, GROUP = ContactsFamily("causal"), ContactsFamily("delta"), GroupFamily()
SOON = {"lifetimes": Lifetimes(3, 3, skew_us=2), "lifetimes_us": (3,)}


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        pytest.param(epidemic_net(NEWEST, LINE, (1, 1, 0)), ("waited",), id="line"),
        pytest.param(epidemic_net(NEWEST, TRIANGLE, (1, 1, 0)), ("waited",), id="triangle"),
        pytest.param(epidemic_net(NEWEST, TRIANGLE, (1, 0, 0), flaps=1), ("flapped",), id="flaps"),
        pytest.param(epidemic_net(PUSH, TRIANGLE, (1, 1, 0)), ("waited",), id="push"),
        pytest.param(epidemic_net(PUSH, LINE, (1, 1, 0), flaps=1), ("flapped",), id="push-flaps"),
        pytest.param(epidemic_net(PUSH, LINE, (1, 0, 0), crashes=1), ("crashed",), id="push-crash"),
        pytest.param(epidemic_net(DIGESTS, TRIANGLE, (1, 0, 0)), (), id="digests-triangle"),
        pytest.param(epidemic_net(DIGESTS, LINE, (2, 0, 0)), (), id="digests-line"),
        pytest.param(
            epidemic_net(DIGESTS, LINE, (1, 1, 0), flaps=1),
            ("flapped", "waited"),
            id="digests-flaps",
        ),
        pytest.param(
            epidemic_net(DIGESTS, LINE, (1, 0, 0), crashes=1), ("crashed",), id="digests-crash"
        ),
        pytest.param(epidemic_net(RETRY, LINE, (1, 0, 0), losses=2), ("lost",), id="losses"),
        pytest.param(
            epidemic_net(RETRY, TRIANGLE, (1, 0, 0), losses=1), ("lost",), id="losses-triangle"
        ),
        pytest.param(
            epidemic_net(RETRY, LINE, (1, 0, 0), losses=1, doubles=1),
            ("lost", "doubled"),
            id="doubles",
        ),
        pytest.param(
            epidemic_net(RETRY, LINE, (1, 0, 0), losses=1, flaps=1), ("lost", "flapped"), id="both"
        ),
    ],
)
def test_the_stack_delivers_everything_whatever_the_order_of_frames(case, sometimes):
    assert_holds(CAUSAL, case, ("complete", *sometimes), make_core=make_epidemic)


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        (epidemic_net(FULL, LINE, (1, 1, 0), flaps=1), ("flapped",)),
        (epidemic_net(RETRY, PAIR, (1, 0), losses=1, crashes=1), ("lost", "crashed")),
        (epidemic_net(PUSH, LINE, (1, 0, 0), flaps=1, crashes=1), ("flapped", "crashed")),
    ],
    ids=["full caches and a flap", "a loss and a crash", "a flap and a crash"],
)
def test_two_kinds_of_faults_at_once(case, sometimes):
    assert_holds(CAUSAL, case, ("complete", *sometimes), make_core=make_epidemic)


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        (epidemic_net(PUSH, LINE, (1, 1, 0), **SOON), ("expire", "waited")),
        (
            epidemic_net(PUSH, PAIR, (1, 1), settings=1, skew_us=1, ahead_us=(0, 1), **SOON),
            ("set back",),
        ),
        (
            epidemic_net(PUSH, PAIR, (1, 1), shifts=1, shift_us=9, shift_span_us=9, **SOON),
            ("all set back", "all set forward"),
        ),
    ],
    ids=["expiry at every instant", "a clock is set", "all clocks are set"],
)
def test_lifetimes_over_the_whole_stack(case, sometimes):
    assert_holds(DELTA, case, sometimes, make_core=make_epidemic)


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        (group_net(PAIR, (2, 1)), ("waited",)),
        (group_net(TRIANGLE, (1, 1, 0)), ()),
        (group_net(LINE, (1, 1, 0), room_bytes=1), ()),
        (group_net(PAIR, (1, 1), pauses=2, room_bytes=1), ("closed",)),
        (group_net(PAIR, (1, 1), flaps=1, capacity=1), ("flapped",)),
        (
            group_net(PAIR, (1, 1), crashes=1, is_disk_late=True),
            ("crashed", "cut off", "lost before the disk had it", "restarted"),
        ),
    ],
    ids=["pair", "triangle", "little room", "closed", "full caches", "late disk and crash"],
)
def test_the_core_of_a_group_delivers_everything_through_the_smallest_window(case, sometimes):
    assert_holds(GROUP, case, ("complete", *sometimes), make_core=make_group)


@pytest.mark.parametrize("inbox", [False, True])
def test_a_crash_at_any_point_of_any_step_loses_nothing_that_was_saved(inbox):
    case = epidemic_net(NEWEST, PAIR, (1, 1), crashes=1, inbox=inbox)
    sometimes = ("complete", "crashed", "cut off", "restarted")
    assert_holds(CAUSAL, case, sometimes, make_core=make_epidemic)


def test_a_crash_at_any_point_among_three_nodes():
    case = epidemic_net(NEWEST, LINE, (1, 0, 0), crashes=1)
    sometimes = ("complete", "crashed", "cut off", "restarted")
    assert_holds(CAUSAL, case, sometimes, make_core=make_epidemic)


def test_the_explorer_finds_a_layer_that_does_not_retransmit():
    case = epidemic_net(NEWEST, LINE, (1, 0, 0), losses=1, is_unfair=True)
    found = explore(CAUSAL, case, 50_000, make_epidemic)
    assert "never delivered" in str(found.problem)
    net = make_net(CAUSAL, case, make_epidemic)
    assert all(net.do(move) for move in found.path), "the path is there to be played again"
    heal(net)
    assert net.problem == found.problem


class Amnesiac(Epidemic):
    """Restarts under its old name without its saved state."""

    def restore(self, now_us, rows, out):
        pass


def test_the_explorer_finds_a_restart_without_saved_rows():
    def make(case, node):
        return Amnesiac(node, Barrier(node), LeastDraws(), case.options.options, durable=True)

    case = epidemic_net(NEWEST, PAIR, (2, 0), crashes=2)
    found = explore(CAUSAL, case, 50_000, make)
    assert found.problem is not None
    assert any(move[0] in ("crash", "crash_after") for move in found.path)


def test_reaching_the_bound_on_states_is_reported():
    found = explore(CAUSAL, epidemic_net(NEWEST, TRIANGLE, (1, 1, 0)), 100, make_epidemic)
    assert not found.is_complete
    assert replace(found, is_complete=True) != found
