"""Small nets for the explorer: cores without randomness, on a pair, a line or a triangle."""

from __future__ import annotations

from typing import Any

from beforehand.check.explore.least_draws import LeastDraws
from beforehand.check.families.contacts import Setup
from beforehand.check.families.group import Setup as GroupSetup
from beforehand.check.families.group import make_member
from beforehand.check.net.case import Case
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.options import Flow, Options
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.stamped import Stamped

PAIR = ((0, 1),)
LINE = ((0, 1), (1, 2))
TRIANGLE = ((0, 1), (1, 2), (0, 2))

NEWEST = Options(transfer="newest")
RETRY = Options(transfer="newest", retry_us=10)
PUSH = Options(transfer="newest", push=True)
DIGESTS = Options(transfer="newest", push=True, digest_after=0)
FULL = Options(transfer="newest", capacity=1)
SKIPS = Options(transfer="newest", push=True, digest_after=0, capacity=1, patience_us=0)
"""Stores of one message: what follows an evicted message waits until it is skipped."""

SECOND_US = 1_000_000
LONG = Lifetimes(200 * SECOND_US, 200 * SECOND_US, SECOND_US)
"""Lifetimes so long that no message expires while the net is explored."""
SMALLEST = Flow(window=1, offers_max=1, pushes_max=1, announce_us=(0, 0), stall_us=4 * SECOND_US)
"""Flow control that a single message exhausts. Announcements do not wait for a timer."""

Edges = tuple[tuple[int, int], ...]


def epidemic_net(
    options: Options,
    edges: Edges,
    broadcasts: tuple[int, ...],
    lifetimes: Lifetimes | None = None,
    **rest: Any,
) -> Case:
    """Return a net of epidemic cores under the causal order or, with lifetimes, the Δ-causal order.

    All edges are up at the start. rest: fault budgets, and other fields of `Case`."""
    setup = Setup(options, lifetimes)
    return Case(len(broadcasts), broadcasts, setup, edges=edges, is_linked=True, **rest)


def make_epidemic(case: Case, node: int) -> Epidemic:
    """Return the core of a node in an `epidemic_net`."""
    setup = case.options
    order = Barrier(node, setup.lifetimes)
    return Epidemic(node, order, LeastDraws(), setup.options, durable=case.is_mortal)


def make_stamped(case: Case, node: int) -> Epidemic:
    """Return the core of a node in an `epidemic_net` under the stamped order."""
    setup = case.options
    assert setup.lifetimes is not None, "can't happen: the order needs them"
    order = Stamped(node, setup.lifetimes)
    return Epidemic(node, order, LeastDraws(), setup.options, durable=case.is_mortal)


def group_net(
    edges: Edges,
    broadcasts: tuple[int, ...],
    flow: Flow = SMALLEST,
    *,
    capacity: int | None = None,
    order: str = "delta",
    **rest: Any,
) -> Case:
    """Return a net of the cores that `Group` runs, or of such cores under another order."""
    setup = GroupSetup(LONG, flow=flow, capacity=capacity, order=order, patience_us=0)
    return Case(len(broadcasts), broadcasts, setup, edges=edges, is_linked=True, **rest)


def make_group(case: Case, node: int) -> PacedEpidemic:
    """Return the core of a node in a `group_net`."""
    return make_member(case, node, LeastDraws())
