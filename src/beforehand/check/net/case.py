"""The configuration of a net (`Case`), and the interface of a protocol family to the checkers."""

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
    *("suspicions", "leaves", "settings", "shifts", "early_timers", "pauses"),
)
"""The kinds of faults. A case has a budget for each kind, and every injected fault consumes one."""


@dataclass(frozen=True)
class Case:
    """The configuration of a net: its nodes, clocks and links, and a budget for each fault."""

    nodes: int
    broadcasts: tuple[int, ...]
    """How many messages each node broadcasts."""
    options: Any = None
    """Options of the protocol family."""
    lifetimes_us: tuple[int | None, ...] = (None,)
    """The lifetimes that a broadcast may request; None: no lifetime."""
    edges: tuple[tuple[int, int], ...] | None = None
    """For contacts: the pairs of nodes that can be linked; None: all pairs. For cells: the wires
    between stations."""
    is_linked: bool = False
    """For contacts: all `edges` are up at the start. For cells: every host has joined."""
    stations: int = 0
    """For cells: the number of stations. They are the first nodes; all other nodes are hosts."""
    absent: tuple[int, ...] = ()
    """The nodes that are down at the start. A `restart` move brings them up."""
    skew_us: int = 0
    """The largest difference between any two clocks."""
    ahead_us: tuple[int, ...] = ()
    """How far the clock of each node is ahead at the start."""
    delay_us_max: int | None = None
    """The maximum delay of a link notification, and of a frame that is not lost."""
    inbox: bool = False
    losses: int = 0
    doubles: int = 0
    flaps: int = 0
    crashes: int = 0
    mortal: tuple[int, ...] | None = None
    """The nodes that may crash; None: all nodes."""
    suspicions: int = 0
    leaves: int = 0
    """How many hosts may leave permanently."""
    settings: int = 0
    """How often a single clock may be set."""
    shifts: int = 0
    """How often all clocks may be set at once."""
    shift_us: int = 0
    """How far all clocks are ahead of true time at the start."""
    shift_span_us: int = 0
    """The maximum distance from `shift_us`, backward or forward, to which all clocks may be set."""
    pauses: int = 0
    """How often the application of a node may stop reading."""
    room_bytes: int | None = None
    """The bytes that a wire accepts before it must drain; only for cores with flow control."""
    is_disk_late: bool = False
    """Whether a node's saves reach the disk only at a `flush` move."""
    early_timers: int = 0
    """For the explorer: how many timers may fire while the net is not silent."""
    thresholds: Thresholds = "as shipped"
    """With "low", the cores sweep their registries at sizes that a small net reaches."""
    is_unfair: bool = False
    """Whether to violate the needs of the core on purpose, to see it fail."""

    @property
    def is_calm(self) -> bool:
        trouble = self.losses or self.doubles or self.flaps or self.suspicions or self.leaves
        return not (trouble or self.is_mortal)

    @property
    def is_mortal(self) -> bool:
        return bool(self.crashes or self.absent)


class Family(ABC):
    """Everything that the checkers need to know about a protocol family."""

    name: str
    kind: LinkKind
    """The kind of link between its nodes."""
    learns = False
    """Whether a message enters a node's causal past at its reception rather than its delivery."""
    sights: tuple[str, ...]
    """The situations that a swarm of seeds must reach. Without them a pass proves little."""

    @property
    def stream(self) -> str:
        """The name of the random stream from which its cases are drawn."""
        return self.name

    @abstractmethod
    def draw(self, rng: random.Random) -> Case:
        """Draw a case for the fuzzer, from small without faults to large with many faults."""

    @abstractmethod
    def make_core(self, case: Case, node: int) -> Core[Any]: ...

    @abstractmethod
    def problems(self, net: Net) -> Iterator[str]:
        """Yield the broken promises of a healed net at rest. Deliveries are already judged."""

    def judges(self, violation: Violation) -> bool:
        """Return whether the family promises that this violation never happens."""
        return True

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        """Return what is wrong with a delivery apart from its position in the order, or None."""
        if message.payload == net.payloads.get(message.id, message.payload):
            return None
        return f"node {node} delivered {message.id} with another payload than was broadcast"

    def sent(self, net: Net, target: int, frame: Any) -> None:  # noqa: B027
        """Record that a frame was sent to a node, whether or not it arrives."""

    def look(self, net: Net, node: int) -> Iterator[str]:
        """Yield the noteworthy situations at a node after one of its steps."""
        return iter(())

    def hostile(self, case: Case) -> Collection[int]:
        """Return the nodes that send arbitrary frames."""
        return ()

    def broken_rule(self, net: Net, node: int) -> str | None:
        """Return the rule that the state of a node breaks after one of its steps, or None."""
        return None

    def breach(self, net: Net, node: int, frame: Any) -> str | None:
        """Return the rule that a node breaks by sending this frame now, or None."""
        return None

    def forget_counts(self, core: Any) -> None:
        """Reset the counters of a core: with them, otherwise equal states would differ."""
        for name in Counters.__struct_fields__:
            setattr(core.counters, name, 0)

    def forget_history(self, case: Case, core: Any) -> None:
        """Remove from the state of a core everything that no later step depends on."""
        self.forget_counts(core)

    def canonical_frame(self, case: Case, frame: Any) -> Any:
        """Return the frame without the fields that no receiver reads."""
        return frame

    def is_time_relative(self, net: Net) -> bool:
        """Return whether only differences between instants matter.

        If so, moving all clocks and all instants in the states of cores by the same amount changes
        no transition. The explorer then sets the time of every state to 0 and calls `move_back`."""
        return False

    def move_back(self, case: Case, core: Any, us: int, now_us: int) -> None:  # noqa: B027
        """Move all instants in the state of a core into the past by `us`.

        now_us: the node's clock reading after the move."""


def honest(net: Net) -> list[int]:
    """Return the nodes that follow the protocol. The family's promises hold only for these."""
    hostile = net.family.hostile(net.case)
    return [node for node in range(net.case.nodes) if node not in hostile]


def had(net: Net, node: int) -> set[MessageId]:
    """Return the messages that a node delivered, or would have delivered but for a crash."""
    cut_off = () if net.case.inbox else net.drivers[node].cut_off
    return {*net.oracle.delivered[node], *(message.id for message in cut_off)}


def never_delivered(
    net: Net,
    due: Collection[MessageId],
    excused: Callable[[Net, int, Collection[MessageId]], set[MessageId]] = lambda *_: set(),
) -> Iterator[str]:
    """Yield the due messages that honest nodes never delivered.

    This is for families that promise delivery. A delivery that a crash cut off counts as made,
    unless there is an inbox. excused: returns the messages that a node need not have delivered yet.
    """
    for node in honest(net):
        missing = set(due) - had(net, node)
        if missing and (missing := missing - excused(net, node, due)):
            yield f"node {node} never delivered {sorted(missing, key=str)}"


def lost_in_silence(net: Net) -> Iterator[str]:
    """Yield every message that a node received and then lost without a report. A message that was
    neither delivered nor reported as lost must be waiting or expired."""
    for node, id in sorted(net.held, key=str):
        driver = net.drivers[node]
        state = driver.core.explain(id).state
        handed_over = {*net.oracle.delivered[node], *(message.id for message in driver.cut_off)}
        if state not in ("waiting", "expired") and id not in handed_over:
            yield f"node {node} received {id} and lost it silently: {state}"


def held_for_no_reason(net: Net) -> Iterator[str]:
    """Yield every message for whose waiting `explain` gives no missing cause and no instant."""
    for node, driver in enumerate(net.drivers):
        for id in net.oracle.pasts:
            status = driver.core.explain(id)
            if status.state == "waiting" and not status.missing and status.until_us is None:
                yield f"node {node} holds {id} for no reason"
