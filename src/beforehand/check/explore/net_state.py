"""The state of a net apart from its nodes and frames in transit, as tuples and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from beforehand.check.explore.names import NamedPayload, Renaming, renamed
from beforehand.check.net.net import Net
from beforehand.check.rules.oracle import Oracle
from beforehand.protocols.contract.base import MessageId
from beforehand.protocols.orders.order import LONG_AGO

Time = Literal["absolute", "bounded", "relative", "none"]
"""The information about time that a state keeps.

- *absolute*: the time itself.
- *bounded*: also when each frame was sent, because a frame must arrive within the maximum delay.
- *relative*: only the differences between instants.
- *none*: nothing; any timer may fire next."""


def time_of(net: Net) -> Time:
    """Return the information about time that the states of a net must keep."""
    if net.family.kind == "cell":
        # Hosts and stations retransmit for ever: to them, time is only an order of events.
        return "none"
    if net.case.delay_us_max is not None:
        return "bounded"
    return "relative" if net.family.is_time_relative(net) else "absolute"


class NetState(NamedTuple):
    """The state of a net without its nodes, its frames and its oracle, as sorted tuples."""

    timers: tuple[Any, ...]
    contacts: tuple[Any, ...]
    suspected: tuple[Any, ...]
    notices: tuple[Any, ...]
    clocks_us: tuple[int, ...]
    """The shift of all clocks, the highest reading, and the offset of each node."""
    now_us: int
    broadcasts: tuple[int, ...]
    left: tuple[Any, ...]
    carried: tuple[Any, ...]
    held: tuple[Any, ...]
    reported_lost: tuple[Any, ...]
    dropped: tuple[Any, ...]
    payloads: tuple[Any, ...]
    deadlines: tuple[Any, ...]
    floors: tuple[Any, ...]
    closed: tuple[int, ...]
    unsaved: tuple[Any, ...]
    problem: str | None


def freeze_net_state(net: Net, time: Time) -> NetState:
    """Return the state of a net without its nodes, its frames and its oracle."""
    past_us = net.now_us if time == "relative" else 0
    dues = ((key, max(net.now_us, due_us) - past_us) for key, (due_us, _) in net.timers.items())
    highest_us = max(LONG_AGO, net.highest_us - past_us)
    return NetState(
        timers=() if time == "none" else tuple(sorted(dues)),
        contacts=tuple(sorted(net.contacts)),
        suspected=tuple(sorted(net.suspected)),
        notices=tuple((*item[:3], item[3] if time == "bounded" else 0) for item in net.notices),
        clocks_us=(net.shift_us, highest_us, *net.offsets_us),
        now_us=0 if time == "none" else net.now_us - past_us,
        broadcasts=tuple(net.broadcasts),
        left=tuple(sorted(net.left.items())),
        carried=tuple(sorted(net.carried.items())),
        held=tuple(sorted(net.held)),
        reported_lost=tuple(sorted(net.reported_lost)),
        dropped=tuple(sorted(net.dropped)),
        payloads=tuple(sorted(net.payloads.items())),
        deadlines=tuple(sorted(net.deadlines.items())),
        floors=tuple(sorted(net.floors.items())),
        closed=tuple(sorted(net.closed)),
        unsaved=tuple(sorted((node, tuple(calls)) for node, calls in net.unsaved.items())),
        problem=net.problem,
    )


def thaw_net_state(net: Net, rest: NetState, time: Time) -> None:
    """Restore that state in a net whose nodes are already thawed."""
    net.now_us = rest.now_us
    net.timers = {key: (due_us, 1) for key, due_us in rest.timers}
    if time == "none":
        drivers = enumerate(net.drivers)
        net.timers = {(node, t): (0, 1) for node, driver in drivers for t in driver._timers}
    net.contacts, net.suspected = set(rest.contacts), set(rest.suspected)
    net.notices = list(rest.notices)
    net.shift_us, net.highest_us, *net.offsets_us = rest.clocks_us
    net.broadcasts = list(rest.broadcasts)
    for counts, saved in ((net.left, rest.left), (net.carried, rest.carried)):
        counts.clear()
        dict.update(counts, saved)  # Counter.update is slow
    net.held, net.reported_lost = set(rest.held), set(rest.reported_lost)
    net.dropped, net.payloads = set(rest.dropped), dict(rest.payloads)
    net.deadlines, net.floors = dict(rest.deadlines), dict(rest.floors)
    net.closed = set(rest.closed)
    net.unsaved = {node: list(calls) for node, calls in rest.unsaved}
    net.problem = rest.problem


def rename_net_state(rest: NetState, renaming: Renaming) -> NetState:
    """Return the state with all nodes renamed, for a net of contacts without flow control."""

    def new(node: int) -> int:
        return renaming[node]

    def by_node(values: tuple[Any, ...]) -> list[Any]:
        return [values[renaming.index(node)] for node in range(len(values))]

    return rest._replace(
        timers=tuple(sorted(((new(node), timer), due) for (node, timer), due in rest.timers)),
        contacts=tuple(sorted(tuple(sorted((new(a), new(b)))) for a, b in rest.contacts)),
        notices=tuple((new(node), new(peer), *item) for node, peer, *item in rest.notices),
        clocks_us=(*rest.clocks_us[:2], *by_node(rest.clocks_us[2:])),
        broadcasts=tuple(by_node(rest.broadcasts)),
        held=tuple(sorted((new(node), _new_id(id, renaming)) for node, id in rest.held)),
        reported_lost=tuple(
            sorted((new(node), _new_id(id, renaming)) for node, id in rest.reported_lost)
        ),
        dropped=tuple(sorted((new(a), new(b), _new_id(id, renaming)) for a, b, id in rest.dropped)),
        floors=tuple(sorted((new(node), floor) for node, floor in rest.floors)),
        deadlines=tuple(sorted((_new_id(id, renaming), us) for id, us in rest.deadlines)),
        payloads=tuple(
            sorted(
                (_new_id(i, renaming), renamed(NamedPayload(w), renaming)) for i, w in rest.payloads
            )
        ),
    )


def _new_id(id: MessageId, renaming: Renaming) -> MessageId:
    assert isinstance(id[0], int)
    return renaming[id[0]], id[1]


# ---- the oracle ---------------------------------------------------------------------------------


def freeze_oracle(oracle: Oracle, listeners: Collection[int]) -> tuple[Any, ...]:
    """Return the part of the oracle's state that can affect later judgements.

    A message that all listeners have delivered can only be delivered twice, which is judged before
    lateness. So it no longer matters whose causal past contains it."""
    every = [set(oracle.delivered[node]) for node in listeners]
    settled = set.intersection(*every)
    return (
        tuple(sorted((id, tuple(sorted(past - settled))) for id, past in oracle.pasts.items())),
        *(
            tuple(sorted((node, tuple(sorted(ids))) for node, ids in of.items() if ids))
            for of in (
                oracle.delivered,
                {node: ids - settled for node, ids in oracle._known.items()},
                {node: ids - settled for node, ids in oracle._overtaken.items()},
            )
        ),
    )


def thaw_oracle(state: tuple[Any, ...]) -> Oracle:
    oracle = Oracle()
    pasts, delivered, known, overtaken = state
    oracle.pasts = {id: frozenset(past) for id, past in pasts}
    oracle.delivered = defaultdict(list, {node: list(ids) for node, ids in delivered})
    oracle._known = defaultdict(set, {node: set(ids) for node, ids in known})
    oracle._overtaken = defaultdict(set, {node: set(ids) for node, ids in overtaken})
    return oracle


def rename_oracle(state: tuple[Any, ...], renaming: Renaming) -> tuple[Any, ...]:
    """Return the oracle's state with all nodes renamed."""

    def new(ids: tuple[MessageId, ...]) -> tuple[MessageId, ...]:
        return tuple(sorted(_new_id(id, renaming) for id in ids))

    pasts, *by_node = state
    return (
        tuple(sorted((_new_id(id, renaming), new(past)) for id, past in pasts)),
        *(tuple(sorted((renaming[node], new(ids)) for node, ids in of)) for of in by_node),
    )
