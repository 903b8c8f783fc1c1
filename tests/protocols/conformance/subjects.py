"""The test subjects: every family of `check.families.FAMILIES`, with the cases that it draws.

A new family needs no entry here. If its links are of a new kind, `FACTS` needs one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from beforehand.check.families import FAMILIES
from beforehand.check.families.observer import Process
from beforehand.check.net.case import Case, Family
from beforehand.check.net.net import Net
from beforehand.check.rules.oracle import Violation
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Message, MessageId, Timer
from beforehand.protocols.contract.needs import LinkKind
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.sender import RETRY_TIMER
from beforehand.protocols.observer.observer import Stamped
from beforehand.protocols.observer.timestamp import Stamp
from beforehand.protocols.orders.order import ORDER_TIMER
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet, VCubeMessage

NODES_MAX = 6
SAYS_MAX = 4
"""Bounds of the drawn cases: a crash test replays its run for every effect of every step."""
DRAWS_MAX = 1_000

BadInput = tuple[type[Exception], str, tuple[Any, ...]]


class Subject(Family):
    """A family under test.

    durable: only cases in which nodes may crash, with cores that save their state; otherwise only
    cases without crashes, as the family draws them. The tests crash nodes themselves, so the runs
    of both contain no crash.
    """

    def __init__(self, family: Family, *, durable: bool) -> None:
        self.family, self.is_durable = family, durable
        self.name = f"{family.name}, durable" if durable else family.name
        self.kind, self.learns, self.sights = family.kind, family.learns, family.sights

    def draw(self, rng: random.Random) -> Case:
        for _ in range(DRAWS_MAX):
            case = self.family.draw(rng)
            if case.nodes - case.stations <= NODES_MAX and bool(case.crashes) == self.is_durable:
                break
        else:
            raise AssertionError(f"{self.name} draws no case with at most {NODES_MAX} nodes")
        case = replace(case, options=_with_sound_signers(case.options), shifts=0, shift_us=0)
        ahead_us = tuple(rng.choice((0, case.skew_us)) for _ in range(case.nodes))
        broadcasts = tuple(min(count, SAYS_MAX) for count in case.broadcasts)
        calm = {"crashes": 0, "leaves": 0, "absent": (), "is_linked": False}
        return replace(case, broadcasts=broadcasts, ahead_us=ahead_us, **calm)

    def make_core(self, case: Case, node: int, durable: bool | None = None) -> Any:
        crashes = int(self.is_durable if durable is None else durable)
        return self.family.make_core(replace(case, crashes=crashes, absent=()), node)

    def judges(self, violation: Violation) -> bool:
        return self.family.judges(violation)

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        return self.family.flaw(net, node, message)

    def sent(self, net: Net, target: int, frame: Any) -> None:
        self.family.sent(net, target, frame)

    def look(self, net: Net, node: int) -> Iterator[str]:
        return self.family.look(net, node)

    def hostile(self, case: Case) -> Collection[int]:
        return self.family.hostile(case)

    def broken_rule(self, net: Net, node: int) -> str | None:
        return self.family.broken_rule(net, node)

    def breach(self, net: Net, node: int, frame: Any) -> str | None:
        return self.family.breach(net, node, frame)

    def problems(self, net: Net) -> Iterator[str]:
        return self.family.problems(net)

    def case(self, seed: int = 0) -> Case:
        return self.draw(random.Random(seed))


def _with_sound_signers(options: Any) -> Any:
    """A signer that fails has tests of its own (`test_failed_inputs`); hostile nodes too."""
    if hasattr(options, "signs"):
        return replace(options, signs=None)
    if hasattr(options, "hostile"):
        return replace(options, signing="sound", hostile=0)
    return replace(options, signing="none") if hasattr(options, "signing") else options


# ---- what the tests know of a kind of links -----------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """The facts of a topology that do not depend on the family."""

    bad_inputs: Callable[[Case], list[BadInput]]
    """For the node `misused`, which is linked to node 1 if nodes have contacts: the error, the
    name of the input, its arguments."""
    misused: Callable[[Case], int]
    due: Callable[[Net, int], set[MessageId]]
    """The messages that a node must have delivered in a healed net."""
    victims: Callable[[Case], tuple[int, ...]]
    """The nodes that may crash."""
    unused_timers: Callable[[Case], list[Timer]] = lambda _: []
    """Timers that the family sets in other cases, but not in this one."""


def lifetimes_of(case: Case) -> Any:
    """The `Lifetimes` of a case, None if its messages do not expire."""
    return getattr(case.options, "lifetimes", None)


def options_of(case: Case) -> Any:
    """The `Options` of the epidemic layer of a case."""
    return case.options.options


def _contact_bad_inputs(case: Case) -> list[BadInput]:
    lifetimes = lifetimes_of(case)
    bad_us = (0, -1, lifetimes.longest_us + 1) if lifetimes else (1, 0)
    return [
        *((LocalError, "on_broadcast", (b"", us)) for us in bad_us),
        (RemoteError, "on_message", (1, Packet(0, ()))),
    ]


def _contact_due(net: Net, node: int) -> set[MessageId]:
    """With lifetimes: what has not expired and waits for nothing that will expire."""
    ids = set(net.oracle.pasts)
    if lifetimes_of(net.case) is None:
        return ids
    explain = net.drivers[node].core.explain
    alive = {id for id in ids if id[1] > net.now_us + net.case.skew_us}
    return {id for id in alive if not explain(id).missing}


def _contact_unused_timers(case: Case) -> list[Timer]:
    options = options_of(case)
    is_set = {
        ANNOUNCE_TIMER: options.announce_us or hasattr(case.options, "flow"),
        RETRY_TIMER: options.retry_us,
        ORDER_TIMER: lifetimes_of(case),
    }
    return [timer for timer, used in is_set.items() if not used]


def _detector_bad_inputs(case: Case) -> list[BadInput]:
    strange = VCubeMessage((1, 1), ((99, 1),), b"")
    inputs: list[BadInput] = [
        (LocalError, "on_broadcast", (b"", 5)),
        (LocalError, "on_link", (99, True)),
        (LocalError, "on_link", (0, False)),
        (LocalError, "on_link", ("x", True)),
        (RemoteError, "on_message", (99, Packet(0, ()))),
        (RemoteError, "on_message", (1, Packet(77, ()))),
        (RemoteError, "on_message", (1, Packet(0, (strange,)))),
        (RemoteError, "on_message", (1, Ask((1,)))),
        (RemoteError, "on_message", (1, Answer((1, -1, *(0,) * (case.nodes - 2))))),
        (RemoteError, "on_message", (1, Known(0))),
    ]
    if not case.options.keep_us:
        own = VCubeMessage((0, 99), (), b"")
        inputs += [
            (RemoteError, "on_message", (1, Packet(0, (own,)))),
            (RemoteError, "on_message", (1, Ask((0,) * case.nodes))),
        ]
    return inputs


def _detector_due(net: Net, node: int) -> set[MessageId]:
    """All but the messages that no node keeps any more."""
    explain = net.drivers[node].core.explain
    missed = {id for id in net.oracle.pasts if explain(id).state == "missed"}
    return set(net.oracle.pasts) - missed


def _feed_bad_inputs(case: Case) -> list[BadInput]:
    short = Stamped(Message((0, 1), (), b""), 0, Stamp(0, 0, ()))
    return [(RemoteError, "on_message", (0, short))]


def _feed_due(net: Net, node: int) -> set[MessageId]:
    """All that the observer received and saved."""
    return {id for who, id in net.held if who == node} | set(net.oracle.delivered[node])


def _cell_due(net: Net, node: int) -> set[MessageId]:
    """Its own messages, and of every other origin what follows the first that the host got.
    Stations with limited patience forget a silent host, and nothing is promised to it."""
    pace = getattr(net.case.options, "pace", None)
    if pace is not None and pace.patience_us is not None:
        return set()
    has = {*net.oracle.delivered[node], *(m.id for m in net.drivers[node].cut_off)}
    first = {origin: min(seq for o, seq in has if o == origin) for origin, _ in has}
    first[node] = 0
    return {id for id in net.oracle.pasts if id[1] >= first.get(id[0], id[1] + 1)}


FACTS: dict[LinkKind, Facts] = {
    "contact": Facts(
        _contact_bad_inputs,
        misused=lambda _: 0,
        due=_contact_due,
        victims=lambda case: tuple(range(case.nodes)),
        unused_timers=_contact_unused_timers,
    ),
    "detector": Facts(
        _detector_bad_inputs,
        misused=lambda _: 0,
        due=_detector_due,
        victims=lambda case: tuple(range(case.nodes)),
    ),
    "feed": Facts(
        _feed_bad_inputs,
        misused=lambda case: case.nodes - 1,
        due=_feed_due,
        victims=lambda case: (case.nodes - 1,),
    ),
    "cell": Facts(
        lambda _: [(LocalError, "on_broadcast", (b"", 5))],
        misused=lambda case: case.stations,
        due=_cell_due,
        victims=lambda case: tuple(range(case.stations, case.nodes)),
    ),
}


# ---- the table ----------------------------------------------------------------------------------


def _crashes(family: Family) -> bool:
    """Whether the family draws cases in which nodes crash."""
    rng = random.Random(0)
    return any(family.draw(rng).crashes for _ in range(100))


SUBJECTS = [
    Subject(family, durable=durable)
    for family in FAMILIES.values()
    for durable in ((False, True) if _crashes(family) else (False,))
]


def subjects(*, only: Callable[[Subject], bool] = lambda _: True) -> pytest.MarkDecorator:
    chosen = [pytest.param(subject, id=subject.name) for subject in SUBJECTS if only(subject)]
    return pytest.mark.parametrize("subject", chosen)


def runs(count: int) -> Callable[..., Any]:
    """So many random runs. A seed does not shrink, so hypothesis does not try."""
    given_seed = given(seed=st.integers(0, (1 << 32) - 1))
    return lambda test: settings(max_examples=count, phases=[Phase.explicit, Phase.generate])(
        given_seed(test)
    )


def is_watched(core: Any) -> bool:
    """A `Process` belongs to the scenery of the observer: it is no core under test."""
    return not isinstance(core, Process)
