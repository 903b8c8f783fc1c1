"""Every interleaving of small systems; and each kind of bug is found when it is there."""

import pytest

from beforehand.check.explore import explore
from beforehand.check.systems import OrderSystem, StackSystem
from beforehand.core.barrier import Barrier
from beforehand.core.epidemic import Epidemic, Options
from beforehand.core.order import Lifetimes
from beforehand.core.unordered import Unordered
from beforehand.core.vector import Vector


class Still:
    """Stands in for randomness: every choice is the first. Small, so that states stay small."""

    def randrange(self, stop):
        return 0


def assert_holds(system, states_max=200_000):
    found = explore(system, states_max)
    assert found.problem is None, f"{found.problem} after {found.path}"
    assert found.is_complete, f"more than {states_max} states"
    assert set(system.sometimes) <= found.seen, "this exploration proves less than it seems to"
    return found


def all_speakers(messages):
    """Who speaks when, up to a renaming of equal nodes: a new speaker is the next unused node."""
    found = [()]
    for _ in range(messages):
        found = [(*head, n) for head in found for n in range(min(3, max(head, default=-1) + 2))]
    return found


@pytest.mark.parametrize("speakers", all_speakers(3))
@pytest.mark.parametrize("order", [Barrier, Vector])
def test_causal_order_in_every_interleaving_of_three_messages(order, speakers):
    sometimes = ("complete", "repeated", "waited")
    assert_holds(OrderSystem(order, nodes=3, speakers=speakers, repeats=1, sometimes=sometimes))


@pytest.mark.parametrize("speakers", all_speakers(4))
def test_causal_order_in_every_interleaving_of_four_messages(speakers):
    assert len(all_speakers(4)) == 14
    assert_holds(OrderSystem(Barrier, nodes=3, speakers=speakers))


@pytest.mark.parametrize("speakers", [(0, 1, 2), (0, 1, 1), (0, 0, 1)])
def test_delta_causal_order_with_expiry_at_every_instant(speakers):
    lifetimes = Lifetimes(5, 5, skew_us=0)
    system = OrderSystem(
        lambda node: Barrier(node, lifetimes),
        nodes=3,
        speakers=speakers,
        lifetimes_us=(2, 5),
        expects_all=False,
        sometimes=("waited", "complete", "gave_up_predecessor"),
    )
    assert_holds(system, 400_000)


CLOCKS = [(0, 2, 0), (2, 0, 0), (0, 0, 2)]


@pytest.mark.parametrize("offsets_us", CLOCKS)
def test_delta_causal_order_with_clocks_apart(offsets_us):
    lifetimes = Lifetimes(3, 3, skew_us=2)
    system = OrderSystem(
        lambda node: Barrier(node, lifetimes),
        nodes=3,
        speakers=(0, 1, 1),
        lifetimes_us=(3,),
        offsets_us=offsets_us,
        expects_all=False,
        sometimes=("waited", "complete", "gave_up_predecessor"),
    )
    assert_holds(system, 400_000)


@pytest.mark.parametrize(
    ("lifetimes_us", "offsets_us"), [((2, 5), (0, 0, 0)), ((3,), (0, 2, 0))], ids=["lives", "skew"]
)
def test_the_explorer_finds_what_is_wrong_with_the_literal_deadlines(lifetimes_us, offsets_us):
    lifetimes = Lifetimes(5, 5, skew_us=2)
    system = OrderSystem(
        lambda node: Barrier(node, lifetimes, literal_deadlines=True),
        nodes=3,
        speakers=(0, 1, 1),
        lifetimes_us=lifetimes_us,
        offsets_us=offsets_us,
        expects_all=False,
    )
    found = explore(system, 400_000)
    assert found.problem is not None
    assert "causally follows" in found.problem


def test_the_explorer_finds_that_no_order_is_no_causal_order():
    found = explore(OrderSystem(Unordered, nodes=3, speakers=(0, 1)), 10_000)
    assert "causally follows" in str(found.problem)
    assert [move[0] for move in found.path] == [
        "broadcast",
        "receive",
        "broadcast",
        "receive",
        "receive",
    ]


def make_stack(options):
    return lambda node: Epidemic(node, Barrier(node), Still(), options)


LINE, TRIANGLE = ((0, 1), (1, 2)), ((0, 1), (1, 2), (0, 2))
NEWEST, RETRY = Options(transfer="newest"), Options(transfer="newest", retry_us=10)


@pytest.mark.parametrize(
    ("options", "edges", "extra"),
    [
        pytest.param(NEWEST, LINE, {"speakers": (0, 1)}, id="line"),
        pytest.param(NEWEST, TRIANGLE, {"speakers": (0, 1)}, id="triangle"),
        pytest.param(NEWEST, TRIANGLE, {"speakers": (0,), "flaps": 2}, id="flaps"),
        pytest.param(RETRY, LINE, {"speakers": (0,), "losses": 2}, id="losses"),
        pytest.param(RETRY, TRIANGLE, {"speakers": (0,), "losses": 1}, id="losses-triangle"),
        pytest.param(RETRY, LINE, {"speakers": (0,), "losses": 1, "doubles": 1}, id="doubles"),
        pytest.param(RETRY, LINE, {"speakers": (0,), "losses": 1, "flaps": 1}, id="both"),
    ],
)
def test_the_stack_delivers_everything_whatever_the_order_of_frames(options, edges, extra):
    assert_holds(StackSystem(make_stack(options), nodes=3, edges=edges, **extra), 400_000)


def test_the_explorer_finds_a_layer_that_does_not_repeat_what_is_lost():
    system = StackSystem(make_stack(NEWEST), nodes=3, edges=LINE, speakers=(0,), losses=1)
    assert "all is quiet" in str(explore(system, 50_000).problem)
