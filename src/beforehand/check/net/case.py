"""What a net is made of, and what the checkers need to know of a family of cores."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beforehand.check.net.thresholds import Thresholds
from beforehand.check.rules.oracle import Violation
from beforehand.protocols.contract.base import Core, Counters, Message, MessageId
from beforehand.protocols.contract.needs import LinkKind

if TYPE_CHECKING:
    from beforehand.check.net.net import Net


TROUBLES = (
    *("losses", "doubles", "flaps", "crashes"),
    *("suspicions", "leaves", "settings", "shifts", "hastes", "pauses"),
)
"""Of which a case has so many, and each that happens is one less."""


@dataclass(frozen=True)
class Case:
    """What a net is made of, and how much trouble there may be in it."""

    nodes: int
    broadcasts: tuple[int, ...]
    """How many messages each node broadcasts."""
    options: Any = None
    """The family's own."""
    lifetimes_us: tuple[int | None, ...] = (None,)
    """What a broadcast may ask for."""
    edges: tuple[tuple[int, int], ...] | None = None
    """For contacts: who can meet whom; None: anybody. For cells: the wires of the stations."""
    is_linked: bool = False
    """All of these are in contact from the start; for cells: every host is in one, and has joined.
    """
    stations: int = 0
    """For cells: the first so many nodes are stations, all others are hosts."""
    absent: tuple[int, ...] = ()
    """Not there at the start; a restart brings them."""
    skew_us: int = 0
    """All clocks lie within this."""
    ahead_us: tuple[int, ...] = ()
    """How far each of them is ahead at the start."""
    delay_us_max: int | None = None
    """A frame that is not lost arrives, and a link's change is heard of, within this time."""
    inbox: bool = False
    losses: int = 0
    doubles: int = 0
    flaps: int = 0
    crashes: int = 0
    mortal: tuple[int, ...] | None = None
    """Who may crash; None: anybody."""
    suspicions: int = 0
    leaves: int = 0
    """How many go for good."""
    settings: int = 0
    """How often a clock may be set."""
    shifts: int = 0
    """How often all clocks may be set at once."""
    shift_us: int = 0
    """How far all clocks are ahead of true time at the start."""
    shift_span_us: int = 0
    """So far from there they may fall, and as far they may jump."""
    pauses: int = 0
    """How often the program of a node may stop reading."""
    room_bytes: int | None = None
    """What a wire takes before it must be empty again, where cores have flow control."""
    is_disk_late: bool = False
    """Whether the disk has what a node saves only after a move `flush`."""
    hastes: int = 0
    """For the explorer: how many timers may fire while something is on its way."""
    thresholds: Thresholds = "as shipped"
    """Whether the registries of the cores are swept at sizes that a small net reaches."""
    is_unfair: bool = False
    """Break what the core needs, to see it fail."""

    @property
    def is_calm(self) -> bool:
        trouble = self.losses or self.doubles or self.flaps or self.suspicions or self.leaves
        return not (trouble or self.is_mortal)

    @property
    def is_mortal(self) -> bool:
        return bool(self.crashes or self.absent)


class Family(ABC):
    """All that the checkers need to know of a family of cores."""

    name: str
    kind: LinkKind
    """How its nodes are linked."""
    learns = False
    """Whether a node that receives a message knows of it at once, delivered or not."""
    sights: tuple[str, ...]
    """What a swarm of seeds must have seen: one in which nothing waits proves nothing."""

    @abstractmethod
    def draw(self, rng: random.Random) -> Case:
        """A case for the fuzzer, from small and calm to large and hostile."""

    @abstractmethod
    def make_core(self, case: Case, node: int) -> Core[Any]: ...

    @abstractmethod
    def problems(self, net: Net) -> Iterator[str]:
        """What is wrong, now that the net is healed and quiet. Deliveries are judged already."""

    def judges(self, violation: Violation) -> bool:
        """Whether it promises that this does not happen."""
        return True

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        """What is wrong with a delivery besides its place in the order."""
        if message.payload == net.payloads.get(message.id, message.payload):
            return None
        return f"node {node} delivered {message.id} with other words than were said"

    def sent(self, net: Net, target: int, frame: Any) -> None:  # noqa: B027
        """A frame has left for a node, whether it arrives or not."""

    def look(self, net: Net, node: int) -> Iterator[str]:
        """What is worth seeing at a node after one of its steps."""
        return iter(())

    def hostile(self, case: Case) -> Collection[int]:
        """The nodes that send whatever they like."""
        return ()

    def broken_rule(self, net: Net, node: int) -> str | None:
        """The rule that the state of a node breaks after one of its steps."""
        return None

    def breach(self, net: Net, node: int, frame: Any) -> str | None:
        """The rule that a node breaks by sending this frame now."""
        return None

    def forget_counts(self, core: Any) -> None:
        """Counts of the past would keep equal states apart."""
        for name in Counters.__struct_fields__:
            setattr(core.counters, name, 0)

    def forget_history(self, case: Case, core: Any) -> None:
        """Remove from the state of a core what no later step depends on."""
        self.forget_counts(core)

    def canonical_frame(self, case: Case, frame: Any) -> Any:
        """Return a frame without what no receiver reads."""
        return frame

    def is_time_relative(self, net: Net) -> bool:
        """Return whether only differences between instants matter: if all clocks and all instants
        in the states of cores are moved by the same amount, everything happens as before. Then
        the explorer sets the time of every state to 0, and calls `move_back`."""
        return False

    def move_back(self, case: Case, core: Any, us: int, now_us: int) -> None:  # noqa: B027
        """Move all instants in the state of a core into the past by `us`. now_us: what the clock
        of the node shows after that."""


def honest(net: Net) -> list[int]:
    """The nodes that keep to the protocol, and of which something is promised."""
    hostile = net.family.hostile(net.case)
    return [node for node in range(net.case.nodes) if node not in hostile]


def had(net: Net, node: int) -> set[MessageId]:
    """What was delivered at a node, or was to be when a crash cut it off."""
    cut_off = () if net.case.inbox else net.drivers[node].cut_off
    return {*net.oracle.delivered[node], *(message.id for message in cut_off)}


def never_delivered(
    net: Net,
    due: Collection[MessageId],
    excused: Callable[[Net, int, Collection[MessageId]], set[MessageId]] = lambda *_: set(),
) -> Iterator[str]:
    """For families that promise it: what should have been delivered and was not. A delivery that a
    crash cut off is lost, unless there is an inbox. excused: what a node need not have delivered
    yet."""
    for node in honest(net):
        missing = set(due) - had(net, node)
        if missing and (missing := missing - excused(net, node, due)):
            yield f"node {node} never delivered {sorted(missing, key=str)}"


def lost_in_silence(net: Net) -> Iterator[str]:
    """What a node received and neither delivered nor gave up must wait, or have expired."""
    for node, id in sorted(net.held, key=str):
        driver = net.drivers[node]
        state = driver.core.explain(id).state
        handed_over = {*net.oracle.delivered[node], *(message.id for message in driver.cut_off)}
        if state not in ("waiting", "expired") and id not in handed_over:
            yield f"node {node} received {id} and lost it in silence: {state}"


def held_for_no_reason(net: Net) -> Iterator[str]:
    """`explain` must be able to say what a message waits for."""
    for node, driver in enumerate(net.drivers):
        for id in net.oracle.pasts:
            fate = driver.core.explain(id)
            if fate.state == "waiting" and not fate.missing and fate.until_us is None:
                yield f"node {node} holds {id} for no reason"
