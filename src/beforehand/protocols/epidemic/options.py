"""What the nodes of an opportunistic network agree on."""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.epidemic.cache import Eviction


class Flow(msgspec.Struct, frozen=True):
    """The bounds of flow control on one link (`protocols.epidemic.flow_control`)."""

    window: int = 4096
    """Messages requested from a peer and not answered yet. A peer that requests more is cut off."""
    offers_max: int = 65_536
    """Messages that a peer offered and that wait for the window. Offers beyond that are dropped,
    and the node sends its version vector again when half of these are done."""
    pushes_max: int = 64
    """Frames with own messages that wait for room. Later own messages are announced instead."""
    announce_us: tuple[int, int] = (10_000, 40_000)
    """Messages of other origins are announced after a delay drawn from this range: of two nodes
    that got a message together, one then hears the announcement of the other first."""
    digest_us: tuple[int, int] = (500_000, 1_500_000)
    """Digests are sent after a delay drawn from this range."""
    stall_us: int = 30_000_000
    """A peer that owes messages and sends nothing for this long is cut off."""


class Options(msgspec.Struct, frozen=True):
    """How a group disseminates. The same for all its nodes."""

    announce_us: int = 0
    """News goes out at the next tick of this period; 0: at once."""
    retry_us: int | None = None
    """Repeat what was not answered within this time. None: links are reliable while they are up,
    announcements are not acknowledged and nothing is repeated."""
    capacity: int | None = None
    """How many messages a node can hold; None: all."""
    capacity_bytes: int | None = None
    """Of their payloads together; None: any number."""
    eviction: Eviction = "oldest"
    transfer: Literal["random", "oldest", "newest"] = "random"
    """Which of the messages that a neighbour asks for goes first."""
    frame_bytes_max: int = 16_384
    """A frame takes ids or messages until it is this full."""
    frame_messages_max: int | None = None
    """A data frame takes no more messages than this; None: as many as fit."""
    push: bool = False
    """Own messages go to whoever is in contact at once, and are not announced: a way instead of
    three. For links that lose nothing while they are up, since nobody misses what is lost."""
    marks_after: int | None = None
    """A neighbour that was told of so many messages of an origin and asked for none is told how far
    we have come with it instead (`protocols.epidemic.version_vector`), and so is whoever comes into
    contact; None: never. For links that lose nothing, too."""
    flow: Flow | None = None
    """Flow control, for real links: frames are emitted as the wire takes them. None: a link takes
    any number of frames at once, as in a simulation."""

    def __post_init__(self) -> None:
        if self.push and self.retry_us is not None:
            hint = "choose one of `push` and `retry_us`: links that lose nothing, or that do"
            raise LocalError("a push that is lost is not repeated", hint=hint)
        if self.marks_after is not None and self.retry_us is not None:
            hint = "choose one of `marks_after` and `retry_us`: links that lose nothing, or that do"
            raise LocalError("a mark that is lost is not repeated", hint=hint)
        if self.flow is not None and (not self.push or self.marks_after is None):
            hint = "set `push` and `marks_after`, or leave `flow` out"
            raise LocalError("flow control needs version vectors on reliable links", hint=hint)
