"""What a node of a VCube remembers beyond the paper, and the tables in which it saves that."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from beforehand.protocols.contract.tables import Table
from beforehand.protocols.vcube.frames import Entry, VCubeMessage
from beforehand.protocols.vcube.topology import NO_NODE

Span = tuple[int, int]
"""The first and the last of some messages of one origin."""

CLOCK = Table("clock", int, int)
NEWS = Table("news", int, int)
GONE = Table("gone", int, int)
MISSED = Table("missed", int, tuple[Span, ...])
MESSAGES = Table("messages", Entry, VCubeMessage)
HEIGHTS = Table("heights", Entry, int)
FORGETFUL = Table("forgetful", int, bool)
LAST = Table("last", int, VCubeMessage)
TABLES = (CLOCK, NEWS, GONE, MISSED, MESSAGES, HEIGHTS, FORGETFUL, LAST)


@dataclass(slots=True)
class VCubeState:
    """What the paper does not need. One object, because Python reads the attributes of an object
    that has more than thirty of them more slowly, and the way of a message is hot."""

    gone: list[int]
    """The first messages of each origin that are kept no more."""
    proven: list[int]
    """The highest number of each origin under which this node has seen a message."""
    ages: deque[tuple[int, Entry]] = field(default_factory=deque)
    """When those that are kept were delivered, in that order."""
    last: dict[int, VCubeMessage] = field(default_factory=dict)
    """With proofs, of each origin the last message that is kept no more. The origin's signature
    proves to anybody that there are so many messages."""
    now_us: int = 0
    age_us: int = 0
    missed: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    is_forgetful: bool = False
    """There are messages of ours that we do not remember."""
    unheard: set[int] = field(default_factory=set)
    """Since the restart nobody said whether these are up."""

    asked: int = NO_NODE
    to_ask: dict[int, None] = field(default_factory=dict)
    has_asked: set[int] = field(default_factory=set)
    """Those asked since they came up."""
    awaited: set[int] = field(default_factory=set)
    """Those of them that have not answered the last question yet."""
    heard: dict[int, int] = field(default_factory=dict)
    """How many messages those had who made us ask in turn."""
    is_watching: bool = False
    watched: tuple[int, Entry | None] = (NO_NODE, None)
    """Who had been asked, and what had waited longest, when the timer was set."""
    tries: int = 0
    has_gained: bool = False
    """Since the last round of questions, the node skipped messages, or got some in another way than
    down their tree. The nodes that it would have served may lack them: see `_ask_all`."""

    sent_count: int = 0
    missed_count: int = 0
    dropped_count: int = 0
    """Those of the missed that were pending."""
    before_count: int = 0
    """Of the clock, what was there at the restart."""
    held_before_count: int = 0
