"""The state that a VCube node keeps beyond the paper, and the tables in which it saves it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from beforehand.protocols.contract.tables import Table
from beforehand.protocols.vcube.frames import Entry, VCubeMessage
from beforehand.protocols.vcube.topology import NO_NODE

Span = tuple[int, int]
"""First and last sequence number of a contiguous run of messages of one origin."""

CLOCK = Table("clock", int, int)
NEW_CAUSES = Table("news", int, int)
GONE = Table("gone", int, int)
MISSED = Table("missed", int, tuple[Span, ...])
MESSAGES = Table("messages", Entry, VCubeMessage)
HEIGHTS = Table("heights", Entry, int)
FORGETFUL = Table("forgetful", int, bool)
LAST = Table("last", int, VCubeMessage)
TABLES = (CLOCK, NEW_CAUSES, GONE, MISSED, MESSAGES, HEIGHTS, FORGETFUL, LAST)


@dataclass(slots=True)
class VCubeState:
    """State that the paper's protocol does not need.

    It is an object of its own for speed: Python reads the attributes of an object with more than
    thirty of them more slowly, and the path of a message is hot.
    """

    gone: list[int]
    """Per origin, the highest sequence number that this node has evicted."""
    proven: list[int]
    """Per origin, the highest sequence number that this node has seen on a message."""
    ages: deque[tuple[int, Entry]] = field(default_factory=deque)
    """(age clock at delivery, id) of the kept messages, in order of delivery."""
    last: dict[int, VCubeMessage] = field(default_factory=dict)
    """With proofs: the last evicted message of each origin. The origin's signature on it proves to
    any peer that the origin broadcast that many messages."""
    now_us: int = 0
    age_us: int = 0
    missed: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    is_forgetful: bool = False
    """Whether peers know messages of this node that it lost with its state."""
    unreported: set[int] = field(default_factory=set)
    """Peers on which the failure detector has not reported since the restart."""

    asked: int = NO_NODE
    to_ask: dict[int, None] = field(default_factory=dict)
    has_asked: set[int] = field(default_factory=set)
    """Peers that this node has asked since their last link-up."""
    awaited: set[int] = field(default_factory=set)
    """Asked peers that have not answered the last `Ask` yet."""
    known_totals: dict[int, int] = field(default_factory=dict)
    """Per peer, the sum of its clock in the last `Ask` that made this node ask it in return."""
    is_watching: bool = False
    watched: tuple[int, Entry | None] = (NO_NODE, None)
    """The asked peer and the oldest pending message at the time when the timer was set."""
    tries: int = 0
    has_gained: bool = False
    """Whether, since the last round of `Ask`s, the node skipped messages or received some by
    another path than their tree. The nodes that it serves may lack them: see `_ask_all`."""

    sent_count: int = 0
    missed_count: int = 0
    dropped_count: int = 0
    """How many of the missed messages were pending."""
    before_count: int = 0
    """The sum of the clock at the restart."""
    held_before_count: int = 0
    """How many messages were pending at the restart."""
